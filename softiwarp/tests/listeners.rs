//! Listeners of verbs: a peer whose request is incomplete when the listener is destroyed gets an answer.

use std::io::{Read, Write};
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::ptr;
use std::time::{Duration, Instant};

use softiwarp::startup::{self, Offer};
use softiwarp::verbs::*;
use verbs_sys::{RDMA_PS_TCP, rdma_cm_id, rdma_event_channel};

const OFFER: Offer = Offer { inbound_reads: 8, outbound_reads: 8, crc: false, peer_to_peer: true };

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until so many descriptors are open.
fn until_open(count: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while descriptors() != count {
        assert!(Instant::now() < deadline, "{} descriptors, not {count}", descriptors());
        std::thread::yield_now();
    }
}

/// An id that listens, and its port.
///
/// # Safety
/// The channel lives.
unsafe fn listener(channel: *mut rdma_event_channel) -> (*mut rdma_cm_id, u16) {
    let mut id = ptr::null_mut();
    // SAFETY: the address lives while the call lasts; it is one of this family that the id has then.
    unsafe {
        assert_eq!(rdma_create_id(channel, &raw mut id, ptr::null_mut(), RDMA_PS_TCP), 0);
        let mut any: libc::sockaddr_in = zeroed();
        any.sin_family = libc::AF_INET as u16;
        any.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
        assert_eq!(rdma_bind_addr(id, (&raw mut any).cast()), 0);
        assert_eq!(rdma_listen(id, 5), 0);
        let bound = (&raw const (*id).route.addr).cast::<libc::sockaddr_in>().read();
        (id, u16::from_be(bound.sin_port))
    }
}

/// The only test of this program, since it counts the descriptors of the process.
#[test]
fn who_asks_when_the_listener_is_gone_is_refused_and_leaves_nothing_behind() {
    let request = startup::request(&OFFER, b"anybody there?").unwrap();
    // SAFETY: the objects are made and destroyed once, in order.
    unsafe {
        // The first listener opens the descriptors of the device, which stay.
        let channel = rdma_create_event_channel();
        assert!(!channel.is_null());
        assert_eq!(rdma_destroy_id(listener(channel).0), 0);
        rdma_destroy_event_channel(channel);
        let begin = descriptors();

        let channel = rdma_create_event_channel();
        let (id, port) = listener(channel);
        let before = descriptors();
        let mut peer = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
        peer.write_all(&request[..10]).unwrap();
        // The peer's, and the device's: it has taken the peer, and waits for the rest.
        until_open(before + 2);
        let fd = (*channel).fd;
        assert_eq!(rdma_destroy_id(id), 0);
        rdma_destroy_event_channel(channel);
        assert_eq!(libc::fcntl(fd, libc::F_GETFD), -1, "a program may wait for it in an epoll set");
        peer.write_all(&request[10..]).unwrap();

        peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).expect("an answer, and the end");
        assert!(answer.starts_with(b"MPA ID Rep Frame"), "{answer:?}");
        assert_eq!(answer[16] & 0x20, 0x20, "it refuses: {answer:?}");
        drop(peer);
        until_open(begin);
    }
}
