//! The double itself: a device on which all goes well.

use double::turn;
use ndcompat::Status;
use ndcompat_tests::client::connected;
use std::ffi::c_void;

#[test]
fn carries_messages_and_moves_memory() {
    let _turn = turn();
    let (mut active, mut passive) = connected();
    active.memory[..5].copy_from_slice(b"hello");
    assert_eq!(passive.receive(1, 64), Status::SUCCESS);
    assert_eq!(active.send(2, 5, 0), Status::SUCCESS);
    let sent = active.result();
    assert_eq!((sent.status, sent.request_context), (Status::SUCCESS, 2));
    let received = passive.result();
    assert_eq!((received.status, received.bytes_transferred), (Status::SUCCESS, 5));
    assert_eq!(&passive.memory[..5], b"hello");
    passive.memory[100..108].copy_from_slice(b"remotely");
    // SAFETY: the memory lives; nothing else touches it meanwhile.
    unsafe {
        let (token, at) = (passive.region.get_remote_token(), passive.memory.as_ptr() as u64);
        let read = active.queue_pair.read(3 as *mut c_void, &active.sge(0, 8), 1, at + 100, token, 0);
        assert_eq!(read, Status::SUCCESS);
        assert_eq!(active.result().status, Status::SUCCESS);
    }
    assert_eq!(&active.memory[..8], b"remotely");
}
