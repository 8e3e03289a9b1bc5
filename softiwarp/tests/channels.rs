//! Event channels as verbs has them: what a program may rely on that waits for their descriptors, or names none.

use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;
use std::time::Duration;

use softiwarp::verbs::*;
use verbs_sys::{
    IBV_QPT_RC, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_PS_TCP, ibv_qp_init_attr, rdma_cm_id, rdma_event_channel,
};

fn loopback(port: u16) -> libc::sockaddr_in {
    // SAFETY: a structure of C for which zeros mean nothing.
    let mut address: libc::sockaddr_in = unsafe { zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    address
}

/// An id that listens, and its port.
///
/// # Safety
/// The channel lives, or is null.
unsafe fn listener(channel: *mut rdma_event_channel) -> (*mut rdma_cm_id, u16) {
    let mut id = ptr::null_mut();
    // SAFETY: the address lives while the call lasts; it is one of this family that the id has then.
    unsafe {
        assert_eq!(rdma_create_id(channel, &raw mut id, ptr::null_mut(), RDMA_PS_TCP), 0);
        assert_eq!(rdma_bind_addr(id, ptr::from_mut(&mut loopback(0)).cast()), 0);
        assert_eq!(rdma_listen(id, 5), 0);
        let bound = (&raw const (*id).route.addr).cast::<libc::sockaddr_in>().read();
        (id, u16::from_be(bound.sin_port))
    }
}

/// Whether the descriptor is readable, now or within the time.
fn readable(fd: i32, milliseconds: i32) -> bool {
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is there while the call lasts.
    unsafe { libc::poll(&raw mut entry, 1, milliseconds) == 1 }
}

/// Has a peer ask for a connection, and waits until it is known how that has ended.
///
/// # Safety
/// As above.
unsafe fn ask(port: u16) -> i32 {
    let mut id = ptr::null_mut();
    // SAFETY: the objects live, and are destroyed once.
    unsafe {
        assert_eq!(rdma_create_id(ptr::null_mut(), &raw mut id, ptr::null_mut(), RDMA_PS_TCP), 0);
        assert_eq!(
            rdma_resolve_addr(id, ptr::null_mut(), ptr::from_mut(&mut loopback(port)).cast(), 1000),
            0
        );
        assert_eq!((*(*id).event).event, RDMA_CM_EVENT_ADDR_RESOLVED);
        assert_eq!(rdma_resolve_route(id, 1000), 0);
        let mut init: ibv_qp_init_attr = zeroed();
        init.qp_type = IBV_QPT_RC;
        (init.cap.max_send_wr, init.cap.max_recv_wr) = (1, 1);
        assert_eq!(rdma_create_qp(id, ptr::null_mut(), &raw mut init), 0);
        let result = rdma_connect(id, ptr::null_mut());
        let errno = if result == 0 { 0 } else { *libc::__errno_location() };
        rdma_destroy_ep(id);
        errno
    }
}

#[test]
fn a_channel_that_blocks_is_readable_only_when_there_is_an_event() {
    // SAFETY: the objects live, and are destroyed once.
    unsafe {
        let channel = rdma_create_event_channel();
        let (id, port) = listener(channel);
        let fd = (*channel).fd;
        let peer = thread::spawn(move || {
            // TCP's connection moves the device's sockets, but asks for nothing.
            TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap()
        });
        assert!(!readable(fd, 100));
        drop(peer.join().unwrap());
        assert_eq!(rdma_destroy_id(id), 0);
        rdma_destroy_event_channel(channel);
    }
}

#[test]
fn no_channel_is_made_so_that_it_does_not_block() {
    // SAFETY: the channels are destroyed once.
    unsafe {
        let channels: Vec<_> = (0..20).map(|_| rdma_create_event_channel()).collect();
        let flags: Vec<_> = channels
            .iter()
            .map(|&channel| libc::fcntl((*channel).fd, libc::F_GETFL) & libc::O_NONBLOCK)
            .collect();
        for channel in channels {
            rdma_destroy_event_channel(channel);
        }
        assert_eq!(flags, [0; 20]);
    }
}

#[test]
fn who_waits_for_a_channel_that_is_destroyed_waits_on() {
    // SAFETY: the objects live, and are destroyed once; what the waiting thread has is the device's own.
    unsafe {
        let channel = AtomicPtr::new(rdma_create_event_channel());
        let (channel, returned): &'static _ = Box::leak(Box::new((channel, AtomicBool::new(false))));
        let (tell, told) = std::sync::mpsc::channel();
        // It stays until the process ends.
        thread::spawn(move || {
            let mut event = ptr::null_mut();
            tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            rdma_get_cm_event(channel.load(Ordering::Acquire), &raw mut event);
            returned.store(true, Ordering::Release);
        });
        // It sleeps for a while, so it waits there, and for no page or lock.
        let stat = std::path::Path::new("/proc").join(told.recv().unwrap()).join("stat");
        let mut looks = 0;
        while looks < 50 {
            looks = if std::fs::read_to_string(&stat).unwrap().contains(") S ") { looks + 1 } else { 0 };
            thread::sleep(Duration::from_millis(1));
        }
        rdma_destroy_event_channel(channel.load(Ordering::Acquire));
        // Something moves: who waits wakes up.
        assert_eq!(ask(listener_that_refuses()), libc::ECONNREFUSED);
        assert!(!returned.load(Ordering::Acquire));
    }
}

/// A port at which a connection is asked for and refused.
fn listener_that_refuses() -> u16 {
    // SAFETY: the objects live, and are destroyed once.
    unsafe {
        let (listener, port) = listener(ptr::null_mut());
        let listener = AtomicPtr::new(listener);
        thread::spawn(move || {
            let (listener, mut id) = (listener.into_inner(), ptr::null_mut());
            assert_eq!(rdma_get_request(listener, &raw mut id), 0);
            assert_eq!(rdma_reject(id, ptr::null(), 0), 0);
            rdma_destroy_ep(id);
            rdma_destroy_ep(listener);
        });
        port
    }
}

#[test]
fn without_a_channel_each_call_waits_for_its_end() {
    // SAFETY: the id is made here, used by this thread alone, and destroyed once.
    unsafe {
        let (id, port) = listener(ptr::null_mut());
        assert_eq!(rdma_destroy_id(id), 0);
        assert_eq!(ask(port), libc::ECONNREFUSED, "nobody listens");
        assert_eq!(ask(listener_that_refuses()), libc::ECONNREFUSED, "who listens refuses");
    }
}
