//! A program whose ids cannot have their device, for want of descriptors. In a process of its own, as the limit and the device are the
//! process's.

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::ptr;
use std::thread;
use std::time::Duration;

use softiwarp::startup::{Offer, request};
use softiwarp::verbs::*;
use support::verbs::*;

const REFUSED: u8 = 0x20;

/// Leaves so many descriptors to the process; returns the limit before.
fn leave(count: u64) -> u64 {
    let next = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    set_limit(next + count)
}

fn set_limit(descriptors: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there while the call lasts.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    let before = std::mem::replace(&mut limit.rlim_cur, descriptors);
    // SAFETY: the structure is there while the call lasts.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    before
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn an_id_without_a_device_is_not_shown() {
    let channel = channel();
    // SAFETY: the channel lives.
    let fd = unsafe { (*channel).fd };
    // SAFETY: this command takes no pointer.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    let listener = id(channel);
    let mut any = loopback(0);
    any.sin_addr.s_addr = 0;
    // SAFETY: the id and the address live.
    assert_eq!(unsafe { rdma_bind_addr(listener, (&raw mut any).cast()) }, 0);
    // SAFETY: the id lives.
    assert_eq!(unsafe { rdma_listen(listener, 5) }, 0);
    // SAFETY: the id lives, and has an address of this family.
    let bound = unsafe { (&raw const (*listener).route.addr).cast::<libc::sockaddr_in>().read() };
    // SAFETY: the id lives.
    assert!(unsafe { (*listener).verbs }.is_null(), "of all addresses there is no one device");

    let before = open_files();
    let mut peer = TcpStream::connect(("127.0.0.1", u16::from_be(bound.sin_port))).unwrap();
    // The connection, at both ends.
    while open_files() < before + 2 {
        thread::sleep(Duration::from_millis(1));
    }
    let limit = leave(0);
    let offer = Offer { inbound_reads: 8, outbound_reads: 8, crc: false, peer_to_peer: true };
    peer.write_all(&request(&offer, b"").unwrap()).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reply = [0; 20];
    peer.read_exact(&mut reply).expect("an answer");
    assert_ne!(reply[16] & REFUSED, 0);
    let mut event = ptr::null_mut();
    // SAFETY: the channel lives; the result is a local.
    assert_eq!(outcome(unsafe { rdma_get_cm_event(channel, &raw mut event) }), libc::EAGAIN);
    set_limit(limit);
    drop(peer);

    // An id that cannot be bound is as before, and may be bound later.
    let other = id(channel);
    let mut here = loopback(0);
    let bind = |here: &mut libc::sockaddr_in| {
        // SAFETY: the id and the address live.
        outcome(unsafe { rdma_bind_addr(other, ptr::from_mut(here).cast()) })
    };
    // For its socket.
    let limit = leave(1);
    assert_eq!(bind(&mut here), libc::EMFILE);
    set_limit(limit);
    // SAFETY: the id lives.
    assert!(unsafe { (*other).verbs }.is_null());
    assert_eq!(bind(&mut here), 0);
    // SAFETY: the id lives.
    assert!(unsafe { !(*other).verbs.is_null() && !(*other).pd.is_null() });
}
