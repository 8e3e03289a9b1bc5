//! What a peer may send to the device in user space: start frames, and frames to a connection that is up, long ones, too, cut anywhere,
//! while the program posts requests. Every request ends once, no memory changes but what the peer may write, and nothing grows with
//! what it sends.

#![no_main]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use softiwarp::completion::{CompletionQueue, Status};
use softiwarp::memory::{Domain, Memory, Region, Rights};
use softiwarp::queue_pair::{
    Agreement, Opening, Payload, Phase, Piece, QueuePair, QueuePairConfig, SendRequest, Stream, Work,
};
use softiwarp::startup::{Asked, Offer, negotiate};
use softiwarp::wire::crc::Crc;
use softiwarp::wire::startup::Parsed;
use softiwarp::wire::{SendKind, StartFrame, StartKind, Terminate, fpdu};

/// Bytes of each stretch of memory.
const AREA: usize = 16384;
/// How much longer frames are than what the input has of them, if they are to be long.
const LONG: usize = 64;
/// How many requests the program posts at most.
const POSTED: u64 = 24;
/// How much the peer takes of what is written to it.
const TAKEN: usize = 1 << 20;
const RECEIVES: u64 = 4;
const OFFER: Offer = Offer { inbound_reads: 4, outbound_reads: 4, crc: false, peer_to_peer: true };

/// The peer: what it sends, in pieces, and how much it still reads.
struct Peer {
    sends: VecDeque<u8>,
    reads: usize,
    chunk: usize,
    closed: bool,
}

impl Stream for Peer {
    unsafe fn write(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        assert!(!self.closed, "written after the end");
        let count =
            pieces.iter().map(|piece| piece.iov_len).sum::<usize>().min(self.reads).min(self.chunk * 64);
        self.reads -= count;
        if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    unsafe fn read(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        if self.sends.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut count = 0;
        for piece in pieces {
            let (front, _) = self.sends.as_slices();
            let part = piece.iov_len.min(front.len()).min(self.chunk - count);
            // SAFETY: the caller says that as many are writable.
            unsafe { front.as_ptr().copy_to_nonoverlapping(piece.iov_base.cast(), part) };
            self.sends.drain(..part);
            count += part;
        }
        Ok(count)
    }

    fn finish(&mut self) {
        self.closed = true;
    }
}

fn register(domain: &Domain, memory: &mut Vec<u8>, rights: Rights) -> Region {
    // SAFETY: the memory lives longer than the region, and is looked at when the region is gone.
    unsafe { domain.register(memory.as_mut_ptr(), AREA, 0x1000, rights) }.expect("a region")
}

/// Start frames, whole and cut.
fn start(bytes: &[u8]) {
    for kind in [StartKind::Request, StartKind::Reply] {
        let key: &[u8] = if kind == StartKind::Request { b"MPA ID Req Frame" } else { b"MPA ID Rep Frame" };
        let keyed = [key, bytes].concat();
        for bytes in [bytes, &keyed] {
            match StartFrame::parse(bytes, kind) {
                Ok(Parsed::Incomplete(needed)) => assert!(needed > bytes.len() && needed <= 532),
                Ok(Parsed::Frame(frame, size)) => {
                    assert!(size <= bytes.len());
                    let asked = Asked::new(&frame);
                    let (reply, agreement) = asked.accept(&OFFER, b"yes").expect("short words");
                    assert!(reply.len() <= 532 && agreement.outbound_reads <= 4);
                    assert!(asked.refuse(b"no").is_ok());
                    let _ = negotiate(&OFFER, &frame);
                }
                Err(_) => {}
            }
        }
    }
    let _ = Terminate::parse(bytes);
}

/// Puts a frame around each piece of the input, with a token where the peer knows one, and `long` times as many bytes.
fn framed(bytes: &[u8], tokens: [u32; 2], crc: bool, long: usize) -> VecDeque<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((&length, after)) = rest.split_first() {
        let (ulpdu, after) = after.split_at(after.len().min(length.into()));
        rest = after;
        let size = ulpdu.len() * long;
        let mut frame = (size as u16).to_be_bytes().to_vec();
        frame.extend_from_slice(ulpdu);
        frame.resize(2 + size, 7);
        // Tagged frames begin with the token, read requests have it behind the header and the sink.
        for at in [4, 4 + 28] {
            if let Some(token) = frame.get_mut(at..at + 4)
                && let [0xaa, 0, 0, which @ 0..=1] = *token
            {
                token.copy_from_slice(&tokens[usize::from(which)].to_be_bytes());
            }
        }
        frame.resize(frame.len() + fpdu::pad(size), 0);
        let end = if crc { Crc::default().update(&frame).bytes() } else { [0; 4] };
        frame.extend(end);
        out.extend(frame);
    }
    out.into()
}

fn connection(options: u8, chunk: u8, bytes: &[u8]) {
    let flag = |bit: u8| options & (1 << bit) != 0;
    let (mut open, mut closed, mut own) = (vec![1u8; AREA], vec![2u8; AREA], vec![3u8; 2 * AREA]);
    let domain = Memory::new().domain();
    let all = Rights { local_write: true, remote_read: true, remote_write: true, bind: true };
    let regions = [
        register(&domain, &mut open, all),
        register(&domain, &mut closed, Rights { local_write: true, ..Rights::default() }),
        register(&domain, &mut own, Rights { local_write: true, ..Rights::default() }),
    ];
    let tokens = [regions[0].token(), regions[1].token()];
    let queue = || Arc::new(CompletionQueue::new(64, |_| {}));
    let (sent, received) = (queue(), queue());
    let mut pair = QueuePair::new(QueuePairConfig {
        number: 1,
        domain: domain.clone(),
        send_completions: Arc::clone(&sent),
        receive_completions: Arc::clone(&received),
        send_depth: 8,
        receive_depth: 8,
        shared_receives: None,
        pieces_max: 4,
        inline_max: 64,
    });
    let piece = |length| Piece { offset: 0x1000, length, token: regions[2].token() };
    let long = if flag(6) { LONG } else { 1 };
    for id in 0..RECEIVES {
        pair.post_receive(id, &[piece(16), piece(id as u32 * 32 * long as u32)]).expect("posted");
    }
    let opening = if flag(0) { Opening::Awaits } else { Opening::AwaitsEmpty };
    let opening = if flag(1) { Opening::Free } else { opening };
    let crc = flag(2);
    pair.start(Agreement { crc, inbound_reads: 2, outbound_reads: 2, opening }, 1448);
    let reads = if flag(3) { 0 } else { TAKEN };
    let sends = if flag(4) { bytes.iter().copied().collect() } else { framed(bytes, tokens, crc, long) };
    let mut peer = Peer { sends, reads, chunk: usize::from(chunk).max(1) * long, closed: false };
    let works = [
        Work::Send(SendKind::default()),
        Work::Read { token: 7, offset: 0 },
        Work::Write { token: 7, offset: 0 },
        Work::Read { token: 8, offset: 0 },
    ];
    let (mut requests, mut receives) = (0, RECEIVES);
    let post = |pair: &mut QueuePair, requests: &mut u64| {
        let work = works[*requests as usize % works.len()];
        let payload = Payload::Pieces(&[piece(100)]);
        let fence = *requests % 5 == 4;
        let posted = pair.post_send(&SendRequest { id: *requests, work, payload, signaled: true, fence });
        *requests += u64::from(posted.is_ok());
    };
    for _ in &works {
        post(&mut pair, &mut requests);
    }
    let mut left = usize::MAX;
    while left != peer.sends.len() && pair.phase() == Phase::Running {
        left = peer.sends.len();
        pair.transmit(&mut peer);
        pair.receive(&mut peer);
        if flag(5) && requests + receives < POSTED {
            // Some of what the peer sends comes before, some after it.
            post(&mut pair, &mut requests);
            receives += u64::from(pair.post_receive(receives, &[piece(64)]).is_ok());
        }
        pair.transmit(&mut peer);
    }
    pair.disconnect();
    pair.transmit(&mut peer);
    let ids = |queue: &CompletionQueue| -> Vec<(u64, Status)> {
        std::iter::from_fn(|| queue.poll().map(|done| (done.id, done.status))).collect()
    };
    for (queue, count) in [(&sent, requests), (&received, receives)] {
        let ids = ids(queue);
        assert!(ids.iter().map(|&(id, _)| id).eq(0..count), "once each, in their order: {ids:?}");
        let mut after = ids.iter().map(|&(_, status)| status).skip_while(|&status| status == Status::Success);
        assert!(after.all(|status| status != Status::Success), "a success behind a failure: {ids:?}");
    }
    drop(regions);
    assert!(closed.iter().all(|&byte| byte == 2), "memory that the peer may not write");
    assert!(own[AREA..].iter().all(|&byte| byte == 3), "memory that is not registered");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match *bytes {
        [options, chunk, ref rest @ ..] if options & 0x80 == 0 => connection(options, chunk, rest),
        _ => start(bytes),
    }
});
