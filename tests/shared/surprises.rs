//! Unusual but legal uses of requests and memory: objects released in the callbacks of their requests, an `OVERLAPPED` reused at
//! once, cancellation that races with completion, regions deregistered while in use.

use crate::turn;
use ndcompat::Status;
use ndcompat::types::{RequestFlags, Sge};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;
use support::client::{
    BYTES, Client, DEPTH, EVERYTHING, Ov, TIME_LIMIT, connect, connected, file, listen_on, messages_pass,
    open,
};
use support::com::{Com, CompletionQueue, Connector, Interface, MemoryRegion, Unknown, create};
use support::library::{BindIoCompletionCallback, CloseHandle, Port, event, take};
use win32::io::Overlapped;

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIME_LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

/// The references that callbacks release, by the address of the `OVERLAPPED`.
static HELD: Mutex<Vec<(usize, Com<Unknown>)>> = Mutex::new(Vec::new());
/// The callbacks hold the only references.
static ALONE: AtomicBool = AtomicBool::new(false);
/// Counts of callbacks that have released the last reference, and of others.
static LAST: AtomicUsize = AtomicUsize::new(0);
static OTHERS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn release(_status: u32, _bytes: u32, ov: *mut Overlapped) {
    while !ALONE.load(Ordering::Acquire) {
        thread::yield_now();
    }
    let held = {
        let mut held = HELD.lock().unwrap();
        let at = held.iter().position(|&(of, _)| of == ov as usize);
        at.map(|at| held.swap_remove(at).1)
    };
    let count = if held.is_some_and(|object| object.release() == 0) { &LAST } else { &OTHERS };
    count.fetch_add(1, Ordering::AcqRel);
}

/// Adds a reference that the request's callback releases.
fn hold<I: Interface>(ov: &mut Ov, object: &Com<I>) {
    HELD.lock().unwrap().push((ov.ptr() as usize, object.cast().expect("IUnknown")));
}

#[test]
fn a_callback_releases_the_last_of_the_objects_of_its_request() {
    let _turn = turn();
    for round in 1..=20 {
        let memory = vec![0_u8; BYTES];
        let (mut notify, mut register, mut request) = (Ov::new(), Ov::new(), Ov::new());
        ALONE.store(false, Ordering::Release);
        let adapter = open();
        let file = file(&adapter);
        // SAFETY: the arguments are valid; each OVERLAPPED, and the memory, live until the callbacks have run.
        unsafe {
            assert_ne!(BindIoCompletionCallback(file, release, 0), 0);
            let queue: Com<CompletionQueue> =
                create(|iid, out| adapter.create_completion_queue(iid, file, DEPTH, 0, 0, out)).unwrap();
            let region: Com<MemoryRegion> =
                create(|iid, out| adapter.create_memory_region(iid, file, out)).unwrap();
            let connector: Com<Connector> =
                create(|iid, out| adapter.create_connector(iid, file, out)).unwrap();
            let (listener, _) = listen_on(&adapter, file);
            hold(&mut notify, &queue);
            hold(&mut register, &region);
            hold(&mut request, &listener);
            assert_eq!(queue.notify(ANY, notify.ptr()), Status::PENDING);
            assert_eq!(listener.get_connection_request(connector.as_ptr(), request.ptr()), Status::PENDING);
            let registered = region.register(memory.as_ptr().cast(), BYTES, EVERYTHING, register.ptr());
            assert_eq!(registered, Status::PENDING);
            assert_eq!(queue.cancel_overlapped_requests(), Status::SUCCESS);
            assert_eq!(listener.cancel_overlapped_requests(), Status::SUCCESS);
            CloseHandle(file);
        }
        // The objects and the adapter are released; the callbacks hold the remaining references.
        drop(adapter);
        ALONE.store(true, Ordering::Release);
        until("a callback does not come", || LAST.load(Ordering::Acquire) == 3 * round);
    }
    assert_eq!(
        OTHERS.load(Ordering::Acquire),
        0,
        "callbacks without a request, or with a reference elsewhere"
    );
}

/// Takes all results.
fn take_all_results(client: &Client) {
    while client.try_result().is_some() {}
}

/// Two threads take turns: each waits for the other's `Notify` and starts a new one at once, with the same `OVERLAPPED` and
/// event.
#[test]
fn an_overlapped_is_used_again_at_once_by_another_thread() {
    let _turn = turn();
    let (active, passive) = connected();
    let shared = event(false);
    let mut ov = Ov::with(shared);
    let ov = ov.ptr() as usize;
    let (rounds, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let queue = &passive.completion_queue;
    // SAFETY: the OVERLAPPED lives until the end, and has no request when it is used.
    let ask = || unsafe { assert_eq!(queue.notify(ANY, ov as *mut Overlapped), Status::PENDING) };
    ask();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    // An auto-reset event wakes one of the two.
                    if take(shared) {
                        rounds.fetch_add(1, Ordering::AcqRel);
                        ask();
                    }
                    thread::yield_now();
                }
            });
        }
        for context in 0..200 {
            let before = rounds.load(Ordering::Acquire);
            assert_eq!(passive.receive(context, 8), Status::SUCCESS);
            active.send_in_turn(context, 8);
            until("a notification is lost", || rounds.load(Ordering::Acquire) > before);
            assert_eq!(active.result().status, Status::SUCCESS);
            assert_eq!(passive.result().status, Status::SUCCESS);
        }
        done.store(true, Ordering::Release);
    });
    // SAFETY: no arguments.
    unsafe { queue.cancel_overlapped_requests() };
    until("the last one is cancelled", || take(shared));
    take_all_results(&passive);
    // SAFETY: an open handle.
    unsafe { CloseHandle(shared) };
}

/// A request completes even if the program sets its event, too.
#[test]
fn requests_share_an_event() {
    let _turn = turn();
    let (active, passive) = connected();
    let shared = event(true);
    let mut requests = [Ov::with(shared), Ov::with(shared), Ov::with(shared)];
    let [received, sent, gone] = &mut requests;
    // SAFETY: waited for below.
    unsafe {
        assert_eq!(passive.completion_queue.notify(ANY, received.ptr()), Status::PENDING);
        assert_eq!(active.completion_queue.notify(ANY, sent.ptr()), Status::PENDING);
        assert_eq!(passive.connector.notify_disconnect(gone.ptr()), Status::PENDING);
    }
    messages_pass(&active, &passive);
    until("a notification does not come", || {
        received.internal() == Status::SUCCESS && sent.internal() == Status::SUCCESS
    });
    assert!(take(shared));
    assert_eq!(gone.internal(), Status::PENDING);
    assert_eq!(active.disconnect(&mut Ov::new()), Status::PENDING);
    assert_eq!(gone.wait(&passive.connector), Status::SUCCESS);
    assert!(take(shared));
    // SAFETY: an open handle.
    unsafe { CloseHandle(shared) };
}

/// A request that is cancelled while it completes does so once, with either status.
#[test]
fn cancelling_races_with_completing() {
    let _turn = turn();
    let (active, passive) = connected();
    let port = Port::on(passive.file, 5);
    let (mut completed, mut cancelled) = (0, 0);
    for round in 0..200 {
        let mut ov = Ov::new();
        let start = Barrier::new(2);
        assert_eq!(passive.receive(round, 8), Status::SUCCESS);
        // SAFETY: waited for below.
        assert_eq!(unsafe { passive.completion_queue.notify(ANY, ov.ptr()) }, Status::PENDING);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                // At different moments around the message's arrival.
                for _ in 0..round % 20 * 500 {
                    std::hint::spin_loop();
                }
                // SAFETY: no arguments.
                unsafe { passive.completion_queue.cancel_overlapped_requests() };
            });
            start.wait();
            active.send_in_turn(round, 8);
            assert_eq!(active.result().status, Status::SUCCESS);
        });
        assert_eq!(port.packet(20_000), Some((5, ov.ptr())));
        match ov.internal() {
            Status::SUCCESS => completed += 1,
            Status::CANCELED => cancelled += 1,
            status => panic!("{status}"),
        }
        assert_eq!(passive.result().status, Status::SUCCESS);
    }
    assert!(port.packet(0).is_none(), "a request has completed twice");
    println!("{completed} completed, {cancelled} cancelled");
}

/// Connectors whose listener is released get a failure, and can connect elsewhere.
#[test]
fn a_listener_goes_while_many_ask_it() {
    let _turn = turn();
    let passive = Client::new();
    let (listener, at) = listen_on(&passive.adapter, passive.file);
    let asking: Vec<_> = (0..if support::is_siw() { 16 } else { 100 })
        .map(|_| {
            let client = Client::on(&passive.adapter);
            let mut ov = Ov::new();
            assert_eq!(client.bind(), Status::SUCCESS);
            assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
            (client, ov)
        })
        .collect();
    drop(listener);
    for (client, mut ov) in asking {
        let status = ov.wait(&client.connector);
        assert!(
            [Status::CONNECTION_REFUSED, Status::CONNECTION_ABORTED, Status::IO_TIMEOUT].contains(&status),
            "{status}"
        );
    }
    let client = Client::on(&passive.adapter);
    connect(&client, &passive);
    messages_pass(&client, &passive);
}

/// A connector cannot accept its own connection request.
#[test]
fn a_connector_does_not_answer_itself() {
    let _turn = turn();
    let client = Client::new();
    let (listener, at) = listen_on(&client.adapter, client.file);
    let (mut request, mut ov) = (Ov::new(), Ov::new());
    let connector = client.connector.as_ptr();
    // SAFETY: waited for below.
    unsafe {
        assert_eq!(listener.get_connection_request(connector, request.ptr()), Status::PENDING);
        let both = client.connect(at, b"", &mut ov);
        assert_ne!(both, Status::PENDING, "it waits for a request already");
        assert_eq!(listener.cancel_overlapped_requests(), Status::SUCCESS);
        assert_eq!(request.wait(&listener), Status::CANCELED);
        assert_eq!(client.bind(), Status::SUCCESS);
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        let both = listener.get_connection_request(connector, request.ptr());
        assert_ne!(both, Status::PENDING, "it connects already");
        assert_eq!(client.connector.cancel_overlapped_requests(), Status::SUCCESS);
    }
    assert_eq!(ov.wait(&client.connector), Status::CANCELED);
}

/// Another region over the memory of a client.
fn region_over(client: &Client) -> Com<MemoryRegion> {
    let mut ov = Ov::new();
    // SAFETY: the memory lives as long as the client, which outlives the region.
    unsafe {
        let region: Com<MemoryRegion> =
            create(|iid, out| client.adapter.create_memory_region(iid, client.file, out)).unwrap();
        assert_eq!(
            region.register(client.memory.as_ptr().cast(), BYTES, EVERYTHING, ov.ptr()),
            Status::PENDING
        );
        assert_eq!(ov.wait(&region), Status::SUCCESS);
        region
    }
}

fn deregister(region: &Com<MemoryRegion>) {
    let mut ov = Ov::new();
    // SAFETY: waited for.
    assert_eq!(unsafe { region.deregister(ov.ptr()) }, Status::PENDING);
    assert_eq!(ov.wait(region), Status::SUCCESS);
}

/// Memory may be registered twice, and one registration removed without the other.
#[test]
fn bytes_in_two_regions_stay_with_the_one_that_is_left() {
    let _turn = turn();
    let (active, passive) = connected();
    for _ in 0..10 {
        let second = region_over(&passive);
        assert_eq!(passive.receive(71, 32), Status::SUCCESS);
        deregister(&second);
        assert_eq!(active.send(72, 32, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(active.result().status, Status::SUCCESS);
        assert_eq!(passive.result().status, Status::SUCCESS);
    }
}

/// Deregistering the region of a posted receive: nothing is written any more, and all posted requests complete.
#[test]
fn a_region_goes_while_a_receive_in_it_is_posted() {
    let _turn = turn();
    let (active, passive) = connected();
    let region = region_over(&passive);
    // SAFETY: the region lives.
    let token = unsafe { region.get_local_token() };
    let sge = Sge { buffer: passive.memory.as_ptr() as u64, length: 64, token };
    // SAFETY: the memory outlives the request.
    let posted = unsafe { passive.queue_pair.receive(std::ptr::without_provenance_mut(1), &sge, 1) };
    assert_eq!(posted, Status::SUCCESS);
    deregister(&region);
    assert_eq!(active.send(2, 64, RequestFlags::empty()), Status::SUCCESS);
    let (received, sent) = (passive.result(), active.result());
    assert_ne!(received.status, Status::SUCCESS);
    println!("receive {}, send {}", received.status, sent.status);
    assert!(passive.memory.iter().all(|&byte| byte == 0), "written into a region that is gone");
}

/// Tokens of deregistered regions and lengths beyond the region give no access.
#[test]
fn memory_outside_regions_is_neither_read_nor_written() {
    let _turn = turn();
    // The token of a deregistered region, bytes past the end, and lengths that wrap around.
    let cases: [(&str, u64, u32, bool); 5] = [
        ("a dead token", 0, 64, true),
        ("one byte past the end", BYTES as u64 - 63, 64, false),
        ("far behind the end", u64::from(u32::MAX), 64, false),
        ("at the top of all addresses", u64::MAX - 31, 64, false),
        ("below the beginning", 0_u64.wrapping_sub(1), 64, false),
    ];
    for (name, offset, length, dead) in cases {
        for reads in [false, true] {
            let (active, passive) = connected();
            let second = region_over(&passive);
            // SAFETY: the region lives.
            let token = unsafe { second.get_remote_token() };
            if dead {
                deregister(&second);
            }
            let top = offset > u64::MAX / 2 && name.starts_with("at");
            let base = if top { 0 } else { passive.memory.as_ptr() as u64 };
            let address = base.wrapping_add(offset);
            let sge = active.sge(0, length);
            let context = std::ptr::without_provenance_mut(9);
            // SAFETY: the memory outlives the request.
            let posted = unsafe {
                if reads {
                    active.queue_pair.read(context, &sge, 1, address, token, RequestFlags::empty())
                } else {
                    active.queue_pair.write(context, &sge, 1, address, token, RequestFlags::empty())
                }
            };
            if posted == Status::SUCCESS && !reads && support::is_iwarp() {
                // An iWARP write succeeds locally; the peer ends the connection.
                let result = active.result();
                let wanted = [Status::SUCCESS, Status::CANCELED, Status::ACCESS_VIOLATION];
                assert!(wanted.contains(&result.status), "{name}: {}", result.status);
            } else if posted == Status::SUCCESS {
                let result = active.result();
                assert_ne!(result.status, Status::SUCCESS, "{name}, reads {reads}");
            }
            assert!(active.memory.iter().all(|&byte| byte == 0), "{name}: read");
            assert!(passive.memory.iter().all(|&byte| byte == 0), "{name}: written");
        }
    }
}

/// Local lengths and addresses outside the region fail the request, at once or later, and nothing else.
#[test]
fn lengths_of_four_gigabytes() {
    let _turn = turn();
    for pieces in [1, 2] {
        let (active, passive) = connected();
        let sge = [active.sge(0, u32::MAX), active.sge(BYTES / 2, u32::MAX)];
        let context = std::ptr::without_provenance_mut(7);
        // SAFETY: no memory is touched beyond a region.
        let posted = unsafe { active.queue_pair.send(context, sge.as_ptr(), pieces, RequestFlags::empty()) };
        if posted == Status::SUCCESS {
            let result = active.result();
            assert_eq!(result.request_context, 7);
            assert_ne!(result.status, Status::SUCCESS, "{pieces} pieces");
        } else {
            println!("{pieces} pieces: {posted}");
            messages_pass(&active, &passive);
        }
    }
}
