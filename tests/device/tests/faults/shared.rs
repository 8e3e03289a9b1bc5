//! A shared receive queue and memory windows: over a bad wire, and with peers that are stopped and killed.

use crate::netem::Netem;
use crate::peers::Peer;
use crate::traffic::{ROOM, WINDOW, address_of, connect, end_at, fill, join, received, sent, succeeded};
use crate::{BOUND, random, times, wire};
use fastrand::Rng;
use ndcompat::types::{Completion, RequestFlags, RequestType};
use ndcompat::{QueuePairConfig, SharedReceiveQueue, SharedReceiveQueueConfig, Status};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use support::{End, Pair};

/// A shared receive queue with all its receives posted, and the memory that they fill.
struct Pool {
    end: End,
    queue: Arc<SharedReceiveQueue>,
}

impl Pool {
    fn new(address: SocketAddr) -> Pool {
        let end = end_at(address, 0);
        let config =
            SharedReceiveQueueConfig { depth: WINDOW as u32, max_sge: 1, threshold: 0, affinity: (0, 0) };
        let queue = end.adapter.create_shared_receive_queue(&end.file, config).unwrap();
        let pool = Pool { end, queue };
        (0..WINDOW).for_each(|number| pool.receive(number));
        pool
    }

    fn receive(&self, number: usize) {
        let slot = self.end.memory.sge(received(number)..received(number) + ROOM);
        // SAFETY: the memory lives as long as the pool.
        unsafe { self.queue.receive(number as u64, &[slot]) }.expect("a receive has completed");
    }

    /// An end whose queue pair receives from this queue.
    fn end(&self, context: u64) -> End {
        let mut end = End::new(&self.end.adapter, context);
        let config =
            QueuePairConfig::new(&end.completion_queue).context(context).shared_receive_queue(&self.queue);
        end.queue_pair = self.end.adapter.create_queue_pair(config).unwrap();
        end
    }

    /// Compares what a receive got with `message`, and posts the receive again.
    fn check(&self, result: &Completion, message: &[u8]) {
        let number = result.request_context as usize;
        let bytes = &self.end.memory.bytes[received(number)..][..result.bytes_transferred as usize];
        assert!(bytes == message, "the message differs");
        self.receive(number);
    }
}

/// Waits for the next result; the status if the request failed.
fn next(end: &End) -> Result<Completion, Status> {
    next_while(end, || true)
}

/// [`next`] while `connected` says so. Afterwards `ND_CANCELED`: a shared receive is not cancelled with a connection.
fn next_while(end: &End, mut connected: impl FnMut() -> bool) -> Result<Completion, Status> {
    let deadline = Instant::now() + BOUND;
    loop {
        if !connected() {
            return Err(Status::CANCELED);
        }
        if let Some(result) = end.try_completion() {
            return succeeded(result.status).map(|()| result);
        }
        assert!(Instant::now() < deadline, "no result comes");
        std::thread::yield_now();
    }
}

/// Sends a message of random length and contents.
fn send_message(end: &mut End, random: &mut Rng) -> Result<Vec<u8>, Status> {
    let mut message = vec![0; random.usize(1..=ROOM)];
    random.fill(&mut message);
    fill(end, sent(0), &message);
    end.send(0, sent(0)..sent(0) + message.len(), RequestFlags::empty())?;
    Ok(message)
}

/// The passive end binds a window over its first bytes, the active one writes them and sends a message. Both are compared.
fn write_and_send(pool: &Pool, pair: &mut Pair, random: &mut Rng) -> Result<(), Status> {
    let (active, passive) = (&mut pair.active, &pair.passive);
    let window = passive.adapter.create_memory_window().unwrap();
    let start = passive.memory.bytes.as_ptr() as usize;
    let (region, flags) = (&passive.memory.region, RequestFlags::ALLOW_WRITE);
    // SAFETY: the memory lives as long as the end.
    unsafe { passive.queue_pair.bind(1, region, &window, start..start + ROOM, flags)? };
    assert_eq!(next(passive)?.request_type, RequestType::Bind);
    let mut bytes = vec![0; ROOM];
    random.fill(&mut bytes);
    fill(active, sent(1), &bytes);
    let (from, to) = (active.memory.sge(sent(1)..sent(1) + ROOM), passive.memory.remote_address(0));
    // SAFETY: the memory lives as long as the ends.
    unsafe { active.queue_pair.write(1, &[from], to, window.remote_token(), RequestFlags::empty())? };
    let message = send_message(active, random)?;
    let result = next(passive)?;
    assert_eq!((result.request_type, result.queue_pair_context), (RequestType::Receive, 2));
    pool.check(&result, &message);
    assert!(passive.memory.bytes[..ROOM] == bytes[..], "what was written differs");
    for expected in [RequestType::Write, RequestType::Send] {
        assert_eq!(next(active)?.request_type, expected);
    }
    Ok(())
}

#[test]
fn a_bad_wire_spoils_no_shared_receive_and_no_window() {
    let (wire, mut random) = (wire(), random());
    for what in ["loss 5%", "delay 5ms reorder 25% 50%", "duplicate 5%", "corrupt 1%"] {
        let pool = Pool::new(address_of(&wire, 1));
        let mut pairs = [(); 2].map(|()| {
            let active = end_at(address_of(&wire, 0), 1);
            join(&wire, active, pool.end(2)).expect("a connection while the wire is good")
        });
        let (begin, mut arrived, mut broken) = (Instant::now(), 0, Vec::new());
        let netem = Netem::new(&wire, what);
        for pair in &mut pairs {
            let mut exchanges = (0..times(4)).map(|_| write_and_send(&pool, pair, &mut random));
            match exchanges.try_for_each(|done| done.inspect(|()| arrived += 1)) {
                Ok(()) => {}
                Err(status) => broken.push(status),
            }
        }
        drop(netem);
        println!("{what}: {arrived} writes and messages in {:?}, broken {broken:?}", begin.elapsed());
        for status in broken {
            assert!([Status::IO_TIMEOUT, Status::CANCELED].contains(&status), "{what}: {status}");
        }
    }
}

/// Sends messages to a peer that sends them back to the shared queue, until a request fails or the connection has ended.
fn echo(
    pool: &Pool,
    end: &mut End,
    random: &mut Rng,
    count: usize,
    mut connected: impl FnMut() -> bool,
) -> Result<(), Status> {
    for _ in 0..count {
        let message = send_message(end, random)?;
        for _ in 0..2 {
            let result = next_while(end, &mut connected)?;
            if result.request_type == RequestType::Receive {
                pool.check(&result, &message);
            }
        }
    }
    Ok(())
}

#[test]
fn a_shared_queue_serves_on_after_its_peers_are_stopped_and_killed() {
    let (wire, mut random) = (wire(), random());
    let from = address_of(&wire, 0);
    for round in 0..times(3) {
        let pool = Pool::new(from);
        let mut end = pool.end(1);
        let peer = Peer::start(&wire);
        connect(&end, from, peer.at).expect("a connection");
        let mut notice = end.operation();
        // SAFETY: waited for below.
        unsafe { end.connector.notify_disconnect(notice.ov()).unwrap() };
        let (last, stopped) = (random.usize(0..20), random.bool());
        echo(&pool, &mut end, &mut random, last, || true).expect("messages to a peer that lives");
        if stopped {
            peer.signal(libc::SIGSTOP);
        }
        peer.signal(libc::SIGKILL);
        let ended = echo(&pool, &mut end, &mut random, 1, || notice.status() == Status::PENDING);
        println!("round {round}: killed after {last} messages, {ended:?}");
        if let Err(status) = ended {
            // A message that is half way: see docs/differences.md.
            let ends = [Status::CANCELED, Status::IO_TIMEOUT, Status::DATA_ERROR, Status::ACCESS_VIOLATION];
            assert!(ends.contains(&status), "{status}");
        }
        end.disconnect();
        assert_ne!(notice.wait(), Status::PENDING);
        // The next connection fills the receives that the first one has left.
        let mut end = pool.end(1);
        let peer = Peer::start(&wire);
        connect(&end, from, peer.at).expect("a connection");
        echo(&pool, &mut end, &mut random, WINDOW / 2, || true).expect("messages");
    }
}
