//! Queue pairs over pipes that take and give what they like: each request, and any mixture of them against a model.

mod failures;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use softiwarp::completion::{Arm, Operation, Status};
use softiwarp::memory::{Binding, Memory, Rights};
use softiwarp::queue_pair::{
    Cause, Payload, Phase, Piece, PostError, SendRequest, SharedReceiveQueue, Stream, Work,
};
use softiwarp::wire::{SendKind, Violation};
use support::{ALL, Block, End, Pair, agreements, pipes};

fn plain() -> Pair {
    Pair::new(false, 4, 1448, pipes(1 << 20, 1 << 22, 1))
}

/// The statuses and ids of completions.
fn seen(completions: &[softiwarp::completion::Completion]) -> Vec<(u64, Status)> {
    completions.iter().map(|completion| (completion.id, completion.status)).collect()
}

#[test]
fn messages_of_all_kinds_arrive() {
    for crc in [false, true] {
        let mut pair = Pair::new(crc, 4, 200, pipes(1 << 20, 1 << 20, 1));
        let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
        let (from, to) = (Block::new(&a.domain, 4000, ALL), Block::new(&b.domain, 4000, ALL));
        let text: Vec<u8> = (0..4000).map(|i| (i * 7 + i / 256) as u8).collect();
        from.set(0, &text);
        for id in 0..4 {
            b.pair
                .post_receive(
                    id,
                    &[to.piece(id as usize * 1000, 600), to.piece(id as usize * 1000 + 600, 400)],
                )
                .unwrap();
        }
        a.send(10, &[]);
        a.send(11, &[from.piece(0, 1)]);
        a.send(12, &[from.piece(1, 399), from.piece(3000, 0), from.piece(2000, 600)]);
        let inline = Payload::Inline(&[b"in", b"", b"line"]);
        let work = Work::Send(SendKind { solicited: true, invalidate: None });
        a.pair
            .post_send(&SendRequest { id: 13, work, payload: inline, signaled: false, fence: false })
            .unwrap();
        pair.until(|pair| {
            pair.ends.1.pair.phase() == Phase::Running && pair.pipes.0.out.lock().unwrap().bytes.is_empty()
        });
        let (a, b) = (&pair.ends.0, &pair.ends.1);
        assert_eq!(
            seen(&a.take_sent()),
            [(10, Status::Success), (11, Status::Success), (12, Status::Success)]
        );
        let lengths: Vec<_> =
            b.take_received().iter().map(|c| (c.id, c.status, c.operation, c.length)).collect();
        let good = |id, length| (id, Status::Success, Operation::Receive, length);
        assert_eq!(lengths, [good(0, 0), good(1, 1), good(2, 999), good(3, 6)]);
        assert_eq!(to.get(1000, 2), [text[0], 0]);
        assert_eq!(to.get(2000, 999), [&text[1..400], &text[2000..2600]].concat());
        assert_eq!(to.get(3000, 7), b"inline\0");
    }
}

#[test]
fn writes_and_reads_reach_what_they_name() {
    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 100_000, ALL), Block::new(&b.domain, 100_000, ALL));
    let text: Vec<u8> = (0..100_000u32).map(|i| (i * 7 + i / 256) as u8).collect();
    mine.set(0, &text);
    let token = theirs.token();
    a.post(
        1,
        Work::Write { token, offset: theirs.at(17) },
        &[mine.piece(0, 50_000), mine.piece(60_000, 30_000)],
    );
    a.post(2, Work::Read { token, offset: theirs.at(18) }, &[mine.piece(5, 7), mine.piece(90_000, 9_999)]);
    a.post(3, Work::Read { token: 0x999, offset: 3 }, &[]);
    a.post(4, Work::Write { token: 0x999, offset: 3 }, &[]);
    let mut done = Vec::new();
    pair.until(|pair| {
        done.extend(pair.ends.0.take_sent());
        done.len() == 4
    });
    assert_eq!(seen(&done), [1, 2, 3, 4].map(|id| (id, Status::Success)));
    assert_eq!((done[1].operation, done[1].length), (Operation::Read, 10_006));
    let whole = [&text[..50_000], &text[60_000..90_000]].concat();
    assert_eq!(theirs.get(17, 80_000), whole);
    assert_eq!(theirs.get(0, 17), [0; 17]);
    assert_eq!(theirs.get(80_017, 100), [0; 100]);
    assert_eq!(mine.get(5, 7), whole[1..8]);
    assert_eq!(mine.get(90_000, 9_999), whole[8..10_007]);
}

/// Everything that random requests do is what a model of them does: contents, order, results.
#[test]
fn any_mixture_of_requests_does_what_it_says() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let frame_max = [128, 200, 1448, 9000, 65_536][random.usize(0..5)];
        let chunk = [1, 7, 60, 3000, 200_000][random.usize(0..5)];
        let capacity = [200, 20_000, 1 << 20][random.usize(0..3)];
        let mut pair = Pair::new(random.bool(), random.usize(1..6), frame_max, pipes(chunk, capacity, seed));
        mixture(&mut pair, &mut random, seed);
    }
}

const AREA: usize = 4_000;

/// Areas of each end: what it sends, what the other may read, what the other writes, where its reads and receives go.
struct Side {
    source: Block,
    readable: Block,
    written: Block,
    sink: Block,
    model_sink: Vec<u8>,
    model_written: Vec<u8>,
    sent: Vec<(u64, Operation, u32)>,
    messages: Vec<Vec<u8>>,
    expected: Vec<u64>,
}

fn side(end: &End, random: &mut fastrand::Rng) -> Side {
    let block = || Block::new(&end.domain, AREA, ALL);
    let side = Side {
        source: block(),
        readable: block(),
        written: block(),
        sink: Block::new(&end.domain, 64 * AREA, ALL),
        model_sink: vec![0; 64 * AREA],
        model_written: vec![0; AREA],
        sent: Vec::new(),
        messages: Vec::new(),
        expected: Vec::new(),
    };
    for block in [&side.source, &side.readable] {
        let bytes: Vec<u8> = (0..AREA).map(|_| random.u8(..)).collect();
        block.set(0, &bytes);
    }
    side
}

/// Places in an area that are `length` bytes together, cut at random.
fn pieces(area: (usize, usize), random: &mut fastrand::Rng, length: usize) -> Vec<(usize, usize)> {
    assert!(length <= area.1 && area.0 + area.1 <= 64 * AREA);
    let mut left = length;
    let mut at = area.0 + random.usize(0..=area.1 - length);
    let mut out = Vec::new();
    while left > 0 {
        let count = if out.len() == 30 { left } else { random.usize(0..=left) };
        out.push((at, count));
        at += count;
        left -= count;
    }
    out
}

fn mixture(pair: &mut Pair, random: &mut fastrand::Rng, seed: u64) {
    let mut sides = [side(&pair.ends.0, random), side(&pair.ends.1, random)];
    for turn in 0..60u64 {
        let who = random.usize(0..2);
        let other = 1 - who;
        let length = if random.bool() { random.usize(0..100) } else { random.usize(0..AREA) };
        let (token, at) = match turn % 3 {
            0 => (0, 0),
            1 => (sides[other].written.token(), sides[other].written.at(0)),
            _ => (sides[other].readable.token(), sides[other].readable.at(0)),
        };
        let shift = random.usize(0..=AREA - length);
        let offset = at + shift as u64;
        let (work, operation, list) = match turn % 3 {
            0 => {
                let list = pieces((0, AREA), random, length);
                (Work::Send(SendKind::default()), Operation::Send, list)
            }
            1 => {
                let list = pieces((0, AREA), random, length);
                (Work::Write { token, offset }, Operation::Write, list)
            }
            _ => {
                // Reads go to places of their own: who reads what is being overwritten learns nothing certain.
                let list = pieces((turn as usize * AREA, AREA), random, length);
                (Work::Read { token, offset }, Operation::Read, list)
            }
        };
        let from = if operation == Operation::Read { &sides[who].sink } else { &sides[who].source };
        let posted: Vec<Piece> = list.iter().map(|&(at, count)| from.piece(at, count)).collect();
        let gathered: Vec<u8> = list.iter().flat_map(|&(at, count)| from.get(at, count)).collect();
        if operation == Operation::Send {
            let place = turn as usize * AREA;
            let room = random.usize(length..=AREA);
            let into = pieces((place, AREA), random, room);
            let into_pieces: Vec<Piece> =
                into.iter().map(|&(at, count)| sides[other].sink.piece(at, count)).collect();
            let end = if other == 0 { &mut pair.ends.0 } else { &mut pair.ends.1 };
            end.pair.post_receive(turn, &into_pieces).unwrap();
            let mut rest = &gathered[..];
            for (at, count) in into {
                let count = count.min(rest.len());
                sides[other].model_sink[at..at + count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
            }
            sides[other].messages.push(gathered.clone());
            sides[other].expected.push(turn);
        } else if operation == Operation::Write {
            sides[other].model_written[shift..shift + length].copy_from_slice(&gathered);
        } else {
            let mut rest = sides[other].readable.get(shift, length);
            for &(at, count) in &list {
                sides[who].model_sink[at..at + count].copy_from_slice(&rest[..count]);
                rest.drain(..count);
            }
        }
        let signaled = random.bool();
        let end = if who == 0 { &mut pair.ends.0 } else { &mut pair.ends.1 };
        let payload = Payload::Pieces(&posted);
        let fence = random.u8(..) < 60;
        end.pair.post_send(&SendRequest { id: turn, work, payload, signaled, fence }).unwrap();
        if signaled {
            let read = if operation == Operation::Read { length as u32 } else { 0 };
            sides[who].sent.push((turn, operation, read));
        }
        for _ in 0..random.usize(0..4) {
            pair.step();
        }
    }
    // A last message each way says that all before it is done.
    for who in 0..2 {
        let (end, other) = if who == 0 {
            (&mut pair.ends.0, &mut pair.ends.1)
        } else {
            (&mut pair.ends.1, &mut pair.ends.0)
        };
        other.pair.post_receive(1000, &[]).unwrap();
        end.send(1000, &[]);
        sides[who].sent.push((1000, Operation::Send, 0));
        sides[1 - who].messages.push(Vec::new());
        sides[1 - who].expected.push(1000);
    }
    let mut found = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    let wanted =
        [(sides[0].sent.len(), sides[0].messages.len()), (sides[1].sent.len(), sides[1].messages.len())];
    pair.until(|pair| {
        for (found, end) in found.iter_mut().zip([&pair.ends.0, &pair.ends.1]) {
            found.0.extend(end.take_sent());
            found.1.extend(end.take_received());
        }
        found.iter().zip(wanted).all(|(found, wanted)| (found.0.len(), found.1.len()) == wanted)
            || pair.ends.0.pair.phase() != Phase::Running
            || pair.ends.1.pair.phase() != Phase::Running
    });
    for (side, (sent, received)) in sides.iter().zip(&found) {
        let sent: Vec<_> = sent.iter().map(|c| (c.id, c.operation, c.length, c.status)).collect();
        let wanted: Vec<_> =
            side.sent.iter().map(|&(id, op, length)| (id, op, length, Status::Success)).collect();
        assert_eq!(sent, wanted, "seed {seed}");
        let received: Vec<_> = received.iter().map(|c| (c.id, c.length as usize, c.status)).collect();
        let wanted: Vec<_> =
            side.expected.iter().zip(&side.messages).map(|(&id, m)| (id, m.len(), Status::Success)).collect();
        assert_eq!(received, wanted, "seed {seed}");
        assert!(side.written.get(0, AREA) == side.model_written, "seed {seed}: what was written");
        assert!(side.sink.get(0, 64 * AREA) == side.model_sink, "seed {seed}: what was read and received");
    }
}

/// A stream that takes whatever it is given.
struct Sink(usize);

impl Stream for Sink {
    unsafe fn write(&mut self, pieces: &[libc::iovec]) -> std::io::Result<usize> {
        let count = pieces.iter().map(|piece| piece.iov_len).sum();
        self.0 += count;
        Ok(count)
    }

    unsafe fn read(&mut self, _: &[libc::iovec]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }

    fn finish(&mut self) {}
}

#[test]
fn a_peer_that_takes_all_at_once_does_not_keep_a_thread_from_other_connections() {
    const LENGTH: usize = 20 << 20;
    let mut end = End::new(1, None);
    end.pair.start(agreements(false, 1).0, 60_000);
    let block = Block::new(&end.domain, LENGTH, ALL);
    end.post(1, Work::Write { token: 1, offset: 0 }, &[block.piece(0, LENGTH)]);
    let (mut sink, mut calls) = (Sink(0), 0);
    loop {
        let before = sink.0;
        end.pair.transmit(&mut sink);
        calls += 1;
        assert!(sink.0 - before < 5 << 20, "{}", sink.0 - before);
        if !end.pair.wants_to_write() {
            break;
        }
    }
    assert!(sink.0 > LENGTH && (4..8).contains(&calls), "{} {calls}", sink.0);
    assert_eq!(seen(&end.take_sent()), [(1, Status::Success)]);
}

#[test]
fn results_come_in_the_order_of_posting() {
    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 100, ALL), Block::new(&b.domain, 100, ALL));
    let (token, offset) = (theirs.token(), theirs.at(0));
    a.post(1, Work::Read { token, offset }, &[mine.piece(0, 50)]);
    a.post(2, Work::Write { token, offset }, &[mine.piece(50, 50)]);
    a.pair.transmit(&mut pair.pipes.0);
    assert!(!a.pair.wants_to_write() && a.take_sent().is_empty(), "the write waits for the read before it");
    let mut done = Vec::new();
    pair.until(|pair| {
        done.extend(pair.ends.0.take_sent());
        done.len() == 2
    });
    assert_eq!(seen(&done), [(1, Status::Success), (2, Status::Success)]);
}

#[test]
fn a_fence_waits_for_the_reads_before() {
    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 100, ALL), Block::new(&b.domain, 100, ALL));
    theirs.set(0, b"first");
    let token = theirs.token();
    a.post(1, Work::Read { token, offset: theirs.at(0) }, &[mine.piece(0, 5)]);
    let payload = [mine.piece(0, 5)];
    let work = Work::Write { token, offset: theirs.at(50) };
    a.pair
        .post_send(&SendRequest {
            id: 2,
            work,
            payload: Payload::Pieces(&payload),
            signaled: true,
            fence: true,
        })
        .unwrap();
    let mut done = Vec::new();
    pair.until(|pair| {
        done.extend(pair.ends.0.take_sent());
        done.len() == 2 && pair.pipes.0.out.lock().unwrap().bytes.is_empty()
    });
    assert_eq!(theirs.get(50, 5), b"first", "what was read is what is written");
}

#[test]
fn no_more_reads_are_out_than_agreed() {
    let mut pair = Pair::new(false, 2, 1448, pipes(1 << 20, 1 << 20, 1));
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 100, ALL), Block::new(&b.domain, 100, ALL));
    for id in 0..10 {
        a.post(id, Work::Read { token: theirs.token(), offset: theirs.at(0) }, &[mine.piece(0, 10)]);
    }
    a.pair.transmit(&mut pair.pipes.0);
    let written = pair.pipes.0.out.lock().unwrap().bytes.len();
    assert_eq!(written, 20 + 2 * 52, "the first frame, and two reads");
    let mut done = Vec::new();
    pair.until(|pair| {
        done.extend(pair.ends.0.take_sent());
        done.len() == 10
    });
}

#[test]
fn a_window_is_opened_and_closed_in_the_order_of_the_queue() {
    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let theirs = Block::new(&b.domain, 100, Rights { remote_read: false, remote_write: false, ..ALL });
    let mine = Block::new(&a.domain, 100, ALL);
    mine.set(0, b"through the window");
    let window = b.domain.window().unwrap();
    let rights = Rights { remote_write: true, ..Rights::default() };
    let (token, region) = (window.token() ^ 1, theirs.token());
    let binding = Binding { token, region, offset: theirs.at(10), length: 18, rights };
    a.pair.post_receive(1, &[]).unwrap();
    b.pair.post_receive(1, &[]).unwrap();
    b.post(1, Work::Bind(binding), &[]);
    b.send(2, &[]);
    pair.until(|pair| !pair.ends.0.take_received().is_empty());
    assert_eq!(seen(&pair.ends.1.take_sent()), [(1, Status::Success), (2, Status::Success)]);
    let a = &mut pair.ends.0;
    a.post(3, Work::Write { token, offset: theirs.at(10) }, &[mine.piece(0, 18)]);
    a.post(4, Work::Send(SendKind { solicited: true, invalidate: Some(token) }), &[]);
    let mut received = Vec::new();
    pair.until(|pair| {
        received.extend(pair.ends.1.take_received());
        !received.is_empty()
    });
    assert_eq!(theirs.get(10, 18), b"through the window");
    assert_eq!((received[0].status, received[0].invalidated), (Status::Success, Some(token)));
    let b = &mut pair.ends.1;
    let again = Binding { token: token ^ 2, ..binding };
    b.post(5, Work::Bind(again), &[]);
    b.post(6, Work::Invalidate(again.token), &[]);
    b.post(7, Work::Bind(Binding { length: 91, ..binding }), &[]);
    b.post(8, Work::Bind(again), &[]);
    b.pair.transmit(&mut pair.pipes.1);
    let done = seen(&b.take_sent());
    assert_eq!(done, [(5, Status::Success), (6, Status::Success), (7, Status::Bind), (8, Status::Flushed)]);
    assert_eq!(b.pair.phase(), Phase::Ended);
}

/// A peer that always has reads outstanding, whose answers fill more than a list of frames, keeps the stream in the middle of an answer.
#[test]
fn an_invalidation_has_its_turn_among_long_answers() {
    const PAYLOAD: usize = 1428;
    let mut pair = Pair::new(false, 4, 1448, pipes(usize::MAX, 20_000, 1));
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let long = 31 * PAYLOAD + 1000;
    let (mine, theirs) = (Block::new(&a.domain, long, ALL), Block::new(&b.domain, long, ALL));
    let rights = Rights { bind: false, ..ALL };
    let window = a.domain.window().unwrap();
    let (token, region) = (window.token() ^ 1, mine.token());
    let binding = Binding { token, region, offset: mine.at(0), length: 8, rights };
    a.post(1, Work::Bind(binding), &[]);
    b.pair.post_receive(7, &[]).unwrap();
    let read = Work::Read { token: mine.token(), offset: mine.at(0) };
    let (mut asked, mut answered, mut arrived) = (0, 0, false);
    for step in 0..2000 {
        let b = &mut pair.ends.1;
        while asked < answered + 4 {
            let length = if asked == 0 { 16 * PAYLOAD } else { long };
            b.post(100 + asked, read, &[theirs.piece(0, length)]);
            asked += 1;
        }
        if step == 10 {
            pair.ends.0.post(2, Work::Invalidate(binding.token), &[]);
            pair.ends.0.send(3, &[]);
        }
        pair.step();
        answered += pair.ends.1.take_sent().len() as u64;
        arrived |= !pair.ends.1.take_received().is_empty();
    }
    assert!(arrived, "after {answered} answers");
    assert_eq!(seen(&pair.ends.0.take_sent()), [1, 2, 3].map(|id| (id, Status::Success)));
}

#[test]
fn a_shared_queue_serves_several_and_says_when_it_runs_low() {
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    let shared = Arc::new(SharedReceiveQueue::new(Memory::new().domain(), 8, 2, move || {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    let mut pair = Pair::new(false, 1, 1448, pipes(1 << 20, 1 << 20, 1));
    let mut b = End::new(3, Some(Arc::clone(&shared)));
    b.pair.start(agreements(false, 1).1, 1448);
    pair.ends.1 = b;
    for id in 0..4 {
        shared.post(id, &[]).unwrap();
    }
    assert_eq!(pair.ends.1.pair.post_receive(1, &[]), Err(PostError::Invalid));
    shared.set_limit(3);
    let mut received = Vec::new();
    for (id, low) in [(0, 0), (1, 1), (2, 1)] {
        pair.ends.0.send(id, &[]);
        pair.until(|pair| {
            received.extend(pair.ends.1.take_received());
            received.len() == id as usize + 1
        });
        assert_eq!(told.load(Ordering::SeqCst), low, "after {id}");
    }
    pair.ends.0.pair.disconnect();
    pair.until_ended();
    assert!(pair.ends.1.take_received().is_empty(), "what is left is for others");
    assert_eq!(shared.resize(0), Err(1));
}

#[test]
fn receives_of_a_shared_queue_are_into_memory_of_its_own_domain() {
    let mut pair = plain();
    let memory = Memory::new();
    let (domain, others) = (memory.domain(), memory.domain());
    let shared = Arc::new(SharedReceiveQueue::new(others.clone(), 8, 2, || {}));
    let mut b = End::with(domain, 3, Some(Arc::clone(&shared)), |_| {});
    b.pair.start(agreements(false, 4).1, 1448);
    pair.ends.1 = b;
    let (from, to) = (Block::new(&pair.ends.0.domain, 4, ALL), Block::new(&others, 4, ALL));
    from.set(0, b"word");
    shared.post(7, &[to.piece(0, 4)]).unwrap();
    pair.ends.0.send(1, &[from.piece(0, 4)]);
    let mut received = Vec::new();
    pair.until(|pair| {
        received.extend(pair.ends.1.take_received());
        !received.is_empty()
    });
    assert_eq!(seen(&received), [(7, Status::Success)]);
    assert_eq!(to.get(0, 4), b"word");
}

#[test]
fn a_solicited_message_wakes_who_waits_for_one() {
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    let mut pair = plain();
    let domain = pair.ends.1.domain.clone();
    let mut b = End::with(domain, 3, None, move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    b.pair.start(agreements(false, 1).1, 1448);
    pair.ends.1 = b;
    let mut turn = |solicited, arm| {
        pair.ends.1.pair.post_receive(1, &[]).unwrap();
        pair.ends.1.received.arm(arm);
        pair.ends.0.post(1, Work::Send(SendKind { solicited, invalidate: None }), &[]);
        pair.until(|pair| !pair.ends.1.take_received().is_empty());
        told.load(Ordering::SeqCst)
    };
    assert_eq!(turn(false, Arm::Solicited), 0);
    assert_eq!(turn(true, Arm::Solicited), 1);
    assert_eq!(turn(true, Arm::Any), 2);
    assert_eq!(turn(false, Arm::Any), 3);
}
