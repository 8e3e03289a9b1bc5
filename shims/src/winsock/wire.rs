//! The system calls that move data, with errnos for errors. None raises `SIGPIPE`, and they are restarted after signals. They do
//! not use the C library's functions, which are cancellation points.

use super::system::{self, Plain, errno};
use crate::io::sys::Deadline;
use libc::{c_int, iovec, sockaddr};
use smallvec::SmallVec;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::time::Duration;

/// `WSABUF`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WsaBuf {
    /// `len`.
    pub length: u32,
    /// `buf`.
    pub data: *mut u8,
}

const _: () = assert!(size_of::<WsaBuf>() == 16);

/// A piece of the program's memory that a call fills or sends.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct Piece(iovec);

// SAFETY: the memory is the program's, which lets every thread use it (`Piece::new`).
unsafe impl Send for Piece {}

impl Piece {
    /// A piece of `length` bytes.
    ///
    /// # Safety
    /// The bytes may be read, and for a receive written, until the call or request ends that the piece is for.
    pub(super) unsafe fn new(data: *const u8, length: usize) -> Piece {
        Piece(iovec { iov_base: data.cast_mut().cast(), iov_len: length })
    }
}

/// The pieces of memory that a call fills or sends.
pub(super) type Pieces = SmallVec<[Piece; 2]>;

/// The most pieces of a call (`IOV_MAX`). Windows has no such limit: a stream takes several calls, and a message of more goes by way of
/// one piece.
const MOST_PIECES: usize = 1024;

/// As many of the pieces of a stream as one call takes.
pub(super) fn first_of(pieces: &[Piece]) -> &[Piece] {
    &pieces[..pieces.len().min(MOST_PIECES)]
}

/// The bytes of all pieces.
pub(super) fn total(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.0.iov_len).sum()
}

/// Removes the first `count` bytes.
pub(super) fn consume(pieces: &mut Pieces, mut count: usize) {
    let whole = pieces.iter().take_while(|piece| {
        let fits = piece.0.iov_len <= count;
        if fits {
            count -= piece.0.iov_len;
        }
        fits
    });
    let whole = whole.count();
    pieces.drain(..whole);
    if let Some(Piece(first)) = pieces.first_mut() {
        first.iov_base = first.iov_base.wrapping_byte_add(count);
        first.iov_len -= count;
    }
}

/// Room for a message.
fn room(length: usize) -> Result<Vec<u8>, c_int> {
    let mut room = Vec::new();
    room.try_reserve_exact(length).map_err(|_| libc::ENOBUFS)?;
    Ok(room)
}

/// What is in the pieces of a message, if it can be sent at all.
fn gathered(fd: RawFd, pieces: &[Piece]) -> Result<Vec<u8>, c_int> {
    // No datagram of IP is longer, and no other than there is room for sends.
    const LONGEST: usize = u16::MAX as usize;
    let length = total(pieces);
    let room_of_sends = system::int_option(fd, libc::SO_SNDBUF)?;
    if length > LONGEST.max(room_of_sends as usize) {
        return Err(libc::EMSGSIZE);
    }
    let mut whole = room(length)?;
    for Piece(piece) in pieces.iter().filter(|piece| piece.0.iov_len > 0) {
        let place = whole.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: the piece can be read, by the promise of `Piece::new`, and there is room for the bytes of all pieces.
        unsafe { place.copy_from_nonoverlapping(piece.iov_base.cast(), piece.iov_len) };
        // SAFETY: so many more bytes have been written.
        unsafe { whole.set_len(whole.len() + piece.iov_len) };
    }
    Ok(whole)
}

/// Receives a message into more pieces than one call takes.
#[cold]
fn receive_and_scatter(
    fd: RawFd,
    pieces: &[Piece],
    flags: c_int,
    ancillary: &Ancillary,
) -> Result<Received, c_int> {
    let length = total(pieces).min(c_int::MAX as usize);
    let mut whole = room(length)?;
    // SAFETY: so much room, until the call ends.
    let received = receive(fd, &[unsafe { Piece::new(whole.as_mut_ptr(), length) }], flags, ancillary)?;
    let (mut rest, mut from) = (received.count.min(length), whole.as_ptr());
    for Piece(piece) in pieces.iter().filter(|piece| piece.0.iov_len > 0) {
        let part = piece.iov_len.min(rest);
        // SAFETY: the piece can be written, by the promise of `Piece::new`; so many bytes were received, and have not been copied yet.
        unsafe { piece.iov_base.cast::<u8>().copy_from_nonoverlapping(from, part) };
        (rest, from) = (rest - part, from.wrapping_add(part));
    }
    Ok(received)
}

/// As [`retry`], for a call with a time-out (`SO_RCVTIMEO` or `SO_SNDTIMEO`), which the kernel restarts each time.
fn retry_in_time(fd: RawFd, option: c_int, mut call: impl FnMut() -> isize) -> Result<usize, c_int> {
    let mut deadline = None;
    loop {
        match call() {
            result if result >= 0 => return Ok(result as usize),
            _ if errno() != libc::EINTR => return Err(errno()),
            // From the first signal on, so that calls without one need not read the clock.
            _ if deadline.get_or_insert_with(|| limit(fd, option)).passed() => return Err(libc::EAGAIN),
            _ => {}
        }
    }
}

/// The deadline of a call that begins now, by the socket's `option`.
pub(super) fn limit(fd: RawFd, option: c_int) -> Deadline {
    let Ok(time) = system::option::<libc::timeval>(fd, libc::SOL_SOCKET, option) else {
        return Deadline::Never;
    };
    match Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64) {
        time if !time.is_zero() => Deadline::after(time),
        _ => Deadline::Never,
    }
}

/// The peer's address and the control data of a message, or NULL.
#[derive(Clone, Copy)]
pub(super) struct Ancillary {
    name: *mut sockaddr,
    name_length: u32,
    control: *mut u8,
    control_length: usize,
}

impl Ancillary {
    pub(super) const NONE: Ancillary =
        Ancillary { name: null_mut(), name_length: 0, control: null_mut(), control_length: 0 };

    /// With an address only.
    ///
    /// # Safety
    /// `name` is NULL or has `length` bytes, which may be read, and for a receive written, until the call ends.
    pub(super) unsafe fn name(name: *const sockaddr, length: u32) -> Ancillary {
        match name.is_null() {
            true => Ancillary::NONE,
            false => Ancillary { name: name.cast_mut(), name_length: length, ..Ancillary::NONE },
        }
    }

    /// An address and control data that are sent; either may be empty.
    ///
    /// # Safety
    /// Both stay until the call ends.
    pub(super) unsafe fn sent(name: &[u8], control: &[u8]) -> Ancillary {
        let of = |bytes: &[u8]| if bytes.is_empty() { null_mut() } else { bytes.as_ptr().cast_mut() };
        Ancillary {
            name: of(name).cast(),
            name_length: name.len() as u32,
            control: of(control),
            control_length: control.len(),
        }
    }

    /// Those of a message.
    ///
    /// # Safety
    /// As for [`Ancillary::name`], for the address and the control data of the message.
    pub(super) unsafe fn of(message: &WsaMsg) -> Ancillary {
        let control = message.control;
        // SAFETY: the address of the message has so many bytes, as the caller promises.
        let name = unsafe { Ancillary::name(message.name, message.name_length.max(0) as u32) };
        match control.data.is_null() {
            true => name,
            false => Ancillary { control: control.data, control_length: control.length as usize, ..name },
        }
    }
}

/// The result of a receive.
pub(super) struct Received {
    /// The bytes.
    pub(super) count: usize,
    /// The flags of the message.
    pub(super) flags: c_int,
    /// The length of the sender's address.
    pub(super) name_length: u32,
    control_length: usize,
}

impl Received {
    /// This many bytes of a stream.
    pub(super) fn of_stream(count: usize) -> Received {
        Received { count, flags: 0, name_length: 0, control_length: 0 }
    }
}

/// `WSAMSG`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Windows'
pub struct WsaMsg {
    pub name: *mut sockaddr,
    pub name_length: c_int,
    pub buffers: *mut WsaBuf,
    pub buffer_count: u32,
    pub control: WsaBuf,
    pub flags: u32,
}

const _: () = assert!(size_of::<WsaMsg>() == 56);

impl WsaMsg {
    /// With the received lengths and flags.
    pub(super) fn with(mut self, received: &Received) -> WsaMsg {
        if !self.name.is_null() {
            self.name_length = received.name_length as c_int;
        }
        self.control.length = if self.control.data.is_null() { 0 } else { received.control_length as u32 };
        self.flags = (received.flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC)) as u32;
        self
    }

    /// Whether something of what was received had no room. Who has no room at all for control data does not want them.
    pub(super) fn is_short_for(&self, received: &Received) -> bool {
        let control = if self.control.length == 0 { 0 } else { libc::MSG_CTRUNC };
        received.flags & (libc::MSG_TRUNC | control) != 0
    }
}

fn header(pieces: &[Piece], ancillary: &Ancillary) -> libc::msghdr {
    let mut header = libc::msghdr::zeroed();
    header.msg_name = ancillary.name.cast();
    header.msg_namelen = ancillary.name_length;
    header.msg_iov = pieces.as_ptr().cast_mut().cast();
    header.msg_iovlen = pieces.len();
    header.msg_control = ancillary.control.cast();
    header.msg_controllen = ancillary.control_length;
    header
}

/// Receives a message.
pub(super) fn receive(
    fd: RawFd,
    pieces: &[Piece],
    flags: c_int,
    ancillary: &Ancillary,
) -> Result<Received, c_int> {
    if pieces.len() > MOST_PIECES {
        return receive_and_scatter(fd, pieces, flags, ancillary);
    }
    let mut header = header(pieces, ancillary);
    let flags = flags | libc::MSG_CMSG_CLOEXEC;
    let call = || {
        // SAFETY: what the header points to is writable, by the promises of `Piece::new` and `Ancillary::name`.
        unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut header, flags) as isize }
    };
    let count = retry_in_time(fd, libc::SO_RCVTIMEO, call)?;
    if !ancillary.control.is_null() {
        let length = header.msg_controllen.min(ancillary.control_length);
        // SAFETY: so many bytes of control data were written, by the promise of `Ancillary::of`.
        widen_type_of_service(unsafe { std::slice::from_raw_parts_mut(ancillary.control, length) });
    }
    let (name_length, control_length) = (header.msg_namelen, header.msg_controllen);
    Ok(Received { count, flags: header.msg_flags, name_length, control_length })
}

/// The type of service in control data is an `INT` on Windows, one byte on Linux; the space for both is the same.
fn widen_type_of_service(control: &mut [u8]) {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let mut rest = control;
    while rest.len() >= HEADER {
        let [length, kind] = [0, 8].map(|at| u64::from_ne_bytes(rest[at..at + 8].try_into().unwrap()));
        let length = (length as usize).max(HEADER);
        let space = length.next_multiple_of(8).min(rest.len());
        let is_byte = length == HEADER + 1 && kind == TYPE_OF_SERVICE;
        let (this, others) = rest.split_at_mut(space);
        if is_byte && space >= HEADER + 4 {
            this[..8].copy_from_slice(&(HEADER + 4).to_ne_bytes());
            this[HEADER + 1..HEADER + 4].fill(0);
        }
        rest = others;
    }
}

/// Level and type of a `cmsghdr`.
const TYPE_OF_SERVICE: u64 = libc::IPPROTO_IP as u64 | (libc::IP_TOS as u64) << 32;

/// Receives from a stream into one piece, which costs the kernel less than a message of pieces.
pub(super) fn receive_piece(fd: RawFd, Piece(piece): &Piece, flags: c_int) -> Result<usize, c_int> {
    let none = null_mut::<sockaddr>();
    // SAFETY: the piece is writable, by the promise of `Piece::new`.
    retry_in_time(fd, libc::SO_RCVTIMEO, || unsafe {
        libc::syscall(libc::SYS_recvfrom, fd, piece.iov_base, piece.iov_len, flags, none, none) as isize
    })
}

/// Sends. That an earlier datagram found nobody is no failure of this one, as it is for Linux.
pub(super) fn send(fd: RawFd, pieces: &[Piece], flags: c_int, ancillary: &Ancillary) -> Result<usize, c_int> {
    if pieces.len() > MOST_PIECES {
        let whole = gathered(fd, pieces)?;
        // SAFETY: the bytes stay until the call ends.
        return send(fd, &[unsafe { Piece::new(whole.as_ptr(), whole.len()) }], flags, ancillary);
    }
    let is_datagram = || system::int_option(fd, libc::SO_TYPE) == Ok(libc::SOCK_DGRAM);
    for _ in 0..REFUSALS {
        match send_once(fd, pieces, flags, ancillary) {
            Err(libc::ECONNREFUSED) if is_datagram() => {}
            sent => return sent,
        }
    }
    send_once(fd, pieces, flags, ancillary)
}

/// How many refusals of earlier datagrams a send passes over: each takes one from the socket, while other threads may cause some.
const REFUSALS: u32 = 16;

fn send_once(fd: RawFd, pieces: &[Piece], flags: c_int, ancillary: &Ancillary) -> Result<usize, c_int> {
    let flags = flags | libc::MSG_NOSIGNAL;
    if let ([Piece(piece)], true) = (pieces, ancillary.control.is_null()) {
        let (name, length) = (ancillary.name, ancillary.name_length);
        // SAFETY: piece and name are readable, by the promises of `Piece::new` and `Ancillary::name`.
        return retry_in_time(fd, libc::SO_SNDTIMEO, || unsafe {
            libc::syscall(libc::SYS_sendto, fd, piece.iov_base, piece.iov_len, flags, name, length) as isize
        });
    }
    let header = header(pieces, ancillary);
    // SAFETY: what the header points to is readable, by the promises of `Piece::new` and `Ancillary::name`.
    retry_in_time(fd, libc::SO_SNDTIMEO, || unsafe {
        libc::syscall(libc::SYS_sendmsg, fd, &raw const header, flags) as isize
    })
}

/// `struct tcp_info`, as bytes: the state, and the segments sent so far.
struct TcpInfo([u8; 256]);

impl TcpInfo {
    const SEGMENTS: std::ops::Range<usize> = 136..140;
    const TIME_WAIT: u8 = 6;
    const CLOSE: u8 = 7;
    const CLOSE_WAIT: u8 = 8;
    const LAST_ACK: u8 = 9;
    const LISTEN: u8 = 10;
    const CLOSING: u8 = 11;

    /// `None` if the socket is not of TCP.
    fn of(fd: RawFd) -> Option<TcpInfo> {
        system::option(fd, libc::IPPROTO_TCP, libc::TCP_INFO).ok().map(TcpInfo)
    }

    fn state(&self) -> u8 {
        self.0[0]
    }

    fn has_sent(&self) -> bool {
        self.0[TcpInfo::SEGMENTS] != [0; 4]
    }
}

/// The cause of `EPIPE`: the program has shut down sending, or the connection of a stream was reset, or there was none.
pub(super) fn broken(fd: RawFd) -> c_int {
    let Some(info) = TcpInfo::of(fd) else {
        let stream = system::int_option(fd, libc::SO_TYPE) == Ok(libc::SOCK_STREAM);
        return if stream { libc::ECONNRESET } else { libc::ESHUTDOWN };
    };
    match info.state() {
        TcpInfo::LISTEN => libc::ENOTCONN,
        TcpInfo::CLOSE if info.has_sent() => libc::ECONNRESET,
        TcpInfo::CLOSE => libc::ENOTCONN,
        _ => libc::ESHUTDOWN,
    }
}

/// Whether the peer of a stream sends no more, whatever this side has shut down. `hangs_up`: `poll` says so; it is all that is known of
/// a stream that is not of TCP.
pub(super) fn peer_has_ended(fd: RawFd, hangs_up: bool) -> bool {
    const ENDED: [u8; 5] =
        [TcpInfo::TIME_WAIT, TcpInfo::CLOSE, TcpInfo::CLOSE_WAIT, TcpInfo::LAST_ACK, TcpInfo::CLOSING];
    TcpInfo::of(fd).map_or(hangs_up, |info| ENDED.contains(&info.state()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_consumed_from_the_front() {
        let data = [0u8; 10];
        let start = data.as_ptr().addr();
        for (count, expected) in [
            (0, vec![(0, 3), (3, 2), (5, 5)]),
            (2, vec![(2, 1), (3, 2), (5, 5)]),
            (3, vec![(3, 2), (5, 5)]),
            (4, vec![(4, 1), (5, 5)]),
            (9, vec![(9, 1)]),
            (10, vec![]),
        ] {
            let mut pieces: Pieces = [(0, 3), (3, 2), (5, 5)]
                .into_iter()
                // SAFETY: `at` and `length` are within the data, which the pieces do not outlive.
                .map(|(at, length)| unsafe { Piece::new(data[at..].as_ptr(), length) })
                .collect();
            consume(&mut pieces, count);
            let left: Vec<_> =
                pieces.iter().map(|Piece(piece)| (piece.iov_base.addr() - start, piece.iov_len)).collect();
            assert_eq!(left, expected, "{count}");
            assert_eq!(total(&pieces), 10 - count);
        }
    }
}
