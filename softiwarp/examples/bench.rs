//! What the device costs: one end of a measurement, for `bench/emulator/run`, which has the same of plain TCP and of libfabric.
//!
//! ```text
//! bench server PORT                                              serves one client on 127.0.0.1
//! bench client PORT WORKLOAD SIZE DEPTH COUNT poll|block [crc]   measures, and prints one number
//!     latency     half the time of a round trip of SIZE bytes each way, in nanoseconds; the least of a hundred parts of COUNT
//!     rate        DEPTH messages one way, then one back: nanoseconds a message
//!     bandwidth   the same with RDMA Writes: nanoseconds a message
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use parking_lot::Mutex;
use softiwarp::completion::{CompletionQueue, Operation, Status};
use softiwarp::memory::{Memory, Region, Rights};
use softiwarp::queue_pair::{Payload, Piece, QueuePair, QueuePairConfig, SendRequest, Work};
use softiwarp::socket::{Background, Connection, Event, Handler, Listener, Poller, SharedPair};
use softiwarp::startup::Offer;
use softiwarp::wire::SendKind;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Where messages lie that are sent; behind it, where they are received.
const AREA: usize = 4 << 20;
const DEPTH_MAX: usize = 1024;
/// What the client tells the server, as private data: each number in four bytes.
const WORDS: usize = 5;

#[derive(Clone, Copy, PartialEq)]
enum Workload {
    Latency = 0,
    Rate = 1,
    Bandwidth = 2,
}

#[derive(Clone, Copy)]
struct Plan {
    workload: Workload,
    size: usize,
    depth: usize,
    count: usize,
    polls: bool,
}

struct Told(mpsc::Sender<(Arc<Connection>, Event)>);

impl Handler for Told {
    fn event(&self, connection: &Arc<Connection>, event: Event) {
        // The receiver lives as long as the program.
        let _ = self.0.send((Arc::clone(connection), event));
    }
}

struct End {
    poller: Arc<Poller>,
    events: mpsc::Receiver<(Arc<Connection>, Event)>,
    handler: Arc<dyn Handler>,
    queue: Arc<CompletionQueue>,
    pair: SharedPair,
    memory: *mut u8,
    region: Region,
    polls: bool,
    received: usize,
    sent: usize,
    _background: Background,
}

impl End {
    fn new(polls: bool) -> Outcome<End> {
        let poller = Poller::new()?;
        let (send, events) = mpsc::channel();
        let domain = Memory::new().domain();
        let memory: *mut u8 = Box::into_raw(vec![1u8; 2 * AREA].into_boxed_slice()).cast();
        let rights = Rights { local_write: true, remote_read: true, remote_write: true, bind: false };
        // SAFETY: the memory is never freed, and used by pointer alone.
        let region = unsafe { domain.register(memory, 2 * AREA, memory as u64, rights) }?;
        let queue = Arc::new(CompletionQueue::new(4 * DEPTH_MAX, |_| {}));
        let pair = Arc::new(Mutex::new(QueuePair::new(QueuePairConfig {
            number: 1,
            domain,
            send_completions: Arc::clone(&queue),
            receive_completions: Arc::clone(&queue),
            send_depth: 2 * DEPTH_MAX,
            receive_depth: 2 * DEPTH_MAX,
            shared_receives: None,
            pieces_max: 4,
            inline_max: 64,
        })));
        let handler: Arc<dyn Handler> = Arc::new(Told(send));
        let background = Background::start(Arc::clone(&poller))?;
        let (received, sent) = (0, 0);
        Ok(End {
            poller,
            events,
            handler,
            queue,
            pair,
            memory,
            region,
            polls,
            received,
            sent,
            _background: background,
        })
    }

    fn event(&self) -> Outcome<(Arc<Connection>, Event)> {
        loop {
            if let Ok(told) = self.events.try_recv() {
                return Ok(told);
            }
            self.poller.drive(Some(std::time::Duration::from_millis(10)));
        }
    }

    fn piece(&self, at: usize, length: usize) -> Piece {
        Piece { offset: self.memory as u64 + at as u64, length: length as u32, token: self.region.token() }
    }

    fn post_receive(&self) -> Outcome<()> {
        Ok(self.pair.lock().post_receive(0, &[self.piece(AREA, AREA)])?)
    }

    fn post(&self, connection: &Connection, work: Work, size: usize) -> Outcome<()> {
        let pieces = [self.piece(0, size)];
        let pieces = if size == 0 { &pieces[..0] } else { &pieces[..] };
        let request =
            SendRequest { id: 0, work, payload: Payload::Pieces(pieces), signaled: true, fence: false };
        Ok(connection.post_send(&request)?)
    }

    fn send(&self, connection: &Connection, size: usize) -> Outcome<()> {
        self.post(connection, Work::Send(SendKind::default()), size)
    }

    /// Waits until as many messages have been sent and received in all.
    fn until(&mut self, sent: usize, received: usize) -> Outcome<()> {
        while self.sent < sent || self.received < received {
            let mut count = 0;
            while let Some(completion) = self.queue.poll() {
                count += 1;
                if completion.status != Status::Success {
                    return Err(format!("{completion:?}").into());
                }
                match completion.operation {
                    Operation::Receive => {
                        self.received += 1;
                        self.post_receive()?;
                    }
                    _ => self.sent += 1,
                }
            }
            if count == 0 {
                if self.polls {
                    self.poller.progress(&self.queue);
                } else {
                    // Not for ever: the background may have moved the connection since the queue was empty.
                    self.poller.drive(Some(std::time::Duration::from_millis(1)));
                }
            }
        }
        Ok(())
    }

    /// One side of the workload: the server's answers, the client's begins.
    fn run(&mut self, connection: &Connection, plan: Plan, target: Option<(u32, u64)>) -> Outcome<f64> {
        let mut best = f64::MAX;
        let (mut sent, mut received) = (0, 0);
        let burst = if plan.workload == Workload::Latency { 1 } else { plan.depth };
        let parts = 100;
        let rounds = (plan.count / burst).max(parts);
        for _ in 0..parts {
            let begin = Instant::now();
            for _ in 0..rounds / parts {
                match target {
                    Some((token, offset)) => {
                        if plan.workload == Workload::Bandwidth {
                            for _ in 0..burst {
                                self.post(connection, Work::Write { token, offset }, plan.size)?;
                            }
                            self.send(connection, 0)?;
                            sent += 1;
                        } else {
                            for _ in 0..burst {
                                self.send(connection, plan.size)?;
                            }
                        }
                        sent += burst;
                        received += 1;
                        self.until(sent, received)?;
                    }
                    None => {
                        received += if plan.workload == Workload::Bandwidth { 1 } else { burst };
                        self.until(sent, received)?;
                        sent += 1;
                        self.send(
                            connection,
                            if plan.workload == Workload::Latency { plan.size } else { 0 },
                        )?;
                    }
                }
            }
            let messages = rounds / parts * burst * if plan.workload == Workload::Latency { 2 } else { 1 };
            best = best.min(begin.elapsed().as_nanos() as f64 / messages as f64);
        }
        self.until(sent, received)?;
        Ok(best)
    }
}

fn offer(crc: bool) -> Offer {
    Offer { inbound_reads: 8, outbound_reads: 8, crc, peer_to_peer: true }
}

fn server(port: u16) -> Outcome<()> {
    let mut end = End::new(true)?;
    for _ in 0..2 * DEPTH_MAX {
        end.post_receive()?;
    }
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let _listener = Listener::new(&end.poller, at, 1, Arc::clone(&end.handler))?;
    let (connection, Event::Asked { private_data, .. }) = end.event()? else {
        return Err("not asked".into());
    };
    let mut words = [0u32; WORDS];
    for (word, bytes) in words.iter_mut().zip(private_data.chunks(4)) {
        *word = u32::from_be_bytes(bytes.try_into()?);
    }
    let [workload, size, depth, count, polls] = words.map(|word| word as usize);
    let workload = [Workload::Latency, Workload::Rate, Workload::Bandwidth][workload];
    end.polls = polls != 0;
    let said =
        [&end.region.token().to_be_bytes()[..], &(end.memory as u64 + AREA as u64).to_be_bytes()].concat();
    connection.accept(&offer(false), &said, Arc::clone(&end.pair))?;
    end.run(&connection, Plan { workload, size, depth, count, polls: end.polls }, None)?;
    end.event()?;
    Ok(())
}

fn client(port: u16, plan: Plan, crc: bool) -> Outcome<f64> {
    let mut end = End::new(plan.polls)?;
    for _ in 0..2 * DEPTH_MAX {
        end.post_receive()?;
    }
    let words = [plan.workload as usize, plan.size, plan.depth, plan.count, plan.polls.into()];
    let said: Vec<u8> = words.iter().flat_map(|&word| (word as u32).to_be_bytes()).collect();
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let connection = Connection::connect(
        &end.poller,
        (None, to),
        (offer(crc), &said),
        Arc::clone(&end.pair),
        Arc::clone(&end.handler),
    )?;
    let (_, Event::Established { private_data, .. }) = end.event()? else {
        return Err("not accepted".into());
    };
    let (token, offset) = private_data.split_at(4);
    let target = (u32::from_be_bytes(token.try_into()?), u64::from_be_bytes(offset.try_into()?));
    let found = end.run(&connection, plan, Some(target))?;
    connection.disconnect();
    // What is still with TCP goes out.
    end.poller.drive(Some(std::time::Duration::from_millis(1)));
    Ok(found)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["server", port] => server(port.parse()?),
        ["client", port, workload, size, depth, count, wait, ref rest @ ..] => {
            let workload = match workload {
                "latency" => Workload::Latency,
                "rate" => Workload::Rate,
                "bandwidth" => Workload::Bandwidth,
                _ => return Err("no such workload".into()),
            };
            let (size, depth, count) = (size.parse()?, depth.parse()?, count.parse()?);
            let plan = Plan { workload, size, depth, count, polls: wait == "poll" };
            if size > AREA || !(1..=DEPTH_MAX).contains(&depth) {
                return Err("too large".into());
            }
            println!("{:.1}", client(port.parse()?, plan, rest == ["crc"])?);
            Ok(())
        }
        _ => Err("bench server PORT | bench client PORT WORKLOAD SIZE DEPTH COUNT poll|block [crc]".into()),
    }
}
