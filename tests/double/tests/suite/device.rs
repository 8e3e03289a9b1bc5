//! The double itself, without faults.

use double::turn;
use ndcompat::Status;
use ndcompat::types::RequestFlags;
use support::client::{connected, memory_is_read};

#[test]
fn carries_messages_and_moves_memory() {
    let _turn = turn();
    let (mut active, mut passive) = connected();
    active.memory[..5].copy_from_slice(b"hello");
    assert_eq!(passive.receive(1, 64), Status::SUCCESS);
    assert_eq!(active.send(2, 5, RequestFlags::empty()), Status::SUCCESS);
    let sent = active.result();
    assert_eq!((sent.status, sent.request_context), (Status::SUCCESS, 2));
    let received = passive.result();
    assert_eq!((received.status, received.bytes_transferred), (Status::SUCCESS, 5));
    assert_eq!(&passive.memory[..5], b"hello");
    memory_is_read(&active, &mut passive);
}
