//! Socket options. They have Linux's numbers; those that only Windows has, Windows'.
//!
//! Where the two systems have different types for an option, the size selects one: four bytes of `SO_RCVTIMEO` are milliseconds,
//! sixteen a `timeval`; four bytes of `SO_LINGER` are two `u_short`, eight two `int`.

use super::catalogue::ProtocolInfo;
use super::system::{self, Plain, checked, has_peer, int_option};
use super::table::{self, EXCLUSIVE, NO_RECEIVE_BUFFER, NO_SEND_BUFFER};
use super::{SOCKET_ERROR, failed};
use crate::arguments::InOut;
use crate::boundary::guard;
use crate::error::*;
use libc::{c_int, socklen_t};
use std::cell::Cell;
use std::ffi::c_void;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

const SO_EXCLUSIVEADDRUSE: c_int = !libc::SO_REUSEADDR;
const SO_DONTLINGER: c_int = !libc::SO_LINGER;
const SO_MAX_MSG_SIZE: c_int = 0x2003;
/// `SO_PROTOCOL_INFOA` and `SO_PROTOCOL_INFOW`.
const SO_PROTOCOL_INFO: [c_int; 2] = [0x2004, 0x2005];
const SO_UPDATE_ACCEPT_CONTEXT: c_int = 0x700B;
const SO_CONNECT_TIME: c_int = 0x700C;
const SO_UPDATE_CONNECT_CONTEXT: c_int = 0x7010;
const SO_OPENTYPE: c_int = 0x7008;
const SO_REUSE_UNICASTPORT: c_int = 0x3007;

/// Options below the socket level that only Windows has. Windows' numbers are those of other options here.
const IP_DONTFRAGMENT: c_int = 0x7_000E;
const TCP_MAXRT: c_int = 0x7_0005;

thread_local! {
    /// The `SO_OPENTYPE` of the thread, which has no effect: all sockets can be overlapped.
    static OPEN_TYPE: Cell<c_int> = const { Cell::new(0) };
}

/// The level and the number of Linux's option that is one of Windows', by level, option and the size of its value.
fn counterpart(level: c_int, option: c_int, size: usize) -> Option<(c_int, c_int)> {
    match (level, option) {
        (libc::SOL_SOCKET, SO_REUSE_UNICASTPORT) => Some((libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)),
        (libc::IPPROTO_IP, IP_DONTFRAGMENT) => Some((level, libc::IP_MTU_DISCOVER)),
        (libc::IPPROTO_TCP, TCP_MAXRT) => Some((level, libc::TCP_USER_TIMEOUT)),
        // Flags on Windows. On Linux these are the types of the control data, and of other options.
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if size <= 4 => Some((level, libc::IPV6_RECVPKTINFO)),
        (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => Some((level, libc::IPV6_RECVHOPLIMIT)),
        _ => None,
    }
}

/// The value of [`counterpart`] for one of Windows': `IP_DONTFRAGMENT` is a flag, `TCP_MAXRT` in seconds, of which all bits are
/// without end.
fn to_linux(option: c_int, value: c_int) -> c_int {
    match option {
        IP_DONTFRAGMENT if value != 0 => libc::IP_PMTUDISC_DO,
        IP_DONTFRAGMENT => libc::IP_PMTUDISC_DONT,
        TCP_MAXRT if value < 0 => c_int::MAX,
        TCP_MAXRT => value.saturating_mul(1000),
        _ => value,
    }
}

/// And back.
fn to_windows(option: c_int, value: c_int) -> c_int {
    match option {
        IP_DONTFRAGMENT => c_int::from(value == libc::IP_PMTUDISC_DO),
        TCP_MAXRT if value == c_int::MAX => -1,
        TCP_MAXRT => value / 1000,
        _ => value,
    }
}

/// The options of the socket level that are a `BOOL`, which may be passed as one byte.
fn is_flag(level: c_int, option: c_int) -> bool {
    match level {
        libc::SOL_SOCKET => matches!(
            option,
            libc::SO_REUSEADDR
                | libc::SO_KEEPALIVE
                | libc::SO_BROADCAST
                | libc::SO_DONTROUTE
                | libc::SO_OOBINLINE
                | libc::SO_DEBUG
                | libc::SO_ACCEPTCONN
                | SO_EXCLUSIVEADDRUSE
                | SO_DONTLINGER
        ),
        libc::IPPROTO_TCP => option == libc::TCP_NODELAY,
        libc::IPPROTO_IPV6 => option == libc::IPV6_V6ONLY,
        libc::IPPROTO_IP => option == IP_DONTFRAGMENT,
        _ => false,
    }
}

fn is_time(option: c_int) -> bool {
    matches!(option, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO)
}

/// The mark for a buffer of no bytes, if the option is the size of one.
fn no_buffer(option: c_int) -> Option<u32> {
    match option {
        libc::SO_RCVBUF => Some(NO_RECEIVE_BUFFER),
        libc::SO_SNDBUF => Some(NO_SEND_BUFFER),
        _ => None,
    }
}

type Outcome<T> = Result<T, (c_int, u32)>;

fn set<T: Plain>(fd: RawFd, level: c_int, option: c_int, value: T) -> Outcome<()> {
    system::set_option(fd, level, option, value).map_err(code)
}

/// Linux's error for an unknown option.
fn code(errno: c_int) -> (c_int, u32) {
    match errno {
        libc::EOPNOTSUPP => (errno, WSAENOPROTOOPT),
        _ => (errno, errno_to_wsa(errno)),
    }
}

fn told(result: Outcome<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err((errno, code)) => {
            failed(errno, code);
            SOCKET_ERROR
        }
    }
}

const FAULT: (c_int, u32) = (libc::EFAULT, WSAEFAULT);

/// The program's buffer for the value of an option, of any alignment.
#[derive(Clone, Copy)]
struct Value {
    start: *mut c_void,
    size: usize,
}

impl Value {
    /// # Safety
    /// `start` has `size` bytes to read, or for `getsockopt` to write, until the call ends.
    unsafe fn new(start: *mut c_void, size: usize) -> Outcome<Value> {
        match start.is_null() || size == 0 || size > i32::MAX as usize {
            true => Err(FAULT),
            false => Ok(Value { start, size }),
        }
    }

    /// The value at its start.
    fn read<T: Plain>(self) -> Outcome<T> {
        if self.size < size_of::<T>() {
            return Err(FAULT);
        }
        // SAFETY: it has as many bytes, by the promise of `new`.
        Ok(unsafe { self.start.cast::<T>().read_unaligned() })
    }

    /// A number of one to four bytes.
    fn number(self) -> c_int {
        let mut bytes = [0u8; 4];
        // SAFETY: no more than it has, by the promise of `new`.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(self.start.cast(), self.size.min(4)) };
        c_int::from_ne_bytes(bytes)
    }

    /// Writes to its start; returns the number of bytes.
    fn put(self, bytes: &[u8]) -> Outcome<socklen_t> {
        if self.size < bytes.len() {
            return Err(FAULT);
        }
        // SAFETY: no more than it has room for, by the promise of `new`.
        unsafe { self.start.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(bytes.len() as socklen_t)
    }
}

/// `setsockopt`.
///
/// # Safety
/// `value` is NULL or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    size: socklen_t,
) -> c_int {
    let change = || {
        let room = size as usize;
        if (level, option) == (libc::SOL_SOCKET, SO_OPENTYPE) {
            // Also without a socket.
            // SAFETY: C's caller has `size` bytes there.
            OPEN_TYPE.set(unsafe { Value::new(value.cast_mut(), room) }?.read()?);
            return Ok(());
        }
        // First of all, fails for what is not a socket.
        int_option(fd, libc::SO_TYPE).map_err(code)?;
        if level == libc::SOL_SOCKET && option == SO_UPDATE_CONNECT_CONTEXT {
            // Of a connection that was reset meanwhile, the next receive or send tells.
            return match has_peer(fd) || table::is_marked(fd, table::CONNECTED_ITSELF) {
                true => Ok(()),
                false => Err((libc::ENOTCONN, WSAENOTCONN)),
            };
        }
        // SAFETY: C's caller has `size` bytes there.
        let value = unsafe { Value::new(value.cast_mut(), room) }?;
        if let Some((level, linux)) = counterpart(level, option, room) {
            return set(fd, level, linux, to_linux(option, value.number()));
        }
        if level == libc::SOL_SOCKET {
            match option {
                SO_UPDATE_ACCEPT_CONTEXT => {
                    let listener = value.read::<super::Socket>()?;
                    let accepts =
                        int_option(super::socket::descriptor_or_none(listener), libc::SO_ACCEPTCONN);
                    return match accepts {
                        Ok(1) => Ok(()),
                        Ok(_) => Err((libc::EINVAL, WSAEINVAL)),
                        Err(_) => Err((libc::ENOTSOCK, WSAENOTSOCK)),
                    };
                }
                SO_EXCLUSIVEADDRUSE => {
                    let socket = table::get(fd).map_err(|code| (libc::ENOTSOCK, code))?;
                    let marked = table::is_marked(fd, EXCLUSIVE);
                    let shared = !marked && int_option(fd, libc::SO_REUSEADDR) == Ok(1);
                    if value.number() == 0 {
                        socket.unmark(EXCLUSIVE);
                    } else if shared {
                        return Err((libc::EINVAL, WSAEINVAL));
                    } else {
                        socket.mark(EXCLUSIVE);
                    }
                    return Ok(());
                }
                libc::SO_REUSEADDR if table::is_marked(fd, EXCLUSIVE) && value.number() != 0 => {
                    return Err((libc::EINVAL, WSAEINVAL));
                }
                SO_DONTLINGER => {
                    let linger = libc::linger { l_onoff: (value.number() == 0).into(), l_linger: 0 };
                    return set(fd, level, libc::SO_LINGER, linger);
                }
                libc::SO_LINGER if room < size_of::<libc::linger>() => {
                    let [on, seconds] = value.read::<[u16; 2]>()?;
                    let linger = libc::linger { l_onoff: on.into(), l_linger: seconds.into() };
                    return set(fd, level, option, linger);
                }
                _ if is_time(option) && room < size_of::<libc::timeval>() => {
                    let millis = value.read::<c_int>()? as u32;
                    let time = libc::timeval {
                        tv_sec: (millis / 1000).into(),
                        tv_usec: (millis % 1000 * 1000).into(),
                    };
                    set(fd, level, option, time)?;
                    let socket = table::get(fd).map_err(|code| (libc::ENOTSOCK, code))?;
                    socket.set_time_out(option == libc::SO_SNDTIMEO, millis);
                    return Ok(());
                }
                _ => {}
            }
            if let Some(mark) = no_buffer(option) {
                let socket = table::get(fd).map_err(|code| (libc::ENOTSOCK, code))?;
                if value.read::<c_int>()? == 0 {
                    // On Windows this saves a copy. Linux would take the least that it has, which makes a connection crawl.
                    socket.mark(mark);
                    return Ok(());
                }
                socket.unmark(mark);
            }
        }
        if room < 4 && (is_flag(level, option) || level != libc::SOL_SOCKET) {
            return set(fd, level, option, value.number());
        }
        if room < 4 {
            return Err(FAULT);
        }
        // SAFETY: so many bytes, by the promise of `Value::new`.
        checked(unsafe { libc::setsockopt(fd, level, option, value.start, size) }).map_err(code)
    };
    guard(SOCKET_ERROR, || told(change()))
}

/// The value of an option in four bytes.
fn ask(fd: RawFd, level: c_int, option: c_int, room: usize) -> Outcome<Option<c_int>> {
    if let Some((level, linux)) = counterpart(level, option, room) {
        return Ok(Some(to_windows(option, system::option(fd, level, linux).map_err(code)?)));
    }
    if level != libc::SOL_SOCKET {
        return Ok(None);
    }
    let linger = || system::option::<libc::linger>(fd, level, libc::SO_LINGER).map_err(code);
    let value = match option {
        libc::SO_ERROR => {
            let errno = int_option(fd, option).map_err(code)?;
            table::note_reset(fd, errno);
            let known = table::known(fd);
            if let Some(socket) = &known
                && errno != 0
                && socket.is_marked(table::CONNECTING)
            {
                let _ = socket.connecting_ended(errno);
            }
            // Another call may have taken it from the kernel already.
            let earlier = known.map_or(0, |socket| socket.error.swap(0, Ordering::Relaxed));
            errno_to_wsa(if errno != 0 { errno } else { earlier }) as c_int
        }
        SO_EXCLUSIVEADDRUSE => table::is_marked(fd, EXCLUSIVE).into(),
        SO_DONTLINGER => (linger()?.l_onoff == 0).into(),
        SO_MAX_MSG_SIZE => 65507,
        SO_CONNECT_TIME => match has_peer(fd) {
            true => table::known(fd).and_then(|socket| socket.connected_for()).unwrap_or(0) as c_int,
            false => -1,
        },
        _ => match no_buffer(option) {
            Some(mark) if table::is_marked(fd, mark) => 0,
            // The size that was set: the kernel doubles it.
            Some(_) => int_option(fd, option).map_err(code)? / 2,
            None => return Ok(None),
        },
    };
    Ok(Some(value))
}

/// The bytes of a socket's `WSAPROTOCOL_INFO`.
fn describe(fd: RawFd, wide: bool) -> Outcome<Vec<u8>> {
    let ask = |option| int_option(fd, option).map_err(code);
    let (family, kind, protocol) = (ask(libc::SO_DOMAIN)?, ask(libc::SO_TYPE)?, ask(libc::SO_PROTOCOL)?);
    let none = (libc::ENOPROTOOPT, WSAENOPROTOOPT);
    let info = ProtocolInfo::of_socket(family, kind, protocol).ok_or(none)?;
    // SAFETY: numbers without gaps between them, which live until this returns.
    let bytes =
        unsafe { std::slice::from_raw_parts((&raw const info).cast::<u8>(), size_of::<ProtocolInfo>()) };
    if wide {
        return Ok(bytes.to_vec());
    }
    let name = info.name.iter().map(|&unit| unit as u8);
    Ok(bytes[..std::mem::offset_of!(ProtocolInfo, name)].iter().copied().chain(name).collect())
}

/// `getsockopt`.
///
/// # Safety
/// `value` is NULL or has room for `*size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    size: InOut<'_, socklen_t>,
) -> c_int {
    let ask = || {
        let asks_type = (level, option) == (libc::SOL_SOCKET, SO_OPENTYPE);
        if !asks_type {
            int_option(fd, libc::SO_TYPE).map_err(code)?;
        }
        let room = size.read().ok_or(FAULT)? as usize;
        // SAFETY: C's caller has as much room there as `size` says.
        let value = unsafe { Value::new(value, room) }?;
        if asks_type {
            size.put(value.put(&OPEN_TYPE.get().to_ne_bytes())?);
            return Ok(());
        }
        if room < 4 && !is_flag(level, option) {
            return Err(FAULT);
        }
        let socket_level = level == libc::SOL_SOCKET;
        let told = if socket_level && SO_PROTOCOL_INFO.contains(&option) {
            value.put(&describe(fd, option == SO_PROTOCOL_INFO[1])?)?
        } else if let Some(number) = ask(fd, level, option, room)? {
            value.put(&number.to_ne_bytes()[..if room < 4 { 1 } else { 4 }])?
        } else if room < 4 {
            let number = system::option::<c_int>(fd, level, option).map_err(code)?;
            value.put(&number.to_ne_bytes()[..1])?
        } else if socket_level && is_time(option) && room < size_of::<libc::timeval>() {
            let time = system::option::<libc::timeval>(fd, level, option).map_err(code)?;
            let rounded = (time.tv_sec * 1000 + time.tv_usec / 1000) as u32;
            let millis = match table::known(fd) {
                Some(socket) => socket.time_out(option == libc::SO_SNDTIMEO, rounded),
                None => rounded,
            };
            value.put(&millis.to_ne_bytes())?
        } else if socket_level && option == libc::SO_LINGER && room < size_of::<libc::linger>() {
            let linger = system::option::<libc::linger>(fd, level, option).map_err(code)?;
            let [on, seconds] = [linger.l_onoff, linger.l_linger].map(|value| (value as u16).to_ne_bytes());
            value.put(&[on[0], on[1], seconds[0], seconds[1]])?
        } else {
            // SAFETY: as much room as `size` says, by the promise of `Value::new`.
            let result = unsafe { libc::getsockopt(fd, level, option, value.start, size.as_ptr()) };
            return checked(result).map_err(code);
        };
        size.put(told);
        Ok(())
    };
    guard(SOCKET_ERROR, || told(ask()))
}
