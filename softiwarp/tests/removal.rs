//! The device goes when a file comes: what a program of verbs is told, what it can still do, and what comes when the file goes.

mod support;

use std::fs;
use std::mem::zeroed;
use std::ptr;

use softiwarp::verbs::*;
use support::verbs::*;
use verbs_sys::{
    IBV_EVENT_DEVICE_FATAL, RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_ESTABLISHED, RDMA_PS_TCP,
    ibv_async_event, ibv_context, rdma_event_channel,
};

/// The kind of the next asynchronous event.
fn asynchronous(context: *mut ibv_context) -> u32 {
    // SAFETY: a structure of C for which zeros mean nothing.
    let mut event: ibv_async_event = unsafe { zeroed() };
    // SAFETY: the context lives, the event is a local.
    assert_eq!(unsafe { ibv_get_async_event(context, &raw mut event) }, 0);
    event.event_type
}

/// Connects two ids; returns them, and the listener.
fn connected(near: *mut rdma_event_channel, far: *mut rdma_event_channel) -> [*mut verbs_sys::rdma_cm_id; 3] {
    let (listener, port) = listener(far, 5);
    let one = resolved(near, port, 1000);
    assert_eq!(connect(one, queue_pair(context(one))), 0);
    let other = event(far).id;
    assert_eq!(accept(other, queue_pair(context(other))), 0);
    for channel in [near, far] {
        assert_eq!(event(channel).kind, RDMA_CM_EVENT_ESTABLISHED);
    }
    [one, other, listener]
}

#[test]
fn all_ids_are_told_and_a_new_device_comes_when_the_file_goes() {
    let folder = std::env::temp_dir().join(format!("softiwarp-removal-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("gone");
    gone_while_exists(file.clone());
    let (near, far) = (channel(), channel());
    let [one, other, listener] = connected(near, far);
    let old = context(one);

    fs::write(folder.join("another"), "").unwrap();
    fs::write(&file, "").unwrap();
    for (channel, id) in [(near, one), (far, listener), (far, other)] {
        let told = event(channel);
        assert_eq!((told.kind, told.id), (RDMA_CM_EVENT_DEVICE_REMOVAL, id));
    }
    assert_eq!(asynchronous(old), IBV_EVENT_DEVICE_FATAL);
    // SAFETY: the context lives; it is of the device that is gone.
    assert!(unsafe { ibv_alloc_pd(old) }.is_null());
    // SAFETY: a list is made or not.
    assert!(unsafe { rdma_get_devices(ptr::null_mut()) }.is_null());
    let mut none = ptr::null_mut();
    // SAFETY: the channel lives, the result is a local.
    let made = unsafe { rdma_create_id(near, &raw mut none, ptr::null_mut(), RDMA_PS_TCP) };
    assert_eq!(outcome(made), libc::ENODEV);
    for id in [one, other, listener] {
        // SAFETY: an id is destroyed once.
        assert_eq!(unsafe { rdma_destroy_id(id) }, 0);
    }

    fs::remove_file(&file).unwrap();
    let [again, ..] = connected(near, far);
    assert_ne!(context(again), old, "a device of its own");
    fs::remove_dir_all(&folder).unwrap();
}
