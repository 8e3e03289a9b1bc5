//! A peer that sends what it likes: its connection ends with a status, or goes on; no memory but what it may write changes.

mod support;

use std::sync::Arc;
use std::sync::Mutex;

use softiwarp::completion::Status;
use softiwarp::memory::Rights;
use softiwarp::queue_pair::{Agreement, Cause, Opening, Phase, Work};
use softiwarp::wire::crc::Crc;
use softiwarp::wire::{Header, ReadRequest, SendKind, Terminate, Violation, fpdu};
use support::{ALL, Block, End, Line, Pipe, pipes};

fn frame(header: &Header, payload: &[u8], crc: bool) -> Vec<u8> {
    let mut ulpdu = Vec::new();
    header.put(&mut ulpdu);
    ulpdu.extend_from_slice(payload);
    raw(&ulpdu, crc)
}

fn raw(ulpdu: &[u8], crc: bool) -> Vec<u8> {
    let mut out = (ulpdu.len() as u16).to_be_bytes().to_vec();
    out.extend_from_slice(ulpdu);
    out.resize(out.len() + fpdu::pad(ulpdu.len()), 0);
    let end = if crc { Crc::default().update(&out).bytes() } else { [0; 4] };
    out.extend(end);
    out
}

fn send(number: u32, offset: u32, last: bool) -> Header {
    Header::Send { kind: SendKind::default(), number, offset, last }
}

fn read(number: u32, length: u32, source: (u32, u64)) -> Header {
    Header::ReadRequest { number, request: ReadRequest { sink: (7, 0), length, source } }
}

/// A queue pair whose peer is the test: it has memory that the peer may write, beside memory that it may not.
struct Victim {
    end: End,
    pipe: Pipe,
    wire: Arc<Mutex<Line>>,
    answers: Arc<Mutex<Line>>,
    open: Block,
    closed: Block,
}

impl Victim {
    fn new(crc: bool, chunk: usize) -> Victim {
        let (pipe, _) = pipes(chunk, 1 << 22, 3);
        let (wire, answers) = (Arc::clone(&pipe.into), Arc::clone(&pipe.out));
        let mut end = End::new(1, None);
        let all = Rights { local_write: true, remote_read: true, remote_write: true, bind: false };
        let local = Rights { local_write: true, ..Rights::default() };
        let (open, closed) = (Block::new(&end.domain, 100, all), Block::new(&end.domain, 100, local));
        closed.set(0, &[0xee; 100]);
        end.pair.post_receive(1, &[open.piece(50, 10)]).unwrap();
        end.pair.post_receive(2, &[open.piece(60, 10)]).unwrap();
        let opening = Opening::Awaits;
        end.pair.start(Agreement { crc, inbound_reads: 2, outbound_reads: 2, opening }, 1448);
        Victim { end, pipe, wire, answers, open, closed }
    }

    /// Shows it all bytes.
    fn shown(&mut self, bytes: &[u8]) {
        self.wire.lock().unwrap().bytes.extend(bytes);
        for _ in 0..bytes.len() * 2 + 600 {
            self.end.pair.receive(&mut self.pipe);
            self.end.pair.transmit(&mut self.pipe);
        }
    }

    /// The last frame of its answers, which must be a Terminate.
    fn terminate(&self) -> Terminate {
        Terminate::parse(&self.said()).expect("a Terminate")
    }

    /// The payload of that.
    fn said(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.answers.lock().unwrap().bytes.iter().copied().collect();
        assert!(self.answers.lock().unwrap().closed);
        loop {
            let ulpdu = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
            let rest = bytes.split_off(fpdu::size(ulpdu));
            if rest.is_empty() {
                assert_eq!(bytes[2..4], [0x41, 0x47]);
                return bytes[20..2 + ulpdu].to_vec();
            }
            bytes = rest;
        }
    }
}

#[test]
fn each_fault_has_its_terminate() {
    for (crc, chunk) in [(false, 1), (true, 1), (false, 100_000), (true, 100_000)] {
        let write =
            |token, offset, payload: &[u8]| frame(&Header::Write { token, offset, last: true }, payload, crc);
        let of = |victim: &Victim| {
            (victim.open.token(), victim.open.at(0), victim.closed.token(), victim.closed.at(0))
        };
        type Make<'a> = Box<dyn Fn(&Victim) -> Vec<u8> + 'a>;
        let cases: Vec<(&str, Make<'_>, Violation)> = vec![
            (
                "a write one byte too long",
                Box::new(|v| write(of(v).0, of(v).1, &[1; 101])),
                Violation::WRITE_BOUNDS,
            ),
            (
                "a write one byte before",
                Box::new(|v| write(of(v).0, of(v).1 - 1, &[1])),
                Violation::WRITE_BOUNDS,
            ),
            (
                "a write around the end of all",
                Box::new(|v| write(of(v).0, u64::MAX, &[1; 2])),
                Violation::WRITE_WRAP,
            ),
            (
                "a token that is not",
                Box::new(|v| write(of(v).0 ^ 0x100, of(v).1, &[1])),
                Violation::WRITE_TOKEN,
            ),
            ("a wrong key", Box::new(|v| write(of(v).0 ^ 1, of(v).1, &[1])), Violation::WRITE_TOKEN),
            (
                "memory of this side's own",
                Box::new(|v| write(of(v).2, of(v).3, &[1])),
                Violation::WRITE_TOKEN,
            ),
            (
                "a message out of turn",
                Box::new(|_| frame(&send(2, 0, true), b"", crc)),
                Violation::MESSAGE_NUMBER,
            ),
            (
                "a message number 0",
                Box::new(|_| frame(&send(0, 0, true), b"", crc)),
                Violation::MESSAGE_NUMBER,
            ),
            (
                "an offset out of turn",
                Box::new(|_| frame(&send(1, 4, true), b"", crc)),
                Violation::MESSAGE_OFFSET,
            ),
            (
                "a gap in a message",
                Box::new(|_| {
                    [frame(&send(1, 0, false), b"ab", crc), frame(&send(1, 3, true), b"", crc)].concat()
                }),
                Violation::MESSAGE_OFFSET,
            ),
            (
                "a message that becomes another",
                Box::new(|_| {
                    let kind = SendKind { solicited: true, invalidate: None };
                    let second = Header::Send { kind, number: 1, offset: 2, last: true };
                    [frame(&send(1, 0, false), b"ab", crc), frame(&second, b"", crc)].concat()
                }),
                Violation::OPCODE,
            ),
            (
                "a message that becomes one that invalidates something else",
                Box::new(|v| {
                    let part = |token, offset, last| {
                        let kind = SendKind { solicited: false, invalidate: Some(token) };
                        frame(&Header::Send { kind, number: 1, offset, last }, b"ab", crc)
                    };
                    [part(of(v).0, 0, false), part(of(v).0 ^ 1, 2, true)].concat()
                }),
                Violation::OPCODE,
            ),
            (
                "a message too long",
                Box::new(|_| frame(&send(1, 0, true), &[0; 11], crc)),
                Violation::TOO_LONG,
            ),
            (
                "more messages than receives",
                Box::new(|_| (1..4).flat_map(|n| frame(&send(n, 0, true), b"", crc)).collect()),
                Violation::NO_BUFFER,
            ),
            (
                "a region invalidated",
                Box::new(|v| {
                    let kind = SendKind { solicited: false, invalidate: Some(of(v).0) };
                    frame(&Header::Send { kind, number: 1, offset: 0, last: true }, b"", crc)
                }),
                Violation::CANNOT_INVALIDATE,
            ),
            (
                "nothing invalidated",
                Box::new(|v| {
                    let kind = SendKind { solicited: false, invalidate: Some(of(v).0 ^ 0x100) };
                    frame(&Header::Send { kind, number: 1, offset: 0, last: true }, b"", crc)
                }),
                Violation::INVALIDATES_NOTHING,
            ),
            (
                "an answer to nothing",
                Box::new(|_| frame(&Header::ReadResponse { token: 1, offset: 0, last: true }, b"x", crc)),
                Violation::WRITE_TOKEN,
            ),
            (
                "a read one byte too long",
                Box::new(|v| frame(&read(1, 101, (of(v).0, of(v).1)), b"", crc)),
                Violation::READ_BOUNDS,
            ),
            (
                "a read around the end of all",
                Box::new(|v| frame(&read(1, 2, (of(v).0, u64::MAX)), b"", crc)),
                Violation::READ_WRAP,
            ),
            (
                "a read of 4 GiB",
                Box::new(|v| frame(&read(1, u32::MAX, (of(v).0, of(v).1)), b"", crc)),
                Violation::READ_BOUNDS,
            ),
            (
                "a read of closed memory",
                Box::new(|v| frame(&read(1, 1, (of(v).2, of(v).3)), b"", crc)),
                Violation::READ_RIGHTS,
            ),
            (
                "a read out of turn",
                Box::new(|v| frame(&read(2, 1, (of(v).0, of(v).1)), b"", crc)),
                Violation::MESSAGE_NUMBER,
            ),
            ("no ULPDU", Box::new(|_| raw(b"", crc)), Violation::FRAME_LENGTH),
            ("half a header", Box::new(|_| raw(&[0x41, 0x43, 0, 0, 0], crc)), Violation::FRAME_LENGTH),
            ("an atomic", Box::new(|_| raw(&[0x41, 0x4a, 0, 0, 0, 0], crc)), Violation::OPCODE),
        ];
        for (what, make, violation) in cases {
            let mut victim = Victim::new(crc, chunk);
            let bytes = make(&victim);
            victim.shown(&bytes);
            assert_eq!(victim.end.pair.cause(), Some(Cause::Peer(violation)), "{what}, CRC {crc}, {chunk}");
            assert_eq!(victim.end.pair.phase(), Phase::Ended, "{what}");
            assert_eq!(victim.terminate().violation, violation, "{what}");
            assert_eq!(victim.end.take_received().len(), 2, "{what}: all receives are reported");
            assert_eq!(victim.closed.get(0, 100), [0xee; 100], "{what}");
        }
    }
}

/// RFC 5040, 4.8: where a field of DDP is wrong, the Terminate shows the header, with the field.
#[test]
fn a_terminate_shows_the_header_that_is_the_fault() {
    let untagged = |control: [u8; 2], queue: u8, number: u8, offset: u8, length: usize| {
        let mut ulpdu = vec![0; length];
        ulpdu[..2].copy_from_slice(&control);
        (ulpdu[9], ulpdu[13], ulpdu[17]) = (queue, number, offset);
        ulpdu
    };
    for crc in [false, true] {
        for (ulpdu, violation) in [
            (untagged([0x41, 0x43], 5, 1, 0, 20), Violation::QUEUE),
            (untagged([0x41, 0x41], 0, 1, 0, 46), Violation::QUEUE),
            (untagged([0x41, 0x41], 1, 1, 4, 46), Violation::MESSAGE_OFFSET),
            (untagged([0x41, 0x47], 2, 7, 0, 24), Violation::MESSAGE_NUMBER),
            (untagged([0x41, 0x41], 1, 7, 0, 46), Violation::MESSAGE_NUMBER),
            (untagged([0x41, 0x41], 1, 1, 0, 47), Violation::TOO_LONG),
        ] {
            let mut victim = Victim::new(crc, 100_000);
            victim.shown(&raw(&ulpdu, crc));
            let Violation { layer, kind, code } = violation;
            let length = ulpdu.len() as u8;
            let expected = [&[(layer as u8) << 4 | kind, code, 0xc0, 0, 0, length], &ulpdu[..18]].concat();
            assert_eq!(victim.said(), expected, "{violation}");
        }
        let mut victim = Victim::new(crc, 100_000);
        victim.shown(&raw(&untagged([0x40, 0x43], 0, 1, 0, 18), crc));
        assert_eq!(victim.said(), [0x12, 6, 0, 0], "of another version nothing is known");
    }
}

/// Also where it is noticed when the answer is made.
#[test]
fn a_terminate_shows_the_read_whose_memory_is_gone() {
    let mut victim = Victim::new(false, 100_000);
    let source = (victim.open.token(), victim.open.at(0));
    for number in 1..5 {
        victim.shown(&frame(&read(number, 10, source), b"", false));
    }
    let last = read(5, 10, source);
    victim.wire.lock().unwrap().bytes.extend(frame(&last, b"", false));
    victim.end.pair.receive(&mut victim.pipe);
    victim.open.deregister();
    for _ in 0..10 {
        victim.end.pair.transmit(&mut victim.pipe);
    }
    let violation = Violation::READ_TOKEN;
    assert_eq!(victim.terminate(), Terminate { violation, cause: Some((last, last.size() as u16)) });
}

#[test]
fn a_bad_crc_places_nothing() {
    let mut victim = Victim::new(true, 50);
    let mut bytes = frame(
        &Header::Write { token: victim.open.token(), offset: victim.open.at(0), last: true },
        &[1; 50],
        true,
    );
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    victim.shown(&bytes);
    assert_eq!(victim.end.pair.cause(), Some(Cause::Peer(Violation::CRC)));
    assert_eq!(victim.terminate().violation, Violation::CRC);
    assert_eq!(victim.open.get(0, 100), [0; 100]);
}

#[test]
fn more_reads_than_agreed_end_it() {
    let mut victim = Victim::new(false, 100_000);
    victim.pipe.capacity = 0; // nothing can be answered
    let source = (victim.open.token(), victim.open.at(0));
    let bytes: Vec<u8> = (1..4).flat_map(|number| frame(&read(number, 10, source), b"", false)).collect();
    victim.wire.lock().unwrap().bytes.extend(bytes);
    victim.end.pair.receive(&mut victim.pipe);
    assert_eq!(victim.end.pair.cause(), Some(Cause::Peer(Violation::TOO_MANY_READS)));
    victim.pipe.capacity = 1 << 20;
    victim.shown(b"");
    let last = read(3, 10, source);
    let violation = Violation::TOO_MANY_READS;
    assert_eq!(victim.terminate(), Terminate { violation, cause: Some((last, last.size() as u16)) });
}

#[test]
fn memory_of_another_domain_is_not_the_peers() {
    for reads in [false, true] {
        let mut victim = Victim::new(false, 100_000);
        let others = Block::new(&victim.end.domain.memory().domain(), 100, ALL);
        let (token, offset) = (others.token(), others.at(0));
        let (header, payload, violation): (_, &[u8], _) = if reads {
            (read(1, 10, (token, offset)), b"", Violation::READ_STREAM)
        } else {
            (Header::Write { token, offset, last: true }, b"x", Violation::WRITE_STREAM)
        };
        victim.shown(&frame(&header, payload, false));
        let length = (header.size() + payload.len()) as u16;
        assert_eq!(victim.end.pair.cause(), Some(Cause::Peer(violation)));
        assert_eq!(victim.terminate(), Terminate { violation, cause: Some((header, length)) });
        assert_eq!(others.get(0, 100), [0; 100]);
    }
}

/// At each place where that may be noticed: when more is read, and when what was read is placed.
#[test]
fn a_write_into_memory_that_goes_in_the_middle_of_a_frame_is_the_peers_fault() {
    for (crc, shown) in [(false, 16), (false, 60), (false, 115)] {
        let mut victim = Victim::new(crc, 100_000);
        let header = Header::Write { token: victim.open.token(), offset: victim.open.at(0), last: true };
        let bytes = frame(&header, &[1; 100], crc);
        victim.shown(&bytes[..shown]);
        assert_eq!(victim.end.pair.phase(), Phase::Running, "{shown}");
        victim.open.deregister();
        victim.shown(&bytes[shown..]);
        let violation = Violation::WRITE_TOKEN;
        assert_eq!(victim.end.pair.cause(), Some(Cause::Peer(violation)), "{shown}");
        assert_eq!(victim.terminate(), Terminate { violation, cause: Some((header, 114)) }, "{shown}");
    }
}

#[test]
fn an_answer_to_a_read_is_what_was_asked_for() {
    type Part = (u32, u64, usize, bool);
    let good: [&[Part]; 4] = [
        &[(1, 0, 10, true)],
        &[(1, 0, 4, false), (1, 4, 6, true)],
        // The mark of the last segment may come behind the data.
        &[(1, 0, 10, false), (1, 10, 0, true)],
        &[(1, 0, 0, false), (1, 0, 10, false), (1, 10, 0, false), (1, 10, 0, true)],
    ];
    let bad: [(&[Part], Violation); 7] = [
        (&[(2, 0, 10, true)], Violation::WRITE_TOKEN),
        (&[(1, 0, 4, false), (2, 4, 6, true)], Violation::WRITE_TOKEN),
        (&[(1, 1, 10, true)], Violation::WRITE_BOUNDS),
        (&[(1, 0, 4, false), (1, 3, 7, true)], Violation::WRITE_BOUNDS),
        (&[(1, 0, 11, true)], Violation::WRITE_BOUNDS),
        (&[(1, 0, 9, true)], Violation::WRITE_BOUNDS),
        (&[(1, 0, 10, false), (1, 10, 1, true)], Violation::WRITE_BOUNDS),
    ];
    let answer = |parts: &[Part]| {
        let mut victim = Victim::new(false, 100_000);
        // It may send when the peer has.
        victim.shown(&frame(&send(1, 0, true), b"", false));
        let sink = victim.open.piece(20, 10);
        victim.end.post(9, Work::Read { token: 1, offset: 1 }, &[sink]);
        victim.shown(b"");
        for &(token, offset, length, last) in parts {
            victim.shown(&frame(&Header::ReadResponse { token, offset, last }, &vec![7; length], false));
        }
        victim
    };
    for parts in good {
        let victim = answer(parts);
        let done: Vec<_> = victim.end.take_sent().iter().map(|done| (done.id, done.status)).collect();
        assert_eq!(done, [(9, Status::Success)], "{parts:?}");
        assert_eq!(victim.open.get(19, 12), [&[0][..], &[7; 10], &[0]].concat(), "{parts:?}");
        assert_eq!(victim.end.pair.phase(), Phase::Running, "{parts:?}");
    }
    for (parts, violation) in bad {
        let victim = answer(parts);
        let done: Vec<_> = victim.end.take_sent().iter().map(|done| (done.id, done.status)).collect();
        assert_eq!(done, [(9, Status::Flushed)], "{parts:?}");
        assert_eq!(victim.terminate().violation, violation, "{parts:?}");
        assert_eq!(victim.open.get(30, 1), [0], "{parts:?}");
    }
}

/// A sound stream, with bytes of it changed, left out, doubled or swapped: it is read whole, or ends with a status.
#[test]
fn damaged_streams_end_or_go_on() {
    for seed in 0..3000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let crc = random.bool();
        let mut victim = Victim::new(crc, [1, 10, 100_000][random.usize(0..3)]);
        let (token, at) = (victim.open.token(), victim.open.at(0));
        let mut frames = vec![
            frame(&Header::Write { token, offset: at, last: false }, &[1; 20], crc),
            frame(&send(1, 0, false), b"hello", crc),
            frame(&Header::Write { token, offset: at + 20, last: true }, &[1; 30], crc),
            frame(&read(1, 100, (token, at)), b"", crc),
            frame(&send(1, 5, true), b"world", crc),
            frame(&send(2, 0, true), b"", crc),
            frame(&read(2, 0, (1, 1)), b"", crc),
        ];
        match random.u8(0..3) {
            0 => {
                let again = frames[random.usize(0..frames.len())].clone();
                frames.insert(random.usize(0..frames.len()), again);
            }
            1 => {
                let (a, b) = (random.usize(0..frames.len()), random.usize(0..frames.len()));
                frames.swap(a, b);
            }
            _ => {}
        }
        let mut bytes = frames.concat();
        for _ in 0..random.usize(0..4) {
            let at = random.usize(0..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(0..bytes.len() * 2));
        victim.shown(&bytes);
        assert_eq!(victim.closed.get(0, 100), [0xee; 100], "seed {seed}");
        if victim.end.pair.phase() == Phase::Running {
            victim.end.pair.lose(Cause::Lost);
        }
        let received = victim.end.take_received();
        assert_eq!(
            received.iter().map(|c| c.id).collect::<Vec<_>>(),
            [1, 2],
            "seed {seed}: each once, in order"
        );
        assert!(received.iter().all(|c| matches!(
            c.status,
            Status::Success | Status::Flushed | Status::LocalLength | Status::LocalProtection
        )));
    }
}
