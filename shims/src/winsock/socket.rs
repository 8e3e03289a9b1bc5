//! Sockets, as far as they serve to ask about addresses.

use super::address::{read_sockaddr, sockaddr_size, write_sockaddr};
use super::outcome;
use super::routing::{local_address_for, local_addresses};
use crate::error::*;
use libc::sockaddr;
use std::ffi::{c_int, c_void};
use std::io;

/// `SOCKET`: a file descriptor, or all ones.
pub type Socket = usize;

/// `INVALID_SOCKET`.
pub const INVALID_SOCKET: Socket = Socket::MAX;
/// `SIO_ROUTING_INTERFACE_QUERY`.
pub const SIO_ROUTING_INTERFACE_QUERY: u32 = 0xC800_0014;
/// `SIO_ADDRESS_LIST_QUERY`.
pub const SIO_ADDRESS_LIST_QUERY: u32 = 0x4800_0016;

/// The Winsock error of the last system call.
fn last_socket_error() -> u32 {
    wsa_error(&io::Error::last_os_error())
}

fn wsa_error(error: &io::Error) -> u32 {
    error.raw_os_error().map_or(WSAENETDOWN, errno_to_wsa)
}

/// The descriptor of a socket and its address family.
fn descriptor(socket: Socket) -> Result<(c_int, i32), u32> {
    let fd = c_int::try_from(socket).map_err(|_| WSAENOTSOCK)?;
    let mut family: c_int = 0;
    let mut size = size_of::<c_int>() as libc::socklen_t;
    let target = (&raw mut family).cast();
    // SAFETY: the option is an int, and there is room for one.
    match unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, target, &mut size) } {
        0 => Ok((fd, family)),
        _ => Err(last_socket_error()),
    }
}

/// The buffers of `WSAIoctl`.
struct Buffers {
    input: *const c_void,
    input_size: u32,
    output: *mut c_void,
    output_size: u32,
}

/// `SIO_ROUTING_INTERFACE_QUERY`: remote address in, local address out. Returns the bytes used or needed.
///
/// # Safety
/// The buffers have the sizes they tell.
unsafe fn query_route(buffers: &Buffers, returned: &mut u32) -> Result<(), u32> {
    // SAFETY: as promised.
    let remote =
        unsafe { read_sockaddr(buffers.input.cast(), buffers.input_size as usize) }.map_err(|code| {
            // A family that cannot be routed is an invalid argument here.
            if code == WSAEAFNOSUPPORT { WSAEINVAL } else { code }
        })?;
    let local = local_address_for(remote).map_err(|error| wsa_error(&error))?;
    let mut size = buffers.output_size as usize;
    // SAFETY: as promised.
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
///
/// # Safety
/// The output buffer has the size it tells.
unsafe fn list_addresses(family: i32, buffers: &Buffers, returned: &mut u32) -> Result<(), u32> {
    let size = sockaddr_size(family).ok_or(WSAEOPNOTSUPP)?;
    let mut addresses = local_addresses().map_err(|error| wsa_error(&error))?;
    addresses.retain(|address| address.is_ipv4() == (family == libc::AF_INET));
    // The count is padded to the alignment of the entries.
    let entries = align_of::<SocketAddress>();
    let behind = entries + addresses.len() * size_of::<SocketAddress>();
    let needed = behind + addresses.len() * size;
    *returned = needed as u32;
    if buffers.output.is_null() || (buffers.output_size as usize) < needed {
        return Err(WSAEFAULT);
    }
    let start = buffers.output.cast::<u8>();
    // SAFETY: everything lies within the size that was checked; the caller's buffer may have any alignment.
    unsafe {
        start.cast::<i32>().write_unaligned(addresses.len() as i32);
        for (i, address) in addresses.into_iter().enumerate() {
            let target = start.add(behind + i * size).cast::<sockaddr>();
            write_sockaddr(address, target, &mut { size })?;
            let entry = start.add(entries + i * size_of::<SocketAddress>()).cast::<SocketAddress>();
            entry.write_unaligned(SocketAddress { address: target, length: size as i32 });
        }
    }
    Ok(())
}

/// `WSASocketW`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSASocketW(
    family: i32,
    kind: i32,
    protocol: i32,
    _info: *const c_void,
    _group: u32,
    _flags: u32,
) -> Socket {
    // SAFETY: a plain system call.
    match unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) } {
        fd if fd >= 0 => fd as Socket,
        _ => {
            set_last_error(last_socket_error());
            INVALID_SOCKET
        }
    }
}

/// `closesocket`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_closesocket(socket: Socket) -> i32 {
    outcome(descriptor(socket).map(|(fd, _)| {
        // SAFETY: a socket, and the caller's to close. Linux closes it whatever `close` returns.
        unsafe { libc::close(fd) };
    }))
}

/// `WSAIoctl`: address queries only, and none of them overlapped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAIoctl(
    socket: Socket,
    code: u32,
    input: *const c_void,
    input_size: u32,
    output: *mut c_void,
    output_size: u32,
    returned: *mut u32,
    overlapped: *mut c_void,
    _routine: *const c_void,
) -> i32 {
    let buffers = Buffers { input, input_size, output, output_size };
    let mut count = 0;
    let result = descriptor(socket).and_then(|(_, family)| match code {
        _ if !overlapped.is_null() => Err(WSAEOPNOTSUPP),
        _ if returned.is_null() => Err(WSAEFAULT),
        // SAFETY: the function's contract.
        SIO_ROUTING_INTERFACE_QUERY => unsafe { query_route(&buffers, &mut count) },
        // SAFETY: the function's contract.
        SIO_ADDRESS_LIST_QUERY => unsafe { list_addresses(family, &buffers, &mut count) },
        _ => Err(WSAEOPNOTSUPP),
    });
    if !returned.is_null() {
        // SAFETY: writable by the function's contract.
        unsafe { returned.write(count) };
    }
    outcome(result)
}

#[cfg(test)]
mod tests {
    use super::super::address::parse;
    use super::*;
    use std::ptr::{null, null_mut};

    fn ioctl(socket: Socket, code: u32, input: &[u8], output: &mut [u8]) -> (i32, u32) {
        let mut returned = 77;
        // SAFETY: slices with their sizes.
        let result = unsafe {
            ndw_WSAIoctl(
                socket,
                code,
                input.as_ptr().cast(),
                input.len() as u32,
                output.as_mut_ptr().cast(),
                output.len() as u32,
                &mut returned,
                null_mut(),
                null(),
            )
        };
        (result, returned)
    }

    fn bytes_of(text: &str) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        // SAFETY: room for an IPv4 address.
        unsafe {
            write_sockaddr(parse(text, libc::AF_INET).unwrap(), bytes.as_mut_ptr().cast(), &mut 16).unwrap();
        }
        bytes
    }

    #[test]
    fn the_route_to_a_local_address() {
        let socket = ndw_WSASocketW(libc::AF_INET, libc::SOCK_STREAM, 0, null(), 0, 1);
        assert_ne!(socket, INVALID_SOCKET);
        let mut output = [0; 16];
        let input = bytes_of("127.0.0.1:54321");
        assert_eq!(ioctl(socket, SIO_ROUTING_INTERFACE_QUERY, &input, &mut output), (0, 16));
        assert_eq!(output[..], bytes_of("127.0.0.1")[..]);

        assert_eq!(ioctl(socket, SIO_ROUTING_INTERFACE_QUERY, &input, &mut output[..15]), (-1, 16));
        assert_eq!(last_error(), WSAEFAULT);
        assert_eq!(ioctl(socket, SIO_ROUTING_INTERFACE_QUERY, &bytes_of("0.0.0.0"), &mut output), (-1, 0));
        assert_eq!(last_error(), WSAEINVAL);
        assert_eq!(ioctl(socket, 0x1234, &input, &mut output), (-1, 0));
        assert_eq!(last_error(), WSAEOPNOTSUPP);

        assert_eq!(ndw_closesocket(socket), 0);
        assert_eq!(ioctl(usize::MAX, SIO_ROUTING_INTERFACE_QUERY, &input, &mut output), (-1, 0));
        assert_eq!(last_error(), WSAENOTSOCK);
        assert_eq!(ndw_closesocket(INVALID_SOCKET), -1);
    }

    #[test]
    fn the_list_of_addresses_points_into_its_buffer() {
        let socket = ndw_WSASocketW(libc::AF_INET, libc::SOCK_DGRAM, 0, null(), 0, 0);
        let (result, needed) = ioctl(socket, SIO_ADDRESS_LIST_QUERY, &[], &mut []);
        assert_eq!((result, last_error()), (-1, WSAEFAULT));
        let mut list = vec![0u8; needed as usize];
        assert_eq!(ioctl(socket, SIO_ADDRESS_LIST_QUERY, &[], &mut list), (0, needed));
        let count = i32::from_ne_bytes(list[..4].try_into().unwrap()) as usize;
        assert_eq!(needed as usize, 8 + count * (16 + 16));
        let first = usize::from_ne_bytes(list[8..16].try_into().unwrap());
        assert_eq!(first, list.as_ptr() as usize + 8 + count * 16);
        let loopback = bytes_of("127.0.0.1");
        assert!(list[8 + count * 16..].chunks(16).any(|address| address == loopback));
        assert_eq!(ndw_closesocket(socket), 0);
    }

    #[test]
    fn only_sockets_are_closed() {
        // SAFETY: a plain system call.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        assert_eq!(ndw_closesocket(fd as Socket), -1);
        assert_eq!(last_error(), WSAENOTSOCK);
        // SAFETY: still ours.
        assert_eq!(unsafe { libc::close(fd) }, 0);
    }
}
