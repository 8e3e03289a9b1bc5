use super::*;
use crate::io::signal::wait_any;
use crate::io::sys::{is_asleep, thread_id};
use crate::winsock::address::sockaddr_size;
use crate::winsock::table;
use std::io::{Read, Write};
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
    assert_eq!(driver.selected.take(None).events, FD_READ);
    table::forget(socket.fd);
    socket.leave();
}

fn is_set(signal: &Arc<Signal>) -> bool {
    wait_any(std::slice::from_ref(signal), Deadline::Now).is_some()
}

#[test]
fn what_was_told_is_not_told_again_by_another_selection() {
    let (stream, _peer) = UnixStream::pair().unwrap();
    let socket = table::get(stream.as_raw_fd()).unwrap();
    let driver = socket.driver().unwrap();
    let select = |mask| {
        let signal = Signal::new(true, false);
        driver.selected.select(driver.file(), &socket, signal.clone(), mask);
        (is_set(&signal), driver.selected.take(None).events)
    };
    assert_eq!(select(FD_READ | FD_WRITE), (true, FD_WRITE));
    assert_eq!(select(FD_READ | FD_WRITE), (false, 0));
    driver.selected.clear(driver.file());
    assert_eq!(select(FD_WRITE), (false, 0));
    // A change by which nothing has arrived, and one by which something has.
    driver.selected.look(socket.fd, false);
    driver.selected.look(socket.fd, true);
    assert_eq!(driver.selected.take(None).events, 0);
    // A send has found no room.
    enable(socket.fd, FD_WRITE);
    assert_eq!(driver.selected.take(None).events, FD_WRITE);
    driver.selected.clear(driver.file());
    enable(socket.fd, FD_WRITE);
    assert_eq!(select(FD_WRITE), (true, FD_WRITE));
    table::forget(socket.fd);
    socket.leave();
}

#[test]
fn what_was_recorded_waits_until_it_is_selected_again_or_dealt_with() {
    let (stream, mut peer) = UnixStream::pair().unwrap();
    let socket = table::get(stream.as_raw_fd()).unwrap();
    let driver = socket.driver().unwrap();
    let select = |mask| {
        let signal = Signal::new(true, false);
        driver.selected.select(driver.file(), &socket, signal.clone(), mask);
        is_set(&signal)
    };
    peer.write_all(b"data").unwrap();
    assert!(select(FD_READ));
    assert!(!select(FD_OOB));
    assert_eq!(driver.selected.take(None).events, 0);
    assert!(select(FD_READ | FD_OOB));
    assert_eq!(driver.selected.take(None).events, FD_READ);
    // An arrival after another selection is told, and the next one is not.
    assert!(!select(FD_READ));
    driver.selected.look(socket.fd, false);
    assert_eq!(driver.selected.take(None).events, 0);
    driver.selected.look(socket.fd, true);
    assert_eq!(driver.selected.take(None).events, FD_READ);
    driver.selected.look(socket.fd, true);
    assert_eq!(driver.selected.take(None).events, 0);
    // Recorded once more, and received before it was told.
    enable(socket.fd, FD_READ);
    let mut data = [0; 8];
    assert_eq!((&stream).read(&mut data).unwrap(), 4);
    enable(socket.fd, FD_READ);
    assert_eq!(driver.selected.take(None).events, 0);
    table::forget(socket.fd);
    socket.leave();
}

/// Connects to a local port. Before the call is known to have begun a connection, another thread is told that it has ended.
fn connected_at_once(listens: bool) -> NetworkEvents {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = system::local_address(listener.as_raw_fd()).unwrap();
    if !listens {
        // It keeps the port, and another process may have a copy of the descriptor.
        // SAFETY: an open socket.
        assert_eq!(unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RD) }, 0);
    }
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
    driver.selected.look(fd, false);
    goes_on_connecting(&socket);
    let events = driver.selected.take(None);
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
