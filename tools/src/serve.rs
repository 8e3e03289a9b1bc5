//! `nd serve`: the other end of ping, perf and copy.

use crate::cli::{self, IDLE, LONGEST_IDLE, PORT, Peer};
use crate::failure;
use crate::messages::{Receives, Waiting, ended, receive_all};
use crate::output::{self, plain};
use crate::peer::{self, Ends};
use crate::protocol::file::LONGEST_MESSAGE;
use crate::protocol::{Answer, CREDIT, MOST_CONNECTIONS, MOST_MEMORY_OF_ALL, Purpose, RECEIVES, Request};
use crate::receive_file::{self, Files};
use crate::room::Room;
use anyhow::{Context, Error, Result};
use ndcompat::types::RegionFlags;
use ndcompat::{
    Buffer, Connection, Incoming, Memory, Offer, Provider, RemoteMemory, Session, SharedMemory, Transfer,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub fn run(options: &cli::Serve, json: bool) -> Result<bool> {
    let everywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
    let address = match &options.bind {
        Some(place) => peer::own_address(Some(place), PORT)?,
        None => everywhere,
    };
    if let Some(folder) = &options.receive
        && !folder.is_dir()
    {
        anyhow::bail!("{} is no folder", folder.display());
    }
    let folder = options.receive.clone();
    let files = Files { folder, overwrite: options.overwrite, hidden: options.hidden, json };
    let (session, acceptor) = listen(address)?;
    let address = acceptor.local_address()?;
    let (idle, idle_max) = (options.idle, options.idle_max);
    let service = Service { at: address, files, room: Room::default(), idle, idle_max };
    if json {
        output::json(&serde_json::json!({ "listening": address }));
    } else {
        out!("listening on {address}");
    }
    let (mut threads, mut is_well) = (Vec::new(), true);
    for number in 1.. {
        let incoming = session.wait(acceptor.request()).context("waiting for peers")?;
        match service.serve_in_thread(incoming) {
            Some(thread) => threads.push(thread),
            None => is_well = false,
        }
        for ended in threads.extract_if(.., |thread| thread.is_finished()) {
            is_well &= went_well(ended);
        }
        if options.connections == Some(number) {
            break;
        }
    }
    for thread in threads {
        is_well &= went_well(thread);
    }
    Ok(is_well)
}

/// Waits for a connection to end. One whose thread has panicked has failed.
fn went_well(connection: JoinHandle<bool>) -> bool {
    connection.join().unwrap_or(false)
}

/// Listens on an address, or, for 0.0.0.0 and ::, on all addresses of that family that the first adapter has.
fn listen(address: SocketAddr) -> Result<(Session, ndcompat::Acceptor)> {
    let own = if address.ip().is_unspecified() { peer::first_address(address.is_ipv4())? } else { address };
    let adapter = Provider::open(own).with_context(|| format!("opening the adapter of {own}"))?;
    let session = Session::new(&adapter).with_context(|| format!("on the adapter of {address}"))?;
    let acceptor = session.listen(address).with_context(|| format!("listening on {address}"))?;
    Ok((session, acceptor))
}

/// Starts a server thread, for `--loopback`, and returns its address.
pub fn start(address: SocketAddr) -> Result<SocketAddr> {
    let (session, acceptor) = listen(address)?;
    let address = acceptor.local_address()?;
    thread::Builder::new().name("nd-serve".into()).spawn(move || {
        let (files, room) = (Files::default(), Room::default());
        // Its only client is this process.
        let service = Service { at: address, files, room, idle: IDLE, idle_max: LONGEST_IDLE };
        while let Ok(incoming) = session.wait(acceptor.request()) {
            service.serve_in_thread(incoming);
        }
    })?;
    Ok(address)
}

impl Peer {
    /// The addresses of both ends. With `--loopback` the peer is started first.
    pub fn find(&self) -> Result<Ends> {
        if let Some(own) = &self.loopback {
            return Ok(Ends { to: start(peer::own_address(own.as_ref(), 0)?)?, from: None });
        }
        Ends::find(self.host.as_ref().context("no host")?, PORT, self.bind.as_ref())
    }
}

/// What the connections of a server have in common.
#[derive(Clone)]
struct Service {
    at: SocketAddr,
    files: Files,
    room: Room,
    /// How long a peer may be silent, and how much longer it may ask for.
    idle: Duration,
    idle_max: Duration,
}

impl Service {
    /// Serves a connection. The thread ends with whether it went well. Without a thread the peer is refused.
    fn serve_in_thread(&self, incoming: Incoming) -> Option<JoinHandle<bool>> {
        let peer = incoming.peer_address().map_or("a peer".to_owned(), |peer| peer.to_string());
        let service = self.clone();
        let of = peer.clone();
        let work = move || {
            let outcome = service.serve(incoming);
            if let Err(error) = &outcome {
                service.report(&of, error);
            }
            outcome.is_ok()
        };
        let begun = thread::Builder::new().name("nd-connection".into()).spawn(work);
        begun.map_err(|error| self.report(&peer, &Error::from(error).context("making a thread"))).ok()
    }

    fn report(&self, peer: &str, error: &Error) {
        // The name of a file, which the peer has chosen, may be in it.
        eprintln!("nd serve: {peer} at {}: {}", self.at, plain(&format!("{error:#}")));
        if self.files.json {
            let mut failure = failure::as_json(error, None);
            failure["from"] = peer.into();
            output::json(&failure);
        }
    }

    fn serve(&self, incoming: Incoming) -> Result<()> {
        let request = match Request::from_bytes(incoming.private_data()) {
            Ok(request) => request,
            Err(error) => {
                incoming.reject(b"nd serve does not understand what is asked, or has not the memory")?;
                return Err(error);
            }
        };
        if request.purpose == Purpose::File && self.files.folder.is_none() {
            incoming.reject(b"nd serve takes files only with --receive")?;
            anyhow::bail!("a file is refused: nd serve was started without --receive");
        }
        let silence = Duration::from_secs(request.silence.into());
        if silence > self.idle_max {
            let most = self.idle_max;
            let reason =
                format!("nd serve lets nobody be silent for {silence:?}, but for {most:?} (--idle-max)");
            incoming.reject(reason.as_bytes())?;
            anyhow::bail!("a peer wants to be silent for {silence:?}, and --idle-max is {most:?}");
        }
        let Some(_share) = self.room.take(request.memory()) else {
            incoming.reject(b"nd serve has too many connections, or too little memory left for this one")?;
            anyhow::bail!(
                "no room: all connections have {MOST_MEMORY_OF_ALL} bytes together, and {MOST_CONNECTIONS} are the most"
            );
        };
        // Each connection has a session of its own, so that threads share none. It is on the listener's adapter.
        let session = Session::builder(incoming.adapter()).depth(4 * RECEIVES).build()?;
        let receives = request.receives();
        let pair = session.queue_pair().receives(receives).requests(RECEIVES).build()?;
        let memory = match request.purpose {
            Purpose::Memory | Purpose::File => {
                let flags = RegionFlags::ALLOW_REMOTE_WRITE | RegionFlags::ALLOW_REMOTE_READ;
                Some(session.shared_memory(request.shared(), flags)?)
            }
            _ => None,
        };
        let length = match request.purpose {
            Purpose::File => LONGEST_MESSAGE,
            Purpose::Memory => 1,
            _ => request.size as usize,
        };
        let receiving = receive_all(&session, &pair, receives, length)?;
        let none = RemoteMemory { address: 0, token: 0 };
        let answer = Answer { memory: memory.as_ref().map_or(none, |memory| memory.remote(0)) }.to_bytes();
        let offer = Offer::new().private_data(&answer).inbound_reads(16);
        let limit = self.idle + silence;
        // For reads and writes there is nothing to do here.
        let polls = request.polls && request.purpose != Purpose::Memory;
        let waiting = Waiting { session: &session, polls, limit };
        let connection = waiting.wait(incoming.accept(pair, offer))?.context("accepting")?;
        match request.purpose {
            Purpose::Echo => echo(&waiting, &connection, receiving, request.size as usize),
            Purpose::Sink => sink(&waiting, &connection, receiving),
            Purpose::Memory => {
                let gone = connection.disconnected()?;
                // The peer reads and writes by RDMA: wait until it disconnects.
                ended(waiting.wait(gone)?)
            }
            Purpose::File => {
                let memory: SharedMemory = memory.expect("made above");
                receive_file::receive(&waiting, &connection, receiving, &memory, &request, &self.files)
            }
        }
    }
}

/// Sends each message back.
fn echo(waiting: &Waiting<'_>, connection: &Connection, mut receiving: Receives, size: usize) -> Result<()> {
    let mut answer = waiting.session.buffer(size)?;
    while let Some(next) = receiving.pop_front() {
        let (message, received) = waiting.wait(next)?;
        let bytes = match received {
            Ok(done) => done.bytes,
            Err(status) => return ended(Err(status)),
        };
        answer[..bytes].copy_from_slice(&message[..bytes]);
        receiving.push_back(connection.receive(message));
        let (back, sent) = waiting.wait(connection.send(answer.part(..bytes)))?;
        answer = back;
        if let Err(status) = sent {
            return ended(Err(status));
        }
    }
    Ok(())
}

/// Receives messages. The peer may send as many as there are receives; each credit grants half as many more.
fn sink(waiting: &Waiting<'_>, connection: &Connection, mut receiving: Receives) -> Result<()> {
    let batch = receiving.len() / 2;
    let mut credit = waiting.session.buffer(CREDIT)?;
    credit.copy_from_slice(&(batch as u32).to_be_bytes());
    let mut credit = Credit::Here(credit);
    let mut taken = 0;
    while let Some(next) = receiving.pop_front() {
        let (message, received) = waiting.wait(next)?;
        if let Err(status) = received {
            return ended(Err(status));
        }
        receiving.push_back(connection.receive(message));
        taken += 1;
        if taken == batch {
            taken = 0;
            let buffer = match credit {
                Credit::Here(buffer) => buffer,
                Credit::Sent(before) => match waiting.wait(before)? {
                    (buffer, Ok(_)) => buffer,
                    (_, Err(status)) => return ended(Err(status)),
                },
            };
            credit = Credit::Sent(connection.send(buffer));
        }
    }
    Ok(())
}

/// The buffer of credits, used for one send after the other.
enum Credit {
    Here(Buffer),
    Sent(Transfer<Buffer>),
}
