//! Messages on a connection: receives that are outstanding, in order; small messages; the wait for both.

use anyhow::{Context, Result};
use ndcompat::{Buffer, Connection, Pair, Session, Status, Transfer};
use std::collections::VecDeque;
use std::future::Future;

/// How to wait for completions, as the peer has asked.
pub struct Waiting<'a> {
    pub session: &'a Session,
    pub polls: bool,
}

impl Waiting<'_> {
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        if self.polls { self.session.spin(future) } else { self.session.wait(future) }
    }
}

/// Takes the peer's disconnect as the regular end of a connection.
pub fn ended(result: ndcompat::Result<()>) -> Result<()> {
    match result {
        Ok(()) | Err(Status::CANCELED | Status::CONNECTION_ABORTED | Status::CONNECTION_INVALID) => Ok(()),
        Err(status) => Err(status.into()),
    }
}

/// Receives on the queue pair, in order.
pub type Receives = VecDeque<Transfer<Buffer>>;

pub fn receive_all(session: &Session, pair: &Pair, count: u32, length: usize) -> Result<Receives> {
    (0..count).map(|_| Ok(pair.receive(session.buffer(length)?))).collect()
}

/// Sends a small message, and waits until it is sent.
pub fn say(session: &Session, connection: &Connection, message: &[u8]) -> Result<()> {
    let mut buffer = session.buffer(message.len())?;
    buffer.copy_from_slice(message);
    connection.send(buffer).wait().1.context("sending a message")?;
    Ok(())
}
