//! `WSAIoctl` and `ioctlsocket`.

use super::address::{read_sockaddr, sockaddr_size, write_sockaddr};
use super::catalogue::Guid;
use super::completion_routine::{self, Call, CompletionRoutine};
use super::routing::{Interface, interfaces, local_address_for, local_addresses};
use super::system::{self, Plain, int_option, poll, set_option};
use super::table::selection::FD_ADDRESS_LIST_CHANGE;
use super::table::{self, Known, OURS_NOT_TO_WAIT};
use super::{SOCKET_ERROR, Socket, outcome, wsa_error};
use crate::arguments::{InOut, Out};
use crate::boundary::guard;
use crate::error::*;
use crate::io::Overlapped;
use crate::io::sys::Deadline;
use libc::{in_addr, sockaddr, sockaddr_in};
use std::ffi::c_void;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::RawFd;
use std::sync::Arc;

/// `SIO_ROUTING_INTERFACE_QUERY`.
pub const SIO_ROUTING_INTERFACE_QUERY: u32 = 0xC800_0014;
/// `SIO_ADDRESS_LIST_QUERY`.
pub const SIO_ADDRESS_LIST_QUERY: u32 = 0x4800_0016;
/// `SIO_GET_EXTENSION_FUNCTION_POINTER`.
pub const SIO_GET_EXTENSION_FUNCTION_POINTER: u32 = 0xC800_0006;
/// `SIO_KEEPALIVE_VALS`.
pub const SIO_KEEPALIVE_VALS: u32 = 0x9800_0004;
/// `SIO_UDP_CONNRESET`.
pub const SIO_UDP_CONNRESET: u32 = 0x9800_000C;
/// `SIO_UDP_NETRESET`.
pub const SIO_UDP_NETRESET: u32 = 0x9800_000F;
/// `SIO_LOOPBACK_FAST_PATH`.
pub const SIO_LOOPBACK_FAST_PATH: u32 = 0x9800_0010;
/// `SIO_GET_INTERFACE_LIST`.
pub const SIO_GET_INTERFACE_LIST: u32 = 0x4004_747F;
/// `SIO_ADDRESS_LIST_CHANGE`.
pub const SIO_ADDRESS_LIST_CHANGE: u32 = 0x2800_0017;
/// `SIO_BASE_HANDLE`.
pub const SIO_BASE_HANDLE: u32 = 0x4800_0022;

// SAFETY: numbers only.
unsafe impl Plain for Guid {}

/// The buffers of `WSAIoctl`: NULL, or the program's memory of these sizes and of any alignment.
struct Buffers {
    input: *const c_void,
    input_size: u32,
    output: *mut c_void,
    output_size: u32,
}

impl Buffers {
    /// The value at the start of the input.
    fn read<T: Plain>(&self) -> Result<T, u32> {
        if self.input.is_null() || (self.input_size as usize) < size_of::<T>() {
            return Err(WSAEFAULT);
        }
        // SAFETY: as many bytes are there.
        Ok(unsafe { self.input.cast::<T>().read_unaligned() })
    }

    /// Fails if the output is shorter than this.
    fn require(&self, size: usize) -> Result<(), u32> {
        if self.output.is_null() || (self.output_size as usize) < size { Err(WSAEFAULT) } else { Ok(()) }
    }

    /// Writes `value` to the start of the output; returns its size.
    fn put<T: Plain>(&self, value: T) -> Result<u32, u32> {
        self.require(size_of::<T>())?;
        // SAFETY: there is room for as many bytes.
        unsafe { self.output.cast::<T>().write_unaligned(value) };
        Ok(size_of::<T>() as u32)
    }
}

/// `SIO_ROUTING_INTERFACE_QUERY`: remote address in, local address out. Returns the bytes used or needed.
fn query_route(buffers: &Buffers, returned: &mut u32) -> Result<(), u32> {
    // SAFETY: the input has its size.
    let remote = unsafe { read_sockaddr(buffers.input.cast(), buffers.input_size as usize) };
    let remote = remote.map_err(|code| {
        // An unsupported family is an invalid argument here.
        if code == WSAEAFNOSUPPORT { WSAEINVAL } else { code }
    })?;
    let local = local_address_for(remote).map_err(|error| wsa_error(&error))?;
    let mut size = buffers.output_size as usize;
    // SAFETY: the output has its size.
    let result = unsafe { write_sockaddr(local, buffers.output.cast(), &mut size) };
    *returned = size as u32;
    result
}

/// `SOCKET_ADDRESS`.
#[repr(C)]
struct SocketAddress {
    address: *mut sockaddr,
    length: i32,
}

/// `SIO_ADDRESS_LIST_QUERY`: a `SOCKET_ADDRESS_LIST` with the addresses behind it in the same buffer.
fn list_addresses(family: i32, buffers: &Buffers, returned: &mut u32) -> Result<(), u32> {
    let size = sockaddr_size(family).ok_or(WSAEOPNOTSUPP)?;
    let mut addresses = local_addresses().map_err(|error| wsa_error(&error))?;
    addresses.retain(|address| address.is_ipv4() == (family == libc::AF_INET));
    // The count is padded to the alignment of the entries.
    let entries = align_of::<SocketAddress>();
    let behind = entries + addresses.len() * size_of::<SocketAddress>();
    let needed = behind + addresses.len() * size;
    *returned = needed as u32;
    buffers.require(needed)?;
    buffers.put(addresses.len() as i32)?;
    let start = buffers.output.cast::<u8>();
    for (i, address) in addresses.into_iter().enumerate() {
        let target = start.wrapping_add(behind + i * size).cast::<sockaddr>();
        // SAFETY: within the output, which has all that is needed.
        unsafe { write_sockaddr(address, target, &mut { size }) }?;
        let entry = start.wrapping_add(entries + i * size_of::<SocketAddress>()).cast::<SocketAddress>();
        // SAFETY: within the output, which has all that is needed.
        unsafe { entry.write_unaligned(SocketAddress { address: target, length: size as i32 }) };
    }
    Ok(())
}

/// `sockaddr_gen`, which has room for an IPv6 address of an earlier form.
#[repr(C)]
struct GenericAddress {
    address: sockaddr_in,
    rest: [u8; 8],
}

impl GenericAddress {
    fn new(ip: Ipv4Addr) -> GenericAddress {
        let sin_addr = in_addr { s_addr: u32::from(ip).to_be() };
        let (sin_family, sin_port, sin_zero) = (libc::AF_INET as _, 0, [0; 8]);
        GenericAddress { address: sockaddr_in { sin_family, sin_port, sin_addr, sin_zero }, rest: [0; 8] }
    }
}

/// `INTERFACE_INFO`.
#[repr(C)]
struct InterfaceInfo {
    flags: u32,
    address: GenericAddress,
    broadcast: GenericAddress,
    mask: GenericAddress,
}

const _: () = assert!(size_of::<InterfaceInfo>() == 76);

impl InterfaceInfo {
    /// `None` for what has no IPv4 address.
    fn of(interface: &Interface) -> Option<InterfaceInfo> {
        const TOLD: libc::c_int = libc::IFF_UP
            | libc::IFF_BROADCAST
            | libc::IFF_LOOPBACK
            | libc::IFF_POINTOPOINT
            | libc::IFF_MULTICAST;
        let (Some(IpAddr::V4(address)), Some(IpAddr::V4(mask))) =
            (interface.address.map(|address| address.ip()), interface.mask.map(|mask| mask.ip()))
        else {
            return None;
        };
        let broadcast = match interface.flags & libc::IFF_BROADCAST as u32 {
            0 => Ipv4Addr::UNSPECIFIED,
            _ => address | !mask,
        };
        let [address, broadcast, mask] = [address, broadcast, mask].map(GenericAddress::new);
        Some(InterfaceInfo { flags: interface.flags & TOLD as u32, address, broadcast, mask })
    }
}

/// `SIO_GET_INTERFACE_LIST`: an `INTERFACE_INFO` for each IPv4 address. What is needed is not told, as on Windows.
fn list_interfaces(buffers: &Buffers, returned: &mut u32) -> Result<(), u32> {
    let interfaces = interfaces().map_err(|error| wsa_error(&error))?;
    let found: Vec<InterfaceInfo> = interfaces.iter().filter_map(InterfaceInfo::of).collect();
    let needed = size_of_val(&found[..]);
    buffers.require(needed)?;
    *returned = needed as u32;
    for (i, info) in found.into_iter().enumerate() {
        // SAFETY: within the output, which has all that is needed.
        unsafe { buffers.output.cast::<InterfaceInfo>().wrapping_add(i).write_unaligned(info) };
    }
    Ok(())
}

/// Executes a control code, except those that wait.
fn control(socket: &Known, code: u32, buffers: &Buffers, count: &mut u32) -> Result<(), u32> {
    match code {
        SIO_ROUTING_INTERFACE_QUERY => query_route(buffers, count),
        SIO_ADDRESS_LIST_QUERY => list_addresses(socket.family, buffers, count),
        SIO_GET_INTERFACE_LIST if socket.family == libc::AF_INET => list_interfaces(buffers, count),
        SIO_GET_EXTENSION_FUNCTION_POINTER => {
            let id = buffers.read::<Guid>()?;
            buffers.require(size_of::<usize>())?;
            *count = buffers.put(super::extension::function(id).ok_or(WSAEINVAL)?)?;
            Ok(())
        }
        // There are no layers below this one: the socket itself.
        SIO_BASE_HANDLE => {
            *count = buffers.put(socket.fd as Socket)?;
            Ok(())
        }
        // The behaviour that they disable does not occur here: an unconnected socket does not get errors of undelivered datagrams.
        SIO_UDP_CONNRESET | SIO_UDP_NETRESET => Ok(()),
        // There is no slower path.
        SIO_LOOPBACK_FAST_PATH => buffers.read::<u32>().map(drop),
        SIO_KEEPALIVE_VALS => keep_alive(socket.fd, buffers.read()?),
        _ if FIONBIO.contains(&code) => plain(socket, code, &mut buffers.read()?),
        _ if is_plain(code) => {
            let mut value = 0;
            buffers.require(size_of_val(&value))?;
            plain(socket, code, &mut value)?;
            *count = buffers.put(value)?;
            Ok(())
        }
        _ => Err(WSAEOPNOTSUPP),
    }
}

/// `struct tcp_keepalive`: on or off; milliseconds until the first probe; and between probes.
fn keep_alive(fd: RawFd, [on, time, interval]: [u32; 3]) -> Result<(), u32> {
    let seconds = |millis: u32| millis.div_ceil(1000).clamp(1, 32767) as i32;
    let mut options = vec![(libc::SOL_SOCKET, libc::SO_KEEPALIVE, i32::from(on != 0))];
    if on != 0 {
        options.push((libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds(time)));
        options.push((libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds(interval)));
    }
    for (level, option, value) in options {
        set_option(fd, level, option, value).map_err(errno_to_wsa)?;
    }
    Ok(())
}

/// The three commands of `ioctlsocket`, by Linux's numbers and by Windows'.
const FIONBIO: [u32; 2] = [libc::FIONBIO as u32, 0x8004_667E];
const FIONREAD: [u32; 2] = [libc::FIONREAD as u32, 0x4004_667F];
const SIOCATMARK: [u32; 2] = [0x8905, 0x4004_7307];

fn is_plain(code: u32) -> bool {
    FIONBIO.contains(&code) || FIONREAD.contains(&code) || SIOCATMARK.contains(&code)
}

/// The argument of a command.
fn plain(socket: &Known, code: u32, value: &mut u32) -> Result<(), u32> {
    let fd = socket.fd;
    if FIONBIO.contains(&code) {
        if *value == 0 && super::table::selection::is_selected(socket) {
            return Err(WSAEINVAL);
        }
        if *value != 0 {
            socket.unmark(OURS_NOT_TO_WAIT);
            return system::set_blocking(fd, false).map_err(errno_to_wsa);
        }
        if socket.is_marked(OURS_NOT_TO_WAIT) {
            return Ok(());
        }
        if int_option(fd, libc::SO_ACCEPTCONN) == Ok(1) && socket.existing_driver().is_some() {
            // Requests may be waiting for connections.
            socket.mark(OURS_NOT_TO_WAIT);
            return Ok(());
        }
        return system::set_blocking(fd, true).map_err(errno_to_wsa);
    }
    if FIONREAD.contains(&code) {
        *value = super::table::selection::bytes_waiting(fd) as u32;
        return Ok(());
    }
    let at_mark = system::int_ioctl(fd, SIOCATMARK[0]).map_err(errno_to_wsa)?;
    // On Linux true if the next byte is the urgent one, on Windows if no urgent data precede it.
    *value = u32::from(at_mark != 0 || poll(fd, libc::POLLPRI, Deadline::Now) == Ok(0));
    Ok(())
}

fn ioctlsocket<T: Copy + From<u32> + Into<u64>>(socket: Socket, code: i64, value: InOut<'_, T>) -> i32 {
    let control = || {
        let socket = table::get(table::descriptor(socket)?)?;
        let code = code as u32;
        if !is_plain(code) {
            return Err(WSAEOPNOTSUPP);
        }
        let mut number = u32::from(value.read().ok_or(WSAEFAULT)?.into() != 0);
        plain(&socket, code, &mut number)?;
        if !FIONBIO.contains(&code) {
            value.put(T::from(number));
        }
        Ok(())
    };
    guard(SOCKET_ERROR, || outcome(control()))
}

/// `ioctlsocket` for an `unsigned long`, which `u_long` is here: 64 bits.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ioctlsocket(socket: Socket, code: i64, value: InOut<'_, u64>) -> i32 {
    ioctlsocket(socket, code, value)
}

/// `ioctlsocket` for a `ULONG` or `DWORD`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ioctlsocket32(socket: Socket, code: i64, value: InOut<'_, u32>) -> i32 {
    ioctlsocket(socket, code, value)
}

/// `WSAIoctl`. With an `OVERLAPPED`, an operation that can be done at once is done, and completes like any overlapped request:
/// a routine is called in an alertable wait. Success leaves a last error of 0.
///
/// # Safety
/// `input` and `output` are NULL or have the sizes told; `output` and `overlapped` stay until the request has completed, when
/// `routine` may be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAIoctl(
    socket: Socket,
    code: u32,
    input: *const c_void,
    input_size: u32,
    output: *mut c_void,
    output_size: u32,
    returned: Out<'_, u32>,
    overlapped: *mut Overlapped,
    routine: Option<CompletionRoutine>,
) -> i32 {
    let ioctl = || {
        returned.put(0);
        let socket = table::get(table::descriptor(socket)?)?;
        if returned.is_null() && overlapped.is_null() {
            return Err(WSAEFAULT);
        }
        let call = if overlapped.is_null() { None } else { routine.map(Call::of) };
        if call.is_some() && socket.file()?.is_bound() {
            return Err(WSAEINVAL);
        }
        let buffers = Buffers { input, input_size, output, output_size };
        let mut count = 0;
        if code == SIO_ADDRESS_LIST_CHANGE {
            let (file, changes) = (socket.file()?, socket.addresses()?);
            if overlapped.is_null() {
                if !socket.is_marked(OURS_NOT_TO_WAIT) && !system::is_blocking(socket.fd) {
                    let driver = Arc::downgrade(socket.driver()?);
                    changes.tell_once(Box::new(move || {
                        if let Some(driver) = driver.upgrade() {
                            driver.selected.occurred(FD_ADDRESS_LIST_CHANGE);
                        }
                    }));
                    return Err(WSAEWOULDBLOCK);
                }
                return super::changes::wait(file, changes);
            }
            // SAFETY: C's caller keeps the OVERLAPPED until the request has completed.
            unsafe { changes.begin(file, overlapped, call) }?;
            return Err(WSA_IO_PENDING);
        }
        let result = control(&socket, code, &buffers, &mut count);
        returned.put(count);
        if result.is_ok() && !overlapped.is_null() {
            let file = socket.file()?;
            // SAFETY: C's caller has given an OVERLAPPED that no request has.
            unsafe { completion_routine::finish_at_once(file, overlapped, count as usize, call) };
        }
        result
    };
    guard(SOCKET_ERROR, || {
        let result = ioctl();
        if result.is_ok() {
            set_last_error(ERROR_SUCCESS);
        }
        outcome(result)
    })
}

#[cfg(test)]
pub(super) mod tests;
