//! The descriptors of ports and events, for a program's own poll loop.

use super::device::*;
use crate::api::completion_port::*;
use crate::error::*;
use crate::io::File;
use crate::object::RawHandle;

fn readable(fd: i32, millis: i32) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, a local.
    unsafe { libc::poll(&mut poll, 1, millis) == 1 }
}

#[test]
fn the_descriptor_of_a_port_shows_work() {
    let (file, port) = (File::new().unwrap(), port(0));
    let (device, _registration) = Device::new(&file);
    bind(&file, port, 1);
    let fd = ndcompat_port_fd(port);
    assert!(fd >= 0 && !readable(fd, 0));
    post(port, 0, 2);
    assert!(readable(fd, 0));
    assert_eq!(dequeue(port, 0).key, 2);
    assert!(!readable(fd, 0));
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    device.finish(0, 0);
    assert!(readable(fd, 60_000));
    // The background thread may have seen it, too, and be about to queue the packet.
    assert_eq!(dequeue(port, 60_000).key, 1);
    assert!(!readable(fd, 0));
    close(port);
    assert_eq!(ndcompat_port_fd(port), -1);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
}

#[test]
fn the_descriptor_of_an_event_shows_completions() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let event = event(false);
    let fd = crate::api::event::ndcompat_event_fd(event);
    assert!(!readable(fd, 0));
    let mut ov = overlapped(event);
    let mut turn = || {
        device.start(&file, &mut *ov);
        device.finish(0, 0);
        assert!(readable(fd, 60_000));
        assert_eq!(wait(event, 0), 0);
        assert!(!readable(fd, 0));
        device.start(&file, &mut *ov);
        assert_eq!(wait(event, 0), WAIT_TIMEOUT);
        // The background thread stays with the file, so that the next completion is not late.
        assert!(file.poller().is_adopted());
        device.finish(0, 0);
        assert_eq!(wait(event, 60_000), 0);
    };
    turn();
    turn();
    close(event);
}
