//! Nothing stays behind: one test, in a process of its own, since it counts what the process has.

use ndcompat::Status;
use ndcompat_tests::client::{Client, Ov, connect, file, listen_on, open};
use ndcompat_tests::com::{self, CompletionQueue, Connector, Listener, MemoryWindow, QueuePair, create};
use ndcompat_tests::library::{CloseHandle, DllCanUnloadNow};
use std::ptr::{null, null_mut};

/// The file descriptors of the process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the descriptors").count()
}

/// Connections that come about, are left without a word, are refused, or wait for ever.
fn connections() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    connect(&active, &passive);
    active.receive(1, 64);
    active.send(2, 64, 0);
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

/// Objects that are not made after all.
fn failures() {
    let adapter = open();
    let file = file(&adapter);
    // SAFETY: the arguments are valid, or refused.
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
    // The first rounds open what the library keeps.
    for _ in 0..3 {
        round();
    }
    let before = descriptors();
    for _ in 0..20 {
        round();
    }
    assert_eq!(descriptors(), before);
}
