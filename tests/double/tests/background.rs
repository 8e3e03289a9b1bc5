//! The background thread, which serves requests that no thread waits for, cannot be started. In a process of its own, because the
//! thread is never stopped.

use double::{fail, turn};
use ndcompat::Status;
use std::thread;
use std::time::Instant;
use support::client::{Client, Ov, TIME_LIMIT, listen_on, open};
use win32::object::RawHandle;

/// Forbids the calling thread to start others, by a seccomp filter.
fn forbid_threads() {
    let statement = |code: u32, k, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let (compare, answer) = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::BPF_RET | libc::BPF_K);
    let mut filter = [
        // Loads the number of the system call.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(compare, libc::SYS_clone as u32, 1, 0),
        statement(compare, libc::SYS_clone3 as u32, 0, 1),
        statement(answer, libc::SECCOMP_RET_ERRNO | libc::EAGAIN as u32, 0, 0),
        statement(answer, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program lives during the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn without_its_thread_no_file_is_created_and_later_all_is_well() {
    let _turn = turn();
    let adapter = open();
    let create = || {
        let mut file = RawHandle::NULL;
        // SAFETY: the handle goes into a local.
        (unsafe { adapter.create_overlapped_file(&mut file) }, file)
    };
    let failed = (Status::NO_MEMORY, RawHandle::NULL);
    thread::scope(|scope| {
        scope.spawn(|| {
            forbid_threads();
            for _ in 0..2 {
                assert_eq!(create(), failed, "no thread");
            }
        });
    });
    fail("epoll_ctl", libc::EMFILE);
    assert_eq!(create(), failed, "no descriptor");
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut connect) = (Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    let connector = passive.connector.as_ptr();
    // SAFETY: the OVERLAPPED lives until it completes.
    assert_eq!(unsafe { listener.get_connection_request(connector, request.ptr()) }, Status::PENDING);
    assert_eq!(active.connect(at, b"", &mut connect), Status::PENDING);
    let deadline = Instant::now() + TIME_LIMIT;
    // As HasOverlappedIoCompleted does, without waiting in the library.
    while request.internal() == Status::PENDING {
        assert!(Instant::now() < deadline, "nobody serves the listener");
        thread::yield_now();
    }
    // The connection request ends with its connector.
    drop((listener, passive, active));
    assert_ne!(connect.internal(), Status::PENDING);
}
