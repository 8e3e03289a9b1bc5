use super::*;
use crate::arguments::{InOut, Out};
use crate::winsock::Socket;
use crate::winsock::extension::{TF_REUSE_SOCKET, ndw_AcceptEx, ndw_ConnectEx, ndw_DisconnectEx};
use crate::winsock::socket::{ndw_closesocket, ndw_socket};
use crate::winsock::system::{has_peer, is_blocking};
use crate::winsock::transfer::ndw_WSAGetOverlappedResult;
use crate::winsock::transfer::receiving::ndw_WSARecv;
use crate::winsock::wire::WsaBuf;
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
    let accepted = ndw_WSAGetOverlappedResult(socket, request, bytes_to, 1, flags_to);
    assert_eq!(accepted, 1, "{}", last_error());
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

/// Waits for a request.
fn ended(socket: Socket, request: *const Overlapped) -> (i32, u32) {
    let (mut bytes, mut flags) = (0, 0);
    // SAFETY: the OVERLAPPED of a test's request.
    let request = unsafe { request.as_ref() };
    let (bytes_to, flags_to) = (Out::from(&mut bytes), Out::from(&mut flags));
    (ndw_WSAGetOverlappedResult(socket, request, bytes_to, 1, flags_to), bytes)
}

#[test]
fn a_socket_has_nothing_of_one_with_its_descriptor_that_was_closed_natively() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = crate::winsock::system::local_address(listener.as_raw_fd()).unwrap();
    let (mut unused, mut room, mut former, mut overlapped) =
        ([0; 8], [0; 8], Overlapped::default(), Overlapped::default());
    let receives = |socket: Socket, request: *mut Overlapped, room: &mut [u8; 8]| {
        let mut flags = 0;
        // SAFETY: an address of IPv4.
        let connected = unsafe { libc::connect(socket as RawFd, (&raw const address).cast(), 16) };
        assert_eq!(connected, 0);
        let (buffer, flags) = (WsaBuf { length: 8, data: room.as_mut_ptr() }, InOut::from(&mut flags));
        // SAFETY: the room and the OVERLAPPED stay until the request has completed.
        let begun = unsafe { ndw_WSARecv(socket, &buffer, 1, Out::NULL, flags, request, None) };
        assert_eq!((begun, last_error()), (-1, WSA_IO_PENDING));
        listener.accept().unwrap().0
    };
    let socket = new_socket();
    let _peer = receives(socket, &raw mut former, &mut unused);
    // One step for the close and the next socket, as other tests take free descriptors; then what making a socket does.
    let other = crate::winsock::system::socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap();
    // SAFETY: this test's own descriptors.
    assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), socket as RawFd) }, socket as RawFd);
    drop(other);
    super::super::forget_former(socket as RawFd);
    let mut peer = receives(socket, &raw mut overlapped, &mut room);
    assert_eq!(former.internal.load(Ordering::Acquire) as i32, STATUS_CANCELLED);
    peer.write_all(b"data").unwrap();
    assert_eq!((ended(socket, &raw const overlapped), &room[..4]), ((1, 4), &b"data"[..]));
    // SAFETY: this test's own socket.
    assert_eq!(unsafe { ndw_closesocket(socket) }, 0);
}

struct Another;

impl Source for Another {
    fn ready(&self) {}
}

#[test]
fn what_cannot_be_watched_has_not_begun_or_has_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = new_socket();
    let fd = socket as RawFd;
    let place = |port: u16| {
        let sin_addr = libc::in_addr { s_addr: u32::from(std::net::Ipv4Addr::LOCALHOST).to_be() };
        let (sin_family, sin_port, sin_zero) = (libc::AF_INET as _, port.to_be(), [0; 8]);
        libc::sockaddr_in { sin_family, sin_port, sin_addr, sin_zero }
    };
    let (near, far) = (place(0), place(listener.local_addr().unwrap().port()));
    // SAFETY: an address of that size.
    assert_eq!(unsafe { libc::bind(fd, (&raw const near).cast(), size_of_val(&near) as u32) }, 0);
    let known = super::super::get(fd).unwrap();
    let driver = known.driver().unwrap();
    // A descriptor is watched for one.
    let hold = || driver.file.add_source(fd, Arc::new(Another)).unwrap();
    let held = hold();

    let mut overlapped = Overlapped::default();
    let request = &raw mut overlapped;
    // SAFETY: the address has this size; the OVERLAPPED stays until the request has completed.
    let connect = || unsafe {
        ndw_ConnectEx(socket, (&raw const far).cast(), 16, std::ptr::null(), 0, Out::NULL, request)
    };
    assert_eq!((connect(), last_error() != WSA_IO_PENDING), (0, true));
    assert!(!has_peer(fd) && is_blocking(fd));
    drop(held);
    assert_eq!((connect(), last_error()), (0, WSA_IO_PENDING));
    assert_eq!(ended(socket, request), (1, 0));
    assert!(has_peer(fd) && is_blocking(fd));

    // A part of a send leaves.
    drop(driver.registration.lock().take());
    let held = hold();
    let much = vec![b'x'; 64 << 20];
    // SAFETY: the bytes stay until the request has completed.
    let piece = unsafe { crate::winsock::wire::Piece::new(much.as_ptr(), much.len()) };
    let pieces = [piece].into_iter().collect();
    let send = Send {
        pieces,
        flags: 0,
        to: smallvec::SmallVec::new(),
        control: Box::default(),
        stream: true,
        sent: 0,
    };
    // SAFETY: the OVERLAPPED and the bytes stay until the request has completed.
    let sent = unsafe { driver.start(Direction::Out, request, Operation::Send(send), None) };
    assert_eq!(sent, Err(WSA_IO_PENDING));
    let (succeeded, bytes) = ended(socket, request);
    assert_eq!((succeeded, last_error(), bytes > 0), (0, WSAENOBUFS, true));

    // The end of a connection needs no watch.
    // SAFETY: the OVERLAPPED stays until the request has completed.
    assert_eq!(unsafe { ndw_DisconnectEx(socket, request, 0, 0) }, 0);
    assert_eq!((last_error(), ended(socket, request)), (WSA_IO_PENDING, (1, 0)));
    drop(held);
    // SAFETY: this test's own socket.
    assert_eq!(unsafe { ndw_closesocket(socket) }, 0);
}
