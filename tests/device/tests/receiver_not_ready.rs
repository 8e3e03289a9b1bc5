//! Messages that meet no receive, on soft-RoCE. Over iWARP such a message ends the connection (docs/differences.md).

use ndcompat::Status;
use ndcompat::types::{NotifyType, RequestFlags};
use std::time::{Duration, Instant};
use support::{Operation, Pair, is_iwarp};

/// The time limit of what must come.
const LIMIT: Duration = Duration::from_secs(60);

/// How many times the device's messages have met no receive.
fn refusals() -> u64 {
    let device = std::env::var("NDCOMPAT_RDMADEV").expect("the name of the device");
    let count =
        std::fs::read_to_string(format!("/sys/class/infiniband/{device}/ports/1/hw_counters/rcvd_rnr_err"));
    count.unwrap().trim().parse().unwrap()
}

/// Waits until messages of the device have met no receive `count` times more.
fn wait_for_refusals(count: u64) {
    let (begin, before) = (Instant::now(), refusals());
    while refusals() < before + count {
        assert!(begin.elapsed() < LIMIT, "the device does not try again");
        std::thread::yield_now();
    }
}

/// A device that gave up after the most retries that can be counted, seven, would fail here. So would one that waited for 164 ms before
/// each: after four seconds the message would have timed out.
#[test]
fn a_message_goes_on_when_its_receive_comes_late() {
    if is_iwarp() {
        return;
    }
    // On a machine that stands still meanwhile the receive comes too late indeed.
    let begin = Instant::now();
    while !goes_on_in_time() {
        assert!(begin.elapsed() < LIMIT, "it times out each time");
    }
}

/// Whether each receive was posted before its message could time out. Then all have arrived.
fn goes_on_in_time() -> bool {
    let pair = Pair::new();
    for (round, refused) in (0..).zip([1, 25, 25]) {
        let sent = Instant::now();
        pair.active.send(round, 0..64, RequestFlags::empty()).unwrap();
        wait_for_refusals(refused);
        pair.passive.receive(round, 0..64).unwrap();
        if sent.elapsed() > Duration::from_secs(1) {
            return false;
        }
        for end in [&pair.passive, &pair.active] {
            let result = end.completion();
            assert_eq!((result.status, result.request_context), (Status::SUCCESS, round));
        }
    }
    true
}

/// Takes the results of the active end until there are none, and checks them: the first message has met no receive, the others are cancelled.
fn ends_by_a_timeout(pair: &Pair, take: impl Fn() -> ndcompat::types::Completion, contexts: &[u64]) {
    for (at, &context) in contexts.iter().enumerate() {
        let result = take();
        let expected = if at == 0 { Status::IO_TIMEOUT } else { Status::CANCELED };
        assert_eq!((result.status, result.request_context), (expected, context));
    }
    assert!(pair.active.try_completion().is_none());
    // The connection is gone at both ends.
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
}

fn connected() -> Pair {
    let pair = Pair::new();
    // What goes before is received.
    pair.passive.receive(1, 0..64).unwrap();
    pair.active.send(1, 0..64, RequestFlags::empty()).unwrap();
    for end in [&pair.passive, &pair.active] {
        assert_eq!(end.completion().status, Status::SUCCESS);
    }
    pair
}

#[test]
fn a_message_whose_receive_never_comes_times_out() {
    if is_iwarp() {
        return;
    }
    let pair = connected();
    let begin = Instant::now();
    for context in [2, 3, 4] {
        pair.active.send(context, 0..64, RequestFlags::empty()).unwrap();
    }
    let take = || {
        let result = pair.active.completion();
        assert!(begin.elapsed() >= Duration::from_secs(1), "a receiver has a second");
        result
    };
    ends_by_a_timeout(&pair, take, &[2, 3, 4]);
}

#[test]
fn who_waits_is_told_that_a_message_has_timed_out() {
    if is_iwarp() {
        return;
    }
    let pair = connected();
    pair.active.send(2, 0..64, RequestFlags::empty()).unwrap();
    ends_by_a_timeout(&pair, || pair.active.notified_completion(), &[2]);
}

/// Nobody waits in the library: the program looks at the `OVERLAPPED`.
#[test]
fn who_looks_at_the_overlapped_is_told_that_a_message_has_timed_out() {
    if is_iwarp() {
        return;
    }
    let pair = connected();
    pair.active.send(2, 0..64, RequestFlags::empty()).unwrap();
    let mut notified = Operation::on(&pair.active.file);
    // SAFETY: looked at until it has completed.
    let begun = unsafe { pair.active.completion_queue.notify(NotifyType::Any, notified.ov()) };
    assert_eq!(begun, Status::PENDING);
    let begin = Instant::now();
    while notified.status() == Status::PENDING {
        assert!(begin.elapsed() < LIMIT, "nobody is told");
        std::thread::sleep(Duration::from_millis(1));
    }
    ends_by_a_timeout(&pair, || pair.active.completion(), &[2]);
}

#[test]
fn disconnecting_cancels_a_message_that_waits_for_its_receive() {
    if is_iwarp() {
        return;
    }
    for flags in [RequestFlags::empty(), RequestFlags::SILENT_SUCCESS] {
        let pair = connected();
        pair.active.send(2, 0..64, flags).unwrap();
        wait_for_refusals(5);
        assert_eq!(pair.active.disconnect(), Status::SUCCESS);
        let result = pair.active.completion();
        assert_eq!((result.status, result.request_context), (Status::CANCELED, 2));
        assert!(pair.active.try_completion().is_none());
        assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
    }
}

/// The device reports no silent request that has succeeded, so the library must not take one for one that waits.
#[test]
fn silent_messages_time_out_only_if_they_meet_no_receive() {
    if is_iwarp() {
        return;
    }
    let (idle, waiting) = (connected(), connected());
    for context in [2, 3] {
        idle.passive.receive(context, 0..64).unwrap();
        idle.active.send(context, 0..64, RequestFlags::SILENT_SUCCESS).unwrap();
        assert_eq!(idle.passive.completion().status, Status::SUCCESS);
    }
    for context in [2, 3] {
        waiting.active.send(context, 0..64, RequestFlags::SILENT_SUCCESS).unwrap();
    }
    ends_by_a_timeout(&waiting, || waiting.active.completion(), &[2, 3]);
    assert!(idle.active.try_completion().is_none());
    idle.passive.receive(4, 0..64).unwrap();
    idle.active.send(4, 0..64, RequestFlags::empty()).unwrap();
    for end in [&idle.passive, &idle.active] {
        let result = end.completion();
        assert_eq!((result.status, result.request_context), (Status::SUCCESS, 4));
    }
}
