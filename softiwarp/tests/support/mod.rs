//! What the tests of queue pairs share: memory as a program's, a pair of ends, streams that do as they are told.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod device;
pub mod verbs;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::{io, ptr};

use softiwarp::completion::{Completion, CompletionQueue, Event};
use softiwarp::memory::{Domain, Memory, Region, Rights};
use softiwarp::queue_pair::{
    Agreement, Opening, Payload, Phase, Piece, QueuePair, QueuePairConfig, SendRequest, SharedReceiveQueue,
    Stream, Work,
};
use softiwarp::wire::{Header, SendKind};

pub const ALL: Rights = Rights { local_write: true, remote_read: true, remote_write: true, bind: true };

/// Registered memory that only pointers lead to, as a program's.
pub struct Block {
    start: *mut u8,
    length: usize,
    region: Option<Region>,
}

// SAFETY: the memory is used by pointer alone.
unsafe impl Send for Block {}
// SAFETY: the memory is used by pointer alone, whichever thread has the reference.
unsafe impl Sync for Block {}

impl Block {
    pub fn new(domain: &Domain, length: usize, rights: Rights) -> Block {
        let start: *mut u8 = Box::into_raw(vec![0u8; length].into_boxed_slice()).cast();
        // SAFETY: the memory lives until `drop`, which deregisters it first, and no reference is made to it.
        let region = unsafe { domain.register(start, length, start as u64, rights).expect("a region") };
        Block { start, length, region: Some(region) }
    }

    pub fn token(&self) -> u32 {
        self.region.as_ref().expect("registered").token()
    }

    pub fn at(&self, offset: usize) -> u64 {
        self.start as u64 + offset as u64
    }

    pub fn piece(&self, offset: usize, length: usize) -> Piece {
        Piece { offset: self.at(offset), length: length as u32, token: self.token() }
    }

    pub fn set(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.length);
        // SAFETY: within the memory, as was just looked.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
    }

    pub fn get(&self, offset: usize, length: usize) -> Vec<u8> {
        assert!(offset + length <= self.length);
        let mut out = vec![0; length];
        // SAFETY: within the memory, as was just looked.
        unsafe { ptr::copy_nonoverlapping(self.start.add(offset), out.as_mut_ptr(), length) };
        out
    }

    pub fn deregister(&mut self) {
        self.region = None;
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.region = None;
        // SAFETY: made by `new`; nothing reaches it any more.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.start, self.length)) });
    }
}

/// What one end has written and the other has not read.
#[derive(Default)]
pub struct Line {
    pub bytes: VecDeque<u8>,
    pub closed: bool,
}

/// One end of a pipe that takes and gives up to so many bytes a call, at random.
pub struct Pipe {
    pub out: Arc<Mutex<Line>>,
    pub into: Arc<Mutex<Line>>,
    pub chunk: usize,
    pub capacity: usize,
    pub random: fastrand::Rng,
}

pub fn pipes(chunk: usize, capacity: usize, seed: u64) -> (Pipe, Pipe) {
    let (a, b) = (Arc::<Mutex<Line>>::default(), Arc::<Mutex<Line>>::default());
    let end = |out: &Arc<Mutex<Line>>, into: &Arc<Mutex<Line>>, seed| Pipe {
        out: Arc::clone(out),
        into: Arc::clone(into),
        chunk,
        capacity,
        random: fastrand::Rng::with_seed(seed),
    };
    (end(&a, &b, seed), end(&b, &a, !seed))
}

impl Stream for Pipe {
    unsafe fn write(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        let mut line = self.out.lock().unwrap();
        assert!(!line.closed, "written after the end");
        let mut room = self.capacity.saturating_sub(line.bytes.len()).min(self.random.usize(0..=self.chunk));
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut count = 0;
        for piece in pieces {
            for at in 0..piece.iov_len.min(room) {
                // SAFETY: the caller says that it is readable.
                line.bytes.push_back(unsafe { *piece.iov_base.cast::<u8>().add(at) });
                count += 1;
            }
            room -= piece.iov_len.min(room);
        }
        Ok(count)
    }

    unsafe fn read(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        let mut line = self.into.lock().unwrap();
        if line.bytes.is_empty() {
            return if line.closed { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let most = self.random.usize(1..=self.chunk);
        let mut count = 0;
        for piece in pieces {
            for at in 0..piece.iov_len {
                if count == most {
                    return Ok(count);
                }
                let Some(byte) = line.bytes.pop_front() else { return Ok(count) };
                // SAFETY: the caller says that it is writable.
                unsafe { *piece.iov_base.cast::<u8>().add(at) = byte };
                count += 1;
            }
        }
        Ok(count)
    }

    fn finish(&mut self) {
        self.out.lock().unwrap().closed = true;
    }
}

/// One end: a queue pair with its queues.
pub struct End {
    pub domain: Domain,
    pub sent: Arc<CompletionQueue>,
    pub received: Arc<CompletionQueue>,
    pub pair: QueuePair,
}

impl End {
    pub fn new(number: u32, shared: Option<Arc<SharedReceiveQueue>>) -> End {
        End::with(Memory::new().domain(), number, shared, |_| {})
    }

    pub fn with(
        domain: Domain,
        number: u32,
        shared_receives: Option<Arc<SharedReceiveQueue>>,
        tell: impl Fn(Event) + Send + Sync + 'static,
    ) -> End {
        let sent = Arc::new(CompletionQueue::new(1 << 16, |_| {}));
        let received = Arc::new(CompletionQueue::new(1 << 16, tell));
        let pair = QueuePair::new(QueuePairConfig {
            number,
            domain: domain.clone(),
            send_completions: Arc::clone(&sent),
            receive_completions: Arc::clone(&received),
            send_depth: 64,
            receive_depth: 64,
            shared_receives,
            pieces_max: 40,
            inline_max: 1024,
        });
        End { domain, sent, received, pair }
    }

    pub fn send(&mut self, id: u64, pieces: &[Piece]) {
        self.post(id, Work::Send(SendKind::default()), pieces);
    }

    pub fn post(&mut self, id: u64, work: Work, pieces: &[Piece]) {
        let payload = Payload::Pieces(pieces);
        self.pair
            .post_send(&SendRequest { id, work, payload, signaled: true, fence: false })
            .expect("posted");
    }

    pub fn take_sent(&self) -> Vec<Completion> {
        std::iter::from_fn(|| self.sent.poll()).collect()
    }

    pub fn take_received(&self) -> Vec<Completion> {
        std::iter::from_fn(|| self.received.poll()).collect()
    }
}

/// An agreement of both sides, for the one that connects and the other.
pub fn agreements(crc: bool, reads: usize) -> (Agreement, Agreement) {
    let begin = Header::Write { token: 1, offset: 0, last: true };
    let both = |opening| Agreement { crc, inbound_reads: reads, outbound_reads: reads, opening };
    (both(Opening::Sends(begin)), both(Opening::AwaitsEmpty))
}

/// Two connected ends, and the pipes between them.
pub struct Pair {
    pub ends: (End, End),
    pub pipes: (Pipe, Pipe),
}

impl Pair {
    pub fn new(crc: bool, reads: usize, frame_max: usize, pipes: (Pipe, Pipe)) -> Pair {
        let (mut a, mut b) = (End::new(1, None), End::new(2, None));
        let (connects, accepts) = agreements(crc, reads);
        a.pair.start(connects, frame_max);
        b.pair.start(accepts, frame_max);
        Pair { ends: (a, b), pipes }
    }

    /// Lets both ends do what they can, once.
    pub fn step(&mut self) {
        let (a, b) = (&mut self.ends.0.pair, &mut self.ends.1.pair);
        a.transmit(&mut self.pipes.0);
        b.receive(&mut self.pipes.1);
        b.transmit(&mut self.pipes.1);
        a.receive(&mut self.pipes.0);
    }

    /// Steps until something has come true, which it must in time.
    pub fn until(&mut self, mut what: impl FnMut(&mut Pair) -> bool) {
        for _ in 0..2_000_000 {
            self.step();
            if what(self) {
                return;
            }
        }
        panic!("nothing comes of it: {:?} {:?}", self.ends.0.pair.phase(), self.ends.1.pair.phase());
    }

    /// Steps until both ends are at their end.
    pub fn until_ended(&mut self) {
        self.until(|pair| [&pair.ends.0, &pair.ends.1].iter().all(|end| end.pair.phase() == Phase::Ended));
    }
}
