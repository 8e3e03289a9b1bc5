use super::*;
use crate::arguments::Out;
use crate::winsock::Socket;
use crate::winsock::extension::{TF_REUSE_SOCKET, ndw_AcceptEx, ndw_DisconnectEx};
use crate::winsock::socket::{ndw_closesocket, ndw_socket};
use crate::winsock::transfer::ndw_WSAGetOverlappedResult;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

/// Accepts a connection with its first data.
fn accept(listener: &TcpListener, into: Socket) {
    const ADDRESS: u32 = 32;
    let socket = listener.as_raw_fd() as Socket;
    let mut buffer = [0; 4 + 2 * ADDRESS as usize];
    let (mut overlapped, room) = (Overlapped::default(), buffer.as_mut_ptr());
    let request = &raw mut overlapped;
    // SAFETY: the buffer has this room; it and the OVERLAPPED stay until the request has completed.
    let begun = unsafe { ndw_AcceptEx(socket, into, room, 4, ADDRESS, ADDRESS, Out::NULL, request) };
    assert_eq!((begun, last_error()), (0, WSA_IO_PENDING));
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.write_all(b"data").unwrap();
    let (mut bytes, mut flags) = (0, 0);
    // SAFETY: the OVERLAPPED that was given.
    let request = unsafe { request.as_ref() };
    let (bytes_to, flags_to) = (Out::from(&mut bytes), Out::from(&mut flags));
    assert_eq!(ndw_WSAGetOverlappedResult(socket, request, bytes_to, 1, flags_to), 1);
    assert_eq!((bytes, &buffer[..4]), (4, &b"data"[..]));
}

fn new_socket() -> Socket {
    crate::winsock::startup::start();
    ndw_socket(libc::AF_INET, libc::SOCK_STREAM, 0) as Socket
}

/// For how many connections a new listener has memory after `accepts`.
fn memory_after(accepts: impl Fn(&TcpListener)) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (0..100).for_each(|_| accepts(&listener));
    let socket = super::super::forget(listener.as_raw_fd()).unwrap();
    let memory = socket.driver().unwrap().accepted.lock().capacity();
    socket.leave();
    memory
}

#[test]
fn a_listener_forgets_the_connections_that_have_their_first_data() {
    let closing = memory_after(|listener| {
        let into = new_socket();
        accept(listener, into);
        // SAFETY: this test's own socket.
        assert_eq!(unsafe { ndw_closesocket(into) }, 0);
    });
    let into = new_socket();
    let using_again = memory_after(|listener| {
        accept(listener, into);
        // SAFETY: there is no OVERLAPPED.
        assert_eq!(unsafe { ndw_DisconnectEx(into, null_mut(), TF_REUSE_SOCKET, 0) }, 1);
    });
    // SAFETY: this test's own socket.
    assert_eq!(unsafe { ndw_closesocket(into) }, 0);
    assert!(closing <= 16 && using_again <= 16, "{closing}, {using_again}");
}
