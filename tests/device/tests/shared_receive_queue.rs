//! Shared receive queues, with queue pairs on the device under test.

use ndcompat::connector::Offer;
use ndcompat::types::{NotifyType, RequestFlags, RequestType, Sge};
use ndcompat::{SharedReceiveQueue, SharedReceiveQueueConfig, Status};
use std::sync::Arc;
use support::{End, Operation, Pair, adapter, address, is_iwarp};

fn config(depth: u32, threshold: u32) -> SharedReceiveQueueConfig {
    SharedReceiveQueueConfig { depth, max_sge: 2, threshold, affinity: (0, 3) }
}

fn create(end: &End, depth: u32, threshold: u32) -> Arc<SharedReceiveQueue> {
    end.adapter.create_shared_receive_queue(&end.file, config(depth, threshold)).unwrap()
}

fn receive(end: &End, shared: &SharedReceiveQueue, context: u64) -> Result<(), Status> {
    let at = context as usize * 64;
    // SAFETY: the memory lives as long as the end.
    unsafe { shared.receive(context, &[end.memory.sge(at..at + 64)]) }
}

fn connect(active: End, passive: End) -> Pair {
    Pair::connect(active, passive, address(), Offer::default(), Offer::default())
}

#[test]
fn several_queue_pairs_share_one() {
    let adapter = adapter();
    let pool = End::new(&adapter, 0);
    let shared = create(&pool, 8, 0);
    let first = connect(End::new(&adapter, 1), End::sharing(&adapter, 11, &shared));
    let second = connect(End::new(&adapter, 2), End::sharing(&adapter, 12, &shared));
    for context in 0..4 {
        receive(&pool, &shared, context).unwrap();
    }
    let mut seen = Vec::new();
    for (pair, passive) in [(&first, 11), (&second, 12), (&first, 11), (&second, 12)] {
        pair.active.send(9, 0..64, RequestFlags::empty()).unwrap();
        assert_eq!(pair.active.completion().status, Status::SUCCESS);
        let received = pair.passive.completion();
        assert_eq!((received.status, received.queue_pair_context), (Status::SUCCESS, passive));
        assert_eq!((received.request_type, received.bytes_transferred), (RequestType::Receive, 64));
        seen.push(received.request_context);
    }
    seen.sort();
    assert_eq!(seen, [0, 1, 2, 3]);
    let own = unsafe {
        // SAFETY: the memory lives as long as the end.
        first.passive.queue_pair.receive(1, &[first.passive.memory.sge(0..1)])
    };
    assert_eq!(own, Err(Status::INVALID_DEVICE_REQUEST), "it has no receive queue of its own");
}

#[test]
fn holds_exactly_its_depth() {
    let adapter = adapter();
    let pool = End::new(&adapter, 0);
    let shared = create(&pool, 3, 0);
    let pair = connect(End::new(&adapter, 1), End::sharing(&adapter, 11, &shared));
    for context in 0..3 {
        receive(&pool, &shared, context).unwrap();
    }
    assert_eq!(receive(&pool, &shared, 3), Err(Status::NO_MORE_ENTRIES));
    pair.active.send(9, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!(pair.passive.completion().status, Status::SUCCESS);
    receive(&pool, &shared, 3).unwrap();
    assert_eq!(receive(&pool, &shared, 4), Err(Status::NO_MORE_ENTRIES));
    let three = [Sge::default(); 3];
    // SAFETY: refused.
    assert_eq!(unsafe { shared.receive(5, &three) }, Err(Status::DATA_OVERRUN));
    assert_eq!(shared.modify(2, 0), Err(Status::BUFFER_OVERFLOW), "three are outstanding");
    shared.modify(4, 0).unwrap();
    receive(&pool, &shared, 4).unwrap();
    assert_eq!(receive(&pool, &shared, 5), Err(Status::NO_MORE_ENTRIES));
    let most = adapter.info().unwrap().max_shared_receive_queue_depth;
    assert_eq!(shared.modify(most + 1, 0), Err(Status::INVALID_PARAMETER));
}

#[test]
fn a_shared_queue_signals_that_it_runs_low() {
    let adapter = adapter();
    let pool = End::new(&adapter, 0);
    let shared = create(&pool, 8, 4);
    assert_eq!(shared.notify_affinity(), Ok((0, 3)));
    let pair = connect(End::new(&adapter, 1), End::sharing(&adapter, 11, &shared));
    for context in 0..6 {
        receive(&pool, &shared, context).unwrap();
    }
    let (mut first, mut second) = (Operation::on(&pool.file), Operation::on(&pool.file));
    // SAFETY: waited for.
    unsafe {
        shared.notify(first.ov()).unwrap();
        shared.notify(second.ov()).unwrap();
    }
    for left in (3..6).rev() {
        assert_eq!(first.status(), Status::PENDING, "{} are left", left + 1);
        pair.active.send(9, 0..64, RequestFlags::empty()).unwrap();
        assert_eq!(pair.active.completion().status, Status::SUCCESS);
        assert_eq!(pair.passive.completion().status, Status::SUCCESS);
    }
    assert_eq!(first.wait(), Status::SUCCESS, "three are left");
    assert_eq!(second.wait(), Status::SUCCESS, "and all are told");
    // SAFETY: waited for, twice.
    unsafe { shared.notify(first.ov()).unwrap() };
    assert_eq!(first.wait(), Status::SUCCESS, "it is low still");
    for context in 0..2 {
        receive(&pool, &shared, context).unwrap();
    }
    // SAFETY: cancelled.
    unsafe { shared.notify(first.ov()).unwrap() };
    assert_eq!(first.status(), Status::PENDING);
    shared.cancel();
    assert_eq!(first.status(), Status::CANCELED);
    // SAFETY: waited for.
    unsafe { shared.notify(first.ov()).unwrap() };
    shared.modify(0, 8).unwrap();
    assert_eq!(first.wait(), Status::SUCCESS, "a higher threshold");
}

#[test]
fn an_empty_shared_queue_keeps_the_connection() {
    if is_iwarp() {
        // iWARP has no way to say that a receiver is not ready: the connection ends, see docs/differences.md.
        return;
    }
    let adapter = adapter();
    let pool = End::new(&adapter, 0);
    let shared = create(&pool, 8, 0);
    let pair = connect(End::new(&adapter, 1), End::sharing(&adapter, 11, &shared));
    pair.active.send(9, 0..64, RequestFlags::empty()).unwrap();
    // Longer than a message waits for the receive of a queue pair.
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert!(pair.active.try_completion().is_none(), "still trying");
    receive(&pool, &shared, 1).unwrap();
    assert_eq!(pair.passive.completion().status, Status::SUCCESS);
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
}

/// A queue pair with a shared receive queue is not destroyed when it fails, so the device must report that it has completed
/// silent requests.
#[test]
fn silent_requests_do_not_delay_later_results() {
    let adapter = adapter();
    let pool = End::new(&adapter, 0);
    let shared = create(&pool, 8, 0);
    let pair = connect(End::sharing(&adapter, 1, &shared), End::new(&adapter, 2));
    let send = |context, flags| pair.active.send(context, 0..8, flags).unwrap();
    pair.passive.receive(1, 0..8).unwrap();
    send(1, RequestFlags::SILENT_SUCCESS);
    assert_eq!(pair.passive.completion().status, Status::SUCCESS);
    let told = pair.active.completion_queue.begin_notify(NotifyType::Any).unwrap();
    pair.active.queue_pair.flush().unwrap();
    send(2, RequestFlags::empty());
    assert_eq!(told.wait(), Ok(()));
    // The silent request is reported, too, if it was not acknowledged by then or the device does not tell.
    let mut done = pair.active.completion();
    if done.request_context == 1 {
        assert_eq!(done.status, Status::CANCELED);
        done = pair.active.completion();
    }
    assert_eq!((done.status, done.request_context), (Status::CANCELED, 2));
    assert!(pair.active.try_completion().is_none());
}

#[test]
fn parameters_are_checked() {
    let adapter = adapter();
    let end = End::new(&adapter, 0);
    let info = adapter.info().unwrap();
    let create = |config| adapter.create_shared_receive_queue(&end.file, config).err();
    assert_eq!(create(config(0, 0)), Some(Status::INVALID_PARAMETER_3));
    assert_eq!(create(config(info.max_shared_receive_queue_depth + 1, 0)), Some(Status::INVALID_PARAMETER_3));
    let sge = SharedReceiveQueueConfig { max_sge: info.max_receive_sge + 1, ..config(1, 0) };
    assert_eq!(create(sge), Some(Status::INVALID_PARAMETER_4));
    let largest = SharedReceiveQueueConfig {
        depth: info.max_shared_receive_queue_depth,
        max_sge: info.max_receive_sge,
        ..config(1, 0)
    };
    assert_eq!(create(largest), None, "the maxima are attainable");
}
