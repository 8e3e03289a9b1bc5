//! Threads that wait on a socket which another thread closes.

use super::*;
use crate::arguments::{In, InOut, Out};
use crate::error::*;
use crate::io::sys::{Deadline, is_asleep, thread_id};
use crate::winsock::readiness::{FdSet, PollEntry, ndw_WSAPoll, ndw_select};
use crate::winsock::socket::{ndw_accept, ndw_closesocket, ndw_connect};
use crate::winsock::table;
use crate::winsock::transfer::receiving::{ndw_WSARecv, ndw_recv, ndw_recvfrom};
use crate::winsock::transfer::sending::ndw_send;
use crate::winsock::transmit_file::ndw_TransmitFile;
use crate::winsock::wire::WsaBuf;
use crate::winsock::{Socket, system};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread;

const LOCAL: &str = "127.0.0.1:0";

/// What `call` returns, and its last error, if a thread that makes it finds its socket closed.
pub(in crate::winsock) fn closed_under<R: Send + std::fmt::Debug>(
    fd: RawFd,
    call: impl FnOnce() -> R + Send,
) -> (R, u32) {
    closed_when(fd, || count(fd).unwrap().has_calls(), call)
}

/// The same of a call that is under way on `begun`.
fn closed_when<R: Send + std::fmt::Debug>(
    fd: RawFd,
    begun: impl Fn() -> bool,
    call: impl FnOnce() -> R + Send,
) -> (R, u32) {
    crate::winsock::startup::start();
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let caller = scope.spawn(move || {
            tell.send(thread_id()).unwrap();
            (call(), last_error())
        });
        let number = told.recv().unwrap();
        while !(begun() && is_asleep(number)) {
            assert!(!caller.is_finished(), "{:?} instead of waiting", caller.join().unwrap());
            thread::yield_now();
        }
        // SAFETY: the test's own socket.
        assert_eq!(unsafe { ndw_closesocket(fd as Socket) }, 0);
        caller.join().unwrap()
    })
}

/// Two connected sockets.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Without room to send, also when all is acknowledged.
fn full() -> (RawFd, TcpStream) {
    let (mut near, far) = pair();
    near.set_nonblocking(true).unwrap();
    let mut write = || near.write(&[0; 1 << 16]).is_ok() || near.write(&[0]).is_ok();
    while write() {
        while write() {}
        thread::sleep(Duration::from_millis(200));
    }
    near.set_nonblocking(false).unwrap();
    (near.into_raw_fd(), far)
}

#[test]
fn closing_a_listener_ends_accept_and_frees_its_port() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let address = listener.local_addr().unwrap();
    let fd = listener.into_raw_fd();
    // SAFETY: no address is asked for.
    assert_eq!(closed_under(fd, || unsafe { ndw_accept(fd, null_mut(), InOut::NULL) }), (-1, WSAEINTR));
    TcpListener::bind(address).unwrap();
}

#[test]
fn closing_a_connection_ends_a_receive() {
    let mut byte = 0u8;
    for ways in 0..2 {
        let (near, mut far) = pair();
        let fd = near.into_raw_fd();
        let room = &mut byte;
        let receive = move || match ways {
            // SAFETY: room for a byte.
            0 => unsafe { ndw_recv(fd, (&raw mut *room).cast(), 1, 0) as i32 },
            _ => {
                let (buffer, mut count, mut flags) = (WsaBuf { length: 1, data: room }, 0, 0);
                let (count, flags) = (Out::from(&mut count), InOut::from(&mut flags));
                // SAFETY: one buffer, with room for a byte; there is no OVERLAPPED.
                unsafe { ndw_WSARecv(fd as Socket, &buffer, 1, count, flags, null_mut(), None) }
            }
        };
        assert_eq!(closed_under(fd, receive), (-1, WSAEINTR));
        assert_eq!(far.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn closing_a_datagram_socket_ends_a_receive() {
    let fd = UdpSocket::bind(LOCAL).unwrap().into_raw_fd();
    let mut byte = 0u8;
    let receive = || {
        // SAFETY: room for a byte; no address is asked for.
        unsafe { ndw_recvfrom(fd, (&raw mut byte).cast(), 1, 0, null_mut(), InOut::NULL) }
    };
    assert_eq!(closed_under(fd, receive), (-1, WSAEINTR));
}

#[test]
fn closing_a_connection_ends_a_send() {
    let (fd, _far) = full();
    // SAFETY: a byte to send.
    let send = || unsafe { ndw_send(fd, b"x".as_ptr().cast(), 1, 0) };
    assert_eq!(closed_under(fd, send), (-1, WSAEINTR));
    let (fd, _far) = full();
    let transmit = || {
        use crate::winsock::transmit_file::Buffers;
        let around = Buffers { head: b"x".as_ptr(), head_length: 1, tail: null_mut(), tail_length: 0 };
        let (around, none) = (In::from(&around), crate::object::RawHandle::NULL);
        // SAFETY: a byte to send; there is no OVERLAPPED.
        unsafe { ndw_TransmitFile(fd as Socket, none, 0, 0, null_mut(), around, 0) }
    };
    // It waits for a request.
    let driver = table::get(fd).unwrap().driver().unwrap().clone();
    assert_eq!(closed_when(fd, || driver.sends(), transmit), (0, WSAEINTR));
}

/// A listener that takes no more connections.
pub(in crate::winsock) fn deaf() -> (TcpListener, Vec<OwnedFd>) {
    let listener = TcpListener::bind(LOCAL).unwrap();
    // SAFETY: takes no pointer.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let mut connections = Vec::new();
    loop {
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
        let socket = system::socket(libc::AF_INET, kind, 0).unwrap();
        connect(socket.as_raw_fd(), &listener);
        let ready = system::poll(socket.as_raw_fd(), libc::POLLOUT, Deadline::after(Duration::from_secs(1)));
        connections.push(socket);
        if ready.unwrap() == 0 {
            return (listener, connections);
        }
    }
}

fn connect(fd: RawFd, to: &TcpListener) -> i32 {
    let address = system::local_address(to.as_raw_fd()).unwrap();
    // SAFETY: an address of IPv4.
    unsafe { ndw_connect(fd, (&raw const address).cast(), size_of::<libc::sockaddr_in>() as u32) }
}

#[test]
fn closing_a_socket_ends_its_connect() {
    let (listener, _connections) = deaf();
    let fd = system::socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap().into_raw_fd();
    assert_eq!(closed_under(fd, || connect(fd, &listener)), (-1, WSAEINTR));
}

#[test]
fn a_connect_waits_longer_than_a_send_may() {
    crate::winsock::startup::start();
    let (listener, connections) = deaf();
    let socket = TcpStream::from(system::socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap());
    socket.set_write_timeout(Some(Duration::from_millis(10))).unwrap();
    thread::scope(|scope| {
        let asks = scope.spawn(|| (connect(socket.as_raw_fd(), &listener), last_error()));
        while socket.local_addr().unwrap().port() == 0 {
            thread::yield_now();
        }
        // It has been turned away. The kernel asks again after a second, and then there is room.
        drop(connections);
        while listener.accept().unwrap().1 != socket.local_addr().unwrap() {}
        assert_eq!(asks.join().unwrap().0, 0);
    });
}

#[test]
fn an_accept_waits_longer_than_a_receive_may() {
    crate::winsock::startup::start();
    let listener = TcpListener::bind(LOCAL).unwrap();
    let time = libc::timeval { tv_sec: 0, tv_usec: 10_000 };
    system::set_option(listener.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, time).unwrap();
    let fd = listener.as_raw_fd();
    // SAFETY: no address is asked for.
    let accept = || unsafe { (ndw_accept(fd, null_mut(), InOut::NULL), last_error()) };
    thread::scope(|scope| {
        let accepts = scope.spawn(accept);
        // Ten times that long. Nothing shows that a call goes on in spite of it.
        thread::sleep(Duration::from_millis(100));
        let _near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (connection, error) = accepts.join().unwrap();
        assert!(connection >= 0, "{error}");
        // SAFETY: the connection just made.
        drop(unsafe { OwnedFd::from_raw_fd(connection) });
    });
}

fn set(members: &[RawFd]) -> FdSet {
    let mut sockets = [0; 64];
    sockets.iter_mut().zip(members).for_each(|(socket, fd)| *socket = *fd as Socket);
    FdSet { count: members.len() as u32, sockets }
}

/// What `select` returns if `closed` is closed meanwhile, the first socket that it finds readable, and the last error.
fn selected(read: &[RawFd], write: &[RawFd], closed: RawFd) -> (i32, Option<Socket>, u32) {
    let select = || {
        let (mut read, mut write) = (set(read), set(write));
        // SAFETY: sets as large as they say.
        let count = unsafe { ndw_select(0, &mut read, &mut write, null_mut(), In::NULL) };
        (count, (read.count > 0).then(|| read.sockets[0]))
    };
    let ((count, readable), error) = closed_under(closed, select);
    (count, readable, error)
}

#[test]
fn a_socket_that_is_closed_is_readable_for_who_selects_it() {
    for fd in [
        pair().0.into_raw_fd(),
        TcpListener::bind(LOCAL).unwrap().into_raw_fd(),
        UdpSocket::bind(LOCAL).unwrap().into_raw_fd(),
        // It never had a connection.
        system::socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap().into_raw_fd(),
    ] {
        let (other, _far) = pair();
        let (count, readable, _) = selected(&[other.as_raw_fd(), fd], &[], fd);
        assert_eq!((count, readable), (1, Some(fd as Socket)));
    }
    let ((fd, _far), (other, _other_far)) = (full(), pair());
    let (count, _, error) = selected(&[other.as_raw_fd()], &[fd], fd);
    assert_eq!((count, error), (-1, WSAENOTSOCK));
}

#[test]
fn a_socket_that_is_closed_is_none_for_who_polls_it() {
    let (other, _far) = pair();
    for closed in [
        pair().0.into_raw_fd(),
        TcpListener::bind(LOCAL).unwrap().into_raw_fd(),
        UdpSocket::bind(LOCAL).unwrap().into_raw_fd(),
    ] {
        let entry = |fd| PollEntry { socket: fd as Socket, events: libc::POLLIN, found: 0 };
        let mut entries = [entry(other.as_raw_fd()), entry(closed)];
        let list = &mut entries;
        // SAFETY: two entries.
        let (count, _) = closed_under(closed, move || unsafe { ndw_WSAPoll(list.as_mut_ptr(), 2, -1) });
        assert_eq!((count, entries[0].found, entries[1].found), (1, 0, libc::POLLNVAL));
    }
}

#[test]
fn requests_that_pend_are_cancelled_though_a_call_waits_beside_them() {
    use crate::io::Overlapped;
    let (near, _far) = pair();
    let fd = near.into_raw_fd();
    let (mut room, mut flags, mut overlapped) = ([0u8; 2], 0, Overlapped::default());
    let [first, second] = &mut room;
    let (buffer, request) = (WsaBuf { length: 1, data: first }, &raw mut overlapped);
    crate::winsock::startup::start();
    let flags = InOut::from(&mut flags);
    // SAFETY: the buffer and the OVERLAPPED stay until the request has completed.
    let begun = unsafe { ndw_WSARecv(fd as Socket, &buffer, 1, Out::NULL, flags, request, None) };
    assert_eq!((begun, last_error()), (-1, WSA_IO_PENDING));
    // SAFETY: room for a byte.
    let receive = move || unsafe { ndw_recv(fd, (&raw mut *second).cast(), 1, 0) };
    assert_eq!(closed_under(fd, receive), (-1, WSAEINTR));
    assert_eq!(
        overlapped.internal.load(std::sync::atomic::Ordering::Acquire) as i32,
        crate::io::STATUS_CANCELLED
    );
}

/// What comes while a socket is being closed, and the outcome.
fn beside_a_close<R: Send>(late: impl FnOnce(RawFd) -> R + Send) -> R {
    let fd = UdpSocket::bind(LOCAL).unwrap().into_raw_fd();
    let closing = Closing::of(fd);
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let late = scope.spawn(move || {
            tell.send(thread_id()).unwrap();
            late(fd)
        });
        let number = told.recv().unwrap();
        while !is_asleep(number) {
            thread::yield_now();
        }
        assert!(!late.is_finished() && !count(fd).unwrap().has_calls());
        // Another file has the descriptor afterwards.
        let file = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: this test's own descriptors.
        assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), fd) }, fd);
        drop(closing);
        let result = late.join().unwrap();
        // SAFETY: this test's own descriptor.
        assert_eq!(unsafe { libc::close(fd) }, 0);
        result
    })
}

#[test]
fn what_comes_while_a_socket_is_closed_finds_none() {
    assert_eq!(beside_a_close(crate::winsock::close), Err(WSAENOTSOCK));
    let mut byte = 0u8;
    // SAFETY: room for a byte.
    let receive = |fd| unsafe { (ndw_recv(fd, (&raw mut byte).cast(), 1, 0), last_error()) };
    assert_eq!(beside_a_close(receive), (-1, WSAENOTSOCK));
    let select = |fd| {
        let mut twice = set(&[fd, fd]);
        // SAFETY: a set as large as it says.
        unsafe { ndw_select(0, &mut twice, null_mut(), null_mut(), In::NULL) }
    };
    // This file is always readable.
    assert_eq!(beside_a_close(select), 2);
}

#[test]
fn a_connection_is_reset_though_a_call_waits() {
    let (near, mut far) = pair();
    let fd = near.into_raw_fd();
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    system::set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, linger).unwrap();
    let mut byte = 0u8;
    // SAFETY: room for a byte.
    let receive = || unsafe { ndw_recv(fd, (&raw mut byte).cast(), 1, 0) };
    assert_eq!(closed_under(fd, receive), (-1, WSAEINTR));
    // Unless the receiver was late, which cannot be told from here.
    let end = far.read(&mut [0]);
    assert!(
        end.as_ref().is_ok_and(|count| *count == 0) || end.unwrap_err().kind() == ErrorKind::ConnectionReset
    );
}

/// Its close lasts: the descriptor must be free before.
#[test]
fn a_descriptor_is_free_while_its_socket_lingers() {
    crate::alone::run("winsock::calls::tests::while_a_socket_lingers");
}

#[test]
#[ignore = "run by the test above: it looks at what descriptor comes next"]
fn while_a_socket_lingers() {
    let (fd, far) = full();
    let linger = libc::linger { l_onoff: 1, l_linger: 3600 };
    system::set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, linger).unwrap();
    thread::scope(|scope| {
        // SAFETY: this test's own socket.
        scope.spawn(move || assert_eq!(unsafe { ndw_closesocket(fd as Socket) }, 0));
        // The lowest that is free is taken.
        let mut others = Vec::new();
        let next = loop {
            let next = UdpSocket::bind(LOCAL).unwrap();
            match next.as_raw_fd() {
                taken if taken == fd => break next.into_raw_fd(),
                taken if taken < fd => others.push(next),
                _ => thread::yield_now(),
            }
        };
        // SAFETY: this test's own socket.
        assert_eq!(unsafe { ndw_closesocket(next as Socket) }, 0);
        drop(far);
    });
}

#[test]
fn a_forked_child_closes_its_sockets_alone() {
    crate::alone::run("winsock::calls::tests::with_a_forked_child");
}

#[test]
#[ignore = "run by the test above: it forks"]
fn with_a_forked_child() {
    let (near, mut far) = pair();
    let fd = near.into_raw_fd();
    let mut byte = 0u8;
    let room = &mut byte;
    // SAFETY: room for a byte.
    let receive = move || unsafe { ndw_recv(fd, (&raw mut *room).cast(), 1, 0) };
    thread::scope(|scope| {
        let receiver = scope.spawn(receive);
        while !count(fd).unwrap().has_calls() {
            thread::yield_now();
        }
        let child = crate::alone::child(|| match crate::winsock::close(fd) {
            Ok(()) => 0,
            Err(_) => 1,
        });
        let mut status = 0;
        // SAFETY: room for the status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        far.write_all(b"x").unwrap();
        assert_eq!(receiver.join().unwrap(), 1);
    });
    assert!(table::get(fd).is_ok());
}

#[test]
fn calls_and_closes_at_any_moment_end() {
    crate::alone::run("winsock::calls::tests::at_any_moment");
}

#[test]
#[ignore = "run by the test above: a call may come too late, and use what has the descriptor then"]
fn at_any_moment() {
    for round in 0..300 {
        let (near, far) = pair();
        let fd = near.into_raw_fd();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    let mut byte = 0u8;
                    // SAFETY: room for a byte.
                    let result = unsafe { ndw_recv(fd, (&raw mut byte).cast(), 1, 0) };
                    let error = last_error();
                    assert!(result == -1 && matches!(error, WSAEINTR | WSAENOTSOCK), "{result}, {error}");
                });
            }
            (0..round % 8).for_each(|_| thread::yield_now());
            // SAFETY: the test's own socket.
            assert_eq!(unsafe { ndw_closesocket(fd as Socket) }, 0);
        });
        drop(far);
    }
}
