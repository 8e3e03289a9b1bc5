//! Behaviour on which ND v2 programs rely, through the C interface: overlapped requests.

use ndcompat::Status;
use ndcompat::types::{RegionFlags, RequestFlags};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use support::client::{BYTES, Client, Ov, connected, file, listen_on, open};
use support::com::{Com, CompletionQueue, MemoryRegion, create};
use support::library::{BindIoCompletionCallback, CancelIoEx, CloseHandle, Port, SetEvent, event, take};
use win32::io::Overlapped;
use win32::object::RawHandle;

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

#[test]
fn overlapped_calls_return_pending_and_complete_once() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (port, other) = (Port::on(active.file, 1), Port::on(passive.file, 2));
    let (listener, at) = listen_on(&adapter, passive.file);
    let mut ovs: HashMap<&str, Ov> = HashMap::new();
    let mut ov = |name| ovs.entry(name).or_default().ptr();
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: all OVERLAPPEDs live to the end of the test.
    unsafe {
        let region: Com<MemoryRegion> =
            create(|iid, out| adapter.create_memory_region(iid, active.file, out)).unwrap();
        let memory = active.memory.as_ptr().cast();
        assert_eq!(
            region.register(memory, BYTES, RegionFlags::ALLOW_LOCAL_WRITE, ov("Register")),
            Status::PENDING
        );
        // A call that fails at once completes no request.
        assert_eq!(
            region.register(memory, BYTES, RegionFlags::ALLOW_LOCAL_WRITE, ov("failure")),
            Status::INVALID_DEVICE_STATE
        );
        assert_eq!(active.connector.disconnect(ov("failure")), Status::CONNECTION_INVALID);
        let queue = &active.completion_queue;
        assert_eq!(queue.notify(ANY, ov("Notify")), Status::PENDING);
        let request = listener.get_connection_request(passive.connector.as_ptr(), ov("GetConnectionRequest"));
        assert_eq!(request, Status::PENDING);
        let mut connect = Ov::new();
        assert_eq!(active.connect(at, b"", &mut connect), Status::PENDING);
        assert_eq!(other.packet(60_000).map(|(key, _)| key), Some(2), "GetConnectionRequest");
        let mut accept = Ov::new();
        assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
        assert_eq!(connect.wait(&active.connector), Status::SUCCESS);
        assert_eq!(active.connector.complete_connect(ov("CompleteConnect")), Status::PENDING);
        assert_eq!(other.packet(60_000), Some((2, accept.ptr())), "Accept");
        assert_eq!(passive.connector.notify_disconnect(ov("NotifyDisconnect")), Status::PENDING);
        assert_eq!(passive.receive(1, 64), Status::SUCCESS);
        assert_eq!(active.send(1, 64, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(active.result().status, Status::SUCCESS);
        assert_eq!(active.connector.disconnect(ov("Disconnect")), Status::PENDING);
        assert_eq!(region.deregister(ov("Deregister")), Status::PENDING);
        let mut expected: Vec<_> =
            ["Register", "Notify", "CompleteConnect", "Disconnect", "Deregister"].map(&mut ov).into();
        expected.push(connect.ptr());
        while !expected.is_empty() {
            let (key, packet) = port.packet(60_000).expect("a packet for each");
            assert_eq!(key, 1);
            let at = expected.iter().position(|&ov| ov == packet).expect("once each, and none for a failure");
            expected.swap_remove(at);
        }
        assert_eq!(other.packet(60_000), Some((2, ov("NotifyDisconnect"))));
        assert_eq!((port.packet(100), other.packet(0)), (None, None));
    }
}

/// How long `Disconnect` waits for the peer's answer, less a little.
const DISCONNECT_WAIT: Duration = Duration::from_millis(400);

#[test]
fn register_deregister_and_disconnect_are_done_when_they_return() {
    // The peer's answer may come late on a busy machine.
    assert!((0..5).any(|_| are_done_when_they_return()));
}

/// False if the peer's answer came late.
fn are_done_when_they_return() -> bool {
    let (active, passive) = connected();
    let set = event(false);
    let mut ov = Ov::with(set);
    // SAFETY: the OVERLAPPED lives; that it is not used after a call has returned is what is tested.
    unsafe {
        let region: Com<MemoryRegion> =
            create(|iid, out| active.adapter.create_memory_region(iid, active.file, out)).unwrap();
        assert_eq!(
            region.register(active.memory.as_ptr().cast(), 4096, RegionFlags::ALLOW_LOCAL_WRITE, ov.ptr()),
            Status::PENDING
        );
        assert!(ov.internal() == Status::SUCCESS && take(set), "Register");
        assert_eq!(region.deregister(ov.ptr()), Status::PENDING);
        assert!(ov.internal() == Status::SUCCESS && take(set), "Deregister");
        let begun = Instant::now();
        assert_eq!(active.disconnect(&mut ov), Status::PENDING);
        if ov.internal() == Status::PENDING && begun.elapsed() > DISCONNECT_WAIT {
            assert_eq!(ov.wait(&active.connector), Status::SUCCESS);
            CloseHandle(set);
            return false;
        }
        assert!(ov.internal() == Status::SUCCESS && take(set), "Disconnect");
        CloseHandle(set);
        // As if it had been freed and reused.
        ov.ptr().write_bytes(0x5A, 1);
    }
    drop((active, passive));
    // For a while, in which nothing must happen.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(ov.internal(), Status(0x5A5A_5A5A));
    true
}

#[test]
fn submission_reads_the_event_only_and_holds_what_it_needs() {
    let client = Client::new();
    let queue = &client.completion_queue;
    let (plain, tagged) = (event(true), event(true));
    // A set low bit: the event, but no packet.
    let (mut both, mut quiet) = (Ov::with(plain), Ov::with(RawHandle(tagged.0 | 1)));
    let port = Port::on(client.file, 7);
    // SAFETY: both OVERLAPPEDs are completed before they go.
    unsafe {
        SetEvent(plain);
        SetEvent(tagged);
        assert_eq!(queue.notify(ANY, both.ptr()), Status::PENDING);
        assert_eq!(queue.notify(ANY, quiet.ptr()), Status::PENDING);
        assert_eq!((both.internal(), quiet.internal()), (Status::PENDING, Status::PENDING));
        assert!(!take(plain) && !take(tagged), "both were reset");
        assert_eq!(queue.cancel_overlapped_requests(), Status::SUCCESS);
        assert!(take(plain) && take(tagged), "both are set");
        assert_eq!(port.packet(60_000), Some((7, both.ptr())));
        assert_eq!(port.packet(50), None, "none for the tagged one");
        // Programs close event and file while requests are pending.
        assert_eq!(queue.notify(ANY, both.ptr()), Status::PENDING);
        assert!(CloseHandle(plain) != 0 && CloseHandle(client.file) != 0);
        assert_eq!(queue.cancel_overlapped_requests(), Status::SUCCESS);
        assert_eq!(both.internal(), Status::CANCELED);
        assert_eq!(port.packet(60_000), Some((7, both.ptr())));
        CloseHandle(tagged);
    }
}

#[test]
fn handles_fit_32_bits_and_leave_two_for_the_caller() {
    let adapter = open();
    let port = Port::on(RawHandle::INVALID, 0);
    for handle in [file(&adapter), event(true), event(false)] {
        assert!(handle.0 != 0 && handle.0 < 1 << 32 && handle.0 % 4 == 0, "{handle:?}");
        // SAFETY: ours.
        assert_ne!(unsafe { CloseHandle(handle) }, 0);
    }
    drop(port);
}

#[test]
fn results_belong_to_the_overlapped() {
    let (active, passive) = connected();
    let mut notice = Ov::new();
    // SAFETY: all OVERLAPPEDs live until they are completed.
    unsafe {
        assert_eq!(passive.connector.notify_disconnect(notice.ptr()), Status::PENDING);
        // GetOverlappedResult of any object on any file.
        let asked = [
            active.completion_queue.get_overlapped_result(notice.ptr(), 0),
            passive.region.get_overlapped_result(notice.ptr(), 0),
        ];
        assert_eq!(asked, [Status::PENDING; 2]);
        let mut ov = Ov::with(RawHandle(1));
        active.disconnect(&mut ov);
        assert_eq!(
            active.region.get_overlapped_result(ov.ptr(), 1),
            Status::SUCCESS,
            "an event of 1 is none"
        );
        for wait in [1, 0, 1, 0] {
            let result = passive.completion_queue.get_overlapped_result(notice.ptr(), wait);
            assert_eq!(result, Status::SUCCESS, "as often as it is asked");
        }
    }
}

/// Whether a thread of this process sleeps in the kernel.
fn is_asleep(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('S'))
}

#[test]
fn a_wait_outlives_the_object_it_waits_on() {
    let client = Client::new();
    // SAFETY: `create` passes an id and a place for the object; the OVERLAPPED is completed by the release at the latest.
    let (queue, mut ov) = unsafe {
        let queue: Com<CompletionQueue> =
            create(|iid, out| client.adapter.create_completion_queue(iid, client.file, 8, 0, 0, out))
                .unwrap();
        let mut ov = Ov::new();
        assert_eq!(queue.notify(ANY, ov.ptr()), Status::PENDING);
        (queue, ov)
    };
    let (address, request) = (queue.as_ptr() as usize, ov.ptr() as usize);
    let (tell, told) = channel();
    let waiting = std::thread::spawn(move || {
        // SAFETY: takes no arguments.
        tell.send(unsafe { libc::gettid() }).unwrap();
        // SAFETY: the object is released while this waits, which is allowed; the OVERLAPPED lives.
        unsafe {
            let queue = &*(address as *const CompletionQueue);
            queue.get_overlapped_result(request as *mut Overlapped, 1)
        }
    });
    let thread = told.recv().unwrap();
    while !is_asleep(thread) {
        std::thread::yield_now();
    }
    assert_eq!(queue.release(), 0);
    assert_eq!(waiting.join().unwrap(), Status::CANCELED);
}

#[test]
fn cancel_is_synchronous_and_first_in_first_out() {
    let client = Client::new();
    let queue = &client.completion_queue;
    let port = Port::on(client.file, 5);
    let mut ovs: [Ov; 4] = Default::default();
    // SAFETY: the OVERLAPPEDs are completed before they go.
    unsafe {
        for ov in &mut ovs {
            assert_eq!(queue.notify(ANY, ov.ptr()), Status::PENDING);
        }
        // First a single request, as Asio does.
        assert_ne!(CancelIoEx(client.file, ovs[2].ptr()), 0);
        assert_eq!(
            ovs.each_ref().map(Ov::internal)[1..],
            [Status::PENDING, Status::CANCELED, Status::PENDING]
        );
        assert_eq!(CancelIoEx(client.file, ovs[2].ptr()), 0, "once");
        assert_eq!(queue.cancel_overlapped_requests(), Status::SUCCESS);
    }
    assert!(ovs.iter().all(|ov| ov.internal() == Status::CANCELED));
    for at in [2, 0, 1, 3] {
        assert_eq!(port.packet(60_000), Some((5, ovs[at].ptr())), "packets come all the same");
    }
    assert_eq!(port.packet(50), None);
}

#[test]
fn the_last_release_cancels() {
    let adapter = open();
    let client = Client::on(&adapter);
    let (mut notify, mut request) = (Ov::new(), Ov::new());
    // SAFETY: the OVERLAPPEDs are completed by the releases.
    unsafe {
        let queue: Com<CompletionQueue> =
            create(|iid, out| adapter.create_completion_queue(iid, client.file, 8, 0, 0, out)).unwrap();
        assert_eq!(queue.notify(ANY, notify.ptr()), Status::PENDING);
        assert_eq!(queue.release(), 0);
        assert_eq!(notify.internal(), Status::CANCELED);
        let (listener, _) = listen_on(&adapter, client.file);
        let pending = listener.get_connection_request(client.connector.as_ptr(), request.ptr());
        assert_eq!(pending, Status::PENDING);
        assert_eq!(listener.release(), 0);
        assert_eq!(request.internal(), Status::CANCELED);
        let (listener, _) = listen_on(&adapter, client.file);
        assert_eq!(
            listener.get_connection_request(client.connector.as_ptr(), request.ptr()),
            Status::PENDING,
            "the connector was given back"
        );
        drop(listener);
    }
}

/// Where the callback of [`cancel_does_not_wait_for_callbacks`] reports its arguments.
static CANCELLED: Mutex<Option<Sender<(u32, usize)>>> = Mutex::new(None);
/// The lock that the program and the callback take.
static LOCK: Mutex<()> = Mutex::new(());

unsafe extern "C" fn cancelled(status: u32, _bytes: u32, ov: *mut Overlapped) {
    let _held = LOCK.lock();
    // The receiver is gone at the end of the test.
    let _ = CANCELLED.lock().unwrap().as_ref().unwrap().send((status, ov as usize));
}

#[test]
fn cancel_does_not_wait_for_callbacks() {
    let client = Client::new();
    let (sender, receiver) = channel();
    *CANCELLED.lock().unwrap() = Some(sender);
    let mut ov = Ov::new();
    // SAFETY: the OVERLAPPED lives until the callback has it.
    unsafe {
        assert_ne!(BindIoCompletionCallback(client.file, cancelled, 0), 0);
        assert_eq!(client.completion_queue.notify(ANY, ov.ptr()), Status::PENDING);
        let held = LOCK.lock().unwrap();
        assert_eq!(client.completion_queue.cancel_overlapped_requests(), Status::SUCCESS);
        assert_eq!(ov.internal(), Status::CANCELED);
        drop(held);
    }
    let (status, which) = receiver.recv_timeout(Duration::from_secs(60)).expect("the callback runs");
    assert_eq!((Status(status as i32), which), (Status::CANCELED, ov.ptr() as usize));
}

#[test]
fn notify_disconnect_tells_who_ended_it() {
    let (active, passive) = connected();
    let (mut local, mut remote, mut cancelled, mut end) = (Ov::new(), Ov::new(), Ov::new(), Ov::new());
    // SAFETY: all OVERLAPPEDs live until they are completed.
    unsafe {
        assert_eq!(active.connector.notify_disconnect(cancelled.ptr()), Status::PENDING);
        assert_eq!(active.connector.cancel_overlapped_requests(), Status::SUCCESS);
        assert_eq!(cancelled.internal(), Status::CANCELED);
        assert_eq!(active.connector.notify_disconnect(local.ptr()), Status::PENDING);
        assert_eq!(passive.connector.notify_disconnect(remote.ptr()), Status::PENDING);
        assert_eq!(active.disconnect(&mut end), Status::PENDING);
        assert_eq!(local.wait(&active.connector), Status::CONNECTION_DISCONNECTED, "by Disconnect");
        assert_eq!(remote.wait(&passive.connector), Status::SUCCESS, "by the peer");
        // NotifyDisconnect after the disconnect.
        assert_eq!(passive.connector.notify_disconnect(remote.ptr()), Status::PENDING);
        assert_eq!(remote.wait(&passive.connector), Status::SUCCESS);
        let idle = Client::on(&active.adapter);
        assert_eq!(idle.connector.notify_disconnect(remote.ptr()), Status::CONNECTION_INVALID);
    }
}
