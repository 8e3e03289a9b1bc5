//! `nd ping`: measures the round trip of a message.

use crate::cli;
use crate::failure::conclude;
use crate::interrupt;
use crate::measure::Times;
use crate::peer::{connect, session};
use crate::protocol::{Purpose, Request, seconds};
use anyhow::{Context, Result, ensure};
use ndcompat::{Buffer, Connection, Session, Status, Transfer};
use serde_json::json;
use std::time::{Duration, Instant};

pub fn run(options: &cli::Ping, json: bool) -> Result<bool> {
    let ends = options.peer.find()?;
    let to = ends.to;
    let session = session(ends, 8)?;
    let size = options.size as usize;
    let pair = session.queue_pair().receives(2).requests(2).build()?;
    let receiving = pair.receive(session.buffer(size)?);
    let silence = seconds(options.interval);
    let request = Request { purpose: Purpose::Echo, polls: false, silence, size: options.size, depth: 1 };
    let (connection, _) = connect(&session, pair, ends, &request, options.peer.timeout)?;
    let from = connection.local_address()?;
    if !json {
        out!("from {from} to {to}, {size} bytes");
    }
    interrupt::catch();
    let mut times = Times::new();
    let outcome = exchange(options, &session, connection, receiving, |number, time| {
        times.add(time);
        if !json {
            out!("{number}: {:.1} µs", time.as_secs_f64() * 1e6);
        }
    });
    let is_answered = times.count() > 0;
    if !is_answered && outcome.is_err() {
        return outcome.map(|()| false);
    }
    let measured = json.then(|| {
        json!({
            "from": from, "to": to, "size": size, "round_trip_us": times.json(), "interrupted": interrupt::came(),
        })
    });
    if !json && is_answered {
        out!("min {:.1}, median {:.1}, max {:.1} µs", times.at(0.0), times.at(50.0), times.at(100.0));
    } else if !json {
        out!("no answer has come");
    }
    Ok(conclude(measured, outcome)? && is_answered)
}

/// Sends messages, each after the answer to the one before, until a SIGINT at most. `each` gets their numbers and times.
fn exchange(
    options: &cli::Ping,
    session: &Session,
    connection: Connection,
    mut receiving: Transfer<Buffer>,
    mut each: impl FnMut(u64, Duration),
) -> Result<()> {
    let limit = options.peer.timeout;
    let mut message = session.buffer(options.size as usize)?;
    for number in 1..=options.count {
        if number > 1 {
            interrupt::sleep(options.interval);
        }
        if interrupt::came() {
            return Ok(());
        }
        let (sending, waiting) =
            (|| format!("sending message {number}"), || format!("waiting for answer {number}"));
        message.fill(number as u8);
        let begin = Instant::now();
        let Some((back, sent)) = result(connection.send(message), limit) else { return late(sending()) };
        sent.with_context(sending)?;
        let Some((answer, received)) = result(receiving, limit) else { return late(waiting()) };
        let time = begin.elapsed();
        let received = received.with_context(waiting)?;
        ensure!(answer[..received.bytes] == back[..], "answer {number} is not what was sent");
        each(number, time);
        (message, receiving) = (back, connection.receive(answer));
    }
    let end = session.wait_for(limit, connection.disconnect());
    end.unwrap_or(Err(Status::IO_TIMEOUT)).context("disconnecting")
}

/// The result of a request, unless it takes too long or there is a SIGINT.
fn result(request: Transfer<Buffer>, limit: Duration) -> Option<<Transfer<Buffer> as Future>::Output> {
    let mut pending = Some(request);
    interrupt::until(limit, |slice| match pending.take()?.wait_for(slice) {
        Ok(done) => Some(done),
        Err(request) => {
            pending = Some(request);
            None
        }
    })
}

/// What it means that there is no result.
fn late(what: String) -> Result<()> {
    if interrupt::came() { Ok(()) } else { Err(anyhow::Error::from(Status::IO_TIMEOUT).context(what)) }
}
