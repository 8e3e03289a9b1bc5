//! `nd ping`: measures the round trip of a message.

use crate::cli;
use crate::measure::Times;
use crate::output;
use crate::peer::{connect, session};
use crate::protocol::{Purpose, Request};
use anyhow::{Context, Result};
use serde_json::json;
use std::thread;
use std::time::Instant;

pub fn run(options: &cli::Ping, json: bool) -> Result<bool> {
    let ends = options.peer.find()?;
    let to = ends.to;
    let session = session(ends, 8)?;
    let size = options.size as usize;
    let pair = session.queue_pair().receives(2).requests(2).build()?;
    let mut receiving = pair.receive(session.buffer(size)?);
    let request = Request { purpose: Purpose::Echo, polls: false, size: options.size, depth: 1 };
    let (connection, _) = connect(&session, pair, ends, &request, options.peer.timeout)?;
    let from = connection.local_address()?;
    if !json {
        out!("from {from} to {to}, {size} bytes");
    }
    let (mut message, mut times) = (session.buffer(size)?, Times::new());
    for number in 1..=options.count {
        if number > 1 {
            thread::sleep(options.interval);
        }
        message.fill(number as u8);
        let begin = Instant::now();
        let (back, sent) = connection.send(message).wait();
        sent.with_context(|| format!("sending message {number}"))?;
        let answer = receiving.wait_for(options.peer.timeout);
        let (answer, received) = answer
            .map_err(|_| ndcompat::Status::IO_TIMEOUT)
            .with_context(|| format!("waiting for answer {number}"))?;
        let time = begin.elapsed();
        let received = received.with_context(|| format!("waiting for answer {number}"))?;
        anyhow::ensure!(answer[..received.bytes] == back[..], "answer {number} is not what was sent");
        times.add(time);
        if !json {
            out!("{number}: {:.1} µs", time.as_secs_f64() * 1e6);
        }
        (message, receiving) = (back, connection.receive(answer));
    }
    session.wait(connection.disconnect()).context("disconnecting")?;
    if json {
        output::json(&json!({ "from": from, "to": to, "size": size, "round_trip_us": times.json() }));
    } else {
        out!("min {:.1}, median {:.1}, max {:.1} µs", times.at(0.0), times.at(50.0), times.at(100.0));
    }
    Ok(true)
}
