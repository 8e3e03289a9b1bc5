//! Many connections between two processes, each with a message both ways: time and memory of this process for each.
//!
//! ```text
//! many [CONNECTIONS]      10,000 if nothing is said
//! ```

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use softiwarp::completion::{CompletionQueue, Status};
use softiwarp::memory::{Domain, Memory};
use softiwarp::queue_pair::{Payload, QueuePair, QueuePairConfig, SendRequest, Work};
use softiwarp::socket::{Connection, Event, Handler, Listener, Poller, SharedPair};
use softiwarp::startup::Offer;
use softiwarp::wire::SendKind;

type Outcome<T> = Result<T, Box<dyn Error>>;

const OFFER: Offer = Offer { inbound_reads: 8, outbound_reads: 8, crc: false, peer_to_peer: true };

/// Accepts all, and keeps what is up.
struct Side {
    domain: Domain,
    queue: Arc<CompletionQueue>,
    up: Mutex<Vec<Arc<Connection>>>,
}

impl Side {
    fn pair(&self, number: usize) -> Outcome<SharedPair> {
        let mut pair = QueuePair::new(QueuePairConfig {
            number: number as u32,
            domain: self.domain.clone(),
            send_completions: Arc::clone(&self.queue),
            receive_completions: Arc::clone(&self.queue),
            send_depth: 16,
            receive_depth: 16,
            shared_receives: None,
            pieces_max: 4,
            inline_max: 64,
        });
        for id in 0..4 {
            pair.post_receive(id, &[])?;
        }
        Ok(Arc::new(Mutex::new(pair)))
    }
}

impl Handler for Side {
    fn event(&self, connection: &Arc<Connection>, event: Event) {
        match event {
            Event::Asked { .. } => {
                let accepted = self.pair(0).and_then(|pair| Ok(connection.accept(&OFFER, b"", pair)?));
                if let Err(error) = accepted {
                    eprintln!("many: {error}");
                }
                self.up.lock().push(Arc::clone(connection));
            }
            Event::Established { .. } => self.up.lock().push(Arc::clone(connection)),
            Event::Ended(_) => {}
        }
    }
}

fn descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there while the calls last.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}

/// Resident memory in bytes.
fn resident() -> Outcome<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse::<usize>()? * 1024)
}

fn send(connection: &Connection) -> Outcome<()> {
    // The receives have no room.
    let payload = Payload::Pieces(&[]);
    let work = Work::Send(SendKind::default());
    Ok(connection.post_send(&SendRequest { id: 9, work, payload, signaled: false, fence: false })?)
}

fn main() -> Outcome<()> {
    descriptors();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let serves = words.first().is_some_and(|word| word == "serve");
    let count: usize = words.last().filter(|_| !words.is_empty()).map_or(Ok(10_000), |word| word.parse())?;
    let poller = Poller::new()?;
    let queue = Arc::new(CompletionQueue::new(4 * count + 16, |_| {}));
    let (domain, up) = (Memory::new().domain(), Mutex::default());
    let side = Arc::new(Side { domain, queue: Arc::clone(&queue), up });
    let handler = || Arc::clone(&side) as Arc<dyn Handler>;
    let received = |wanted: usize| -> Outcome<()> {
        let mut found = 0;
        while found < wanted {
            poller.drive(None);
            while let Some(done) = queue.poll() {
                if done.status != Status::Success {
                    return Err(format!("{done:?}").into());
                }
                found += 1;
            }
        }
        Ok(())
    };
    if serves {
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::new(&poller, at, 4096, handler())?;
        println!("{}", listener.address()?.ok_or("no address")?.port());
        std::io::stdout().flush()?;
        received(count)?;
        for connection in side.up.lock().iter() {
            send(connection)?;
        }
        // Until the other end is gone.
        std::io::stdin().lines().for_each(drop);
        return Ok(());
    }
    let mut other = Command::new(std::env::current_exe()?)
        .args(["serve", &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(other.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let to = SocketAddr::from(([127, 0, 0, 1], line.trim().parse()?));
    let (before, mut begin) = (resident()?, Instant::now());
    for tenth in 1..=10 {
        let wanted = count * tenth / 10;
        for number in count * (tenth - 1) / 10..wanted {
            Connection::connect(&poller, (None, to), (OFFER, b"many"), side.pair(number)?, handler())?;
            poller.drive(Some(std::time::Duration::ZERO));
        }
        while side.up.lock().len() < wanted {
            poller.drive(None);
        }
        println!("{wanted} connections, the last tenth in {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
        begin = Instant::now();
    }
    for connection in side.up.lock().iter() {
        send(connection)?;
    }
    received(count)?;
    let each = (resident()? - before) / count;
    println!("a message each way on all: {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
    println!("{each} bytes of memory for each, completion queue and handler included");
    drop(other.stdin.take());
    other.wait()?;
    if each <= 16 << 10 { Ok(()) } else { Err("more than 16 KiB".into()) }
}
