//! A thread that took a packet and then waits for something does not count against its port's concurrency value.

use super::device::*;
use crate::api::completion_port::with_queue;
use crate::api::locks::{ndw_WaitOnAddress, ndw_WakeByAddressSingle};
use crate::arguments::{In, InOut};
use crate::io::sys::Deadline;
use crate::sync::condition::ConditionVariable;
use crate::sync::critical::CriticalSection;
use crate::sync::once::{InitOnce, Task};
use crate::sync::srw::SrwLock;
use crate::winsock::Socket;
use crate::winsock::readiness::{FdSet, PollEntry, ndw_WSAPoll, ndw_select};
use crate::winsock::socket::{ndw_accept, ndw_connect, ndw_socket};
use crate::winsock::startup;
use crate::winsock::transfer::receiving::ndw_recv;
use crate::winsock::transfer::sending::ndw_send;
use libc::{MSG_DONTWAIT, MSG_WAITALL};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Runs `block` on a thread that took a packet, and `release` once it does not count as running. Afterwards it must.
fn does_not_run_in(block: impl FnOnce() + Send, release: impl FnOnce()) {
    let port = port(1);
    let running = move || with_queue(port, |queue| queue.running()).unwrap();
    post(port, 0, 1);
    let took = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(dequeue(port, 60_000).key, 1);
            assert_eq!(running(), 1);
            took.store(true, Ordering::SeqCst);
            block();
            assert_eq!(running(), 1);
        });
        until(|| took.load(Ordering::SeqCst) && running() == 0);
        release();
    });
    close(port);
}

/// A thread counts as asleep shortly before it can be woken.
fn wake_until(awake: &AtomicBool, wake: impl Fn()) {
    until(|| {
        wake();
        awake.load(Ordering::SeqCst)
    });
}

#[test]
fn entering_a_critical_section() {
    let section = CriticalSection::new(0);
    section.enter();
    does_not_run_in(|| section.enter(), || section.leave());
}

#[test]
fn acquiring_an_srw_lock() {
    let lock = SrwLock::default();
    lock.write();
    does_not_run_in(|| lock.read(), || lock.unlock_write());
    does_not_run_in(|| lock.write(), || lock.unlock_read());
}

#[test]
fn sleeping_on_a_condition_variable() {
    let (condition, awake) = (ConditionVariable::default(), AtomicBool::new(false));
    let sleep = || {
        assert!(condition.sleep(Deadline::Never, || (), || ()));
        awake.store(true, Ordering::SeqCst);
    };
    does_not_run_in(sleep, || wake_until(&awake, || condition.wake(1)));
}

#[test]
fn waiting_on_an_address() {
    let (value, seen, awake) = (AtomicU32::new(0), 0u32, AtomicBool::new(false));
    let wait = || {
        // SAFETY: an atomic of ours, and a comparand of its size.
        unsafe { ndw_WaitOnAddress((&raw const value).cast(), (&raw const seen).cast(), 4, u32::MAX) };
        awake.store(true, Ordering::SeqCst);
    };
    does_not_run_in(wait, || wake_until(&awake, || ndw_WakeByAddressSingle((&raw const value).cast())));
}

#[test]
fn waiting_for_an_initialisation() {
    let once = InitOnce::default();
    assert_eq!(once.begin(false), Ok(Task::Initialise));
    let wait = || assert_eq!(once.begin(false), Ok(Task::Use(4)));
    does_not_run_in(wait, || once.complete(false, Some(4)).unwrap());
}

/// Whether the thread stops counting as running in `call`. After that it does not count again, as the port is closed.
fn makes_room(call: impl FnOnce()) -> bool {
    let port = port(1);
    post(port, 0, 1);
    assert_eq!(dequeue(port, 60_000).key, 1);
    let queue = with_queue(port, Arc::clone).unwrap();
    close(port);
    assert_eq!(queue.running(), 1);
    call();
    queue.running() == 0
}

fn receive(socket: &impl AsRawFd, count: usize, flags: i32) -> isize {
    let mut bytes = vec![0u8; count];
    // SAFETY: room for so many bytes.
    unsafe { ndw_recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), count, flags) }
}

fn send(socket: &impl AsRawFd, bytes: &[u8]) -> isize {
    // SAFETY: so many bytes.
    unsafe { ndw_send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) }
}

fn accept(listener: &TcpListener) -> Option<OwnedFd> {
    // SAFETY: no address is asked for.
    let connection = unsafe { ndw_accept(listener.as_raw_fd(), null_mut(), InOut::NULL) };
    // SAFETY: a descriptor that the call has just made; nobody else knows it.
    (connection >= 0).then(|| unsafe { OwnedFd::from_raw_fd(connection) })
}

fn connect(socket: &impl AsRawFd, port: u16) -> i32 {
    let host = libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() };
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: host,
        sin_zero: [0; 8],
    };
    // SAFETY: an address of that length.
    unsafe { ndw_connect(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32) }
}

fn select(socket: &impl AsRawFd, micros: i64) -> i32 {
    let mut set = FdSet { count: 1, sockets: [socket.as_raw_fd() as Socket; 64] };
    let time = libc::timeval { tv_sec: 0, tv_usec: micros };
    // SAFETY: a set as large as it says.
    unsafe { ndw_select(0, &mut set, null_mut(), null_mut(), In::from(&time)) }
}

fn poll(socket: &impl AsRawFd, millis: i32) -> i32 {
    let mut entry = PollEntry { socket: socket.as_raw_fd() as Socket, events: libc::POLLIN, found: 0 };
    // SAFETY: one entry.
    unsafe { ndw_WSAPoll(&mut entry, 1, millis) }
}

#[test]
fn a_call_of_a_socket_that_need_not_wait_makes_no_room() {
    startup::start();
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(b"x").unwrap();
    assert!(!makes_room(|| assert_eq!(receive(&near, 1, 0), 1)));
    assert!(!makes_room(|| assert_eq!(send(&near, b"x"), 1)));
    assert!(!makes_room(|| assert_eq!(receive(&near, 1, MSG_DONTWAIT), -1)));
    assert!(!makes_room(|| assert_eq!(select(&near, 0), 0)));
    assert!(!makes_room(|| assert_eq!(poll(&near, 0), 0)));
    near.set_nonblocking(true).unwrap();
    assert!(!makes_room(|| assert_eq!(receive(&near, 1, 0), -1)));
    assert!(!makes_room(|| while send(&near, &[0; 1 << 12]) > 0 {}));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _asks = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert!(!makes_room(|| assert!(accept(&listener).is_some())));
    listener.set_nonblocking(true).unwrap();
    assert!(!makes_room(|| assert!(accept(&listener).is_none())));
    let port = listener.local_addr().unwrap().port();
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
    // SAFETY: a descriptor that the call has just made; nobody else knows it.
    let stream = unsafe { OwnedFd::from_raw_fd(ndw_socket(libc::AF_INET, kind, 0)) };
    assert!(!makes_room(|| assert_eq!(connect(&stream, port), -1)));
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(!makes_room(|| assert_eq!(connect(&datagrams, port), 0)));
}

#[test]
fn waiting_on_a_socket() {
    startup::start();
    let (near, far) = UnixStream::pair().unwrap();
    does_not_run_in(|| assert_eq!(receive(&near, 1, 0), 1), || assert_eq!((&far).write(b"x").unwrap(), 1));
    // The first half is there.
    (&far).write_all(b"x").unwrap();
    let release = || assert_eq!((&far).write(b"x").unwrap(), 1);
    does_not_run_in(|| assert_eq!(receive(&near, 2, MSG_WAITALL), 2), release);
    // More than there is room for.
    let much = vec![0; 16 << 20];
    let release = || (&far).read_exact(&mut vec![0; much.len()]).unwrap();
    does_not_run_in(|| assert_eq!(send(&near, &much), much.len() as isize), release);
    does_not_run_in(|| assert_eq!(poll(&near, -1), 1), || assert_eq!((&far).write(b"x").unwrap(), 1));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let release = || drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    does_not_run_in(|| assert!(accept(&listener).is_some()), release);
}
