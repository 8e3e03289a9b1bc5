//! Behaviour on which Microsoft's sample and test programs rely, beyond `spi_objects` and `spi_requests`, through the C
//! interface.

use ndcompat::Status;
use ndcompat::types::{AdapterFlags, Completion, RequestFlags, RequestType, Sge};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};
use support::client::{BYTES, Client, DEPTH, EVERYTHING, Ov, connected, file, info, listen_on, open};
use support::com::{Com, CompletionQueue, MemoryRegion, Overlapping, QueuePair, create};
use support::library::Port;
use support::{is_iwarp, is_siw, shows, siw_is_mended};

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

/// A packet may arrive, and its receiver may release everything, while the call that caused it still runs.
///
/// In a process of its own, where freed memory is overwritten at once, with the calling thread at the lowest priority on one
/// processor.
#[test]
fn all_may_be_released_before_disconnect_returns() {
    const POISON: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0");
    if std::env::var(POISON.0).as_deref() != Ok(POISON.1) {
        let poisoned = Command::new("timeout")
            .arg("280")
            .arg(std::env::current_exe().expect("the test's own path"))
            .args(["--exact", "all_may_be_released_before_disconnect_returns"])
            .env(POISON.0, POISON.1)
            .status();
        assert!(poisoned.expect("timeout(1)").success(), "see above; 124: it hangs");
        return;
    }
    // SAFETY: plain values, for this thread and those it starts.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &one), 0);
    }
    // Beside others that compute, the calling thread hardly ever runs.
    let begin = Instant::now();
    for round in 0..10 {
        if round > 0 && begin.elapsed() > Duration::from_secs(30) {
            break;
        }
        let (active, _passive) = connected();
        // SAFETY: a copy for the call below only; the thread has the reference.
        let caller = ManuallyDrop::new(unsafe { ptr::read(&active.connector) });
        let port = Port::on(active.file, 0);
        let receiver = std::thread::spawn(move || {
            port.packet(120_000).expect("Disconnect completes");
            drop(active);
        });
        let mut ov = Ov::new();
        set_policy(libc::SCHED_IDLE);
        // SAFETY: the OVERLAPPED lives until the request completes.
        assert_eq!(unsafe { caller.disconnect(ov.ptr()) }, Status::PENDING);
        set_policy(libc::SCHED_OTHER);
        receiver.join().expect("no panic");
        assert_eq!(ov.internal(), Status::SUCCESS);
    }
}

/// Sets the scheduling policy of the calling thread.
fn set_policy(policy: i32) {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are a local, which is only read.
    assert_eq!(unsafe { libc::sched_setscheduler(0, policy, &none) }, 0, "{policy}");
}

/// Queues deeper than their completion queue; requests cancelled before any connection; Notify after that.
#[test]
fn a_flush_before_any_connection_is_notified() {
    let adapter = open();
    let file = file(&adapter);
    // SAFETY: the arguments are valid; the OVERLAPPED lives until the request completes.
    unsafe {
        let queue: Com<CompletionQueue> =
            create(|iid, out| adapter.create_completion_queue(iid, file, 2, 0, 0, out)).unwrap();
        let pair: Com<QueuePair> = create(|iid, out| {
            let queue = queue.as_ptr();
            adapter.create_queue_pair(iid, queue, queue, ptr::null_mut(), 64, 64, 2, 2, 0, out)
        })
        .unwrap();
        for context in [1, 2] {
            assert_eq!(pair.receive(context as *mut c_void, ptr::null(), 0), Status::SUCCESS);
        }
        assert_eq!(pair.flush(), Status::SUCCESS);
        let mut ov = Ov::new();
        assert_eq!(queue.notify(ANY, ov.ptr()), Status::PENDING);
        assert_eq!(ov.wait(&queue), Status::SUCCESS);
        let nothing = Completion {
            status: Status::INTERNAL_ERROR,
            bytes_transferred: 0,
            queue_pair_context: 0,
            request_context: 0,
            request_type: RequestType::Send,
        };
        let mut results = [nothing; 3];
        assert_eq!(queue.get_results(results.as_mut_ptr(), 3), 2, "both at once");
        for (result, context) in results.iter().zip([1, 2]) {
            assert_eq!((result.status, result.request_context), (Status::CANCELED, context));
            assert_eq!(result.request_type, RequestType::Receive);
        }
    }
}

/// A receive that is too short fails; the send fails, too, or succeeds where the transport does not tell.
#[test]
fn a_message_longer_than_its_receive_is_an_overrun() {
    let (active, passive) = connected();
    assert_eq!(passive.receive(1, 1023), Status::SUCCESS);
    assert_eq!(active.send(2, 1024, RequestFlags::empty()), Status::SUCCESS);
    let (taken, sent) = (passive.result(), active.result());
    assert_eq!((taken.request_context, taken.status), (1, Status::DATA_OVERRUN));
    assert_eq!(sent.request_context, 2);
    assert!([Status::SUCCESS, Status::DATA_ERROR].contains(&sent.status), "{}", sent.status);
}

/// A message without a receive fails; on iWARP, which does not retry, the connection ends.
#[test]
fn a_message_without_a_receive_times_out() {
    let (active, _passive) = connected();
    let mut ended = Ov::new();
    // SAFETY: the OVERLAPPED lives until the request completes.
    assert_eq!(unsafe { active.connector.notify_disconnect(ended.ptr()) }, Status::PENDING);
    assert_eq!(active.send(1, 1024, RequestFlags::empty()), Status::SUCCESS);
    let sent = active.result();
    if !is_iwarp() {
        shows("ND2_RESULT::Send", sent.status, Status::IO_TIMEOUT);
    }
    assert_eq!(ended.wait(&active.connector), Status::SUCCESS);
}

/// A sender that counts its own results only gets ahead of the receiver: RoCE tries again, iWARP ends the connection at that message.
/// What met a receive has arrived in both cases.
#[test]
fn a_sender_ahead_of_the_receives_ends_an_iwarp_connection_at_the_first_message_without_one() {
    let (active, passive) = connected();
    for context in 0..2 {
        assert_eq!(passive.receive(context, 1024), Status::SUCCESS);
    }
    let mut ended = Ov::new();
    // SAFETY: the OVERLAPPED lives until the request completes.
    assert_eq!(unsafe { passive.connector.notify_disconnect(ended.ptr()) }, Status::PENDING);
    for context in 0..3 {
        assert_eq!(active.send(context, 1024, RequestFlags::empty()), Status::SUCCESS);
    }
    for context in 0..2 {
        let taken = passive.result();
        assert_eq!(
            (taken.request_context, taken.status, taken.bytes_transferred),
            (context, Status::SUCCESS, 1024)
        );
    }
    if is_iwarp() {
        assert_eq!(ended.wait(&passive.connector), Status::SUCCESS);
    } else {
        assert_eq!(passive.receive(2, 1024), Status::SUCCESS);
        assert_eq!((passive.result().status, ended.internal()), (Status::SUCCESS, Status::PENDING));
    }
}

/// Programs create a queue pair for one SGE and send with two.
#[test]
fn a_list_of_two_fits_a_queue_pair_made_for_one() {
    let adapter = open();
    let (mut active, passive) = (Client::on(&adapter), Client::on(&adapter));
    // SAFETY: `create` passes an id and a place for the object; the queue is the client's, which lives.
    active.queue_pair = unsafe {
        let queue = active.completion_queue.as_ptr();
        create(|iid, out| {
            adapter.create_queue_pair(iid, queue, queue, ptr::null_mut(), DEPTH, DEPTH, 1, 1, 0, out)
        })
        .unwrap()
    };
    support::client::connect(&active, &passive);
    active.memory[..3].copy_from_slice(b"two");
    active.memory[BYTES - 7..].copy_from_slice(b" pieces");
    let pieces: [Sge; 2] = [active.sge(0, 3), active.sge(BYTES - 7, 7)];
    assert_eq!(passive.receive(1, 64), Status::SUCCESS);
    // SAFETY: the memory lives as long as the client.
    let sent = unsafe { active.queue_pair.send(ptr::null_mut(), pieces.as_ptr(), 2, RequestFlags::empty()) };
    assert_eq!(sent, Status::SUCCESS);
    assert_eq!((active.result().status, passive.result().status), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!(&passive.memory[..10], b"two pieces");
}

/// Assumptions of programs: they size a queue by another one's limit, and grant credits of half a queue, where an even depth
/// below 5296 loses one each time.
#[test]
fn limits_that_programs_build_on() {
    let info = info(&open());
    let depth = info.max_completion_queue_depth.min(info.max_receive_queue_depth);
    assert!(depth % 2 == 1 || depth >= 5296, "{depth}");
    // Room for everything in flight, whichever queue the depth was taken from.
    assert!(
        info.max_receive_queue_depth >= info.max_completion_queue_depth.min(info.max_initiator_queue_depth)
    );
    assert!(info.max_receive_queue_depth < u32::MAX, "one more must be too much");
    assert!(
        info.adapter_flags.contains(AdapterFlags::IN_ORDER_DMA),
        "who spins on the last byte asks for it"
    );
    assert!(info.max_initiator_sge >= 2 && info.max_receive_sge >= 2 && info.max_read_sge >= 1, "{info:?}");
    assert!(info.max_caller_data >= 40 && info.max_callee_data >= 36, "{info:?}");
    assert!(info.max_registration_size >= 64 << 20 && info.max_transfer_length >= 64 << 20, "{info:?}");
}

/// A program closes the port, and then deregisters on a file that is bound to it.
#[test]
fn a_file_outlives_its_port() {
    let client = Client::new();
    let port = Port::on(client.file, 3);
    let mut ov = Ov::new();
    // SAFETY: the OVERLAPPED lives until the request completes.
    unsafe {
        assert_eq!(client.completion_queue.notify(ANY, ov.ptr()), Status::PENDING);
        let overlapping: Com<Overlapping> = client.completion_queue.cast().expect("IND2Overlapped");
        assert_eq!(overlapping.cancel_overlapped_requests(), Status::SUCCESS);
    }
    assert!(port.packet(0).is_some());
    drop(port);
    // SAFETY: the OVERLAPPED lives until the request has completed.
    unsafe { assert_eq!(client.region.deregister(ov.ptr()), Status::PENDING) };
    assert_eq!(ov.wait(&client.region), Status::SUCCESS);
}

/// Several regions over the same memory at a time, each with tokens of its own.
#[test]
fn many_regions_share_memory() {
    const REGIONS: usize = 500;
    let client = Client::new();
    let port = Port::on(client.file, 0);
    let region = || {
        // SAFETY: `create` passes an id and a place for the object; the file is the client's.
        create(|iid, out| unsafe { client.adapter.create_memory_region(iid, client.file, out) }).unwrap()
    };
    let regions: Vec<Com<MemoryRegion>> = (0..REGIONS).map(|_| region()).collect();
    let mut requests: Vec<Ov> = (0..REGIONS).map(|_| Ov::new()).collect();
    let packets = || {
        let mut found: Vec<_> =
            (0..REGIONS).map(|_| port.packet(120_000).expect("a packet each").1).collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), REGIONS);
    };
    // SAFETY: the memory is deregistered before it goes; the requests live until they complete.
    unsafe {
        for (region, ov) in regions.iter().zip(&mut requests) {
            let registered = region.register(client.memory.as_ptr().cast(), BYTES, EVERYTHING, ov.ptr());
            assert_eq!(registered, Status::PENDING);
        }
        packets();
        let mut tokens: Vec<_> = regions.iter().map(|region| region.get_local_token()).collect();
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), REGIONS);
        for (region, ov) in regions.iter().zip(&mut requests) {
            assert_eq!(ov.internal(), Status::SUCCESS);
            assert_eq!(region.deregister(ov.ptr()), Status::PENDING);
        }
    }
    packets();
}

/// A server that accepts and exits at once. On iWARP the end may overtake the answer, so that `Connect` fails: with an aborted
/// connection, not a bad parameter.
#[test]
fn an_accepting_peer_may_leave_at_once() {
    let adapter = open();
    for _ in 0..20 {
        let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
        let (listener, at) = listen_on(&adapter, passive.file);
        let (mut request, mut connect, mut accept, mut complete) =
            (Ov::new(), Ov::new(), Ov::new(), Ov::new());
        assert_eq!(active.bind(), Status::SUCCESS);
        // SAFETY: all are waited for.
        unsafe {
            let connector = passive.connector.as_ptr();
            assert_eq!(listener.get_connection_request(connector, request.ptr()), Status::PENDING);
            assert_eq!(active.connect(at, b"", &mut connect), Status::PENDING);
            assert_eq!(request.wait(&listener), Status::SUCCESS);
            assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
            if !is_iwarp() {
                assert_eq!(connect.wait(&active.connector), Status::SUCCESS);
                assert_eq!(active.connector.complete_connect(complete.ptr()), Status::PENDING);
                assert_eq!(complete.wait(&active.connector), Status::SUCCESS);
            }
            assert_eq!(accept.wait(&passive.connector), Status::SUCCESS);
        }
        let mut leave = Ov::new();
        passive.disconnect(&mut leave);
        let connected = connect.wait(&active.connector);
        let iwarp = is_iwarp() && connected == Status::CONNECTION_ABORTED;
        assert!(connected == Status::SUCCESS || iwarp, "{connected}");
        leave.wait(&passive.connector);
    }
}

/// A send that the peer has received succeeds, even if the peer exits at once.
#[test]
fn a_message_whose_receiver_leaves_is_sent() {
    if is_siw() && !siw_is_mended() {
        return;
    }
    for round in 0..200 {
        let (active, passive) = connected();
        passive.receive(1, 4096);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(passive.result().status, Status::SUCCESS);
                let mut leave = Ov::new();
                assert_eq!(passive.disconnect(&mut leave), Status::PENDING);
                assert_eq!(leave.wait(&passive.connector), Status::SUCCESS);
            });
            assert_eq!(active.send(1, 4096, RequestFlags::empty()), Status::SUCCESS);
            assert_eq!(active.result().status, Status::SUCCESS, "round {round}");
        });
    }
}

/// Sends to a peer that has exited are cancelled, whether this side knows of the exit or not. On iWARP they may complete, or fail
/// half way.
#[test]
fn a_message_to_a_peer_that_has_left_is_cancelled() {
    for round in 0..10 {
        let (active, passive) = connected();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut leave = Ov::new();
                assert_eq!(passive.disconnect(&mut leave), Status::PENDING);
                assert_eq!(leave.wait(&passive.connector), Status::SUCCESS);
            });
            // At different moments of the peer's exit.
            std::thread::sleep(Duration::from_micros(500 * round));
            // SAFETY: nothing is passed.
            let posted =
                unsafe { active.queue_pair.send(ptr::null_mut(), ptr::null(), 0, RequestFlags::empty()) };
            assert_eq!(posted, Status::SUCCESS);
            let sent = active.result().status;
            let iwarp = is_iwarp() && [Status::SUCCESS, Status::ACCESS_VIOLATION].contains(&sent);
            assert!(sent == Status::CANCELED || iwarp, "round {round}: {sent}");
        });
    }
}
