//! An echo server and its clients as tasks of tokio: the runtime's own reactor watches the session's descriptor, so that no
//! thread of the library's is needed.
//!
//! ```text
//! cargo run --example tokio -- 192.0.2.1        the address of an RDMA device of this machine
//! ```

use ndcompat::{Acceptor, Incoming, Memory, Offer, Provider, Result, Session};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::unix::AsyncFd;

const CLIENTS: usize = 4;
const MESSAGES: u32 = 100;
const LENGTH: usize = 64;

/// Does the session's work whenever there is some.
async fn drive(session: Session) -> std::io::Result<()> {
    // SAFETY: the descriptor is the same, and open, for as long as the progress is there.
    let progress = unsafe { AsyncFd::register(session.progress()) }?;
    loop {
        let mut ready = progress.readable().await?;
        // In this order: what comes while the session is looked after makes the descriptor ready again.
        ready.clear_ready();
        progress.get_ref().turn();
    }
}

/// Sends back what a peer sends, until it leaves.
async fn echo(session: Session, request: Incoming) -> Result<()> {
    let pair = session.queue_pair().build()?;
    let mut receiving = pair.receive(session.buffer(LENGTH)?);
    let connection = request.accept(pair, Offer::default()).await?;
    let mut answer = session.buffer(LENGTH)?;
    loop {
        let (message, received) = receiving.await;
        // Cancelled: the peer has left.
        let Ok(received) = received else { return Ok(()) };
        answer[..received.bytes].copy_from_slice(&message[..received.bytes]);
        receiving = connection.receive(message);
        let (back, sent) = connection.send(answer.part(..received.bytes)).await;
        sent?;
        answer = back;
    }
}

async fn serve(session: Session, acceptor: Acceptor) -> Result<()> {
    loop {
        let request = acceptor.request().await?;
        tokio::spawn(echo(session.clone(), request));
    }
}

async fn ask(session: Session, server: SocketAddr, number: usize) -> Result<()> {
    let pair = session.queue_pair().build()?;
    let mut receiving = pair.receive(session.buffer(LENGTH)?);
    let connection = session.connect(pair, server, Offer::default()).await?;
    let mut question = session.buffer(LENGTH)?;
    let begin = Instant::now();
    for round in 0..MESSAGES {
        question.fill(round as u8);
        let (back, sent) = connection.send(question).await;
        sent?;
        let (answer, received) = receiving.await;
        assert_eq!((received?.bytes, &answer[..]), (LENGTH, &back[..]));
        (question, receiving) = (back, connection.receive(answer));
    }
    println!("client {number}: {:?} a round trip", begin.elapsed() / MESSAGES);
    connection.disconnect().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("usage: tokio IP")?;
    let address = SocketAddr::new(address.parse()?, 0);
    let session = Session::new(&Provider::open(address)?)?;
    let driver = tokio::spawn(drive(session.clone()));
    let acceptor = session.listen(address)?;
    let server = acceptor.local_address()?;
    let serving = tokio::spawn(serve(session.clone(), acceptor));
    let clients: Vec<_> =
        (0..CLIENTS).map(|number| tokio::spawn(ask(session.clone(), server, number))).collect();
    for client in clients {
        client.await??;
    }
    serving.abort();
    driver.abort();
    Ok(())
}
