//! Devices with their sockets, as a program has them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use softiwarp::completion::{Completion, CompletionQueue, Status};
use softiwarp::memory::{Domain, Memory};
use softiwarp::queue_pair::{Payload, Piece, QueuePair, QueuePairConfig, SendRequest, Work};
use softiwarp::socket::{Connection, Event, Handler, Listener, Poller, SharedPair};
use softiwarp::startup::Offer;
use softiwarp::wire::SendKind;

pub const OFFER: Offer = Offer { inbound_reads: 8, outbound_reads: 8, crc: false, peer_to_peer: true };

/// Keeps what it is told.
#[derive(Default)]
pub struct Told(pub Mutex<Vec<(Arc<Connection>, Event)>>);

impl Handler for Told {
    fn event(&self, connection: &Arc<Connection>, event: Event) {
        self.0.lock().push((Arc::clone(connection), event));
    }
}

/// A device: its poller, a handler, memory.
pub struct Device {
    pub poller: Arc<Poller>,
    pub told: Arc<Told>,
    pub domain: Domain,
}

impl Drop for Device {
    fn drop(&mut self) {
        // Connections and their handler hold each other while an event of theirs lies here.
        self.told.0.lock().clear();
        self.poller.clear();
    }
}

pub struct End {
    pub pair: SharedPair,
    pub sent: Arc<CompletionQueue>,
    pub received: Arc<CompletionQueue>,
}

impl Device {
    pub fn new() -> Device {
        Device { poller: Poller::new().unwrap(), told: Arc::default(), domain: Memory::new().domain() }
    }

    pub fn end(&self, number: u32) -> End {
        let queue = || Arc::new(CompletionQueue::new(1000, |_| {}));
        let (sent, received) = (queue(), queue());
        let pair = QueuePair::new(QueuePairConfig {
            number,
            domain: self.domain.clone(),
            send_completions: Arc::clone(&sent),
            receive_completions: Arc::clone(&received),
            send_depth: 128,
            receive_depth: 128,
            shared_receives: None,
            pieces_max: 16,
            inline_max: 256,
        });
        End { pair: Arc::new(Mutex::new(pair)), sent, received }
    }

    pub fn handler(&self) -> Arc<dyn Handler> {
        Arc::clone(&self.told) as Arc<dyn Handler>
    }

    pub fn listen(&self, at: &str) -> (Listener, SocketAddr) {
        let at: SocketAddr = at.parse().unwrap();
        let listener = Listener::new(&self.poller, at, 16, self.handler()).expect("a listener");
        let address = listener.address().unwrap().unwrap();
        (listener, address)
    }

    pub fn connect(&self, to: SocketAddr, offer: Offer, said: &[u8], end: &End) -> Arc<Connection> {
        Connection::connect(&self.poller, (None, to), (offer, said), Arc::clone(&end.pair), self.handler())
            .unwrap()
    }
}

/// Drives the devices until something is there, which it must be in time.
pub fn until<T>(devices: &[&Device], mut what: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(Instant::now() < end, "nothing comes of it");
        for device in devices {
            device.poller.drive(Some(Duration::from_millis(1)));
        }
    }
}

pub fn event(devices: &[&Device], of: &Device) -> (Arc<Connection>, Event) {
    until(devices, || {
        let mut told = of.told.0.lock();
        (!told.is_empty()).then(|| told.remove(0))
    })
}

pub fn completions(devices: &[&Device], queue: &CompletionQueue, count: usize) -> Vec<Completion> {
    let mut found = Vec::new();
    until(devices, || {
        found.extend(std::iter::from_fn(|| queue.poll()));
        (found.len() >= count).then_some(())
    });
    found
}

pub struct Connected {
    pub devices: (Device, Device),
    pub ends: (End, End),
    pub connections: (Arc<Connection>, Arc<Connection>),
}

pub fn connected(at: &str, offer: Offer) -> Connected {
    let devices = (Device::new(), Device::new());
    let both = [&devices.0, &devices.1];
    let (_listener, address) = devices.1.listen(at);
    let ends = (devices.0.end(1), devices.1.end(2));
    let ours = devices.0.connect(address, offer, b"may I?", &ends.0);
    let (theirs, asked) = event(&both, &devices.1);
    let Event::Asked { private_data, enhanced } = asked else { panic!("{asked:?}") };
    assert_eq!(private_data, b"may I?");
    assert_eq!(enhanced.unwrap().inbound_reads, 8);
    theirs.accept(&OFFER, b"come in", Arc::clone(&ends.1.pair)).unwrap();
    let (_, answer) = event(&both, &devices.0);
    let Event::Established { private_data, agreement, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(private_data, b"come in");
    assert_eq!((agreement.inbound_reads, agreement.outbound_reads, agreement.crc), (8, 8, offer.crc));
    Connected { devices, ends, connections: (ours, theirs) }
}

pub fn post(connection: &Connection, id: u64, work: Work, pieces: &[Piece]) {
    let payload = Payload::Pieces(pieces);
    connection.post_send(&SendRequest { id, work, payload, signaled: true, fence: false }).expect("posted");
}

pub fn seen(completions: &[Completion]) -> Vec<(u64, Status)> {
    completions.iter().map(|completion| (completion.id, completion.status)).collect()
}

/// Longer than a test takes.
pub const LONG: Duration = Duration::from_secs(60);
pub const SEND: Work = Work::Send(SendKind { solicited: false, invalidate: None });

/// Two ends whose messages wait up to `limit`.
pub fn waiting_for_receives(limit: Duration) -> Connected {
    let connected = connected("127.0.0.1:0", OFFER);
    for end in [&connected.ends.0, &connected.ends.1] {
        end.pair.lock().wait_for_receives(limit);
    }
    connected
}

pub fn both(connected: &Connected) -> [&Device; 2] {
    [&connected.devices.0, &connected.devices.1]
}

/// Drives the devices until a message waits at the end.
pub fn until_one_waits(devices: &[&Device], end: &End) {
    until(devices, || end.pair.lock().waits_until().map(|_| ()));
}
