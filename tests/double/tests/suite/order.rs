//! Results come in the order of posting, in whatever order the device completes.

use crate::shared_queue;
use double::{complete_reads, delay_reads, refuse_doorbell, turn};
use ndcompat::Status;
use ndcompat::types::{Completion, RequestFlags, RequestType};
use std::ffi::c_void;
use support::client::{Client, DEPTH, Ov, connect, open};
use support::com::{Com, QueuePair, create};

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;
const READ: RequestType = RequestType::Read;
const WRITE: RequestType = RequestType::Write;

/// Two connected ends, of which one posts.
struct Ends {
    own: Client,
    peer: Client,
}

impl Ends {
    fn new() -> Ends {
        let adapter = open();
        let (own, peer) = (Client::on(&adapter), Client::on(&adapter));
        connect(&own, &peer);
        Ends { own, peer }
    }

    fn post(&self, context: usize, kind: RequestType, flags: RequestFlags) -> Status {
        let (pair, sge) = (&self.own.queue_pair, self.own.sge(0, 8));
        let (context, address) = (context as *mut c_void, self.peer.memory.as_ptr() as u64);
        // SAFETY: the memory lives, and nobody else uses it.
        unsafe {
            let token = self.peer.region.get_remote_token();
            match kind {
                READ => pair.read(context, &sge, 1, address, token, flags),
                _ => pair.write(context, &sge, 1, address, token, flags),
            }
        }
    }

    /// The contexts and types of the results in the queue, taken `most` at a time.
    fn results(&self, most: usize) -> Vec<(u64, RequestType, Status)> {
        let mut all = Vec::new();
        loop {
            let mut room = vec![Completion::default(); most];
            // SAFETY: there is room for that many.
            let count = unsafe { self.own.completion_queue.get_results(room.as_mut_ptr(), most as u32) };
            all.extend(
                room[..count as usize]
                    .iter()
                    .map(|result| (result.request_context, result.request_type, result.status)),
            );
            if (count as usize) < most {
                return all;
            }
        }
    }

    fn notify(&self, ov: &mut Ov) {
        // SAFETY: the OVERLAPPED lives until it completes.
        assert_eq!(unsafe { self.own.completion_queue.notify(ANY, ov.ptr()) }, Status::PENDING);
    }

    fn is_pending(&self, ov: &mut Ov) -> bool {
        // SAFETY: the OVERLAPPED lives.
        let status = unsafe { self.own.completion_queue.get_overlapped_result(ov.ptr(), 0) };
        assert!(matches!(status, Status::PENDING | Status::SUCCESS), "{status:?}");
        status == Status::PENDING
    }
}

fn successes(expected: &[(u64, RequestType)]) -> Vec<(u64, RequestType, Status)> {
    expected.iter().map(|&(context, kind)| (context, kind, Status::SUCCESS)).collect()
}

#[test]
fn writes_wait_for_the_read_before_them() {
    let _turn = turn();
    for most in [1, 2, 3, 16, 64] {
        let ends = Ends::new();
        delay_reads();
        let mut expected = Vec::new();
        for context in 0..DEPTH as usize {
            let kind = if context % 5 == 0 { READ } else { WRITE };
            assert_eq!(ends.post(context, kind, RequestFlags::empty()), Status::SUCCESS);
            expected.push((context as u64, kind));
        }
        assert_eq!(ends.results(most), []);
        assert_eq!(
            ends.post(99, WRITE, RequestFlags::empty()),
            Status::NO_MORE_ENTRIES,
            "all are outstanding"
        );
        complete_reads();
        assert_eq!(ends.results(most), successes(&expected), "{most} at a time");
        assert_eq!(ends.post(99, WRITE, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(ends.results(most), successes(&[(99, WRITE)]));
    }
}

#[test]
fn a_notification_waits_for_a_result_that_may_be_taken() {
    let _turn = turn();
    let ends = Ends::new();
    let mut ov = Ov::new();
    delay_reads();
    ends.notify(&mut ov);
    assert_eq!(ends.post(1, READ, RequestFlags::empty()), Status::SUCCESS);
    for context in 2..5 {
        assert_eq!(ends.post(context, WRITE, RequestFlags::empty()), Status::SUCCESS);
        assert!(ends.is_pending(&mut ov), "there is nothing to take");
    }
    complete_reads();
    assert_eq!(ov.wait(&ends.own.completion_queue), Status::SUCCESS);
    let all = successes(&[(1, READ), (2, WRITE), (3, WRITE), (4, WRITE)]);
    // Results that were there at the last notification do not satisfy another one.
    ends.notify(&mut ov);
    assert!(ends.is_pending(&mut ov));
    assert_eq!(ends.results(16), all);
    assert!(ends.is_pending(&mut ov));
    assert_eq!(ends.post(5, WRITE, RequestFlags::empty()), Status::SUCCESS);
    assert_eq!(ov.wait(&ends.own.completion_queue), Status::SUCCESS);
}

#[test]
fn silent_writes_behind_a_read() {
    let _turn = turn();
    let ends = Ends::new();
    delay_reads();
    for round in 0..3 {
        assert_eq!(ends.post(1, READ, RequestFlags::empty()), Status::SUCCESS);
        for _ in 0..2 {
            assert_eq!(ends.post(2, WRITE, RequestFlags::SILENT_SUCCESS), Status::SUCCESS, "round {round}");
        }
        assert_eq!(ends.post(3, WRITE, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(ends.results(16), []);
        complete_reads();
        assert_eq!(ends.results(16), successes(&[(1, READ), (3, WRITE)]));
    }
}

#[test]
fn a_flush_reports_each_request_once_and_in_order() {
    let _turn = turn();
    let ends = Ends::new();
    delay_reads();
    for (context, kind) in [(1, READ), (2, WRITE), (3, READ), (4, WRITE)] {
        assert_eq!(ends.post(context, kind, RequestFlags::empty()), Status::SUCCESS);
    }
    // SAFETY: no arguments.
    assert_eq!(unsafe { ends.own.queue_pair.flush() }, Status::SUCCESS);
    assert_eq!(ends.post(5, WRITE, RequestFlags::empty()), Status::SUCCESS);
    complete_reads();
    let mut results = Vec::new();
    while results.len() < 5 {
        results.extend(ends.results(16));
    }
    let contexts: Vec<_> = results.iter().map(|&(context, _, _)| context).collect();
    assert_eq!(contexts, [1, 2, 3, 4, 5]);
    assert_eq!(results[4].2, Status::CANCELED);
    assert_eq!(ends.results(16), []);
}

#[test]
fn queue_pairs_on_one_completion_queue_do_not_wait_for_each_other() {
    let _turn = turn();
    let mut ends = [Ends::new(), Ends::new()];
    // SAFETY: `create` passes an id and a place for the object; the queue is that of the first end, which lives.
    let shared = unsafe {
        let queue = ends[0].own.completion_queue.as_ptr();
        create(|iid, out| {
            let adapter = &ends[0].own.adapter;
            adapter.create_queue_pair(iid, queue, queue, std::ptr::null_mut(), DEPTH, DEPTH, 2, 2, 0, out)
        })
    };
    ends[1] = {
        let adapter = ends[0].own.adapter.cast().unwrap();
        let (mut own, peer) = (Client::on(&adapter), Client::on(&adapter));
        own.queue_pair = shared.unwrap();
        connect(&own, &peer);
        Ends { own, peer }
    };
    delay_reads();
    assert_eq!(ends[0].post(1, READ, RequestFlags::empty()), Status::SUCCESS);
    assert_eq!(ends[0].post(2, WRITE, RequestFlags::empty()), Status::SUCCESS);
    assert_eq!(ends[1].post(3, WRITE, RequestFlags::empty()), Status::SUCCESS);
    assert_eq!(ends[0].results(16), successes(&[(3, WRITE)]));
    complete_reads();
    assert_eq!(ends[0].results(16), successes(&[(1, READ), (2, WRITE)]));
}

/// A device may give the number of a queue pair that is gone to the next one, which the completions of shared receives name.
#[test]
fn a_queue_pair_may_have_the_number_of_another_that_is_gone() {
    let _turn = turn();
    let adapter = open();
    let mut own = Client::on(&adapter);
    let shared = shared_queue(&own, 4, 0);
    let queue_pair = |own: &Client, context: usize| -> Com<QueuePair> {
        let (queue, context) = (own.completion_queue.as_ptr(), context as *mut c_void);
        // SAFETY: as above, and both queues live.
        create(|iid, out| unsafe {
            adapter.create_queue_pair_with_srq(iid, queue, queue, shared.as_ptr(), context, 4, 1, 0, out)
        })
        .unwrap()
    };
    let message = |own: &Client, context: usize| {
        let peer = Client::on(&adapter);
        connect(&peer, own);
        // SAFETY: the memory lives as long as its owner.
        let status = unsafe { shared.receive(context as *mut c_void, &own.sge(0, 8), 1) };
        assert_eq!(status, Status::SUCCESS);
        assert_eq!(peer.send(0, 8, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(peer.result().status, Status::SUCCESS);
    };
    own.queue_pair = queue_pair(&own, 1);
    message(&own, 10);
    // The first one goes, with its result in the queue, before the second is made. Another takes its place meanwhile.
    let spare = Client::on(&adapter);
    (own.queue_pair, own.connector) = (spare.queue_pair.cast().unwrap(), spare.connector.cast().unwrap());
    let second = queue_pair(&own, 2);
    let result = own.result();
    assert_eq!((result.queue_pair_context, result.request_context), (1, 10));
    assert!(own.try_result().is_none());
    own.queue_pair = second;
    message(&own, 20);
    let result = own.result();
    assert_eq!((result.queue_pair_context, result.request_context), (2, 20));
}

#[test]
fn a_request_whose_doorbell_is_refused_is_cancelled() {
    let _turn = turn();
    let ends = Ends::new();
    assert_eq!(ends.post(1, WRITE, RequestFlags::empty()), Status::SUCCESS);
    refuse_doorbell();
    assert_eq!(ends.post(2, WRITE, RequestFlags::empty()), Status::SUCCESS, "the device has it");
    assert_eq!(ends.post(3, WRITE, RequestFlags::empty()), Status::SUCCESS);
    let results = ends.results(16);
    let expected = [(1, Status::SUCCESS), (2, Status::CANCELED), (3, Status::CANCELED)];
    assert_eq!(results, expected.map(|(context, status)| (context, WRITE, status)));
}
