//! The other end of `tests/interop/peer.c`, on this device: what the two say to each other is in `protocol.h` there.
//!
//! ```text
//! peer -s IP PORT [OPTION...]     serves one connection
//! peer -c IP PORT [OPTION...]     makes one
//!      -w         the other side disconnects first
//!      --crc      with CRCs
//!      --plain    without the frame of no content that begins a connection
//! ```

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::ptr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use softiwarp::completion::{Completion, CompletionQueue, Status};
use softiwarp::memory::{Memory, Region, Rights};
use softiwarp::queue_pair::{Payload, Piece, QueuePair, QueuePairConfig, SendRequest, Work};
use softiwarp::socket::{Connection, Ended, Event, Handler, Listener, Poller, SharedPair};
use softiwarp::startup::Offer;
use softiwarp::wire::SendKind;

const PAGE: usize = 4096;
const TRANSFER: usize = 3 * PAGE + 5;
const IN_AT: usize = 0;
const OUT_AT: usize = PAGE;
const TARGET_AT: usize = 2 * PAGE;
const SOURCE_AT: usize = 6 * PAGE;
const BACK_AT: usize = 10 * PAGE;
const SIZE: usize = 14 * PAGE;
const ANNOUNCEMENT: usize = 16;
const LIMIT: Duration = Duration::from_secs(30);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Hands on what it is told.
struct Told(mpsc::Sender<(Arc<Connection>, Event)>);

impl Handler for Told {
    fn event(&self, connection: &Arc<Connection>, event: Event) {
        // The receiver lives as long as the program.
        let _ = self.0.send((Arc::clone(connection), event));
    }
}

/// What the peer has announced.
struct Remote {
    address: u64,
    token: u32,
}

struct Peer {
    server: bool,
    poller: Arc<Poller>,
    events: mpsc::Receiver<(Arc<Connection>, Event)>,
    handler: Arc<dyn Handler>,
    pair: SharedPair,
    sent: Arc<CompletionQueue>,
    received: Arc<CompletionQueue>,
    memory: *mut u8,
    region: Region,
}

fn said_by(server: bool) -> &'static [u8] {
    if server { b"come in, says the server" } else { b"may I, asks the client" }
}

fn pattern(server: bool) -> Vec<u8> {
    (0..TRANSFER).map(|i| if server { 3 * i + 1 } else { 7 * i + 2 } as u8).collect()
}

impl Peer {
    fn new(server: bool) -> Outcome<Peer> {
        let poller = Poller::new()?;
        let (send, events) = mpsc::channel();
        let domain = Memory::new().domain();
        let memory: *mut u8 = Box::into_raw(vec![0u8; SIZE].into_boxed_slice()).cast();
        let rights = Rights { local_write: true, remote_read: true, remote_write: true, bind: false };
        // SAFETY: the memory is never freed, and used by pointer alone.
        let region = unsafe { domain.register(memory, SIZE, memory as u64, rights) }?;
        let queue = || Arc::new(CompletionQueue::new(64, |_| {}));
        let (sent, received) = (queue(), queue());
        let pair = QueuePair::new(QueuePairConfig {
            number: 1,
            domain,
            send_completions: Arc::clone(&sent),
            receive_completions: Arc::clone(&received),
            send_depth: 8,
            receive_depth: 8,
            shared_receives: None,
            pieces_max: 4,
            inline_max: 64,
        });
        let handler: Arc<dyn Handler> = Arc::new(Told(send));
        let pair = Arc::new(Mutex::new(pair));
        let peer = Peer { server, poller, events, handler, pair, sent, received, memory, region };
        peer.post_receive()?;
        Ok(peer)
    }

    fn set(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= SIZE);
        // SAFETY: within the memory, as was just looked.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.add(at), bytes.len()) };
    }

    fn get(&self, at: usize, length: usize) -> Vec<u8> {
        assert!(at + length <= SIZE);
        let mut out = vec![0; length];
        // SAFETY: within the memory, as was just looked.
        unsafe { ptr::copy_nonoverlapping(self.memory.add(at), out.as_mut_ptr(), length) };
        out
    }

    fn piece(&self, at: usize, length: usize) -> Piece {
        Piece { offset: self.memory as u64 + at as u64, length: length as u32, token: self.region.token() }
    }

    fn post_receive(&self) -> Outcome<()> {
        Ok(self.pair.lock().post_receive(IN_AT as u64, &[self.piece(IN_AT, ANNOUNCEMENT)])?)
    }

    fn wait<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> Outcome<T> {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(found) = found() {
                return Ok(found);
            }
            if Instant::now() > end {
                return Err(format!("no {what} in time").into());
            }
            self.poller.drive(Some(Duration::from_millis(100)));
        }
    }

    fn event(&self, what: &str) -> Outcome<(Arc<Connection>, Event)> {
        self.wait(what, || self.events.try_recv().ok())
    }

    fn completion(&self, queue: &CompletionQueue, what: &str) -> Outcome<Completion> {
        let completion = self.wait(what, || queue.poll())?;
        match completion.status {
            Status::Success => Ok(completion),
            status => Err(format!("{what}: {status:?}, {:?}", self.pair.lock().cause()).into()),
        }
    }

    fn post(&self, connection: &Connection, work: Work, at: usize, length: usize) -> Outcome<()> {
        let pieces = [self.piece(at, length)];
        let payload = Payload::Pieces(&pieces);
        connection.post_send(&SendRequest { id: at as u64, work, payload, signaled: true, fence: false })?;
        self.completion(&self.sent, "completion").map(|_| ())
    }

    fn announce(&self, connection: &Connection) -> Outcome<()> {
        let address = (self.memory as u64 + TARGET_AT as u64).to_be_bytes();
        let rest = [self.region.token().to_be_bytes(), (TRANSFER as u32).to_be_bytes()].concat();
        self.set(OUT_AT, &[&address[..], &rest].concat());
        self.post(connection, Work::Send(SendKind::default()), OUT_AT, ANNOUNCEMENT)
    }

    fn message(&self) -> Outcome<Remote> {
        let completion = self.completion(&self.received, "message")?;
        if completion.length as usize != ANNOUNCEMENT {
            return Err(format!("a message of {} bytes", completion.length).into());
        }
        let bytes = self.get(IN_AT, ANNOUNCEMENT);
        self.post_receive()?;
        let (address, rest) = bytes.split_first_chunk().ok_or("no address")?;
        let (token, _) = rest.split_first_chunk().ok_or("no token")?;
        Ok(Remote { address: u64::from_be_bytes(*address), token: u32::from_be_bytes(*token) })
    }

    fn my_turn(&self, connection: &Connection, remote: &Remote) -> Outcome<()> {
        let (token, offset) = (remote.token, remote.address);
        self.set(SOURCE_AT, &pattern(self.server));
        self.post(connection, Work::Write { token, offset }, SOURCE_AT, TRANSFER)?;
        self.post(connection, Work::Read { token, offset }, BACK_AT, TRANSFER)?;
        if self.get(BACK_AT, TRANSFER) != pattern(self.server) {
            return Err("what was written is not what is read".into());
        }
        self.post(connection, Work::Send(SendKind::default()), OUT_AT, ANNOUNCEMENT)
    }

    fn peers_turn(&self) -> Outcome<()> {
        self.message()?;
        if self.get(TARGET_AT, TRANSFER) != pattern(!self.server) {
            return Err("what the peer has written is not there".into());
        }
        Ok(())
    }

    fn serve(&self, at: SocketAddr, offer: Offer) -> Outcome<Arc<Connection>> {
        let _listener = Listener::new(&self.poller, at, 1, Arc::clone(&self.handler))?;
        println!("listening");
        match self.event("request")? {
            (connection, Event::Asked { private_data, .. }) if private_data == said_by(false) => {
                connection.accept(&offer, said_by(true), Arc::clone(&self.pair))?;
                Ok(connection)
            }
            (_, event) => Err(format!("{event:?} instead of a request").into()),
        }
    }

    fn connect(&self, to: SocketAddr, offer: Offer) -> Outcome<Arc<Connection>> {
        let pair = Arc::clone(&self.pair);
        let handler = Arc::clone(&self.handler);
        Connection::connect(&self.poller, (None, to), (offer, said_by(false)), pair, handler)?;
        match self.event("answer")? {
            (connection, Event::Established { private_data, agreement, .. })
                if private_data == said_by(true) =>
            {
                println!("{agreement:?}");
                Ok(connection)
            }
            (_, event) => Err(format!("{event:?} instead of an answer").into()),
        }
    }

    fn run(&self, at: SocketAddr, offer: Offer, peer_first: bool) -> Outcome<()> {
        let connection = if self.server {
            let connection = self.serve(at, offer)?;
            let remote = self.message()?;
            self.announce(&connection)?;
            self.peers_turn()?;
            self.my_turn(&connection, &remote)?;
            connection
        } else {
            let connection = self.connect(at, offer)?;
            self.announce(&connection)?;
            let remote = self.message()?;
            self.my_turn(&connection, &remote)?;
            self.peers_turn()?;
            connection
        };
        if !peer_first {
            connection.disconnect();
        }
        match self.event("end")? {
            (_, Event::Ended(Ended::Disconnected(cause))) => println!("done: {cause:?}"),
            (_, event) => return Err(format!("{event:?} instead of the end").into()),
        }
        match self.wait("flushed receive", || self.received.poll())?.status {
            Status::Flushed => Ok(()),
            status => Err(format!("the last receive: {status:?}").into()),
        }
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, address, port, options @ ..] = &arguments[..] else {
        return Err("usage: peer -s|-c IP PORT [-w] [--crc] [--plain]".into());
    };
    let at = SocketAddr::new(address.parse::<IpAddr>()?, port.parse()?);
    let has = |option: &str| options.iter().any(|given| given == option);
    let offer =
        Offer { inbound_reads: 4, outbound_reads: 4, crc: has("--crc"), peer_to_peer: !has("--plain") };
    Peer::new(role == "-s")?.run(at, offer, has("-w"))
}
