//! Posting, completing and reporting the slots of a request queue.

use super::*;
use crate::data::backlog::Backlog;
use crate::status::Status;
use crate::types::Completion;
use crate::verbs::bindings::*;

struct Nobody;

impl QueueOwner for Nobody {
    fn broken(self: Arc<Self>) {}

    fn flushed(self: Arc<Self>) {}

    fn is_cut_off(&self) -> bool {
        false
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn is_lossy(&self) -> bool {
        false
    }

    fn drain(&self) {}

    fn queues_on(&self, _cq: &Arc<verbs::CompletionQueue>) -> [Option<&RequestQueue>; 2] {
        [None, None]
    }
}

fn queue(depth: u32) -> CacheAligned<RequestQueue> {
    RequestQueue::new(depth, true, 77, Weak::<Nobody>::new())
}

/// Why a request was not posted.
#[derive(Debug, PartialEq, Eq)]
enum NotPosted {
    Full,
    Flushed,
}

fn post_kind(
    queue: &RequestQueue,
    context: u64,
    kind: RequestType,
    silent: bool,
) -> Result<Ticket, NotPosted> {
    match queue.reserve(context, kind, silent, 0) {
        Some((_reserved, ticket)) => Ok(ticket),
        None if queue.accept_flushed(context, kind) => Err(NotPosted::Flushed),
        None => Err(NotPosted::Full),
    }
}

fn post(queue: &RequestQueue, context: u64, silent: bool) -> Result<Ticket, NotPosted> {
    post_kind(queue, context, RequestType::Send, silent)
}

fn completion_of(ticket: &Ticket, status: ibv_wc_status) -> ibv_wc {
    let mut wc: ibv_wc = zeroed();
    (wc.wr_id, wc.status, wc.byte_len) = (ticket.wr_id, status, 9);
    wc
}

/// The contexts and statuses reported after a completion of the device.
fn completed(ticket: &Ticket, status: ibv_wc_status) -> Vec<(u64, Status)> {
    let wc = completion_of(ticket, status);
    // SAFETY: the queue outlives the call in every test.
    if let Some(completion) = unsafe { reap_in_order(&wc) } {
        return vec![(completion.request_context, completion.status)];
    }
    // SAFETY: a request of the queue under test, which one thread uses.
    match unsafe { RequestQueue::complete(&wc) } {
        Noted::Completed(queue) => reported(queue),
        Noted::Deferred(_) | Noted::Ignored => Vec::new(),
    }
}

/// The contexts and statuses that are due without another completion.
fn reported(queue: &RequestQueue) -> Vec<(u64, Status)> {
    let mut reported = Vec::new();
    queue.report(|completion| reported.push((completion.request_context, completion.status)));
    reported
}

fn contexts(reported: Vec<(u64, Status)>) -> Vec<u64> {
    reported.into_iter().map(|(context, _)| context).collect()
}

fn success(ticket: &Ticket) -> Vec<u64> {
    let reported = completed(ticket, IBV_WC_SUCCESS);
    assert!(reported.iter().all(|&(_, status)| status == Status::SUCCESS));
    contexts(reported)
}

#[test]
fn takes_exactly_its_depth() {
    let queue = queue(3);
    let tickets: Vec<_> = (0..3).map(|i| post(&queue, i, false).unwrap()).collect();
    assert_eq!(post(&queue, 3, false).err(), Some(NotPosted::Full));
    assert_eq!(success(&tickets[0]), [0]);
    assert!(post(&queue, 3, false).is_ok());
    assert_eq!(post(&queue, 4, false).err(), Some(NotPosted::Full));
}

#[test]
fn a_read_has_transferred_the_bytes_of_its_list_whatever_the_device_says() {
    for in_order in [true, false] {
        let queue = queue(2);
        let (_, first) = queue.reserve(1, RequestType::Read, false, 70).unwrap();
        let (_, second) = queue.reserve(2, RequestType::Read, false, 80).unwrap();
        let mut seen = Vec::new();
        let tickets = if in_order { [first, second] } else { [second, first] };
        for wc in tickets.map(|ticket| completion_of(&ticket, IBV_WC_SUCCESS)) {
            // SAFETY: requests of the queue, which one thread uses.
            match unsafe { reap_in_order(&wc) } {
                Some(result) => seen.push(result.bytes_transferred),
                None => {
                    // SAFETY: as above.
                    unsafe { RequestQueue::complete(&wc) };
                    queue.report(|result| seen.push(result.bytes_transferred));
                }
            }
        }
        assert_eq!(seen, [70, 80]);
    }
}

#[test]
fn a_queue_of_depth_zero_takes_no_request() {
    let queue = queue(0);
    assert_eq!(post(&queue, 3, false).err(), Some(NotPosted::Full));
    queue.start_flushing();
    assert_eq!(post(&queue, 3, false).err(), Some(NotPosted::Full));
    assert!(queue.is_idle() && reported(&queue).is_empty());
}

#[test]
fn a_completion_frees_earlier_silent_requests() {
    let queue = queue(8);
    for i in 0..3 {
        assert!(!post(&queue, i, true).unwrap().signalled);
    }
    let last = post(&queue, 3, false).unwrap();
    assert_eq!(success(&last), [3]);
    assert!(queue.is_idle());
}

#[test]
fn a_silent_request_is_signalled_in_time() {
    let queue = queue(4);
    for round in 0..100 {
        assert!(!post(&queue, round, true).unwrap().signalled);
        let second = post(&queue, round, true).unwrap();
        assert!(second.signalled);
        assert!(success(&second).is_empty());
    }
    assert!(queue.is_idle());
}

#[test]
fn a_refused_request_leaves_no_trace() {
    let queue = queue(1);
    let (reserved, _ticket) = queue.reserve(1, RequestType::Send, false, 0).unwrap();
    assert_eq!(reserved.conclude(-libc::EINVAL), Status::INVALID_PARAMETER);
    assert!(queue.is_idle() && post(&queue, 2, false).is_ok());
}

#[test]
fn early_completions_are_reported_in_order() {
    let queue = queue(5);
    for round in 0..4 {
        let read = post_kind(&queue, 1, RequestType::Read, false).unwrap();
        let writes = [2, 3, 4, 5].map(|context| post(&queue, context, false).unwrap());
        for early in &writes[..3] {
            assert!(success(early).is_empty());
        }
        assert_eq!(post(&queue, 6, false).err(), Some(NotPosted::Full), "round {round}");
        assert_eq!(success(&read), [1, 2, 3, 4]);
        assert_eq!(success(&writes[3]), [5]);
        assert!(queue.is_idle());
    }
}

/// Every order of completions of a full queue, twice around.
#[test]
fn results_come_in_the_order_of_posting() {
    const DEPTH: u64 = 5;
    let orders = (0..DEPTH.pow(DEPTH as u32))
        .map(|number| (0..DEPTH).map(|at| number / DEPTH.pow(at as u32) % DEPTH).collect::<Vec<_>>());
    for order in orders.filter(|order| (0..DEPTH).all(|context| order.contains(&context))) {
        let queue = queue(DEPTH as u32);
        for _ in 0..2 {
            let tickets: Vec<_> = (0..DEPTH).map(|context| post(&queue, context, false).unwrap()).collect();
            let reported: Vec<_> = order.iter().flat_map(|&at| success(&tickets[at as usize])).collect();
            assert_eq!(reported, [0, 1, 2, 3, 4], "{order:?}");
            assert!(queue.is_idle());
        }
    }
}

#[test]
fn silent_reads_are_signalled_where_other_requests_overtake_reads() {
    let queue = queue(8);
    let read = post_kind(&queue, 1, RequestType::Read, true).unwrap();
    assert!(read.signalled);
    let write = post(&queue, 2, false).unwrap();
    assert!(success(&write).is_empty(), "the read is not done");
    assert_eq!(success(&read), [2]);
}

#[test]
fn completions_of_no_outstanding_request_are_ignored() {
    let queue = queue(4);
    let tickets = [1, 2, 3].map(|context| post(&queue, context, false).unwrap());
    assert_eq!(success(&tickets[0]), [1]);
    for status in [IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR] {
        assert!(completed(&tickets[0], status).is_empty(), "it is over");
    }
    assert!(success(&tickets[2]).is_empty());
    assert!(completed(&tickets[2], IBV_WC_WR_FLUSH_ERR).is_empty(), "it has been said");
    assert_eq!(success(&tickets[1]), [2, 3]);
    assert!(queue.is_idle());
    assert_eq!(success(&post(&queue, 4, false).unwrap()), [4]);
}

#[test]
fn a_failed_queue_pair_cancels_in_order() {
    let queue = queue(4);
    let before = post(&queue, 1, false).unwrap();
    queue.start_flushing();
    assert_eq!(post(&queue, 2, true).err(), Some(NotPosted::Flushed));
    assert!(reported(&queue).is_empty(), "the device still owes the first one");
    assert_eq!(contexts(completed(&before, IBV_WC_SUCCESS)), [1]);
    assert_eq!(reported(&queue), [(2, Status::CANCELED)]);
    assert!(queue.is_idle());
}

#[test]
fn a_split_request_has_one_result() {
    let queue = queue(2);
    let before = post(&queue, 1, false).unwrap();
    let split = post(&queue, 2, false).unwrap();
    assert_eq!(success(&before), [1]);
    assert_eq!(completed(&split, IBV_WC_REM_ACCESS_ERR), [(2, Status::ACCESS_VIOLATION)]);
    assert!(completed(&split, IBV_WC_WR_FLUSH_ERR).is_empty());
    queue.start_flushing();
    assert_eq!(post(&queue, 3, false).err(), Some(NotPosted::Flushed));
    queue.give_up();
    assert_eq!(reported(&queue), [(3, Status::CANCELED)]);
    assert!(completed(&split, IBV_WC_WR_FLUSH_ERR).is_empty());
    assert!(queue.is_idle());
}

/// Posts a drain request, and returns it.
fn drain(queue: &RequestQueue) -> Ticket {
    let mut asked = None;
    queue.drain(|_| false);
    queue.drain(|wr_id| {
        asked = Some(Ticket { wr_id, signalled: true });
        true
    });
    queue.drain(|_| unreachable!("it was asked"));
    asked.expect("there was something to ask for")
}

#[test]
fn a_drained_request_that_has_failed_is_reported_once() {
    let queue = queue(4);
    let silent = post(&queue, 1, true).unwrap();
    queue.start_flushing();
    assert_eq!(post(&queue, 2, false).err(), Some(NotPosted::Flushed));
    let drained = drain(&queue);
    // The device flushes the drain request, and the other request later.
    let flushed = completed(&silent, IBV_WC_WR_FLUSH_ERR);
    assert_eq!(flushed, [(1, Status::CANCELED), (2, Status::CANCELED)]);
    for status in [IBV_WC_WR_FLUSH_ERR, IBV_WC_SUCCESS] {
        assert!(completed(&drained, status).is_empty());
        assert!(queue.is_idle() && reported(&queue).is_empty(), "nothing is reported again");
    }
}

/// A drain request fails where the peer is gone, and with it the queue pair, whose receives may have to stay.
#[test]
fn nothing_is_drained_before_something_waits_for_it() {
    let queue = queue(4);
    post(&queue, 1, true).unwrap();
    queue.start_flushing();
    queue.drain(|_| unreachable!("nothing waits"));
    assert_eq!(post(&queue, 2, false).err(), Some(NotPosted::Flushed));
    assert_eq!(completed(&drain(&queue), IBV_WC_SUCCESS), [(2, Status::CANCELED)]);
}

/// The device still has the request, and its completion names the slot.
#[test]
fn a_request_that_is_timed_out_does_not_give_its_success_to_a_later_one() {
    let queue = queue(2);
    let late = post(&queue, 1, false).unwrap();
    let mut backlog = Backlog::default();
    backlog.time_out(&queue);
    assert!(backlog.take(&mut [Completion::default()]) == 0, "the device may still read its memory");
    assert_eq!(post(&queue, 2, false).err(), Some(NotPosted::Flushed));
    assert!(completed(&late, IBV_WC_SUCCESS).is_empty());
    assert_eq!(reported(&queue), [(1, Status::IO_TIMEOUT), (2, Status::CANCELED)]);
    assert!(completed(&late, IBV_WC_SUCCESS).is_empty());
}

#[test]
fn draining_frees_silent_requests() {
    for status in [IBV_WC_WR_FLUSH_ERR, IBV_WC_SUCCESS] {
        let queue = queue(4);
        post(&queue, 1, true).unwrap();
        queue.start_flushing();
        assert_eq!(post(&queue, 2, false).err(), Some(NotPosted::Flushed));
        assert!(reported(&queue).is_empty());
        let drained = drain(&queue);
        assert_eq!(completed(&drained, status), [(2, Status::CANCELED)]);
    }
}

#[test]
fn silent_requests_are_known_while_they_are_outstanding() {
    let queue = queue(5);
    for round in 0..20 {
        assert!(!queue.has_silent(), "round {round}");
        let loud: Vec<_> = (0..round % 3).map(|i| post(&queue, i, false).unwrap()).collect();
        let silent = post(&queue, 3, true).unwrap();
        let last = post(&queue, 4, false).unwrap();
        loud.iter().for_each(|ticket| assert_eq!(success(ticket).len(), 1));
        assert!(queue.has_silent() && !queue.is_idle(), "round {round}");
        assert!(!silent.signalled || success(&silent).is_empty());
        assert_eq!(success(&last), [4]);
        assert!(!queue.has_silent() && queue.is_idle(), "round {round}");
    }
}

#[test]
fn a_queue_full_of_unsignalled_requests_waits() {
    let queue = queue(1);
    assert!(post(&queue, 1, true).unwrap().signalled, "or it would never be free");
    let queue = self::queue(3);
    let tickets = [1, 2, 3].map(|context| post(&queue, context, true).unwrap());
    assert_eq!(tickets.map(|ticket| ticket.signalled), [false, true, false]);
    assert!(reported(&queue).is_empty());
    assert!(success(&tickets[1]).is_empty());
    assert!(!queue.is_idle() && post(&queue, 4, false).is_ok());
}

#[test]
fn requests_flushed_by_the_device_can_stay_outstanding() {
    let queue = queue(2);
    let receive = post_kind(&queue, 1, RequestType::Receive, false).unwrap();
    queue.defer_flushed(true);
    assert!(completed(&receive, IBV_WC_WR_FLUSH_ERR).is_empty());
    queue.give_up();
    assert!(reported(&queue).is_empty(), "the queue pair has not failed");
    queue.start_flushing();
    queue.give_up();
    assert_eq!(reported(&queue), [(1, Status::CANCELED)]);
}

#[test]
fn requests_that_a_lossy_device_has_not_reported_are_cancelled_in_order() {
    let queue = queue(4);
    let lost = post_kind(&queue, 1, RequestType::Read, false).unwrap();
    let early = post(&queue, 2, false).unwrap();
    let also_lost = post(&queue, 3, true).unwrap();
    assert!(success(&early).is_empty());
    queue.start_flushing();
    assert_eq!(post(&queue, 4, false).err(), Some(NotPosted::Flushed));
    queue.give_up();
    let canceled = Status::CANCELED;
    assert_eq!(reported(&queue), [(1, canceled), (2, Status::SUCCESS), (3, canceled), (4, canceled)]);
    for late in [lost, also_lost] {
        assert!(success(&late).is_empty());
    }
    assert!(queue.is_idle());
}

#[test]
fn a_late_completion_does_not_complete_a_later_request() {
    let queue = queue(2);
    let lost = post(&queue, 1, false).unwrap();
    queue.start_flushing();
    queue.give_up();
    assert_eq!(reported(&queue), [(1, Status::CANCELED)]);
    for context in 2..4 {
        assert_eq!(post(&queue, context, false).err(), Some(NotPosted::Flushed));
    }
    assert!(success(&lost).is_empty());
    assert_eq!(reported(&queue), [(2, Status::CANCELED), (3, Status::CANCELED)]);
}

#[test]
fn a_send_waits_if_it_is_the_oldest_request_twice() {
    let queue = queue(4);
    assert!(!queue.is_waiting_to_send(), "an empty queue");
    let sends = [1, 2].map(|context| post(&queue, context, false).unwrap());
    assert!(!queue.is_waiting_to_send() && queue.is_waiting_to_send());
    assert_eq!(success(&sends[0]), [1]);
    assert!(!queue.is_waiting_to_send(), "another one is the oldest now");
    assert_eq!(success(&sends[1]), [2]);
    let write = post_kind(&queue, 3, RequestType::Write, false).unwrap();
    assert!(!queue.is_waiting_to_send() && !queue.is_waiting_to_send(), "a write meets no receive");
    assert_eq!(success(&write), [3]);
}

#[test]
fn a_marked_request_has_its_slot_and_its_status() {
    let queue = queue(1);
    for (status, expected) in
        [(IBV_WC_SUCCESS, Status::SUCCESS), (IBV_WC_LOC_PROT_ERR, Status::ACCESS_VIOLATION)]
    {
        let send = post(&queue, 1, false).unwrap();
        assert!(!queue.is_waiting_to_send() && queue.is_waiting_to_send());
        assert_eq!(completed(&send, status), [(1, expected)]);
    }
    let send = post(&queue, 2, false).unwrap();
    queue.fail_oldest(IBV_WC_RNR_RETRY_EXC_ERR);
    assert_eq!(reported(&queue), [(2, Status::IO_TIMEOUT)]);
    assert!(completed(&send, IBV_WC_WR_FLUSH_ERR).is_empty(), "it has been reported");
}

#[test]
fn only_silent_requests_are_unsignalled() {
    let queue = queue(8);
    assert!(queue.is_unsignalled(), "an empty queue");
    post(&queue, 1, true).unwrap();
    assert!(queue.is_unsignalled());
    post(&queue, 2, true).unwrap();
    assert!(!queue.signal_last(|_| false), "no room");
    let mut behind = None;
    assert!(queue.signal_last(|wr_id| behind.replace(wr_id).is_none()));
    assert!(success(&Ticket { wr_id: behind.unwrap(), signalled: true }).is_empty() && queue.is_idle());
    let signalled = post(&queue, 3, false).unwrap();
    assert!(!queue.is_unsignalled() && !queue.signal_last(|_| true));
    assert_eq!(success(&signalled), [3]);
}
