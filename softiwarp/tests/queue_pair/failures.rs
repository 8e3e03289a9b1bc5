//! Requests that fail, are refused or flushed, and what the peer is told of it.

use std::io;

use softiwarp::wire::Header;

use super::support::Pipe;
use super::*;

#[test]
fn what_is_outstanding_is_flushed_in_its_order() {
    let mut pair = Pair::new(false, 1, 1448, pipes(1 << 20, 1000, 1));
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 9000, ALL), Block::new(&b.domain, 9000, ALL));
    a.pair.post_receive(100, &[]).unwrap();
    a.pair.post_receive(101, &[]).unwrap();
    a.post(1, Work::Write { token: theirs.token(), offset: theirs.at(0) }, &[mine.piece(0, 9000)]);
    a.post(2, Work::Read { token: theirs.token(), offset: theirs.at(0) }, &[mine.piece(0, 10)]);
    let silent = SendRequest {
        id: 3,
        work: Work::Send(SendKind::default()),
        payload: Payload::Pieces(&[]),
        signaled: false,
        fence: false,
    };
    a.pair.post_send(&silent).unwrap();
    a.pair.transmit(&mut pair.pipes.0);
    a.pair.disconnect();
    assert_eq!(seen(&a.take_sent()), [1, 2, 3].map(|id| (id, Status::Flushed)));
    assert_eq!(seen(&a.take_received()), [100, 101].map(|id| (id, Status::Flushed)));
    a.pair.post_receive(102, &[]).unwrap();
    a.pair.post_send(&SendRequest { id: 4, ..silent }).unwrap();
    assert_eq!(seen(&a.take_sent()), [(4, Status::Flushed)]);
    assert_eq!(seen(&a.take_received()), [(102, Status::Flushed)]);
    pair.until_ended();
    assert_eq!(pair.ends.1.pair.cause(), Some(Cause::Closed), "the frame that had begun was ended");
}

#[test]
fn no_request_behind_a_failed_one_has_ended_well() {
    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 100, ALL), Block::new(&b.domain, 100, ALL));
    let target = Work::Write { token: theirs.token(), offset: theirs.at(0) };
    a.post(1, target, &[mine.piece(0, 10)]);
    a.post(2, Work::Read { token: theirs.token(), offset: theirs.at(0) }, &[mine.piece(0, 10)]);
    a.post(3, target, &[mine.piece(0, 10)]);
    // The peer answers nothing.
    a.pair.transmit(&mut pair.pipes.0);
    a.pair.disconnect();
    let expected = [(1, Status::Success), (2, Status::Flushed), (3, Status::Flushed)];
    assert_eq!(seen(&a.take_sent()), expected);
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let mut pair = plain();
    let a = &mut pair.ends.0;
    let mine = Block::new(&a.domain, 100, ALL);
    let mut idle = End::new(9, None);
    let big: [&[u8]; 1] = [&[0; 1025]];
    let request = |payload| SendRequest {
        id: 1,
        work: Work::Send(SendKind::default()),
        payload,
        signaled: true,
        fence: false,
    };
    assert_eq!(idle.pair.post_send(&request(Payload::Pieces(&[]))), Err(PostError::NotConnected));
    let piece = mine.piece(0, 1);
    let (many, long) = ([piece; 41], [Piece { length: 1 << 30, ..piece }, piece]);
    assert_eq!(a.pair.post_send(&request(Payload::Pieces(&many))), Err(PostError::Invalid));

    assert_eq!(a.pair.post_send(&request(Payload::Pieces(&long))), Err(PostError::Invalid));
    assert_eq!(a.pair.post_send(&request(Payload::Inline(&big))), Err(PostError::Invalid));
    let read = Work::Read { token: 1, offset: 1 };
    let inline = Payload::Inline(&[b"x"]);
    assert_eq!(a.pair.post_send(&SendRequest { work: read, ..request(inline) }), Err(PostError::Invalid));
    for _ in 0..64 {
        a.pair.post_send(&request(Payload::Pieces(&[]))).unwrap();
        a.pair.post_receive(1, &[]).unwrap();
    }
    assert_eq!(a.pair.post_send(&request(Payload::Pieces(&[]))), Err(PostError::Full));
    assert_eq!(a.pair.post_receive(1, &[]), Err(PostError::Full));
}

#[test]
fn a_read_that_the_peer_would_not_answer_is_refused() {
    let mut pair = Pair::new(false, 0, 1448, pipes(1 << 20, 1 << 20, 1));
    let a = &mut pair.ends.0;
    let read = SendRequest {
        id: 1,
        work: Work::Read { token: 1, offset: 1 },
        payload: Payload::Pieces(&[]),
        signaled: true,
        fence: false,
    };
    assert_eq!(a.pair.post_send(&read), Err(PostError::Invalid));
    a.send(2, &[]);
    pair.ends.1.pair.post_receive(7, &[]).unwrap();
    pair.until(|pair| pair.ends.1.take_received().iter().any(|received| received.id == 7));
}

/// A stream whose peer has sent something and is gone.
struct Reset<'a>(&'a mut Pipe);

impl Stream for Reset<'_> {
    unsafe fn write(&mut self, _pieces: &[libc::iovec]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    unsafe fn read(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        // SAFETY: as the caller says.
        unsafe { self.0.read(pieces) }
    }

    fn finish(&mut self) {}
}

#[test]
fn what_has_arrived_counts_when_writing_finds_the_connection_lost() {
    let mut pair = plain();
    pair.ends.1.pair.post_receive(6, &[]).unwrap();
    pair.ends.0.send(5, &[]);
    // Who was connected sends when it has received something.
    pair.until(|pair| pair.ends.1.take_received().len() == 1);
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    a.pair.post_receive(7, &[]).unwrap();
    a.pair.post_receive(8, &[]).unwrap();
    b.send(1, &[]);
    b.pair.transmit(&mut pair.pipes.1);
    a.send(2, &[]);
    a.pair.transmit(&mut Reset(&mut pair.pipes.0));
    assert_eq!(seen(&a.take_received()), [(7, Status::Success), (8, Status::Flushed)]);
    assert_eq!(seen(&a.take_sent()), [(5, Status::Success), (2, Status::Flushed)]);
    assert_eq!(a.pair.cause(), Some(Cause::Lost));
}

/// A stream that takes nothing, and whose peer sends empty Writes without end.
struct Endless {
    frame: Vec<u8>,
    at: usize,
    reads: usize,
}

impl Stream for Endless {
    unsafe fn write(&mut self, _pieces: &[libc::iovec]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    unsafe fn read(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        self.reads += 1;
        assert!(self.reads < 10_000, "it reads on and on");
        let length = pieces[0].iov_len;
        for at in 0..length {
            let byte = self.frame[(self.at + at) % self.frame.len()];
            // SAFETY: the caller says that the piece is writable.
            unsafe { *pieces[0].iov_base.cast::<u8>().add(at) = byte };
        }
        self.at += length;
        Ok(length)
    }

    fn finish(&mut self) {}
}

#[test]
fn a_peer_that_never_stops_sending_does_not_keep_a_thread_at_the_end() {
    let mut pair = plain();
    let mut frame = vec![0, 14];
    Header::Write { token: 1, offset: 0, last: true }.put(&mut frame);
    frame.extend([0; 4]);
    let mut endless = Endless { frame, at: 0, reads: 0 };
    let a = &mut pair.ends.0;
    a.send(1, &[]);
    a.pair.transmit(&mut endless);
    assert!(endless.reads > 1, "what has arrived counts");
    assert_eq!((a.pair.phase(), a.pair.cause()), (Phase::Ended, Some(Cause::Lost)));
    assert_eq!(seen(&a.take_sent()), [(1, Status::Flushed)]);
}

#[test]
fn a_bad_token_of_its_own_ends_a_request_and_the_connection() {
    let mut pair = plain();
    let a = &mut pair.ends.0;
    let mine = Block::new(&a.domain, 100, ALL);
    pair.ends.1.pair.post_receive(7, &[]).unwrap();
    pair.ends.1.pair.post_receive(8, &[]).unwrap();
    let a = &mut pair.ends.0;
    a.send(1, &[]);
    a.send(2, &[mine.piece(50, 51)]);
    a.send(3, &[]);
    pair.until_ended();
    let done = seen(&pair.ends.0.take_sent());
    assert_eq!(done, [(1, Status::Success), (2, Status::LocalProtection), (3, Status::Flushed)]);
    assert_eq!(seen(&pair.ends.1.take_received()), [(7, Status::Success), (8, Status::Flushed)]);
    assert_eq!(pair.ends.1.pair.cause(), Some(Cause::Told(Some(Violation::LOCAL_CATASTROPHIC))));
}

/// What each fault of a program at one end is, seen from both.
#[test]
fn the_peer_is_told_what_it_did_wrong() {
    let all = Rights { bind: false, ..ALL };
    let no_write = Rights { remote_write: false, ..all };
    let no_read = Rights { remote_read: false, ..all };
    let write: fn(u32, u64) -> Work = |token, offset| Work::Write { token, offset };
    let read: fn(u32, u64) -> Work = |token, offset| Work::Read { token, offset };
    let cases = [
        ("one byte before, write", write, all, 0, -1, Violation::WRITE_BOUNDS),
        ("one byte behind", write, all, 0, 91, Violation::WRITE_BOUNDS),
        ("a wrong token", write, all, 1, 0, Violation::WRITE_TOKEN),
        ("no right to write", write, no_write, 0, 0, Violation::WRITE_TOKEN),
        ("one byte before, read", read, all, 0, -1, Violation::READ_BOUNDS),
        ("one byte behind, read", read, all, 0, 91, Violation::READ_BOUNDS),
        ("a wrong token, read", read, all, 1, 0, Violation::READ_TOKEN),
        ("no right, read", read, no_read, 0, 0, Violation::READ_RIGHTS),
    ];
    for (what, work, rights, wrong, shift, violation) in cases {
        let mut pair = plain();
        let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
        let (mine, theirs) = (Block::new(&a.domain, 100, ALL), Block::new(&b.domain, 100, rights));
        mine.set(0, &[0xff; 100]);
        a.pair.post_receive(5, &[]).unwrap();
        b.pair.post_receive(6, &[]).unwrap();
        a.post(
            1,
            work(theirs.token() ^ wrong, theirs.at(0).wrapping_add_signed(shift)),
            &[mine.piece(0, 10)],
        );
        a.post(2, Work::Read { token: theirs.token(), offset: theirs.at(0) }, &[mine.piece(20, 10)]);
        pair.until_ended();
        let (a, b) = (&pair.ends.0, &pair.ends.1);
        assert_eq!(b.pair.cause(), Some(Cause::Peer(violation)), "{what}");
        assert_eq!(a.pair.cause(), Some(Cause::Told(Some(violation))), "{what}");
        let first = if what.ends_with("read") { Status::RemoteAccess } else { Status::Success };
        assert_eq!(seen(&a.take_sent()), [(1, first), (2, Status::Flushed)], "{what}");
        assert_eq!(seen(&a.take_received()), [(5, Status::Flushed)], "{what}");
        assert_eq!(seen(&b.take_received()), [(6, Status::Flushed)], "{what}");
        assert_eq!(theirs.get(0, 100), [0; 100], "{what}");
    }
}

#[test]
fn a_message_too_long_and_one_without_a_receive() {
    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 100, ALL), Block::new(&b.domain, 100, ALL));
    b.pair.post_receive(6, &[theirs.piece(0, 9)]).unwrap();
    b.pair.post_receive(7, &[theirs.piece(0, 100)]).unwrap();
    a.send(1, &[mine.piece(0, 10)]);
    pair.until_ended();
    assert_eq!(pair.ends.1.pair.cause(), Some(Cause::Peer(Violation::TOO_LONG)));
    assert_eq!(seen(&pair.ends.1.take_received()), [(6, Status::LocalLength), (7, Status::Flushed)]);

    let mut pair = plain();
    pair.ends.0.send(1, &[]);
    pair.until_ended();
    assert_eq!(pair.ends.0.pair.cause(), Some(Cause::Told(Some(Violation::NO_BUFFER))));
}

#[test]
fn memory_that_is_taken_away_in_a_transfer_ends_it() {
    let mut pair = Pair::new(false, 4, 1448, pipes(1 << 20, 3000, 1));
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, mut theirs) = (Block::new(&a.domain, 50_000, ALL), Block::new(&b.domain, 50_000, ALL));
    a.post(1, Work::Read { token: theirs.token(), offset: theirs.at(0) }, &[mine.piece(0, 50_000)]);
    for _ in 0..3 {
        pair.step();
    }
    theirs.deregister();
    pair.until_ended();
    let done = seen(&pair.ends.0.take_sent());
    assert!(done == [(1, Status::RemoteAccess)] || done == [(1, Status::Flushed)], "{done:?}");
}

#[test]
fn reads_before_one_that_is_refused_are_answered() {
    for (crc, length) in [(false, 10), (true, 10), (false, 1 << 20), (true, 1 << 20)] {
        let mut pair = Pair::new(crc, 4, 1448, pipes(1 << 22, 1 << 22, 1));
        let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
        let (mine, theirs) = (Block::new(&a.domain, length + 20, ALL), Block::new(&b.domain, length, ALL));
        theirs.set(0, &vec![0x5a; length]);
        let (token, offset) = (theirs.token(), theirs.at(0));
        a.post(1, Work::Read { token, offset }, &[mine.piece(0, length)]);
        a.post(2, Work::Read { token: token ^ 1, offset }, &[mine.piece(length, 10)]);
        a.post(3, Work::Read { token, offset }, &[mine.piece(length + 10, 10)]);
        // The peer has all of them before it answers any.
        a.pair.transmit(&mut pair.pipes.0);
        pair.until_ended();
        let (a, b) = (&pair.ends.0, &pair.ends.1);
        let what = format!("{length} bytes, CRC {crc}");
        let expected = [(1, Status::Success), (2, Status::RemoteAccess), (3, Status::Flushed)];
        assert_eq!(seen(&a.take_sent()), expected, "{what}");
        assert!(mine.get(0, length + 20) == [vec![0x5a; length], vec![0; 20]].concat(), "{what}");
        assert_eq!(b.pair.cause(), Some(Cause::Peer(Violation::READ_TOKEN)), "{what}");
        assert_eq!(a.pair.cause(), Some(Cause::Told(Some(Violation::READ_TOKEN))), "{what}");
    }
}

/// A receive and the sink of a read that this side's own program has described wrongly.
#[test]
fn a_fault_of_its_own_is_not_the_peers() {
    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let (mine, theirs) = (Block::new(&a.domain, 10, ALL), Block::new(&b.domain, 10, ALL));
    let piece = theirs.piece(0, 10);
    b.pair.post_receive(6, &[Piece { token: piece.token ^ 1, ..piece }]).unwrap();
    a.send(1, &[mine.piece(0, 10)]);
    pair.until_ended();
    assert_eq!(pair.ends.1.pair.cause(), Some(Cause::Local));
    assert_eq!(seen(&pair.ends.1.take_received()), [(6, Status::LocalProtection)]);
    assert_eq!(pair.ends.0.pair.cause(), Some(Cause::Told(Some(Violation::DDP_CATASTROPHIC))));

    let mut pair = plain();
    let (a, b) = (&mut pair.ends.0, &mut pair.ends.1);
    let no_write = Rights { local_write: false, remote_write: false, ..ALL };
    let (mine, theirs) = (Block::new(&a.domain, 10, no_write), Block::new(&b.domain, 10, ALL));
    a.post(1, Work::Read { token: theirs.token(), offset: theirs.at(0) }, &[mine.piece(0, 10)]);
    pair.until_ended();
    assert_eq!(pair.ends.0.pair.cause(), Some(Cause::Local));
    assert_eq!(seen(&pair.ends.0.take_sent()), [(1, Status::LocalProtection)]);
    assert_eq!(pair.ends.1.pair.cause(), Some(Cause::Told(Some(Violation::DDP_CATASTROPHIC))));
}

/// A stream that the kernel ends so if an operator closes the connection (`ss -K`).
struct Aborted;

impl Stream for Aborted {
    unsafe fn write(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        Ok(pieces.iter().map(|piece| piece.iov_len).sum())
    }

    unsafe fn read(&mut self, _pieces: &[libc::iovec]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(libc::ECONNABORTED))
    }

    fn finish(&mut self) {}
}

#[test]
fn a_connection_that_the_kernel_aborts_is_lost() {
    let mut pair = plain();
    let a = &mut pair.ends.0;
    a.pair.receive(&mut Aborted);
    assert_eq!((a.pair.phase(), a.pair.cause()), (Phase::Ended, Some(Cause::Lost)));
}
