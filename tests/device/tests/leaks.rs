//! Leaks of descriptors and memory. One test, in a process of its own, because it counts the resources of the process.

use ndcompat::Status;
use ndcompat::types::RequestFlags;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};
use support::client::{Client, Ov, connect, file, listen_on, open};
use support::com::{self, CompletionQueue, Connector, Listener, MemoryWindow, QueuePair, create};
use support::library::{CloseHandle, DllCanUnloadNow};

/// The file descriptors of the process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the descriptors").count()
}

/// Connections that succeed, are abandoned, are rejected, or are never accepted.
fn connections() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    connect(&active, &passive);
    active.receive(1, 64);
    active.send(2, 64, RequestFlags::empty());
    let mut ov = Ov::new();
    assert_eq!(active.disconnect(&mut ov), Status::PENDING);
    let (left, alone) = (Client::on(&adapter), Client::on(&adapter));
    drop(connect(&left, &alone));
    drop(left);
    let (caller, callee) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, callee.file);
    let (mut request, mut asked) = (Ov::new(), Ov::new());
    assert_eq!(caller.bind(), Status::SUCCESS);
    assert_eq!(caller.connect(at, b"", &mut asked), Status::PENDING);
    // SAFETY: the OVERLAPPEDs live until they are completed.
    unsafe {
        listener.get_connection_request(callee.connector.as_ptr(), request.ptr());
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        listener.get_connection_request(alone.connector.as_ptr(), request.ptr());
    }
}

/// Objects whose creation fails.
fn failures() {
    let adapter = open();
    let file = file(&adapter);
    // SAFETY: `create` passes an id and a place for the object; queues are the one made here or null, which is refused, as is
    // an address of no bytes; the file is closed once.
    unsafe {
        let queue: com::Com<CompletionQueue> =
            create(|iid, out| adapter.create_completion_queue(iid, file, 4, 0, 0, out)).unwrap();
        let queue = queue.as_ptr();
        let none = null_mut();
        let new = |receive, initiator, depth| {
            create::<QueuePair>(|iid, out| {
                adapter.create_queue_pair(iid, receive, initiator, none, depth, 1, 1, 1, 0, out)
            })
        };
        assert!(
            new(queue, none, 1).is_err()
                && new(none, queue, 1).is_err()
                && new(queue, queue, u32::MAX).is_err()
        );
        assert!(create::<Listener>(|iid, out| adapter.create_connector(iid, file, out)).is_err());
        assert!(create::<CompletionQueue>(|iid, out| adapter.create_memory_window(iid, out)).is_err());
        let connector: com::Com<Connector> =
            create(|iid, out| adapter.create_connector(iid, file, out)).unwrap();
        assert_eq!(connector.bind(null(), 0), Status::INVALID_ADDRESS);
        let window: com::Com<MemoryWindow> =
            create(|iid, out| adapter.create_memory_window(iid, out)).unwrap();
        assert_eq!(window.release(), 0);
        CloseHandle(file);
    }
}

#[test]
fn nothing_stays_behind() {
    let round = || {
        connections();
        failures();
        // SAFETY: no arguments.
        assert_eq!(unsafe { DllCanUnloadNow() }, Status::SUCCESS, "objects are left");
    };
    // The first rounds open what the library keeps open.
    for _ in 0..3 {
        round();
    }
    let before = descriptors();
    for _ in 0..20 {
        round();
    }
    // A TCP connection exists until its peer has closed it, too.
    let deadline = Instant::now() + Duration::from_secs(60);
    while descriptors() > before {
        assert!(Instant::now() < deadline, "{before} descriptors became {}", descriptors());
        std::thread::sleep(Duration::from_millis(1));
    }
}
