//! A ping-pong by messages, and then a write into the peer's memory, between two processes.
//!
//! ```text
//! cargo build --example pingpong
//! pingpong server 192.0.2.1:5000        the address of an RDMA device of this machine
//! pingpong client 192.0.2.1:5000        on the same machine, or on one that reaches it
//! ```

use ndcompat::connector::Offer;
use ndcompat::types::{Completion, RequestType, mr_flags};
use ndcompat::{
    Adapter, Buffer, CompletionQueue, Connector, QueuePair, QueuePairConfig, RemoteMemory, Status,
};
use ndcompat::{provider, status::Result};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: u32 = 1000;
const MESSAGE: usize = 64;
const GREETING: &[u8] = b"written by RDMA, unnoticed by the processor";

/// Where things are in an end's buffer.
const INCOMING: usize = 0;
const OUTGOING: usize = MESSAGE;
const TARGET: usize = 2 * MESSAGE;
const LENGTH: usize = 4 * MESSAGE;

/// One side of the connection: all on one file, so that one thread can wait for everything.
struct End {
    adapter: Arc<Adapter>,
    file: Arc<win32::io::File>,
    queue: Arc<CompletionQueue>,
    pair: QueuePair,
    connector: Arc<Connector>,
    buffer: Buffer,
    /// Completions that came before they were waited for.
    early: Vec<RequestType>,
}

impl End {
    /// An end on the adapter that `local` belongs to, ready to receive one message.
    fn new(local: SocketAddr) -> Result<End> {
        let adapter = provider::open_adapter(provider::resolve_address(local.into())?)?;
        let file = adapter.create_overlapped_file()?;
        let queue = adapter.create_completion_queue(&file, 8, (0, 0))?;
        let pair = adapter.create_queue_pair(QueuePairConfig {
            receive_completion_queue: queue.clone(),
            initiator_completion_queue: queue.clone(),
            context: 0,
            shared_receive_queue: None,
            receive_queue_depth: 2,
            initiator_queue_depth: 4,
            max_receive_sge: 1,
            max_initiator_sge: 1,
            inline_data_size: 0,
        })?;
        let connector = adapter.create_connector(&file)?;
        let flags = mr_flags::ALLOW_LOCAL_WRITE | mr_flags::REMOTE_WRITE_BIT;
        let buffer = Buffer::new(&adapter, &file, LENGTH, flags)?;
        pair.receive_into(0, &buffer, INCOMING..INCOMING + MESSAGE)?;
        Ok(End { adapter, file, queue, pair, connector, buffer, early: Vec::new() })
    }

    /// Sends one message.
    fn send(&mut self, message: &[u8; MESSAGE]) -> Result<()> {
        self.buffer.store(OUTGOING, message);
        self.pair.send_from(0, &self.buffer, OUTGOING..OUTGOING + MESSAGE, 0)?;
        self.wait_for(RequestType::Send)
    }

    /// Receives one message, and prepares for the next.
    fn receive(&mut self) -> Result<[u8; MESSAGE]> {
        self.wait_for(RequestType::Receive)?;
        let mut message = [0; MESSAGE];
        self.buffer.load(INCOMING, &mut message);
        self.pair.receive_into(0, &self.buffer, INCOMING..INCOMING + MESSAGE)?;
        Ok(message)
    }

    /// Waits for a request of this type. An answer may arrive before the completion of what it answers.
    fn wait_for(&mut self, wanted: RequestType) -> Result<()> {
        loop {
            if let Some(at) = self.early.iter().position(|early| *early == wanted) {
                self.early.swap_remove(at);
                return Ok(());
            }
            let mut results = [Completion::default()];
            self.queue.wait_for_results(&mut results)?;
            results[0].status.ok()?;
            self.early.push(results[0].request_type);
        }
    }

    fn disconnect(self) -> Result<()> {
        self.connector.begin_disconnect()?.wait()
    }
}

fn serve(address: SocketAddr) -> Result<()> {
    let mut end = End::new(address)?;
    let listener = end.adapter.create_listener(&end.file)?;
    listener.bind(address.into())?;
    listener.listen(1)?;
    println!("listening on {address}");
    listener.begin_connection_request(&end.connector)?.wait()?;

    // The client may write into our memory: we tell it where in the answer to its request.
    let target = end.buffer.remote(TARGET);
    let mut announcement = [0; 12];
    announcement[..8].copy_from_slice(&target.address.to_be_bytes());
    announcement[8..].copy_from_slice(&target.token.to_ne_bytes()); // tokens are in network order already
    let offer = Offer { private_data: &announcement, ..Offer::default() };
    end.connector.begin_accept(&end.pair, offer)?.wait()?;
    let gone = end.connector.begin_notify_disconnect()?;

    for _ in 0..ROUNDS {
        let ping = end.receive()?;
        end.send(&ping)?;
    }
    end.receive()?; // what was written before this message was sent is there
    let mut written = [0; GREETING.len()];
    end.buffer.load(TARGET, &mut written);
    println!("the client wrote: {}", String::from_utf8_lossy(&written));
    assert_eq!(written, GREETING);
    end.send(&[1; MESSAGE])?;
    gone.wait()?;
    end.disconnect()
}

fn connect(server: SocketAddr) -> Result<()> {
    let mut end = End::new(local_address_towards(server))?;
    end.connector.bind(local_address_towards(server).into())?;
    end.connector.begin_connect(&end.pair, server.into(), Offer::default())?.wait()?;
    // A transport may pad private data.
    let announcement = end.connector.private_data()?;
    let (address, token) = announcement.get(..12).ok_or(Status::INVALID_BUFFER_SIZE)?.split_at(8);
    let target = RemoteMemory {
        address: u64::from_be_bytes(address.try_into().expect("8 bytes")),
        token: u32::from_ne_bytes(token.try_into().expect("4 bytes")),
    };
    end.connector.begin_complete_connect()?.wait()?;

    let begin = Instant::now();
    for round in 0..ROUNDS {
        let ping = [round as u8; MESSAGE];
        end.send(&ping)?;
        assert_eq!(end.receive()?, ping);
    }
    println!("{:?} a round trip", begin.elapsed() / ROUNDS);

    end.buffer.store(TARGET, GREETING);
    end.pair.write_from(0, &end.buffer, TARGET..TARGET + GREETING.len(), target, 0)?;
    end.wait_for(RequestType::Write)?;
    end.send(&[0; MESSAGE])?;
    end.receive()?;
    end.disconnect()
}

/// The address that this machine uses to reach `peer`, with a free port.
fn local_address_towards(peer: SocketAddr) -> SocketAddr {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).and_then(|socket| socket.connect(peer).map(|()| socket));
    let local = socket.and_then(|socket| socket.local_addr()).expect("a route to the server");
    SocketAddr::new(local.ip(), 0)
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let address = arguments.get(1).and_then(|address| address.parse().ok());
    let outcome = match (arguments.first().map(String::as_str), address) {
        (Some("server"), Some(address)) => serve(address),
        (Some("client"), Some(address)) => connect(address),
        _ => {
            eprintln!("usage: pingpong server|client IP:PORT");
            std::process::exit(2);
        }
    };
    if let Err(status) = outcome {
        eprintln!("pingpong: {status}");
        std::process::exit(1);
    }
}
