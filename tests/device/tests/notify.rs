//! Completion queues: what completes a `Notify`, and what does not; resizing; overflow.

use ndcompat::connector::Offer;
use ndcompat::types::{AdapterFlags, Completion, NotifyType, RequestFlags, RequestType, Sge};
use ndcompat::{QueuePairConfig, Status};
use std::time::{Duration, Instant};
use support::{End, Operation, Pair, QUEUE_DEPTH, adapter, address, is_siw, listen};

/// Starts a `Notify`.
fn notify(end: &End, kind: NotifyType) -> Operation {
    let mut operation = end.operation();
    // SAFETY: an operation stays until it is completed.
    assert_eq!(unsafe { end.completion_queue.notify(kind, operation.ov()) }, Status::PENDING);
    operation
}

/// Asserts that the request stays pending for a while.
fn stays_pending(operation: &mut Operation, why: &str) {
    for _ in 0..20 {
        assert_eq!(operation.status(), Status::PENDING, "{why}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a message from the active to the passive side, and takes the completion of the send.
fn send(pair: &Pair, context: u64, flags: RequestFlags) {
    pair.passive.receive(context, 0..64).unwrap();
    pair.active.send(context, 0..64, flags).unwrap();
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
}

#[test]
fn a_completion_completes_one_round() {
    let pair = Pair::new();
    let mut first = notify(&pair.passive, NotifyType::Any);
    stays_pending(&mut first, "nothing came yet");
    send(&pair, 1, RequestFlags::empty());
    assert_eq!(first.wait(), Status::SUCCESS);
    // The result was not taken, but there was a notification for it.
    let mut second = notify(&pair.passive, NotifyType::Any);
    stays_pending(&mut second, "notified before");
    assert_eq!(pair.passive.completion().request_context, 1);
    stays_pending(&mut second, "taking a result does not notify");
    send(&pair, 2, RequestFlags::empty());
    assert_eq!(second.wait(), Status::SUCCESS);
    assert_eq!(pair.passive.completion().request_context, 2);
    assert!(pair.passive.try_completion().is_none());
    stays_pending(&mut notify(&pair.passive, NotifyType::Any), "all was taken");
}

#[test]
fn all_outstanding_complete_together() {
    let pair = Pair::new();
    let kinds = [NotifyType::Any, NotifyType::Solicited, NotifyType::Any];
    let mut all = kinds.map(|kind| notify(&pair.passive, kind));
    send(&pair, 1, RequestFlags::empty());
    for operation in &mut all {
        assert_eq!(operation.wait(), Status::SUCCESS);
    }
    stays_pending(&mut notify(&pair.passive, NotifyType::Any), "one round only");
}

#[test]
fn results_between_get_results_and_notify_are_not_lost() {
    let pair = Pair::new();
    for round in 0..200 {
        assert!(pair.passive.try_completion().is_none());
        send(&pair, round, RequestFlags::empty());
        if round % 2 == 0 {
            // Arrives before the call; without the pause it may arrive during the call.
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(notify(&pair.passive, NotifyType::Any).wait(), Status::SUCCESS, "round {round}");
        assert_eq!(pair.passive.completion().request_context, round);
    }
}

#[test]
fn solicited_waits_for_the_sender_to_ask() {
    let pair = Pair::new();
    let mut solicited = notify(&pair.passive, NotifyType::Solicited);
    if !is_siw() {
        send(&pair, 1, RequestFlags::empty());
        stays_pending(&mut solicited, "nobody solicited");
        assert_eq!(pair.passive.completion().request_context, 1);
    }
    send(&pair, 2, RequestFlags::SOLICIT);
    assert_eq!(solicited.wait(), Status::SUCCESS);
    assert_eq!(pair.passive.completion().request_context, 2);
}

#[test]
fn any_outranks_solicited() {
    let pair = Pair::new();
    let mut solicited = notify(&pair.passive, NotifyType::Solicited);
    let mut any = notify(&pair.passive, NotifyType::Any);
    send(&pair, 1, RequestFlags::empty());
    assert_eq!((any.wait(), solicited.wait()), (Status::SUCCESS, Status::SUCCESS));
    // The result that is left does not satisfy another Notify.
    assert_eq!(pair.passive.completion().request_context, 1);
    let mut solicited = notify(&pair.passive, NotifyType::Solicited);
    if !is_siw() {
        send(&pair, 2, RequestFlags::empty());
        stays_pending(&mut solicited, "the queue asks the device anew");
    }
    send(&pair, 3, RequestFlags::SOLICIT);
    assert_eq!(solicited.wait(), Status::SUCCESS);
}

#[test]
fn a_failed_request_satisfies_all_but_errors() {
    let pair = Pair::new();
    let mut errors = notify(&pair.active, NotifyType::Errors);
    let mut solicited = notify(&pair.active, NotifyType::Solicited);
    let nowhere = [Sge { buffer: pair.active.memory.remote_address(0), length: 8, token: 0x00DE_AD00 }];
    // SAFETY: no memory is named.
    unsafe { pair.active.queue_pair.send(1, &nowhere, RequestFlags::empty()).unwrap() };
    assert_eq!(solicited.wait(), Status::SUCCESS);
    assert_ne!(pair.active.completion().status, Status::SUCCESS);
    stays_pending(&mut errors, "the queue itself is well");
    pair.active.completion_queue.cancel();
    assert_eq!(errors.status(), Status::CANCELED);
}

#[test]
fn a_failed_receive_satisfies_solicited() {
    let pair = Pair::new();
    for context in 0..4 {
        let mut solicited = notify(&pair.passive, NotifyType::Solicited);
        let last = context == 3;
        pair.passive.receive(context, if last { 0..8 } else { 0..64 }).unwrap();
        // The last one is too long. Nobody asks for an event.
        pair.active.send(context, 0..64, RequestFlags::empty()).unwrap();
        if last {
            assert_eq!(solicited.wait(), Status::SUCCESS);
            assert_ne!(pair.passive.completion().status, Status::SUCCESS);
            break;
        }
        assert_eq!(pair.passive.completion().request_context, context);
        if !is_siw() {
            stays_pending(&mut solicited, "nobody solicited");
            pair.passive.completion_queue.cancel();
            assert_eq!(solicited.status(), Status::CANCELED);
        }
        assert_eq!(pair.active.completion().status, Status::SUCCESS);
    }
}

#[test]
fn errors_ignores_ordinary_results() {
    let pair = Pair::new();
    let mut errors = notify(&pair.passive, NotifyType::Errors);
    for round in 0..10 {
        send(&pair, round, RequestFlags::SOLICIT);
        assert_eq!(pair.passive.completion().request_context, round);
    }
    pair.passive.receive(1, 0..64).unwrap();
    pair.passive.queue_pair.flush().unwrap();
    assert_eq!(pair.passive.completion().status, Status::CANCELED);
    stays_pending(&mut errors, "the queue itself is well");
    pair.passive.completion_queue.cancel();
    assert_eq!(errors.status(), Status::CANCELED);
}

#[test]
fn hidden_completions_do_not_notify() {
    let pair = Pair::new();
    let mut any = notify(&pair.active, NotifyType::Any);
    let token = pair.passive.memory.region.remote_token();
    let write = |context, flags| {
        let from = [pair.active.memory.sge(0..8)];
        // SAFETY: the memory outlives the request.
        unsafe {
            pair.active.queue_pair.write(context, &from, pair.passive.memory.remote_address(0), token, flags)
        }
    };
    for round in 0..4 * QUEUE_DEPTH {
        while write(1, RequestFlags::SILENT_SUCCESS).is_err() {
            assert_eq!(any.status(), Status::PENDING, "round {round}");
        }
    }
    stays_pending(&mut any, "silent writes");
    while write(2, RequestFlags::empty()).is_err() {}
    assert_eq!(any.wait(), Status::SUCCESS);
    assert_eq!(pair.active.completion().request_context, 2);
}

#[test]
fn cancelling_leaves_the_queue_usable() {
    let pair = Pair::new();
    let mut cancelled = [(); 3].map(|()| notify(&pair.passive, NotifyType::Any));
    pair.passive.completion_queue.cancel();
    assert!(cancelled.iter_mut().all(|operation| operation.status() == Status::CANCELED));
    let mut next = notify(&pair.passive, NotifyType::Any);
    send(&pair, 1, RequestFlags::empty());
    assert_eq!(next.wait(), Status::SUCCESS);
}

#[test]
fn results_taken_after_a_cancelled_notify_do_not_complete_the_next() {
    let pair = Pair::new();
    for round in 0..10 {
        drop(notify(&pair.passive, NotifyType::Any));
        pair.passive.completion_queue.cancel();
        send(&pair, round, RequestFlags::empty());
        assert_eq!(pair.passive.completion().request_context, round);
        let mut next = notify(&pair.passive, NotifyType::Any);
        stays_pending(&mut next, "results taken before do not notify");
        send(&pair, round, RequestFlags::empty());
        assert_eq!(next.wait(), Status::SUCCESS);
        assert_eq!(pair.passive.completion().request_context, round);
    }
}

#[test]
fn several_threads_share_a_round() {
    let pair = Pair::new();
    std::thread::scope(|scope| {
        let mut waiting: Vec<_> = (0..4).map(|_| notify(&pair.passive, NotifyType::Any)).collect();
        let threads: Vec<_> = waiting.drain(..).map(|mut one| scope.spawn(move || one.wait())).collect();
        send(&pair, 1, RequestFlags::empty());
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Status::SUCCESS);
        }
    });
}

#[test]
fn resizing_loses_nothing() {
    let pair = Pair::new();
    let queue = &pair.passive.completion_queue;
    let info = pair.passive.adapter.info().unwrap();
    assert_eq!(!info.adapter_flags.contains(AdapterFlags::CQ_RESIZE), is_siw(), "the flag says so");
    if is_siw() {
        assert_eq!(queue.resize(64), Err(Status::NOT_SUPPORTED));
        send(&pair, 1, RequestFlags::empty());
        assert_eq!(pair.passive.completion().request_context, 1);
        return;
    }
    let most = info.max_completion_queue_depth;
    for refused in [0, most + 1, u32::MAX] {
        assert_eq!(queue.resize(refused), Err(Status::INVALID_PARAMETER));
    }
    for context in 0..5 {
        send(&pair, context, RequestFlags::empty());
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while queue.resize(4) != Err(Status::BUFFER_OVERFLOW) {
        assert!(Instant::now() < deadline, "there are five results");
    }
    for depth in [5, 64, most, 8] {
        queue.resize(depth).unwrap();
    }
    for context in 5..8 {
        send(&pair, context, RequestFlags::empty());
    }
    for context in 0..8 {
        let result = pair.passive.completion();
        assert_eq!((result.status, result.request_context), (Status::SUCCESS, context));
    }
    assert!(pair.passive.try_completion().is_none());
    let mut any = notify(&pair.passive, NotifyType::Any);
    queue.resize(32).unwrap();
    send(&pair, 9, RequestFlags::empty());
    assert_eq!(any.wait(), Status::SUCCESS, "a notification survives");
}

/// A pair whose active side has a completion queue of one entry under a queue pair of `depth`.
fn overflowing(depth: u32) -> Pair {
    let adapter = adapter();
    let mut active = End::new(&adapter, 1);
    active.completion_queue = adapter.create_completion_queue(&active.file, 1, (0, 0)).unwrap();
    let config = QueuePairConfig {
        receive_completion_queue: active.completion_queue.clone(),
        initiator_completion_queue: active.completion_queue.clone(),
        context: 1,
        shared_receive_queue: None,
        receive_queue_depth: 1,
        initiator_queue_depth: depth,
        max_receive_sge: 1,
        max_initiator_sge: 1,
        inline_data_size: 0,
    };
    active.queue_pair = adapter.create_queue_pair(config).unwrap();
    Pair::connect(active, End::new(&adapter, 2), address(), Offer::default(), Offer::default())
}

#[test]
fn an_overflow_ends_the_queue_and_says_so() {
    let depth = 2048;
    let pair = overflowing(depth);
    let mut errors = notify(&pair.active, NotifyType::Errors);
    let token = pair.passive.memory.region.remote_token();
    let from = [pair.active.memory.sge(0..1)];
    for context in 0..depth {
        let to = pair.passive.memory.remote_address(0);
        // SAFETY: the memory outlives the request.
        unsafe {
            pair.active.queue_pair.write(context.into(), &from, to, token, RequestFlags::empty()).unwrap()
        };
    }
    assert_eq!(errors.wait(), Status::BUFFER_OVERFLOW);
    for kind in [NotifyType::Errors, NotifyType::Any, NotifyType::Solicited] {
        let mut late = pair.active.operation();
        // SAFETY: refused.
        let status = unsafe { pair.active.completion_queue.notify(kind, late.ov()) };
        assert_eq!(status, Status::BUFFER_OVERFLOW, "{kind:?}");
    }
    // Other queues are not affected.
    let mut other = notify(&pair.passive, NotifyType::Errors);
    stays_pending(&mut other, "another queue");
}

#[test]
fn silent_requests_never_overflow_the_queue() {
    let depth = 1024;
    let pair = overflowing(depth);
    let mut errors = notify(&pair.active, NotifyType::Errors);
    let token = pair.passive.memory.region.remote_token();
    let from = [pair.active.memory.sge(0..1)];
    let write = |flags| {
        let to = pair.passive.memory.remote_address(0);
        // SAFETY: the memory outlives the request.
        unsafe { pair.active.queue_pair.write(7, &from, to, token, flags) }
    };
    for _ in 0..8 * depth {
        while let Err(status) = write(RequestFlags::SILENT_SUCCESS) {
            assert_eq!(status, Status::NO_MORE_ENTRIES);
            std::thread::yield_now();
        }
    }
    while write(RequestFlags::empty()).is_err() {}
    let done = pair.active.completion();
    assert_eq!((done.status, done.request_type), (Status::SUCCESS, RequestType::Write));
    assert_eq!(errors.status(), Status::PENDING);
}

#[test]
fn a_released_queue_with_events_nobody_took_does_not_hang() {
    let pair = Pair::new();
    for round in 0..50 {
        drop(notify(&pair.passive, NotifyType::Any));
        send(&pair, round, RequestFlags::empty());
    }
    let mut results = [Completion {
        status: Status::PENDING,
        bytes_transferred: 0,
        queue_pair_context: 0,
        request_context: 0,
        request_type: RequestType::Bind,
    }; 64];
    assert!(pair.passive.completion_queue.results(&mut results) > 0);
}

#[test]
fn an_overflow_is_reported_although_another_adapter_reads_the_event() {
    // The device raises one event, and any thread that waits on the device may read it: here, one that waits for something else
    // on another open of the adapter.
    let other = adapter();
    let waiting = End::new(&other, 7);
    let (listener, _) = listen(&other, &waiting.file, address());
    let mut never = waiting.operation();
    // SAFETY: cancelled below.
    unsafe { listener.connection_request(&waiting.connector, never.ov()).unwrap() };
    let depth = 2048;
    let pair = overflowing(depth);
    let mut errors = notify(&pair.active, NotifyType::Errors);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| never.wait());
        let token = pair.passive.memory.region.remote_token();
        let from = [pair.active.memory.sge(0..1)];
        for context in 0..depth {
            let to = pair.passive.memory.remote_address(0);
            // SAFETY: the memory outlives the request.
            unsafe {
                pair.active.queue_pair.write(context.into(), &from, to, token, RequestFlags::empty()).unwrap()
            };
        }
        assert_eq!(errors.poll(), Status::BUFFER_OVERFLOW);
        listener.cancel();
        assert_eq!(waiter.join().unwrap(), Status::CANCELED);
    });
}
