//! Connections from process to process, several at once, with messages, writes and reads whose contents both ends compare; then
//! with processes that are stopped and killed at random moments.
//!
//! `NDCOMPAT_SEED` chooses what is done.

use fastrand::Rng;
use ndcompat::connector::Offer;
use ndcompat::types::{Completion, RequestFlags, RequestType};
use ndcompat::{SockAddr, Status};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::seed::seed;
use support::{End, address, listen};

/// How long anything may take.
const BOUND: Duration = Duration::from_secs(60);
/// Connections from one process to another.
const CONNECTIONS: u32 = 3;
const ALL_WELL: [Result<(), Status>; CONNECTIONS as usize] = [Ok(()); CONNECTIONS as usize];
/// Messages of a round in each direction.
const WINDOW: usize = 4;
const ROUNDS: u32 = 40;
/// The most bytes of a message.
const ROOM: usize = 2048;
/// Where in the memory of an end messages are received, while those of the round before may still be there.
const RECEIVED: usize = WINDOW * ROOM;
/// The part of the memory that the peer writes and reads, and that into which an end reads it.
const SHARED: usize = RECEIVED + 2 * WINDOW * ROOM;
const READ: usize = SHARED + ROOM;
/// The numbers of the requests that are no messages.
const WRITING: u64 = 100;
const READING: u64 = 101;
const GOODBYE: u64 = 102;

/// What an end says of itself when it connects: the number of the connection, and where the peer may write.
struct Card {
    number: u32,
    token: u32,
    at: u64,
}

impl Card {
    fn of(end: &End, number: u32) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        bytes[4..8].copy_from_slice(&end.memory.region.remote_token().to_le_bytes());
        bytes[8..].copy_from_slice(&end.memory.remote_address(SHARED).to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Card {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        Card { number: word(0), token: word(4), at: u64::from_le_bytes(bytes[8..16].try_into().unwrap()) }
    }
}

fn offer(data: &[u8]) -> Offer<'_> {
    Offer { inbound_read_limit: 2, outbound_read_limit: 2, private_data: data }
}

fn succeeded(status: Status) -> Result<(), Status> {
    if status == Status::SUCCESS { Ok(()) } else { Err(status) }
}

fn slot(number: u64) -> usize {
    RECEIVED + number as usize % (2 * WINDOW) * ROOM
}

fn receive(end: &End, number: u64) -> Result<(), Status> {
    end.receive(number, slot(number)..slot(number) + ROOM)
}

fn receive_all(end: &End) -> Result<(), Status> {
    (0..2 * WINDOW as u64).try_for_each(|number| receive(end, number))
}

fn message(random: &mut Rng) -> Vec<u8> {
    let mut message = vec![0; random.usize(1..=ROOM)];
    random.fill(&mut message);
    message
}

/// The choices of one end of a connection, which the other one knows, too.
fn choices(seed: u64, number: u32, active: bool) -> Rng {
    Rng::with_seed(seed ^ u64::from(number) << 32 ^ u64::from(active))
}

/// Sends and receives the messages of all rounds; each round, writes to the peer and reads that back.
fn converse(end: &mut End, peer: &Card, seed: u64, active: bool) -> Result<(), Status> {
    let mut mine = choices(seed, peer.number, active);
    let mut theirs = choices(seed, peer.number, !active);
    // Messages of the next round may arrive before this one is over, and the goodbye after the last.
    let (mut next, all) = (0, u64::from(ROUNDS) * WINDOW as u64);
    let mut hear = |end: &End, result: &Completion| -> Result<u64, Status> {
        assert_eq!(result.request_context, next, "receives are reported in their order");
        if next < all {
            let bytes = &end.memory.bytes[slot(next)..slot(next) + result.bytes_transferred as usize];
            assert!(bytes == message(&mut theirs), "message {next} differs");
            receive(end, next + 2 * WINDOW as u64)?;
        }
        next += 1;
        Ok(next)
    };
    let mut heard = 0;
    // On iWARP, the side that connected must send first.
    while !active && heard == 0 {
        let result = end.completion();
        succeeded(result.status)?;
        heard = hear(end, &result)?;
    }
    for round in 0..ROUNDS {
        let sent: Vec<Vec<u8>> = (0..WINDOW).map(|_| message(&mut mine)).collect();
        for (at, message) in sent.iter().enumerate() {
            let range = at * ROOM..at * ROOM + message.len();
            end.memory.bytes[range.clone()].copy_from_slice(message);
            end.send(at as u64, range, RequestFlags::empty())?;
        }
        let (written, flags) = (&sent[0], RequestFlags::READ_FENCE);
        // SAFETY: the memory of both ends lives as long as the queue pairs.
        unsafe {
            let from = [end.memory.sge(0..written.len())];
            end.queue_pair.write(WRITING, &from, peer.at, peer.token, RequestFlags::empty())?;
            let into = [end.memory.sge(READ..READ + written.len())];
            end.queue_pair.read(READING, &into, peer.at, peer.token, flags)?;
        }
        let mut own = 0;
        let (deadline, due) = (Instant::now() + BOUND, u64::from(round + 1) * WINDOW as u64);
        while own < WINDOW + 2 || heard < due {
            assert!(Instant::now() < deadline, "round {round} does not end: {own} sent, {heard} received");
            let Some(result) = end.try_completion() else {
                std::thread::yield_now();
                continue;
            };
            succeeded(result.status)?;
            if result.request_type == RequestType::Receive {
                heard = hear(end, &result)?;
            } else {
                let order = [0, 1, 2, 3, WRITING, READING];
                assert_eq!(result.request_context, order[own], "requests are reported in their order");
                own += 1;
            }
        }
        assert!(end.memory.bytes[READ..READ + written.len()] == written[..], "what was read differs");
    }
    say_goodbye(end, heard > all)
}

/// Both ends are done with the other's memory once they have exchanged one more message.
fn say_goodbye(end: &End, heard: bool) -> Result<(), Status> {
    end.send(GOODBYE, 0..1, RequestFlags::empty())?;
    let deadline = Instant::now() + BOUND;
    let mut left = vec![RequestType::Send];
    left.extend((!heard).then_some(RequestType::Receive));
    while !left.is_empty() {
        assert!(Instant::now() < deadline, "no goodbye: {left:?}");
        let Some(result) = end.try_completion() else {
            std::thread::yield_now();
            continue;
        };
        succeeded(result.status)?;
        let at = left.iter().position(|kind| *kind == result.request_type);
        left.remove(at.expect("one of each"));
    }
    Ok(())
}

/// Makes connections to another process, each on a thread of its own. Returns how each has ended.
fn call(at: SockAddr, seed: u64) -> Vec<Result<(), Status>> {
    call_and_count(at, seed, &AtomicU32::new(0))
}

/// As [`call`], and counts in `made` those that are connected.
fn call_and_count(at: SockAddr, seed: u64, made: &AtomicU32) -> Vec<Result<(), Status>> {
    let one = |number: u32| {
        let mut end = End::new(&support::adapter(), 1);
        receive_all(&end)?;
        end.connector.bind(address())?;
        let (mut connect, mut complete) = (end.operation(), end.operation());
        let card = Card::of(&end, number);
        // SAFETY: both are waited for.
        let peer = unsafe {
            end.connector.connect(&end.queue_pair, at, offer(&card), connect.ov())?;
            succeeded(connect.wait())?;
            let peer = Card::read(&end.connector.private_data()?);
            assert_eq!(peer.number, number, "the answer to another");
            end.connector.complete_connect(complete.ov())?;
            peer
        };
        succeeded(complete.wait())?;
        made.fetch_add(1, Ordering::Relaxed);
        let ended = converse(&mut end, &peer, seed, true);
        end.disconnect();
        ended
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CONNECTIONS).map(|number| scope.spawn(move || one(number))).collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    })
}

/// Takes this many connections, each on a thread of its own.
fn serve(count: u32, seed: u64, tell: impl FnOnce(SockAddr)) {
    let adapter = support::adapter();
    let file = adapter.create_overlapped_file().unwrap();
    let (listener, at) = listen(&adapter, &file, address());
    let one = |mut end: End| -> Result<(), Status> {
        let said = Card::read(&end.connector.private_data()?);
        let mut accept = end.operation();
        let card = Card::of(&end, said.number);
        // SAFETY: waited for.
        unsafe { end.connector.accept(&end.queue_pair, offer(&card), accept.ov())? };
        succeeded(accept.wait())?;
        let ended = converse(&mut end, &said, seed, false);
        end.disconnect();
        ended
    };
    tell(at);
    std::thread::scope(|scope| {
        let servers: Vec<_> = (0..count)
            .map(|_| {
                let end = End::new(&adapter, 2);
                receive_all(&end).unwrap();
                let mut request = end.operation();
                // SAFETY: waited for.
                unsafe { listener.connection_request(&end.connector, request.ov()).unwrap() };
                assert_eq!(request.wait(), Status::SUCCESS, "GetConnectionRequest");
                scope.spawn(move || one(end))
            })
            .collect();
        for server in servers {
            assert_eq!(server.join().expect("no panic"), Ok(()), "a connection of the other process");
        }
    });
}

/// Serves its parent, and the other child, if there is one, to which it also connects.
#[test]
#[ignore = "the other process of these tests"]
fn partner() {
    let variable = |name: &str| std::env::var(name).ok();
    let seed = variable("NDCOMPAT_TEST_SEED").expect("a seed").parse().unwrap();
    let other: Option<SocketAddr> = variable("NDCOMPAT_TEST_AT").map(|text| text.parse().unwrap());
    let callers = variable("NDCOMPAT_TEST_CALLERS").expect("a number").parse::<u32>().unwrap();
    std::thread::scope(|scope| {
        if let Some(other) = other {
            scope.spawn(move || {
                assert_eq!(call(other.into(), seed), ALL_WELL, "connections between children");
            });
        }
        serve(callers * CONNECTIONS, seed, |at| {
            println!("\nstage {at}");
            std::io::stdout().flush().unwrap();
        });
    });
}

/// A process that runs [`partner`], killed on drop.
struct Partner {
    child: Child,
    at: SocketAddr,
    // Open, so that the child can print to it.
    _said: std::io::Lines<BufReader<ChildStdout>>,
}

impl Partner {
    /// A partner that is called by so many processes, and calls the one at `other`.
    fn start(seed: u64, callers: u32, other: Option<SocketAddr>) -> Partner {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["partner", "--exact", "--ignored", "--nocapture"])
            .env("NDCOMPAT_TEST_SEED", seed.to_string())
            .env("NDCOMPAT_TEST_CALLERS", callers.to_string());
        if let Some(other) = other {
            command.env("NDCOMPAT_TEST_AT", other.to_string());
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at = lines.find_map(|line| Some(line.unwrap().strip_prefix("stage ")?.parse().unwrap()));
        Partner { child, at: at.expect("the partner listens"), _said: lines }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    fn ends_well(mut self) {
        let deadline = Instant::now() + BOUND;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the other process does not end");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(status.success(), "the other process: {status}");
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_processes_exchange_messages() {
    let seed = seed();
    let partner = Partner::start(seed, 1, None);
    assert_eq!(call(partner.at.into(), seed), ALL_WELL);
    partner.ends_well();
}

#[test]
fn three_processes_exchange_messages() {
    let seed = seed();
    let one = Partner::start(seed, 2, None);
    let two = Partner::start(seed, 1, Some(one.at));
    std::thread::scope(|scope| {
        for at in [one.at, two.at] {
            scope.spawn(move || assert_eq!(call(at.into(), seed), ALL_WELL));
        }
    });
    one.ends_well();
    two.ends_well();
}

/// Whether a request may end so when the peer is killed. One that is half way fails in a way of its own (docs/differences.md).
fn tells_of_an_end(status: Status) -> bool {
    [
        Status::CANCELED,
        Status::IO_TIMEOUT,
        Status::CONNECTION_INVALID,
        Status::CONNECTION_REFUSED,
        Status::CONNECTION_ABORTED,
        Status::INVALID_DEVICE_STATE,
        Status::ACCESS_VIOLATION,
        Status::DATA_ERROR,
    ]
    .contains(&status)
}

/// Of two partners one is stopped and killed; the connections to the other are as good as before.
#[test]
fn a_killed_process_harms_its_own_connections_only() {
    let seed = seed();
    let mut random = Rng::with_seed(seed);
    let mut ends = Vec::new();
    for _ in 0..5 {
        let (good, bad) = (Partner::start(seed, 1, None), Partner::start(seed, 1, None));
        let (made, wanted) = (AtomicU32::new(0), random.u32(0..=CONNECTIONS));
        std::thread::scope(|scope| {
            let to_good = scope.spawn(|| call(good.at.into(), seed));
            let to_bad = scope.spawn(|| call_and_count(bad.at.into(), seed, &made));
            while made.load(Ordering::Relaxed) < wanted && !to_bad.is_finished() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(random.u64(0..30)));
            if random.bool() {
                bad.signal(libc::SIGSTOP);
                std::thread::sleep(Duration::from_millis(random.u64(0..60)));
                if random.bool() {
                    bad.signal(libc::SIGCONT);
                }
            }
            bad.signal(libc::SIGKILL);
            for ended in to_bad.join().expect("no panic") {
                assert!(ended.is_ok() || ended.is_err_and(tells_of_an_end), "{ended:?}");
                ends.push(ended);
            }
            assert_eq!(to_good.join().expect("no panic"), ALL_WELL);
        });
        good.ends_well();
    }
    println!("connections to killed processes ended so: {ends:?}");
}
