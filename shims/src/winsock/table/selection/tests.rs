use super::*;
use crate::io::sys::{is_asleep, thread_id};
use crate::winsock::address::sockaddr_size;
use crate::winsock::table;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr::from_ref;
use std::sync::mpsc;
use std::thread;

/// The edge of data that arrive while events are selected may be another thread's, which has no selection yet to look at.
#[test]
fn data_that_arrive_while_events_are_selected_are_told() {
    let (stream, mut peer) = UnixStream::pair().unwrap();
    let socket = table::get(stream.as_raw_fd()).unwrap();
    let driver = socket.driver().unwrap();
    let held = driver.selected.0.lock();
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (socket, driver) = (&socket, driver);
        let selects = scope.spawn(move || {
            tell.send(thread_id()).unwrap();
            driver.selected.select(driver.file(), socket, Signal::new(true, false), FD_READ);
        });
        let number = told.recv().unwrap();
        while !selects.is_finished() && !is_asleep(number) {
            thread::yield_now();
        }
        peer.write_all(b"data").unwrap();
        drop(held);
    });
    assert_eq!(driver.selected.take(None).unwrap().events, FD_READ);
    table::forget(socket.fd);
    socket.leave();
}

/// Connects to a local port. Before the call is known to have begun a connection, another thread is told that it has ended.
fn connected_at_once(listens: bool) -> NetworkEvents {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = system::local_address(listener.as_raw_fd()).unwrap();
    let _listener = listens.then_some(listener);
    let stream = system::socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap();
    let fd = stream.as_raw_fd();
    system::set_blocking(fd, false).unwrap();
    let socket = table::get(fd).unwrap();
    let driver = socket.driver().unwrap();
    driver.selected.select(driver.file(), &socket, Signal::new(true, false), FD_CONNECT | FD_WRITE);
    let size = sockaddr_size(libc::AF_INET).unwrap() as u32;
    // SAFETY: an address of that size.
    assert_eq!(unsafe { libc::connect(fd, from_ref(&address).cast(), size) }, -1);
    assert_ne!(system::poll(fd, libc::POLLOUT, Deadline::Never), Ok(0));
    driver.selected.look(fd);
    goes_on_connecting(&socket);
    let events = driver.selected.take(None).unwrap();
    table::forget(fd);
    socket.leave();
    events
}

#[test]
fn a_connection_that_is_made_within_the_call_is_told() {
    let found = connected_at_once(true);
    assert_eq!((found.events, found.errors[bit(FD_CONNECT)]), (FD_CONNECT | FD_WRITE, 0));
}

#[test]
fn a_connection_that_is_refused_within_the_call_is_told() {
    let found = connected_at_once(false);
    assert_eq!((found.events, found.errors[bit(FD_CONNECT)]), (FD_CONNECT, WSAECONNREFUSED as i32));
}
