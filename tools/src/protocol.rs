//! The protocol between two `nd`. docs/nd.md specifies it.
//!
//! Numbers and addresses are in network order. Tokens go as `GetRemoteToken` returns them.

use anyhow::{Result, bail};
use ndcompat::RemoteMemory;
use std::time::Duration;

const MAGIC: [u8; 4] = *b"NDP1";

/// The most memory for pieces and messages that a server has for one connection, in bytes.
pub const MOST_MEMORY: u64 = 1 << 30;
/// The most of it that a server has for all its connections.
pub const MOST_MEMORY_OF_ALL: u64 = 4 * MOST_MEMORY;
/// The most connections that a server has at once.
pub const MOST_CONNECTIONS: u32 = 1024;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Each message is sent back.
    Echo = 1,
    /// Messages are received; credits go back.
    Sink = 2,
    /// The peer's memory is written or read.
    Memory = 3,
    /// A file is received.
    File = 4,
}

/// The private data of `Connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub purpose: Purpose,
    /// The peer should poll instead of sleeping.
    pub polls: bool,
    /// For how many seconds the sender of this may be silent, besides what the server allows everybody.
    pub silence: u16,
    /// Size of a message, or of a piece of a file, in bytes.
    pub size: u32,
    /// How many of them may be in flight.
    pub depth: u32,
}

/// The private data of `Accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Memory of `size` times `depth` bytes, for [`Purpose::Memory`] and [`Purpose::File`].
    pub memory: RemoteMemory,
}

/// So many seconds, or the most that a request can tell.
pub fn seconds(time: Duration) -> u16 {
    u16::try_from(time.as_secs_f64().ceil() as u64).unwrap_or(u16::MAX)
}

impl Request {
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.purpose as u8;
        bytes[5] = self.polls.into();
        bytes[6..8].copy_from_slice(&self.silence.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.size.to_be_bytes());
        bytes[12..].copy_from_slice(&self.depth.to_be_bytes());
        bytes
    }

    /// Transports pad private data: bytes after the request are ignored.
    pub fn from_bytes(bytes: &[u8]) -> Result<Request> {
        let Some(bytes) = bytes.first_chunk::<16>().filter(|bytes| bytes[..4] == MAGIC) else {
            bail!("a peer that is no `nd`, or of another version");
        };
        let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let purpose = match bytes[4] {
            1 => Purpose::Echo,
            2 => Purpose::Sink,
            3 => Purpose::Memory,
            4 => Purpose::File,
            other => bail!("a peer that wants something unknown, number {other}"),
        };
        let silence = u16::from_be_bytes([bytes[6], bytes[7]]);
        let request = Request { purpose, polls: bytes[5] != 0, silence, size: number(8), depth: number(12) };
        if request.size == 0 || request.depth == 0 {
            bail!("a peer that wants {} times {} bytes", request.depth, request.size);
        }
        request.check()?;
        Ok(request)
    }

    /// Fails if a server needs more memory for this than it has for a connection.
    pub fn check(&self) -> Result<()> {
        let memory = self.memory();
        if memory > MOST_MEMORY {
            bail!(
                "{} times {} bytes are more than {MOST_MEMORY}, the most that `nd serve` has for a connection",
                memory / u64::from(self.size),
                self.size
            );
        }
        Ok(())
    }

    /// How many receives the server has for the peer's messages. Of messages of which 64 do not fit into its memory, it has
    /// as many as do; an even number, as each half of them makes a credit.
    pub fn receives(&self) -> u32 {
        match self.purpose {
            Purpose::Echo => 2,
            Purpose::Sink => ((MOST_MEMORY / u64::from(self.size)).min(RECEIVES.into()) as u32).max(2) & !1,
            Purpose::Memory => 1,
            Purpose::File => 2 * self.depth.min(RECEIVES / 2),
        }
    }

    /// The bytes of messages and pieces that the server registers for this. What does not depend on their size is left out.
    pub fn memory(&self) -> u64 {
        let number = match self.purpose {
            // The answer, too.
            Purpose::Echo => self.receives() + 1,
            Purpose::Sink => self.receives(),
            Purpose::Memory | Purpose::File => self.depth,
        };
        u64::from(self.size) * u64::from(number)
    }

    /// The size of the memory that the peer writes to or reads from, in bytes.
    pub fn shared(&self) -> usize {
        self.size as usize * self.depth as usize
    }
}

impl Answer {
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..].copy_from_slice(&self.memory.to_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Answer> {
        match bytes.first_chunk::<16>() {
            Some(bytes) if bytes[..4] == MAGIC => {
                let memory = bytes[4..].first_chunk().expect("12 bytes");
                Ok(Answer { memory: RemoteMemory::from_bytes(memory) })
            }
            _ => bail!("no answer of an `nd`, or of another version"),
        }
    }
}

/// The most receives outstanding on a connection.
pub const RECEIVES: u32 = 64;
/// Size of a credit in bytes. A credit says how many more messages may be sent.
pub const CREDIT: usize = 4;

/// The messages of a connection that copies a file: the first byte says what one is.
pub mod file {
    /// Size of the longest message, the first one, which carries the file name.
    pub const LONGEST_MESSAGE: usize = 512;

    /// The first byte of a message says what it is.
    pub const NAME: u8 = 1;
    pub const PIECE: u8 = 2;
    pub const END: u8 = 3;
    /// Answers: a piece has been stored, the whole file has, or an error.
    pub const TAKEN: u8 = 4;
    pub const WHOLE: u8 = 5;
    pub const FAILED: u8 = 6;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_survive_the_wire_and_its_padding() {
        let request =
            Request { purpose: Purpose::File, polls: true, silence: 0x0607, size: 0x0102_0304, depth: 5 };
        let mut bytes = request.to_bytes().to_vec();
        assert_eq!(bytes, [b'N', b'D', b'P', b'1', 4, 1, 6, 7, 1, 2, 3, 4, 0, 0, 0, 5]);
        bytes.resize(56, 0);
        assert_eq!(Request::from_bytes(&bytes).unwrap(), request);
        let answer = Answer { memory: RemoteMemory { address: 7, token: 9 } };
        assert_eq!(Answer::from_bytes(&answer.to_bytes()).unwrap(), answer);
    }

    #[test]
    fn what_no_nd_has_sent_is_refused() {
        let good = Request { purpose: Purpose::Echo, polls: false, silence: 0, size: 1, depth: 1 }.to_bytes();
        for (at, value) in [(0, 0), (4, 0), (4, 5), (11, 0), (15, 0), (8, 255)] {
            let mut bad = good;
            bad[at] = value;
            assert!(Request::from_bytes(&bad).is_err(), "{at}");
        }
        assert!(Request::from_bytes(&good[..15]).is_err() && Answer::from_bytes(&[0; 16]).is_err());
    }

    #[test]
    fn no_connection_has_more_memory_than_what_is_checked() {
        let asks = |purpose, size, depth| {
            let request = Request { purpose, polls: false, silence: 0, size, depth };
            Request::from_bytes(&request.to_bytes()).map(|request| (request.receives(), request.memory()))
        };
        // 64 receives of 1 GiB, or two and what goes back, whatever is said of their number.
        assert!(asks(Purpose::Sink, 1 << 30, 1).is_err() && asks(Purpose::Echo, 1 << 30, 1).is_err());
        assert!(asks(Purpose::Memory, 1 << 30, 2).is_err() && asks(Purpose::File, 1 << 30, 2).is_err());
        assert_eq!(asks(Purpose::Memory, 1 << 30, 1).unwrap(), (1, MOST_MEMORY));
        assert_eq!(asks(Purpose::Echo, 1 << 20, 4000).unwrap(), (2, 3 << 20));
        // How many the sender has under way is its own affair.
        assert_eq!(asks(Purpose::Sink, 64 << 20, 32).unwrap(), (16, MOST_MEMORY));
        assert_eq!(asks(Purpose::Sink, 64, 1024).unwrap(), (RECEIVES, 64 * 64));
        assert_eq!(asks(Purpose::Sink, 200 << 20, 1).unwrap().0, 4);
    }
}
