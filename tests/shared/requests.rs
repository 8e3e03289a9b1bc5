//! Statuses of requests on queue pairs, and of their results.

use crate::turn;
use ndcompat::Status;
use ndcompat::types::{RegionFlags, RequestFlags, Sge};
use std::ptr::{from_ref, null_mut};
use support::client::{Client, DEPTH, connected, info};
use support::com::{Com, MemoryRegion, MemoryWindow, create};
use support::{is_iwarp, is_siw, shows, siw_is_mended};

fn window(client: &Client) -> Com<MemoryWindow> {
    // SAFETY: `create` passes an id and a place for the object.
    create(|iid, out| unsafe { client.adapter.create_memory_window(iid, out) }).unwrap()
}

#[test]
fn requests_before_a_connection() {
    let _turn = turn();
    let client = Client::new();
    let (pair, region, window) = (&client.queue_pair, &client.region, window(&client));
    let invalid = Status::CONNECTION_INVALID;
    let sge = client.sge(0, 8);
    // SAFETY: nothing is posted.
    unsafe {
        shows("IND2QueuePair::Send", client.send(1, 8, RequestFlags::empty()), invalid);
        shows("IND2QueuePair::Read", pair.read(null_mut(), &sge, 1, 0, 0, RequestFlags::empty()), invalid);
        shows("IND2QueuePair::Write", pair.write(null_mut(), &sge, 1, 0, 0, RequestFlags::empty()), invalid);
        let memory = client.memory.as_ptr().cast();
        let bound =
            pair.bind(null_mut(), region.as_ptr(), window.as_ptr(), memory, 8, RequestFlags::ALLOW_WRITE);
        shows("IND2QueuePair::Bind", bound, invalid);
        shows(
            "IND2QueuePair::Invalidate",
            pair.invalidate(null_mut(), window.as_ptr(), RequestFlags::empty()),
            invalid,
        );
        shows("IND2QueuePair::Flush", pair.flush(), Status::SUCCESS);
    }
}

#[test]
fn requests_that_succeed() {
    let _turn = turn();
    let (active, passive) = connected();
    let (pair, window) = (&active.queue_pair, window(&active));
    let done = |method: &str| shows(method, active.result().status, Status::SUCCESS);
    // SAFETY: the memory lives; nothing else touches it meanwhile.
    unsafe {
        shows("IND2QueuePair::Receive", passive.receive(1, 64), Status::SUCCESS);
        shows("IND2QueuePair::Send", active.send(2, 64, RequestFlags::empty()), Status::SUCCESS);
        done("ND2_RESULT::Send");
        shows("ND2_RESULT::Receive", passive.result().status, Status::SUCCESS);
        let (at, token) = (passive.memory.as_ptr() as u64, passive.region.get_remote_token());
        let sge = active.sge(0, 64);
        shows(
            "IND2QueuePair::Read",
            pair.read(null_mut(), &sge, 1, at, token, RequestFlags::empty()),
            Status::SUCCESS,
        );
        done("ND2_RESULT::Read");
        shows(
            "IND2QueuePair::Write",
            pair.write(null_mut(), &sge, 1, at, token, RequestFlags::empty()),
            Status::SUCCESS,
        );
        done("ND2_RESULT::Write");
        let (region, memory) = (active.region.as_ptr(), active.memory.as_ptr().cast());
        let bound = pair.bind(null_mut(), region, window.as_ptr(), memory, 64, RequestFlags::ALLOW_WRITE);
        shows("IND2QueuePair::Bind", bound, Status::SUCCESS);
        done("ND2_RESULT::Bind");
        let invalidated = pair.invalidate(null_mut(), window.as_ptr(), RequestFlags::empty());
        shows("IND2QueuePair::Invalidate", invalidated, Status::SUCCESS);
        done("ND2_RESULT::Invalidate");
    }
}

#[test]
fn requests_that_are_refused() {
    let _turn = turn();
    let (active, _passive) = connected();
    let pair = &active.queue_pair;
    let sge = |length| Sge { length, ..active.sge(0, 1) };
    let three = [sge(1); 3];
    let long = [sge(info(&active.adapter).max_transfer_length), sge(1)];
    let none = null_mut();
    // SAFETY: nothing is posted.
    unsafe {
        for (list, count, wanted) in
            [(three.as_ptr(), 3, Status::DATA_OVERRUN), (long.as_ptr(), 2, Status::BUFFER_OVERFLOW)]
        {
            shows("IND2QueuePair::Send", pair.send(none, list, count, RequestFlags::empty()), wanted);
            shows("IND2QueuePair::Receive", pair.receive(none, list, count), wanted);
            shows("IND2QueuePair::Read", pair.read(none, list, count, 0, 0, RequestFlags::empty()), wanted);
            shows("IND2QueuePair::Write", pair.write(none, list, count, 0, 0, RequestFlags::empty()), wanted);
        }
        let strange = RequestFlags::from_bits_retain(0x8000_0000);
        let one = from_ref(&three[0]);
        shows("IND2QueuePair::Send", pair.send(none, one, 1, strange), Status::INVALID_PARAMETER_4);
        shows("IND2QueuePair::Write", pair.write(none, one, 1, 0, 0, strange), Status::INVALID_PARAMETER_6);
        let read_only: Com<MemoryRegion> =
            create(|iid, out| active.adapter.create_memory_region(iid, active.file, out)).unwrap();
        let (mut ov, window) = (support::client::Ov::new(), window(&active));
        let memory = active.memory.as_ptr().cast();
        assert_eq!(read_only.register(memory, 64, RegionFlags::empty(), ov.ptr()), Status::PENDING);
        let bound =
            pair.bind(none, read_only.as_ptr(), window.as_ptr(), memory, 64, RequestFlags::ALLOW_WRITE);
        shows("IND2QueuePair::Bind", bound, Status::ACCESS_VIOLATION);
        assert_eq!(read_only.deregister(ov.ptr()), Status::PENDING);
    }
}

#[test]
fn queues_that_are_full() {
    let _turn = turn();
    let (active, passive) = connected();
    let (pair, bound, free) = (&active.queue_pair, window(&active), window(&active));
    let full = Status::NO_MORE_ENTRIES;
    let sge = active.sge(0, 8);
    // SAFETY: the memory lives; nothing else touches it meanwhile.
    unsafe {
        let (region, memory) = (active.region.as_ptr(), active.memory.as_ptr().cast());
        let bind = |window: &Com<MemoryWindow>| {
            pair.bind(null_mut(), region, window.as_ptr(), memory, 8, RequestFlags::ALLOW_WRITE)
        };
        // Results that are not taken keep their slots.
        assert_eq!(bind(&bound), Status::SUCCESS);
        for _ in 1..DEPTH {
            assert_eq!(passive.receive(1, 8), Status::SUCCESS);
            assert_eq!(active.send(1, 8, RequestFlags::empty()), Status::SUCCESS);
        }
        let token = passive.region.get_remote_token();
        let at = passive.memory.as_ptr() as u64;
        shows("IND2QueuePair::Send", active.send(1, 8, RequestFlags::empty()), full);
        shows("IND2QueuePair::Read", pair.read(null_mut(), &sge, 1, at, token, RequestFlags::empty()), full);
        shows(
            "IND2QueuePair::Write",
            pair.write(null_mut(), &sge, 1, at, token, RequestFlags::empty()),
            full,
        );
        shows("IND2QueuePair::Bind", bind(&free), full);
        let invalidated = pair.invalidate(null_mut(), bound.as_ptr(), RequestFlags::empty());
        shows("IND2QueuePair::Invalidate", invalidated, full);
        for _ in 0..DEPTH {
            active.receive(1, 8);
        }
        shows("IND2QueuePair::Receive", active.receive(1, 8), full);
    }
}

#[test]
fn requests_that_are_flushed() {
    let _turn = turn();
    let (active, _passive) = connected();
    let (pair, window) = (&active.queue_pair, window(&active));
    let sge = active.sge(0, 8);
    let (region, memory) = (active.region.as_ptr(), active.memory.as_ptr().cast());
    // SAFETY: nothing reaches the peer.
    unsafe {
        assert_eq!(pair.flush(), Status::SUCCESS);
        let posted = [
            ("ND2_RESULT::Send", active.send(1, 8, RequestFlags::empty())),
            ("ND2_RESULT::Receive", active.receive(1, 8)),
            ("ND2_RESULT::Read", pair.read(null_mut(), &sge, 1, 0, 0, RequestFlags::empty())),
            ("ND2_RESULT::Write", pair.write(null_mut(), &sge, 1, 0, 0, RequestFlags::empty())),
            (
                "ND2_RESULT::Bind",
                pair.bind(null_mut(), region, window.as_ptr(), memory, 8, RequestFlags::ALLOW_WRITE),
            ),
            ("ND2_RESULT::Invalidate", pair.invalidate(null_mut(), window.as_ptr(), RequestFlags::empty())),
        ];
        for (method, posted) in posted {
            assert_eq!(posted, Status::SUCCESS, "{method}");
            shows(method, active.result().status, Status::CANCELED);
        }
    }
}

#[test]
fn messages_that_are_too_long() {
    let _turn = turn();
    let (active, passive) = connected();
    assert_eq!(passive.receive(1, 7), Status::SUCCESS);
    assert_eq!(active.send(2, 8, RequestFlags::empty()), Status::SUCCESS);
    shows("ND2_RESULT::Receive", passive.result().status, Status::DATA_OVERRUN);
    if !is_iwarp() {
        shows("ND2_RESULT::Send", active.result().status, Status::DATA_ERROR);
    }
}

#[test]
fn memory_that_is_not_allowed() {
    let _turn = turn();
    for method in ["ND2_RESULT::Read", "ND2_RESULT::Write"] {
        let (active, passive) = connected();
        let sge = active.sge(0, 8);
        let at = passive.memory.as_ptr() as u64;
        // SAFETY: the peer's memory is not reached.
        let posted = unsafe {
            let pair = &active.queue_pair;
            let token = !passive.region.get_remote_token();
            match method {
                "ND2_RESULT::Read" => pair.read(null_mut(), &sge, 1, at, token, RequestFlags::empty()),
                _ => pair.write(null_mut(), &sge, 1, at, token, RequestFlags::empty()),
            }
        };
        assert_eq!(posted, Status::SUCCESS);
        // An iWARP write completes before the peer can report an error.
        if !is_iwarp() || method == "ND2_RESULT::Read" && (!is_siw() || siw_is_mended()) {
            shows(method, active.result().status, Status::ACCESS_VIOLATION);
        }
    }
}
