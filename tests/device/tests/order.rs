//! Results of a queue come in the order of posting, one for each request, even if the device completes later requests before
//! earlier reads, as siw does.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::{NotifyType, RegionFlags, RequestFlags, RequestType};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use support::{End, Memory, Operation, Pair, QUEUE_DEPTH, adapter, address};

const LARGE: usize = 1 << 20;
const PAGE: usize = 4096;
const SMALL: usize = 256;
/// Fewer than the depth of the queue, so that no request may be refused.
const OUTSTANDING: usize = QUEUE_DEPTH as usize - 1;
const TIME_LIMIT: Duration = Duration::from_secs(60);

use RequestType::{Read, Send, Write};

/// Connected ends with large memory.
struct Ends {
    pair: Pair,
    own: Memory,
    peer: Memory,
    /// What was posted, in order, and whether it is silent.
    posted: VecDeque<(u64, RequestType, bool)>,
    next: u64,
    /// The number of results taken.
    done: usize,
}

impl Ends {
    fn new() -> Ends {
        let offer = Offer { inbound_read_limit: 8, outbound_read_limit: 8, private_data: b"" };
        let adapter = adapter();
        let pair = Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer);
        let everything =
            RegionFlags::ALLOW_REMOTE_READ | RegionFlags::ALLOW_REMOTE_WRITE | RegionFlags::RDMA_READ_SINK;
        let own = Memory::new(&adapter, &pair.active.file, 2 * LARGE, everything);
        let mut peer = Memory::new(&adapter, &pair.passive.file, 2 * LARGE, everything);
        for (at, byte) in peer.bytes[..LARGE].iter_mut().enumerate() {
            *byte = (at / 251 + at) as u8;
        }
        Ends { pair, own, peer, posted: VecDeque::new(), next: 0, done: 0 }
    }

    /// Posts a request once fewer than [`OUTSTANDING`] are outstanding. Reads fill the first half of the local memory, writes the
    /// second half of the peer's.
    fn post(&mut self, kind: RequestType, length: usize, flags: RequestFlags) {
        while self.posted.len() >= OUTSTANDING {
            self.take();
        }
        let (pair, context) = (&self.pair.active.queue_pair, self.next);
        let token = self.peer.region.remote_token();
        let place = LARGE + context as usize % 1024 * SMALL;
        // SAFETY: the memory outlives the requests; nobody looks at it before they are done.
        let posted = unsafe {
            match kind {
                Read => {
                    pair.read(context, &[self.own.sge(0..length)], self.peer.remote_address(0), token, flags)
                }
                Write => {
                    self.own.bytes[place..place + length].fill(context as u8);
                    let to = self.peer.remote_address(place);
                    pair.write(context, &[self.own.sge(place..place + length)], to, token, flags)
                }
                _ => pair.send(context, &[self.own.sge(place..place + length)], flags),
            }
        };
        assert_eq!(posted, Ok(()), "request {context}, with {} outstanding", self.posted.len());
        self.posted.push_back((context, kind, flags.contains(RequestFlags::SILENT_SUCCESS)));
        self.next += 1;
    }

    /// Takes a result if there is one. It must be that of the oldest request that is not silent.
    fn take(&mut self) -> bool {
        let (active, passive) = (&self.pair.active, &self.pair.passive);
        while let Some(received) = passive.try_completion() {
            assert_eq!(received.status, Status::SUCCESS);
            passive.receive(0, 0..SMALL).unwrap();
        }
        let Some(result) = active.try_completion() else {
            std::thread::yield_now();
            return false;
        };
        while self.posted.front().is_some_and(|&(_, _, silent)| silent) {
            self.posted.pop_front();
        }
        let (context, kind, _) = self.posted.pop_front().expect("a result without a request");
        assert_eq!(
            (result.status, result.request_context, result.request_type),
            (Status::SUCCESS, context, kind),
            "results come in the order of posting"
        );
        if kind == Read {
            // All reads are at least this long.
            assert_eq!(self.own.bytes[..PAGE], self.peer.bytes[..PAGE], "the read is done");
        }
        self.done += 1;
        true
    }

    /// Takes all results.
    fn finish(&mut self) {
        let deadline = Instant::now() + TIME_LIMIT;
        while self.posted.iter().any(|&(_, _, silent)| !silent) {
            self.take();
            assert!(Instant::now() < deadline, "results are lost: {:?}", self.posted);
        }
        assert!(self.pair.active.try_completion().is_none(), "a result without a request");
    }
}

#[test]
fn a_large_read_with_many_writes_behind_it() {
    let mut ends = Ends::new();
    for _ in 0..5 {
        ends.own.bytes[..LARGE].fill(0);
        ends.post(Read, LARGE, RequestFlags::empty());
        for _ in 0..80 {
            ends.post(Write, SMALL, RequestFlags::empty());
        }
        ends.finish();
        assert_eq!(ends.own.bytes[..LARGE], ends.peer.bytes[..LARGE]);
    }
    assert_eq!(ends.done, 5 * 81);
}

#[test]
fn patterns_of_few_requests() {
    let mut ends = Ends::new();
    for _ in 0..QUEUE_DEPTH {
        ends.pair.passive.receive(0, 0..SMALL).unwrap();
    }
    for pattern in [&[Read, Send][..], &[Read, Write], &[Read, Send, Write], &[Read, Read, Read, Send]] {
        for _ in 0..600 / pattern.len() {
            for &kind in pattern {
                ends.post(kind, if kind == Read { PAGE } else { SMALL }, RequestFlags::empty());
            }
        }
        ends.finish();
    }
}

#[test]
fn a_silent_read_is_complete_when_a_later_write_is() {
    let mut ends = Ends::new();
    for _ in 0..20 {
        ends.own.bytes[..LARGE].fill(0);
        ends.post(Read, LARGE, RequestFlags::SILENT_SUCCESS);
        ends.post(Write, SMALL, RequestFlags::empty());
        ends.finish();
        ends.posted.clear();
        assert_eq!(ends.own.bytes[..LARGE], ends.peer.bytes[..LARGE]);
    }
}

#[test]
fn a_notification_finds_a_result() {
    let mut ends = Ends::new();
    for _ in 0..20 {
        ends.post(Read, LARGE, RequestFlags::empty());
        for _ in 0..3 {
            ends.post(Write, SMALL, RequestFlags::empty());
        }
        while !ends.posted.is_empty() {
            let mut operation = Operation::on(&ends.pair.active.file);
            // SAFETY: waited for below.
            let asked = unsafe { ends.pair.active.completion_queue.notify(NotifyType::Any, operation.ov()) };
            assert_eq!(asked, Status::PENDING);
            assert_eq!(operation.wait(), Status::SUCCESS);
            assert!(ends.take(), "the notification completed with nothing to take");
            while !ends.posted.is_empty() && ends.take() {}
        }
    }
}

/// Asserts that each request has one result, in order, whether it succeeded or not.
fn all_in_order(ends: &mut Ends) {
    let deadline = Instant::now() + TIME_LIMIT;
    while let Some((context, kind, _)) = ends.posted.pop_front() {
        let result = loop {
            match ends.pair.active.try_completion() {
                Some(result) => break result,
                None => assert!(Instant::now() < deadline, "request {context} is lost"),
            }
        };
        assert_eq!((result.request_context, result.request_type), (context, kind));
    }
    assert!(ends.pair.active.try_completion().is_none());
}

#[test]
fn a_flush_with_reads_outstanding() {
    for round in 0..10 {
        let mut ends = Ends::new();
        for kind in [Write, Read, Write, Write, Read, Write] {
            ends.post(kind, if kind == Read { LARGE } else { SMALL }, RequestFlags::empty());
        }
        std::thread::sleep(Duration::from_millis(round));
        ends.pair.active.queue_pair.flush().unwrap();
        ends.post(Write, SMALL, RequestFlags::empty());
        all_in_order(&mut ends);
    }
}

#[test]
fn a_peer_that_disconnects_with_reads_outstanding() {
    for round in 0..10 {
        let mut ends = Ends::new();
        for kind in [Read, Write, Write, Read, Write, Read, Write] {
            ends.post(kind, if kind == Read { LARGE } else { SMALL }, RequestFlags::empty());
        }
        std::thread::sleep(Duration::from_millis(round));
        ends.pair.passive.disconnect();
        ends.pair.active.disconnect();
        all_in_order(&mut ends);
    }
}

/// Posts receives and sends on one thread while another one flushes. Each request that is taken has one result, in the order of its queue.
fn a_flush_beside_posts(end: &End, spins: u32) -> usize {
    let mut posted = std::thread::scope(|scope| {
        let flushing = scope.spawn(|| {
            (0..spins).for_each(|_| std::hint::spin_loop());
            end.queue_pair.flush().unwrap();
        });
        let mut posted = [VecDeque::new(), VecDeque::new()];
        for context in 0..OUTSTANDING as u64 {
            end.receive(context, 0..SMALL).unwrap();
            posted[0].push_back(context);
            if end.send(context, SMALL..2 * SMALL, RequestFlags::empty()).is_ok() {
                posted[1].push_back(context);
            }
        }
        flushing.join().unwrap();
        posted
    });
    let sends = posted[1].len();
    while posted.iter().any(|queue| !queue.is_empty()) {
        let result = end.completion();
        let queue = usize::from(result.request_type == Send);
        assert_eq!(Some(result.request_context), posted[queue].pop_front(), "{result:?}");
        let expected: &[Status] =
            if queue == 0 { &[Status::CANCELED] } else { &[Status::SUCCESS, Status::CANCELED] };
        assert!(expected.contains(&result.status), "{result:?}");
    }
    assert!(end.try_completion().is_none());
    sends
}

/// A queue pair that was never connected refuses sends until it is flushed, and cancels them from then on.
#[test]
fn a_flush_beside_posts_without_a_connection() {
    let adapter = adapter();
    for round in 0..30 {
        a_flush_beside_posts(&End::new(&adapter, 1), 500 * round);
    }
}

#[test]
fn a_flush_beside_posts_on_a_connection() {
    for round in 0..20 {
        let pair = Pair::new();
        for context in 0..OUTSTANDING as u64 {
            pair.passive.receive(context, 0..SMALL).unwrap();
        }
        assert_eq!(a_flush_beside_posts(&pair.active, 500 * round), OUTSTANDING);
        pair.active.disconnect();
        pair.passive.disconnect();
    }
}
