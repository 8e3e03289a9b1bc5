//! `select` and `WSAPoll`.

use super::calls::Call;
use super::startup::started;
use super::system::{int_option, poll, poll_all};
use super::table::{self, CONNECT_FAILED, CONNECTING, RESET};
use super::{SOCKET_ERROR, Socket, failed};
use crate::arguments::In;
use crate::boundary::guard;
use crate::error::*;
use crate::io::Idle;
use crate::io::sys::Deadline;
use libc::{c_int, pollfd, timeval};
use smallvec::SmallVec;
use std::mem::offset_of;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Windows' `fd_set`: a count and sockets. Programs may use a larger array.
#[repr(C)]
pub struct FdSet {
    /// `fd_count`.
    pub count: u32,
    /// `fd_array`.
    pub sockets: [Socket; 64],
}

/// The poll events of each of the three sets.
const ASKED: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];

/// A socket of one of the sets.
struct Member {
    socket: Socket,
    set: usize,
}

/// Whether `revents` puts the socket in the set. `failed`: a non-blocking `connect` has failed.
fn belongs(set: usize, revents: i16, failed: bool) -> bool {
    match set {
        0 => !failed && revents & (libc::POLLIN | libc::POLLERR | libc::POLLHUP) != 0,
        1 => !failed && revents & libc::POLLOUT != 0,
        _ => failed || revents & libc::POLLPRI != 0,
    }
}

/// The outcome of a non-blocking `connect`, now that poll reports something.
fn has_failed(fd: RawFd, revents: i16) -> bool {
    let Some(socket) = table::marked(fd, CONNECTING | CONNECT_FAILED) else { return false };
    if socket.is_marked(CONNECTING) && revents & (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) != 0 {
        let error = int_option(fd, libc::SO_ERROR).unwrap_or_else(|errno| errno);
        if let Err(error) = socket.connecting_ended(error) {
            socket.error.store(error, Ordering::Relaxed);
            socket.mark(CONNECT_FAILED);
        }
    }
    socket.is_marked(CONNECT_FAILED)
}

/// A stream socket that was never connected: Linux reports POLLHUP, Windows nothing. One whose connection is over has POLLRDHUP as well.
fn is_idle(revents: i16, fd: RawFd) -> bool {
    let ended = || poll(fd, libc::POLLRDHUP, Deadline::Now).is_ok_and(|now| now & libc::POLLRDHUP != 0);
    revents & (libc::POLLHUP | libc::POLLIN | libc::POLLERR) == libc::POLLHUP
        && !table::is_marked(fd, CONNECTING | CONNECT_FAILED)
        && int_option(fd, libc::SO_TYPE) == Ok(libc::SOCK_STREAM)
        && !ended()
}

/// Polls until there is something that Windows would tell, or a socket is closed.
fn poll_until_told(entries: &mut [pollfd], calls: &[Call], deadline: Deadline) -> Result<(), c_int> {
    loop {
        poll_all(entries, deadline)?;
        let mut idle: SmallVec<[RawFd; 16]> = SmallVec::new();
        for entry in entries.iter_mut().filter(|entry| is_idle(entry.revents, entry.fd)) {
            entry.revents = 0;
            idle.push(entry.fd);
        }
        let told = entries.iter().any(|entry| entry.revents != 0) || calls.iter().any(Call::is_over);
        if idle.is_empty() || told || deadline.passed() {
            return Ok(());
        }
        let watched = |entry: &&pollfd| !idle.contains(&entry.fd);
        let mut others: SmallVec<[pollfd; 16]> = entries.iter().filter(watched).copied().collect();
        poll_all(&mut others, deadline.min(Deadline::after(SLICE)))?;
    }
}

/// The longest sleep while there are unconnected sockets, which cannot be watched.
const SLICE: Duration = Duration::from_millis(20);

/// The outcome of a `select` one of whose sockets another thread closes: as on Windows, that is readable.
fn closed(members: &[Member], calls: &[Call]) -> Result<SmallVec<[usize; 64]>, u32> {
    let of_reading = |at: &usize| members[*at].set == 0 && calls[*at].is_over();
    let readable: SmallVec<[usize; 64]> = (0..members.len()).filter(of_reading).collect();
    if readable.is_empty() { Err(WSAENOTSOCK) } else { Ok(readable) }
}

/// The ready members of the sets, as soon as there are any.
fn wait(members: &[Member], deadline: Deadline) -> Result<SmallVec<[usize; 64]>, u32> {
    let fds = members.iter().map(|member| table::descriptor(member.socket));
    let fds = fds.collect::<Result<SmallVec<[RawFd; 64]>, u32>>()?;
    let calls = Call::on_each(fds.iter().copied());
    loop {
        let entry =
            |(member, fd): (&Member, &RawFd)| pollfd { fd: *fd, events: ASKED[member.set], revents: 0 };
        let mut entries: SmallVec<[pollfd; 64]> = members.iter().zip(&fds).map(entry).collect();
        let mut idle = false;
        let found = loop {
            let slice = if idle { deadline.min(Deadline::after(SLICE)) } else { deadline };
            poll_all(&mut entries, slice).map_err(errno_to_wsa)?;
            if calls.iter().any(Call::is_over) {
                return closed(members, &calls);
            }
            if entries.iter().any(|entry| entry.revents & libc::POLLNVAL != 0) {
                return Err(WSAENOTSOCK);
            }
            let mut found = SmallVec::new();
            let mut again = false;
            for (at, entry) in entries.iter_mut().enumerate() {
                if entry.revents == 0 || entry.fd < 0 {
                    continue;
                }
                if is_idle(entry.revents, entry.fd) {
                    (entry.fd, idle, again) = (-1, true, true);
                } else if belongs(members[at].set, entry.revents, has_failed(entry.fd, entry.revents)) {
                    found.push(at);
                } else {
                    // An event that this set does not ask for.
                    (entry.fd, idle, again) = (-1, true, true);
                }
            }
            if !found.is_empty() || !again || deadline.passed() {
                break found;
            }
        };
        if !found.is_empty() || deadline.passed() {
            return Ok(found);
        }
    }
}

impl FdSet {
    /// The sockets of a set, whose array may be larger or smaller in the program's type.
    ///
    /// # Safety
    /// `set` is NULL, or has as many sockets as it says.
    unsafe fn list(set: *const FdSet) -> impl Iterator<Item = Socket> {
        // SAFETY: not NULL, hence a set, which begins with the count.
        let count = if set.is_null() { 0 } else { unsafe { set.cast::<u32>().read() } };
        let first = set.wrapping_byte_add(offset_of!(FdSet, sockets)).cast::<Socket>();
        // SAFETY: a set has as many sockets as it says, as the caller promises.
        (0..count as usize).map(move |at| unsafe { first.wrapping_add(at).read_unaligned() })
    }

    /// Stores these sockets in a set.
    ///
    /// # Safety
    /// `set` is not NULL, and has had as many at least.
    unsafe fn set(set: *mut FdSet, sockets: impl Iterator<Item = Socket>) {
        let first = set.wrapping_byte_add(offset_of!(FdSet, sockets)).cast::<Socket>();
        let mut count = 0;
        for socket in sockets {
            // SAFETY: there were as many, as the caller promises.
            unsafe { first.wrapping_add(count).write_unaligned(socket) };
            count += 1;
        }
        // SAFETY: a set, which begins with the count.
        unsafe { set.cast::<u32>().write(count as u32) };
    }
}

/// # Safety
/// `sets` are NULL, or as many sockets as they say.
unsafe fn select(sets: [*mut FdSet; 3], timeout: In<'_, timeval>) -> Result<c_int, u32> {
    if !started() {
        return Err(WSANOTINITIALISED);
    }
    let mut members: SmallVec<[Member; 64]> = SmallVec::new();
    for (at, set) in sets.into_iter().enumerate().filter(|(_, set)| !set.is_null()) {
        // SAFETY: as many sockets as it says, as the caller promises.
        let sockets = unsafe { FdSet::list(set) };
        members.extend(sockets.map(|socket| Member { socket, set: at }));
    }
    if members.is_empty() {
        return Err(WSAEINVAL);
    }
    let deadline = match timeout.read() {
        None => Deadline::Never,
        Some(time) if time.tv_sec < 0 || time.tv_usec < 0 => return Err(WSAEINVAL),
        Some(time) => Deadline::after(
            Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64),
        ),
    };
    let _idle = Idle::enter_if(|| !deadline.passed());
    let found = wait(&members, deadline)?;
    for (at, set) in sets.into_iter().enumerate().filter(|(_, set)| !set.is_null()) {
        let found = found.iter().map(|index| &members[*index]).filter(|member| member.set == at);
        // SAFETY: not NULL, and they are some of those that the set had.
        unsafe { FdSet::set(set, found.map(|member| member.socket)) };
    }
    Ok(found.len() as c_int)
}

/// `select`: the first argument is ignored.
///
/// # Safety
/// Each set is NULL, or has as many sockets as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_select(
    _count: c_int,
    read: *mut FdSet,
    write: *mut FdSet,
    except: *mut FdSet,
    timeout: In<'_, timeval>,
) -> c_int {
    // SAFETY: C's caller has as many sockets in each set as it says.
    guard(SOCKET_ERROR, || match unsafe { select([read, write, except], timeout) } {
        Ok(count) => count,
        Err(code) => {
            failed(libc::EINVAL, code);
            SOCKET_ERROR
        }
    })
}

/// `__WSAFDIsSet`.
///
/// # Safety
/// `set` is NULL, or has as many sockets as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw___WSAFDIsSet(socket: Socket, set: *const FdSet) -> c_int {
    // SAFETY: C's caller has as many sockets in the set as it says.
    unsafe { FdSet::list(set) }.any(|member| member == socket).into()
}

/// `WSAPOLLFD`.
#[repr(C)]
pub struct PollEntry {
    /// `fd`.
    pub socket: Socket,
    /// `events`, with `poll`'s flags.
    pub events: i16,
    /// `revents`.
    pub found: i16,
}

const _: () = assert!(size_of::<PollEntry>() == 16);

/// `WSAPoll`.
///
/// # Safety
/// `entries` is NULL or has `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAPoll(entries: *mut PollEntry, count: u32, timeout: c_int) -> c_int {
    // SAFETY: C's caller has so many entries.
    let entries = unsafe { list(entries, count) };
    let native = |entry: &PollEntry| pollfd {
        fd: super::socket::descriptor_or_none(entry.socket),
        events: entry.events,
        revents: 0,
    };
    let mut native: Option<SmallVec<[pollfd; 16]>> =
        entries.as_ref().map(|entries| entries.iter().map(native).collect());
    let result = poll_sockets(native.as_deref_mut(), count, timeout);
    if let (0.., Some(entries), Some(native)) = (result, entries, native) {
        for (entry, native) in entries.iter_mut().zip(native) {
            entry.found = if native.fd < 0 { libc::POLLNVAL } else { native.revents };
        }
    }
    result
}

/// `WSAPoll` with the entries of `poll`.
///
/// # Safety
/// `entries` is NULL or has `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAPollNative(entries: *mut pollfd, count: u32, timeout: c_int) -> c_int {
    // SAFETY: C's caller has so many entries.
    let entries = unsafe { list(entries, count) };
    // Only the results are written to the program's.
    let mut copies: Option<SmallVec<[pollfd; 16]>> =
        entries.as_ref().map(|entries| entries.iter().copied().collect());
    let result = poll_sockets(copies.as_deref_mut(), count, timeout);
    if let (0.., Some(entries), Some(copies)) = (result, entries, copies) {
        entries.iter_mut().zip(copies).for_each(|(entry, copy)| entry.revents = copy.revents);
    }
    result
}

/// A list of C's, `None` for NULL.
///
/// # Safety
/// `first` is NULL, or there are `count` entries for as long as the call lasts.
unsafe fn list<'a, T>(first: *mut T, count: u32) -> Option<&'a mut [T]> {
    // SAFETY: not NULL, hence so many entries, as the caller promises.
    (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(first, count as usize) })
}

fn poll_sockets(entries: Option<&mut [pollfd]>, count: u32, timeout: c_int) -> c_int {
    guard(SOCKET_ERROR, || {
        let fault = |errno, code| {
            failed(errno, code);
            SOCKET_ERROR
        };
        if !started() {
            return fault(libc::ENETDOWN, WSANOTINITIALISED);
        }
        if count == 0 {
            return fault(libc::EINVAL, WSAEINVAL);
        }
        let Some(entries) = entries else { return fault(libc::EFAULT, WSAEFAULT) };
        // Every negative time-out is infinite.
        let deadline = timeout.try_into().map_or(Deadline::Never, Deadline::after_millis);
        let _idle = Idle::enter_if(|| !deadline.passed());
        let calls = Call::on_each(entries.iter().map(|entry| entry.fd));
        // The end of the peer's output, which Windows tells whether it is asked for or not.
        let asked: SmallVec<[i16; 16]> = entries.iter().map(|entry| entry.events).collect();
        entries.iter_mut().for_each(|entry| entry.events |= libc::POLLRDHUP);
        let polled = poll_until_told(entries, &calls, deadline);
        for (entry, asked) in entries.iter_mut().zip(asked) {
            if entry.revents & libc::POLLRDHUP != 0 {
                entry.revents = (entry.revents | libc::POLLHUP) & (asked | !libc::POLLRDHUP);
            }
            // Linux tells the error once, to whoever asks first.
            if entry.revents & libc::POLLHUP != 0 && table::is_marked(entry.fd, CONNECT_FAILED | RESET) {
                entry.revents |= libc::POLLERR;
            }
        }
        match polled {
            Ok(()) => {
                for (entry, _) in entries.iter_mut().zip(&calls).filter(|(_, call)| call.is_over()) {
                    entry.revents = libc::POLLNVAL;
                }
                entries.iter().filter(|entry| entry.revents != 0).count() as c_int
            }
            Err(errno) => fault(errno, errno_to_wsa(errno)),
        }
    })
}
