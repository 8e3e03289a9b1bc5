//! A ping-pong by messages, and then a write into the peer's memory, between two processes.
//!
//! ```text
//! cargo build --example pingpong
//! pingpong server 192.0.2.1:5000        the address of an RDMA device of this machine
//! pingpong client 192.0.2.1:5000        on the same machine, or on one that reaches it
//! ```

use ndcompat::types::RegionFlags;
use ndcompat::{Buffer, Connection, Offer, Provider, RemoteMemory, Result, Session, Status, Transfer};
use std::net::SocketAddr;
use std::time::Instant;

const ROUNDS: u32 = 1000;
const MESSAGE: usize = 64;
const GREETING: &[u8] = b"written by RDMA, unnoticed by the processor";

fn serve(address: SocketAddr) -> Result<()> {
    let session = Session::new(&Provider::open(address)?)?;
    let acceptor = session.listen(address)?;
    println!("listening on {}", acceptor.local_address()?);
    let request = session.wait(acceptor.request())?;

    // The client may write into our memory: we tell it where in the answer to its request.
    let target = session.shared_memory(GREETING.len(), RegionFlags::ALLOW_REMOTE_WRITE)?;
    let announcement = target.remote(0).to_bytes();
    let pair = session.queue_pair().build()?;
    let mut incoming = pair.receive(session.buffer(MESSAGE)?);
    let offer = Offer::new().private_data(&announcement);
    let connection = session.wait(request.accept(pair, offer))?;
    let gone = connection.disconnected()?;

    let mut answer = session.buffer(MESSAGE)?;
    // The message after the last round says that the write is done: what was written before it was sent is there.
    for _ in 0..=ROUNDS {
        let (message, received) = incoming.wait();
        received?;
        answer.copy_from_slice(&message);
        incoming = connection.receive(message);
        answer = send(&connection, answer)?;
    }
    let mut written = [0; GREETING.len()];
    target.load(0, &mut written);
    println!("the client wrote: {}", String::from_utf8_lossy(&written));
    assert_eq!(written, GREETING);
    gone.wait()
}

fn connect(server: SocketAddr) -> Result<()> {
    let session = Session::new(&Provider::open_towards(server)?)?;
    let pair = session.queue_pair().build()?;
    let mut incoming = pair.receive(session.buffer(MESSAGE)?);
    let connection = session.wait(session.connect(pair, server, Offer::default()))?;
    // A transport may pad private data.
    let announcement = connection.private_data().first_chunk().ok_or(Status::INVALID_BUFFER_SIZE)?;
    let target = RemoteMemory::from_bytes(announcement);

    let mut ping = session.buffer(MESSAGE)?;
    let begin = Instant::now();
    for round in 0..ROUNDS {
        ping.fill(round as u8);
        ping = send(&connection, ping)?;
        incoming = answered(&connection, incoming, &ping)?;
    }
    println!("{:?} a round trip", begin.elapsed() / ROUNDS);

    let mut greeting = session.buffer(GREETING.len())?;
    greeting.copy_from_slice(GREETING);
    let (_greeting, written) = connection.write(greeting, target).wait();
    written?;
    ping = send(&connection, ping)?;
    drop(answered(&connection, incoming, &ping)?);
    session.wait(connection.disconnect())
}

/// Sends a message and waits until it is sent.
fn send(connection: &Connection, message: Buffer) -> Result<Buffer> {
    let (message, sent) = connection.send(message).wait();
    sent.map(|_| message)
}

/// Waits for the answer, which must be what was sent, and prepares for the next.
fn answered(connection: &Connection, incoming: Transfer<Buffer>, sent: &[u8]) -> Result<Transfer<Buffer>> {
    let (answer, received) = incoming.wait();
    assert_eq!((received?.bytes, &answer[..]), (MESSAGE, sent));
    Ok(connection.receive(answer))
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
