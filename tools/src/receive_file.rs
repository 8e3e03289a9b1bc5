//! The receiving side of `nd copy`, in `nd serve`: takes the pieces out of the memory that the peer writes to, and stores the file.

use crate::arriving::{self, Arriving};
use crate::messages::{Receives, Waiting, ended, say};
use crate::output::{self, plain};
use crate::protocol::Request;
use crate::protocol::file::{END, FAILED, LONGEST_MESSAGE, NAME, PIECE, TAKEN, WHOLE};
use anyhow::{Context, Result, bail, ensure};
use ndcompat::{Connection, SharedMemory, Status};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Options for receiving files.
#[derive(Clone, Default)]
pub struct Files {
    pub folder: Option<PathBuf>,
    pub overwrite: bool,
    /// Received files are reported as JSON.
    pub json: bool,
}

/// Receives a file. Errors are reported to the peer, too.
pub fn receive(
    waiting: &Waiting<'_>,
    connection: &Connection,
    receives: Receives,
    memory: &SharedMemory,
    request: &Request,
    files: &Files,
) -> Result<()> {
    let outcome = take(waiting, connection, receives, memory, request, files);
    if let Err(error) = &outcome
        && error.downcast_ref() != Some(&Status::IO_TIMEOUT)
    {
        let mut message = vec![FAILED];
        message.extend(format!("{error:#}").bytes().take(LONGEST_MESSAGE - 1));
        let _ = say(waiting, connection, &message);
        if let Ok(gone) = connection.disconnected() {
            let _ = waiting.session.wait_for(std::time::Duration::from_secs(5), gone);
        }
    }
    outcome
}

fn take(
    waiting: &Waiting<'_>,
    connection: &Connection,
    mut receives: Receives,
    memory: &SharedMemory,
    request: &Request,
    files: &Files,
) -> Result<()> {
    let mut next = || -> Result<Vec<u8>> {
        let (buffer, received) = waiting.wait(receives.pop_front().context("no receive is outstanding")?)?;
        let message = buffer[..received.context("the peer has left early")?.bytes].to_vec();
        receives.push_back(connection.receive(buffer));
        Ok(message)
    };
    let first = next()?;
    ensure!(first.len() > 9 && first[0] == NAME, "no name comes first");
    let length = u64::from_be_bytes(*first[1..].first_chunk().context("no length")?);
    let name = std::str::from_utf8(&first[9..]).context("a name that is no text")?;
    let is_plain = !name.contains(['/', '\0']) && name != "." && name != "..";
    ensure!(is_plain, "'{name}' is no name of a file");
    let folder = files.folder.as_deref().unwrap_or(Path::new("."));
    let target = folder.join(name);
    ensure!(files.overwrite || !target.exists(), arriving::exists(name));
    let mut file = Arriving::begin(folder, name)?;
    let (mut digest, mut bytes, mut at) = (Sha256::new(), 0u64, 0u64);
    let mut piece = vec![0; request.size as usize];
    loop {
        let message = next()?;
        match message.first() {
            Some(&PIECE) if message.len() == 5 => {
                let length = u32::from_be_bytes(*message[1..].first_chunk().context("no length")?) as usize;
                ensure!(0 < length && length <= piece.len(), "a piece of {length} bytes");
                let place = (at % u64::from(request.depth)) as usize * piece.len();
                memory.load(place, &mut piece[..length]);
                digest.update(&piece[..length]);
                file.write(&piece[..length])?;
                (at, bytes) = (at + 1, bytes + length as u64);
                say(waiting, connection, &[TAKEN])?;
            }
            Some(&END) => {
                ensure!(bytes == length, "{bytes} bytes came of {length}");
                ensure!(
                    message[1..] == digest.finalize()[..],
                    "the checksum is another: the data are not what was sent"
                );
                file.finish(files.overwrite)?;
                let from =
                    connection.peer_address().map_or_else(|_| "a peer".into(), |peer| peer.to_string());
                if files.json {
                    output::json(&json!({ "received": name, "bytes": bytes, "from": from }));
                } else {
                    out!("{}: {bytes} bytes from {from}", plain(name));
                }
                say(waiting, connection, &[WHOLE])?;
                let gone = connection.disconnected();
                return gone.map_or(Ok(()), |gone| ended(waiting.wait(gone)?));
            }
            _ => bail!("a message that has no meaning"),
        }
    }
}
