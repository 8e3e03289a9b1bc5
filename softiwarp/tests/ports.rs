//! Ports that the device chooses, in a network namespace with few of them. Without the right to make one (root), nothing is tested.

mod support;

use std::ffi::CString;
use std::fs;
use std::io::Read;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::AsRawFd;
use std::ptr;

use socket2::{Domain, Protocol, Socket, Type};
use softiwarp::verbs::*;
use support::verbs::*;

/// The ports that may be chosen.
const PORTS: std::ops::RangeInclusive<u16> = 50_000..=50_009;

/// Moves this thread to a network namespace of its own, with the loopback interface up; false without the right to.
fn enter_namespace() -> bool {
    // SAFETY: concerns this thread's namespace only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return false;
    }
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    // SAFETY: a structure of C for which zeros mean nothing.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let name = CString::new("lo").unwrap();
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the request lives while the call lasts.
    assert_eq!(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }, 0);
    let range = format!("{} {}", PORTS.start(), PORTS.end());
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", range).unwrap();
    true
}

/// Leaves a connection from this port in TIME_WAIT.
fn leave_in_time_wait(port: u16, listener: &TcpListener) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into()).unwrap();
    socket.connect(&listener.local_addr().unwrap().into()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    // Who closes first has the connection in TIME_WAIT, once the other has closed as well.
    drop(socket);
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
}

/// The port of a new id that leaves the choice to the device.
fn chosen_port() -> u16 {
    let id = id(channel());
    // SAFETY: the id lives, and the address while the call lasts.
    assert_eq!(unsafe { rdma_bind_addr(id, ptr::from_mut(&mut loopback(0)).cast()) }, 0, "a port");
    // SAFETY: the id lives.
    let bound = unsafe { &raw const (*id).route.addr };
    // SAFETY: the id is bound to an address of this family.
    u16::from_be(unsafe { bound.cast::<libc::sockaddr_in>().read() }.sin_port)
}

#[test]
fn ports_in_time_wait_are_chosen_when_no_others_are_left() {
    if !enter_namespace() {
        eprintln!("not tested: no network namespace");
        return;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 1024)).unwrap();
    for port in PORTS {
        leave_in_time_wait(port, &listener);
    }
    // Each of them once: the ids stay.
    let mut chosen: Vec<_> = PORTS.map(|_| chosen_port()).collect();
    chosen.sort_unstable();
    assert_eq!(chosen, Vec::from_iter(PORTS));
}
