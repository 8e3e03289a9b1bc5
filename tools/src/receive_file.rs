//! The receiving side of `nd copy`, in `nd serve`: takes the pieces out of the memory that the peer writes to, and stores the file.

use crate::arriving::{self, Arriving};
use crate::messages::{Receives, Waiting, ended, say};
use crate::output::{self, plain};
use crate::place::check_name;
use crate::protocol::Request;
use crate::protocol::file::{END, FAILED, LONGEST_MESSAGE, NAME, PIECE, TAKEN, WHOLE};
use anyhow::{Context, Error, Result, bail, ensure};
use ndcompat::{Connection, SharedMemory, Status};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Options for receiving files.
#[derive(Clone, Default)]
pub struct Files {
    pub folder: Option<PathBuf>,
    pub overwrite: bool,
    /// Names may begin with a dot.
    pub hidden: bool,
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
    let mut file = Taking::begin(files, name, length)?;
    let mut at = 0u64;
    let mut piece = vec![0; request.size as usize];
    loop {
        let message = next()?;
        match message.first() {
            Some(&PIECE) if message.len() == 5 => {
                let length = u32::from_be_bytes(*message[1..].first_chunk().context("no length")?) as usize;
                ensure!(0 < length && length <= piece.len(), "a piece of {length} bytes");
                let place = (at % u64::from(request.depth)) as usize * piece.len();
                file.expect(length)?;
                memory.load(place, &mut piece[..length]);
                file.add(&piece[..length])?;
                at += 1;
                say(waiting, connection, &[TAKEN])?;
            }
            Some(&END) => {
                file.finish(&message[1..], files.overwrite)?;
                let from =
                    connection.peer_address().map_or_else(|_| "a peer".into(), |peer| peer.to_string());
                if files.json {
                    output::json(&json!({ "received": name, "bytes": length, "from": from }));
                } else {
                    out!("{}: {length} bytes from {from}", plain(name));
                }
                say(waiting, connection, &[WHOLE])?;
                let gone = connection.disconnected();
                return gone.map_or(Ok(()), |gone| ended(waiting.wait(gone)?));
            }
            _ => bail!("a message that has no meaning"),
        }
    }
}

/// A file of which pieces come.
struct Taking {
    file: Arriving,
    /// What was announced, and what has come of it.
    length: u64,
    bytes: u64,
    digest: Sha256,
}

impl Taking {
    /// Begins with a name and a length, both of which a stranger has chosen.
    fn begin(files: &Files, name: &str, length: u64) -> Result<Taking> {
        check_name(name).map_err(Error::msg)?;
        ensure!(
            files.hidden || !name.starts_with('.'),
            "'{name}' begins with a dot, which nd serve takes only with --hidden"
        );
        let folder = files.folder.as_deref().unwrap_or(Path::new("."));
        ensure!(files.overwrite || !folder.join(name).exists(), arriving::exists(name));
        let file = Arriving::begin(folder, name, length)?;
        Ok(Taking { file, length, bytes: 0, digest: Sha256::new() })
    }

    /// Refuses a piece that goes beyond what was announced, which would otherwise fill the disk.
    fn expect(&self, more: usize) -> Result<()> {
        let (bytes, length) = (self.bytes + more as u64, self.length);
        ensure!(bytes <= length, "{bytes} bytes and more come, and {length} were announced");
        Ok(())
    }

    fn add(&mut self, piece: &[u8]) -> Result<()> {
        self.expect(piece.len())?;
        self.digest.update(piece);
        self.file.write(piece)?;
        self.bytes += piece.len() as u64;
        Ok(())
    }

    fn finish(self, checksum: &[u8], overwrite: bool) -> Result<()> {
        let Taking { file, length, bytes, digest } = self;
        ensure!(bytes == length, "{bytes} bytes came of {length}");
        ensure!(
            checksum == &digest.finalize()[..],
            "the checksum is another: the data are not what was sent"
        );
        file.finish(overwrite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Files {
        Files { folder: Some(folder.to_owned()), ..Files::default() }
    }

    #[test]
    fn no_more_comes_than_was_announced() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Taking::begin(&files(folder.path()), "name", 1).unwrap();
        file.add(b"x").unwrap();
        let refused = file.add(b"y").unwrap_err();
        assert_eq!(format!("{refused:#}"), "2 bytes and more come, and 1 were announced");
        file.finish(&Sha256::digest(b"x"), false).unwrap();
        assert_eq!(std::fs::read(folder.path().join("name")).unwrap(), b"x");
        let file = Taking::begin(&files(folder.path()), "other", 1).unwrap();
        assert!(file.finish(&Sha256::digest(b""), false).is_err(), "less has come");
    }

    #[test]
    fn names_that_no_file_should_have_are_refused_before_anything_comes() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = files(folder.path());
        let refusal = |files: &Files, name: &str| match Taking::begin(files, name, 0) {
            Ok(_) => String::new(),
            Err(error) => format!("{error:#}"),
        };
        for name in ["a/b", "..", ".", "a\0b", &"n".repeat(256)] {
            assert!(refusal(&files, name).contains("is no name of a file"), "{name}");
        }
        assert!(refusal(&files, ".bash_profile").contains("--hidden"));
        files.hidden = true;
        for name in [".bash_profile", &"n".repeat(255)] {
            assert_eq!(refusal(&files, name), "");
        }
        assert!(refusal(&files, "..").contains("is no name of a file"));
    }

    /// What is said goes to the peer, whom the server's folders do not concern.
    #[test]
    fn no_failure_tells_where_the_files_are() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().to_str().unwrap();
        let refusal =
            |files: &Files, length| format!("{:#}", Taking::begin(files, "name", length).err().unwrap());
        let large = refusal(&files(folder.path()), u64::MAX);
        assert!(large.contains("'name'") && large.contains("No space left"), "{large}");
        let absent = refusal(&files(&folder.path().join("absent")), 0);
        assert!(absent.contains("No such file"), "{absent}");
        let taken = folder.path().join("name");
        let file = Taking::begin(&files(folder.path()), "name", 0).unwrap();
        std::fs::create_dir(&taken).unwrap();
        let unnamed = format!("{:#}", file.finish(&Sha256::digest(b""), true).unwrap_err());
        assert!(unnamed.contains("naming 'name'"), "{unnamed}");
        for text in [large, absent, unnamed] {
            assert!(!text.contains(own), "{text}");
        }
    }
}
