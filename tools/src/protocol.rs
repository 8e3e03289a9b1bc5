//! The protocol between two `nd`. docs/nd.md specifies it.
//!
//! Numbers and addresses are in network order. Tokens go as `GetRemoteToken` returns them.

use anyhow::{Result, bail};
use ndcompat::RemoteMemory;

const MAGIC: [u8; 4] = *b"NDP1";

/// The most memory that one connection may ask for, in bytes.
pub const MOST_MEMORY: u64 = 1 << 30;

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

impl Request {
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.purpose as u8;
        bytes[5] = self.polls.into();
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
        let request = Request { purpose, polls: bytes[5] != 0, size: number(8), depth: number(12) };
        if request.size == 0 || request.depth == 0 || request.memory() > MOST_MEMORY {
            bail!("a peer that wants {} times {} bytes", request.depth, request.size);
        }
        Ok(request)
    }

    /// The size of the memory asked for, in bytes.
    pub fn memory(&self) -> u64 {
        u64::from(self.size) * u64::from(self.depth)
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
        let request = Request { purpose: Purpose::File, polls: true, size: 0x0102_0304, depth: 5 };
        let mut bytes = request.to_bytes().to_vec();
        assert_eq!(bytes, [b'N', b'D', b'P', b'1', 4, 1, 0, 0, 1, 2, 3, 4, 0, 0, 0, 5]);
        bytes.resize(56, 0);
        assert_eq!(Request::from_bytes(&bytes).unwrap(), request);
        let answer = Answer { memory: RemoteMemory { address: 7, token: 9 } };
        assert_eq!(Answer::from_bytes(&answer.to_bytes()).unwrap(), answer);
    }

    #[test]
    fn what_no_nd_has_sent_is_refused() {
        let good = Request { purpose: Purpose::Echo, polls: false, size: 1, depth: 1 }.to_bytes();
        for (at, value) in [(0, 0), (4, 0), (4, 5), (11, 0), (15, 0), (8, 255)] {
            let mut bad = good;
            bad[at] = value;
            assert!(Request::from_bytes(&bad).is_err(), "{at}");
        }
        assert!(Request::from_bytes(&good[..15]).is_err() && Answer::from_bytes(&[0; 16]).is_err());
    }
}
