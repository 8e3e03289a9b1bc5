//! Messages on a connection: receives that are outstanding, in order; small messages; the wait for both.

use anyhow::{Context, Error, Result};
use ndcompat::{Buffer, Connection, Pair, Session, Status, Transfer};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// How long to poll at most while nothing arrives: a peer that has asked for it and then does nothing takes no processor.
const LONGEST_SPIN: Duration = Duration::from_secs(1);

/// How to wait for what the peer does.
pub struct Waiting<'a> {
    pub session: &'a Session,
    /// Polls instead of sleeping, as the peer has asked, as long as something arrives.
    pub polls: bool,
    /// How long the peer may do nothing.
    pub limit: Duration,
}

impl Waiting<'_> {
    /// Waits for something that the peer does, or for what it answers.
    pub fn wait<F: Future>(&self, future: F) -> Result<F::Output> {
        let (session, limit) = (self.session, self.limit);
        let mut future = pin!(future);
        let spin = if self.polls { limit.min(LONGEST_SPIN) } else { Duration::ZERO };
        if !spin.is_zero()
            && let Some(output) = session.spin_for(spin, future.as_mut())
        {
            return Ok(output);
        }
        session.wait_for(limit - spin, future).ok_or_else(|| silent(limit))
    }
}

/// The error of a peer that does nothing for so long.
pub fn silent(limit: Duration) -> Error {
    Error::from(Status::IO_TIMEOUT)
        .context(format!("the peer has been silent for {} seconds", limit.as_secs_f64()))
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
pub fn say(waiting: &Waiting<'_>, connection: &Connection, message: &[u8]) -> Result<()> {
    let mut buffer = waiting.session.buffer(message.len())?;
    buffer.copy_from_slice(message);
    waiting.wait(connection.send(buffer))?.1.context("sending a message")?;
    Ok(())
}
