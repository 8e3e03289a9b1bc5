//! `nd copy`: writes a file piece by piece into the peer's memory by RDMA, and compares checksums at the end.

use crate::cli;
use crate::messages::{Receives, Waiting, say};
use crate::output;
use crate::peer::{Ends, connect, session};
use crate::place::check_name;
use crate::protocol::file::{END, FAILED, LONGEST_MESSAGE, NAME, PIECE, TAKEN, WHOLE};
use crate::protocol::{Purpose, Request};
use anyhow::{Context, Error, Result, bail, ensure};
use ndcompat::{Buffer, Connection, Memory, Transfer};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

pub fn run(options: &cli::Copy, json: bool) -> Result<bool> {
    let name = match options.to.name.as_str() {
        "" => own_name(&options.file)?,
        name => name.to_owned(),
    };
    check_name(&name).map_err(Error::msg)?;
    let source = options.file.display();
    let (mut file, length) = open(&options.file)?;
    let ends = Ends::find(&options.to.host, options.port, options.bind.as_ref())?;
    let to = ends.to;
    let session = session(ends, 4 * options.depth + 16)?;
    let (depth, piece) = (options.depth as usize, options.piece as usize);
    let pair = session.queue_pair().receives(options.depth + 4).requests(2 * options.depth + 4).build()?;
    let mut answers: Receives = VecDeque::new();
    for _ in 0..options.depth + 4 {
        answers.push_back(pair.receive(session.buffer(LONGEST_MESSAGE)?));
    }
    let request = Request {
        purpose: Purpose::File,
        polls: false,
        silence: 0,
        size: options.piece,
        depth: options.depth,
    };
    let (connection, answer) = connect(&session, pair, ends, &request, options.timeout)?;
    let from = connection.local_address()?;
    let begin = Instant::now();
    let waiting = Waiting { session: &session, polls: false, limit: options.timeout };

    let mut first = vec![NAME];
    first.extend(length.to_be_bytes());
    first.extend(name.as_bytes());
    say(&waiting, &connection, &first)?;
    let (mut digest, mut sent, mut taken, mut copied) = (Sha256::new(), 0u64, 0u64, 0u64);
    let mut free: Vec<Buffer> = (0..depth).map(|_| session.buffer(piece)).collect::<ndcompat::Result<_>>()?;
    let mut writing: VecDeque<(Transfer<Buffer>, Transfer<Buffer>)> = VecDeque::new();
    let progress = Progress { is_shown: !options.quiet && !json && std::io::stderr().is_terminal() };
    loop {
        // At most `depth` pieces are in flight: the peer has so many buffers.
        while sent - taken >= depth as u64 {
            await_taken(&waiting, &connection, &mut answers)?;
            taken += 1;
        }
        let mut buffer = match free.pop() {
            Some(buffer) => buffer,
            None => {
                let (written, told) = writing.pop_front().context("no buffer is left")?;
                waiting.wait(told)?.1.context("telling of a piece")?;
                let (buffer, done) = waiting.wait(written)?;
                done.context("writing a piece")?;
                buffer
            }
        };
        let bytes = read_all(&mut file, &mut buffer).with_context(|| format!("reading {source}"))?;
        if bytes == 0 {
            break;
        }
        ensure!(
            copied + bytes as u64 <= length,
            "{source} has more than the {length} bytes that it had at the beginning: a file that grows, or one of /proc or /sys; \
             copy it to a plain file first"
        );
        digest.update(&buffer[..bytes]);
        let place = (sent % depth as u64) * piece as u64;
        let written = connection.write(buffer.part(..bytes), answer.memory.at(place));
        let mut message = session.buffer(5)?;
        message[0] = PIECE;
        message[1..].copy_from_slice(&(bytes as u32).to_be_bytes());
        writing.push_back((written, connection.send(message)));
        sent += 1;
        copied += bytes as u64;
        progress.show(copied, length, begin);
    }
    for (written, told) in writing {
        waiting.wait(told)?.1.context("telling of a piece")?;
        waiting.wait(written)?.1.context("writing a piece")?;
    }
    while taken < sent {
        await_taken(&waiting, &connection, &mut answers)?;
        taken += 1;
    }
    ensure!(copied == length, "{source} has become shorter while it was copied: {copied} bytes of {length}");
    let sum = digest.finalize();
    let mut last = vec![END];
    last.extend(sum);
    say(&waiting, &connection, &last)?;
    // The peer writes all of it to its disk first.
    let limit = options.timeout + Duration::from_secs(copied >> 20);
    let verdict = next_answer(&Waiting { limit, ..waiting }, &connection, &mut answers)?;
    drop(progress);
    ensure!(verdict.first() == Some(&WHOLE), "the peer answers something else than that all is well");
    let seconds = begin.elapsed().as_secs_f64();
    let _ = session.wait_for(options.timeout, connection.disconnect());
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    if json {
        output::json(
            &json!({ "from": from, "to": to, "name": name, "bytes": copied, "seconds": seconds, "sha256": sum }),
        );
    } else {
        out!(
            "{copied} bytes to {to} in {seconds:.2} s, {:.1} MB/s, sha256 {sum}",
            copied as f64 / seconds / 1e6
        );
    }
    if let Some(hint) = options.to.hint() {
        eprintln!("nd: {hint}");
    }
    Ok(true)
}

/// The progress on a terminal. Its line is wiped before anything else is said, an error as well.
struct Progress {
    is_shown: bool,
}

impl Progress {
    fn show(&self, copied: u64, length: u64, begin: Instant) {
        if self.is_shown {
            let rate = copied as f64 / begin.elapsed().as_secs_f64() / 1e6;
            eprint!("\r{copied} of {length} bytes, {rate:.1} MB/s ");
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

/// The name of the file here. One that is no text would be another there.
fn own_name(file: &Path) -> Result<String> {
    let name = file.file_name().context("the file has no name")?;
    let text = name.to_str().with_context(|| {
        format!("the name of {} is no UTF-8, as names there are: give it one, HOST:NAME", file.display())
    })?;
    Ok(text.to_owned())
}

/// Opens the file, and returns its length. Only plain files have one.
fn open(path: &Path) -> Result<(File, u64)> {
    // Looked at before it is opened, as opening a pipe waits for its other end.
    let metadata = std::fs::metadata(path).with_context(|| format!("opening {}", path.display()))?;
    ensure!(!metadata.is_dir(), "{} is a folder: one file at a time is copied", path.display());
    ensure!(
        metadata.is_file(),
        "{} is a pipe, socket or device: only plain files are copied",
        path.display()
    );
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn read_all(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut bytes = 0;
    while bytes < buffer.len() {
        match file.read(&mut buffer[bytes..])? {
            0 => break,
            more => bytes += more,
        }
    }
    Ok(bytes)
}

/// Receives the peer's next answer. An error that the peer reports is returned as one.
fn next_answer(waiting: &Waiting<'_>, connection: &Connection, answers: &mut Receives) -> Result<Vec<u8>> {
    let (buffer, received) = waiting.wait(answers.pop_front().context("no receive is outstanding")?)?;
    let message = buffer[..received.context("waiting for the peer")?.bytes].to_vec();
    answers.push_back(connection.receive(buffer));
    if message.first() == Some(&FAILED) {
        bail!("the peer says: {}", String::from_utf8_lossy(&message[1..]));
    }
    Ok(message)
}

fn await_taken(waiting: &Waiting<'_>, connection: &Connection, answers: &mut Receives) -> Result<()> {
    let message = next_answer(waiting, connection, answers)?;
    ensure!(message == [TAKEN], "the peer answers something unexpected");
    Ok(())
}
