//! A child of `fork`, which has copies of its parent's objects, and the same kernel objects behind them. In a process of its own, as the
//! child has one thread of it only.

mod support;

use std::ptr;

use softiwarp::verbs::*;
use support::verbs::*;
use verbs_sys::{RDMA_CM_EVENT_ADDR_RESOLVED, ibv_context, rdma_cm_id};

/// Whether the descriptor is readable now.
fn is_readable(fd: i32) -> bool {
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is there while the call lasts.
    unsafe { libc::poll(&raw mut entry, 1, 0) == 1 }
}

/// What the child does: it destroys what it has inherited, as destructors do at the end of a process, and asks for the device.
fn child(id: *mut rdma_cm_id, parents: *mut ibv_context) -> bool {
    // SAFETY: the id lives, and nothing else uses it in this process.
    if unsafe { rdma_destroy_id(id) } != 0 {
        return false;
    }
    // SAFETY: NULL stands for a number that nobody wants.
    let devices = unsafe { rdma_get_devices(ptr::null_mut()) };
    // SAFETY: not NULL, hence a list of one and an end.
    !devices.is_null() && unsafe { *devices } != parents
}

#[test]
fn a_child_takes_no_event_from_its_parent() {
    let channel = channel();
    let id = id(channel);
    let mut to = loopback(1);
    // SAFETY: the id and the address live.
    assert_eq!(unsafe { rdma_resolve_addr(id, ptr::null_mut(), (&raw mut to).cast(), 1000) }, 0);
    // SAFETY: the channel lives.
    let fd = unsafe { (*channel).fd };
    assert!(is_readable(fd));
    let parents = context(id);
    // SAFETY: the child calls the library, whose locks no other thread holds now, and ends.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        // SAFETY: ends a child that hangs.
        unsafe { libc::alarm(60) };
        let well = child(id, parents);
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 0;
    // SAFETY: the child made above; room for its status.
    assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    assert!(is_readable(fd), "its event is still there");
    assert_eq!(event(channel).kind, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert!(!is_readable(fd));
    assert_eq!(context(id), parents);
}
