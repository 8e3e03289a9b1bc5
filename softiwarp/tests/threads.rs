//! Several threads post, drive and end connections at once, beside the one in the background.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use softiwarp::completion::{Completion, CompletionQueue, Status};
use softiwarp::memory::{Domain, Memory};
use softiwarp::queue_pair::{Payload, PostError, QueuePair, QueuePairConfig, SendRequest, Work};
use softiwarp::socket::{Background, Connection, Event, Handler, Listener, Poller, SharedPair};
use softiwarp::startup::Offer;
use softiwarp::wire::SendKind;
use support::{ALL, Block};

const OFFER: Offer = Offer { inbound_reads: 8, outbound_reads: 8, crc: false, peer_to_peer: true };
const CONNECTIONS: usize = 4;
const MESSAGES: u64 = 2000;
const AREA: usize = 20_000;

/// Accepts with the pairs it has, and counts ends.
struct Acceptor {
    pairs: Mutex<Vec<SharedPair>>,
    up: Mutex<Vec<Arc<Connection>>>,
    ended: AtomicUsize,
}

impl Handler for Acceptor {
    fn event(&self, connection: &Arc<Connection>, event: Event) {
        match event {
            Event::Asked { .. } => {
                let pair = self.pairs.lock().pop().expect("as many as connect");
                connection.accept(&OFFER, b"", pair).expect("accepted");
            }
            Event::Established { .. } => self.up.lock().push(Arc::clone(connection)),
            Event::Ended(_) => {
                self.ended.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

fn pair(domain: &Domain, number: usize, queue: &Arc<CompletionQueue>) -> SharedPair {
    Arc::new(Mutex::new(QueuePair::new(QueuePairConfig {
        number: number as u32,
        domain: domain.clone(),
        send_completions: Arc::clone(queue),
        receive_completions: Arc::clone(queue),
        send_depth: 16,
        receive_depth: 1 + MESSAGES as usize,
        shared_receives: None,
        pieces_max: 4,
        inline_max: 64,
    })))
}

fn wait(poller: &Poller, mut what: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < end, "nothing comes of it");
        poller.drive(Some(Duration::from_millis(1)));
    }
}

/// The signals that the threads of this name block.
fn blocked(name: &str) -> Vec<u64> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        if status.starts_with(&format!("Name:\t{name}\n")) {
            let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
            found.push(u64::from_str_radix(line, 16).unwrap());
        }
    }
    found
}

#[test]
fn no_handler_of_the_program_runs_on_the_background_thread_but_that_of_a_crash() {
    let has = |set: u64, signal: i32| set & 1 << (signal - 1) != 0;
    let own = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find(|line| line.starts_with("SigBlk")).unwrap().to_owned()
    };
    let before = own();
    let _background = Background::start(Poller::new().unwrap()).unwrap();
    assert_eq!(own(), before, "the thread that starts it goes on as before");
    let end = Instant::now() + Duration::from_secs(60);
    let threads = loop {
        // A new thread has its name soon.
        match blocked("softiwarp") {
            none if none.is_empty() => assert!(Instant::now() < end, "no thread"),
            threads => break threads,
        }
    };
    for set in threads {
        for signal in
            [libc::SIGINT, libc::SIGTERM, libc::SIGALRM, libc::SIGUSR1, libc::SIGCHLD, libc::SIGRTMIN()]
        {
            assert!(has(set, signal), "{signal} of {set:x}");
        }
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT] {
            assert!(!has(set, signal), "{signal} of {set:x}");
        }
    }
}

/// Each thread posts on a connection of its own; all drive; completions are taken from one queue, where each must be once,
/// and of a connection in order.
#[test]
fn each_completion_comes_once_and_in_order() {
    let (poller, domain) = (Poller::new().unwrap(), Memory::new().domain());
    let sent = Arc::new(CompletionQueue::new(1 << 16, |_| {}));
    let received = Arc::new(CompletionQueue::new(1 << 16, |_| {}));
    // Each connection has areas of its own for what is written: one to read from, then its sink, target and receives.
    let block = Block::new(&domain, (1 + 3 * CONNECTIONS) * AREA, ALL);
    let there: Vec<SharedPair> = (0..CONNECTIONS).map(|n| pair(&domain, 100 + n, &received)).collect();
    for (number, pair) in there.iter().enumerate() {
        for id in 0..MESSAGES {
            pair.lock().post_receive(id, &[block.piece((3 * number + 3) * AREA, AREA)]).unwrap();
        }
    }
    let handler =
        Arc::new(Acceptor { pairs: Mutex::new(there), up: Mutex::default(), ended: AtomicUsize::new(0) });
    let told = || Arc::clone(&handler) as Arc<dyn Handler>;
    let at: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::new(&poller, at, 16, told()).unwrap();
    let address = listener.address().unwrap().unwrap();
    let background = Background::start(Arc::clone(&poller)).unwrap();
    for number in 0..CONNECTIONS {
        Connection::connect(&poller, (None, address), (OFFER, b""), pair(&domain, number, &sent), told())
            .unwrap();
    }
    wait(&poller, || handler.up.lock().len() == CONNECTIONS);
    let connections = handler.up.lock().clone();
    let done = AtomicBool::new(false);
    let mut found: Vec<Completion> = Vec::new();
    thread::scope(|scope| {
        let (poller, block, done) = (&poller, &block, &done);
        for (number, connection) in connections.iter().enumerate() {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(7);
                for id in 0..MESSAGES {
                    let (token, length) = (block.token(), random.usize(0..AREA));
                    let (work, from) = match random.u8(0..3) {
                        0 => (Work::Send(SendKind::default()), 0),
                        1 => (Work::Write { token, offset: block.at((3 * number + 2) * AREA) }, 0),
                        _ => (Work::Read { token, offset: block.at(0) }, (3 * number + 1) * AREA),
                    };
                    let pieces = [block.piece(from, length)];
                    let payload = Payload::Pieces(&pieces);
                    let request = SendRequest { id, work, payload, signaled: true, fence: id % 16 == 0 };
                    while let Err(error) = connection.post_send(&request) {
                        assert_eq!(error, PostError::Full);
                        poller.drive(Some(Duration::from_millis(1)));
                    }
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                poller.drive(Some(Duration::from_millis(1)));
            }
        });
        wait(poller, || {
            found.extend(std::iter::from_fn(|| sent.poll()));
            found.len() == CONNECTIONS * MESSAGES as usize
        });
        done.store(true, Ordering::SeqCst);
    });
    for number in 0..CONNECTIONS as u32 {
        let ids: Vec<u64> = found.iter().filter(|c| c.queue_pair == number).map(|c| c.id).collect();
        assert_eq!(ids, (0..MESSAGES).collect::<Vec<_>>());
    }
    assert!(found.iter().all(|completion| completion.status == Status::Success));

    // All of them end at once, each from a thread of its own.
    thread::scope(|scope| {
        for connection in &connections {
            scope.spawn(|| connection.disconnect());
        }
    });
    wait(&poller, || handler.ended.load(Ordering::SeqCst) == 2 * CONNECTIONS);
    let receives: Vec<Completion> = std::iter::from_fn(|| received.poll()).collect();
    assert_eq!(receives.len(), CONNECTIONS * MESSAGES as usize, "each is received into or flushed");
    drop((listener, background));
    wait(&poller, || poller.is_idle());
    handler.up.lock().clear();
}
