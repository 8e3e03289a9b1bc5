//! Processes that fork, on the device under test. The tests run one at a time, because no other thread may be inside the library
//! during a fork.

#[path = "../../shared/fork.rs"]
mod fork;

use fork::{in_a_child, use_the_library};
use ndcompat::Status;
use ndcompat::types::RequestFlags;
use std::sync::{Mutex, MutexGuard};
use support::client::{Client, connect, messages_pass, open};
use support::is_iwarp;

/// A test's turn.
fn turn() -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    TURNS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The clock of the parent's file, which sees that no receive comes, is the parent's alone.
#[test]
fn a_message_without_a_receive_times_out_beside_a_child() {
    if is_iwarp() {
        return;
    }
    let _turn = turn();
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let _connection = connect(&active, &passive);
    messages_pass(&active, &passive);
    assert_eq!(active.send(7, 8, RequestFlags::empty()), Status::SUCCESS);
    for _ in 0..3 {
        assert_eq!(in_a_child(use_the_library), 0, "the child's status");
    }
    let result = active.result();
    assert_eq!((result.status, result.request_context), (Status::IO_TIMEOUT, 7));
}
