use super::super::ioctl::tests::{leave_the_network, loopback};
use super::*;
use std::ptr::from_ref;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

type Told = (Option<IpInterfaceRow>, Notification);

unsafe extern "C" fn note(context: *mut c_void, row: *mut IpInterfaceRow, what: Notification) {
    // SAFETY: the test's sender, which outlives the notification; and NULL or a row.
    let (sender, row) = unsafe { (context.cast::<Sender<Told>>().as_ref(), row.as_ref()) };
    sender.unwrap().send((row.copied(), what)).unwrap();
}

fn notify(family: i32, sender: &Sender<Told>, initial: u8) -> RawHandle {
    let mut handle = RawHandle::NULL;
    let context = from_ref(sender).cast_mut().cast();
    // SAFETY: the sender outlives the notification.
    let begun = unsafe {
        ndw_NotifyIpInterfaceChange(family as u16, Some(note), context, initial, Out::from(&mut handle))
    };
    assert_eq!(begun, 0);
    handle
}

const LONG: Duration = Duration::from_secs(20);

fn nothing(receiver: &Receiver<Told>) -> bool {
    receiver.recv_timeout(Duration::from_millis(50)).is_err()
}

#[test]
fn the_first_callback_says_that_it_has_begun() {
    let (sender, receiver) = channel();
    let handle = notify(AF_UNSPEC, &sender, 1);
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), (None, Notification::Initial));
    assert_eq!(ndw_CancelMibChangeNotify2(handle), 0);
    assert_eq!(ndw_CancelMibChangeNotify2(handle), ERROR_INVALID_PARAMETER);
}

#[test]
fn a_change_of_an_interface_is_told_by_a_callback() {
    // All threads of the process that look at interfaces are to see the same network.
    crate::alone::run("winsock::interface_change::tests::hears_of_interfaces");
}

#[test]
#[ignore = "is in another network; the test above runs it"]
fn hears_of_interfaces() {
    if !leave_the_network() {
        return;
    }
    let (sender, receiver) = channel();
    let handle = notify(AF_INET, &sender, 0);
    let (idle, nobody) = channel();
    let cancelled = notify(AF_INET, &idle, 0);
    assert_eq!(ndw_CancelMibChangeNotify2(cancelled), 0);
    for up in [true, false] {
        assert!(nothing(&receiver));
        loopback(up);
        let (row, what) = receiver.recv_timeout(LONG).unwrap();
        let row = row.unwrap();
        assert_eq!((row.family, row.index, row.luid), (AF_INET as u16, 1, 24 << 48 | 1 << 24));
        assert_eq!(what, Notification::Parameter);
        // The kernel may tell of the interface and of its address one after the other.
        while receiver.recv_timeout(Duration::from_millis(200)).is_ok() {}
    }
    assert_eq!(ndw_CancelMibChangeNotify2(handle), 0);
    loopback(true);
    assert!(nothing(&receiver) && nothing(&nobody));
}

#[test]
fn interfaces_that_come_and_go_are_told_from_those_that_change() {
    let seen = |luid, is_up| Seen { luid, is_up, addresses: Vec::new() };
    let (old, new) = ((AF_INET as u16, 1), (AF_INET6 as u16, 2));
    let before = All::from([(old, seen(1, true)), ((2, 3), seen(3, true)), ((2, 4), seen(4, true))]);
    let now = All::from([((2, 3), seen(3, false)), ((2, 4), seen(4, true)), (new, seen(2, true))]);
    let found: Vec<_> = differences(&before, &now);
    let found: Vec<_> = found.iter().map(|(row, what)| (row.family, row.index, row.luid, *what)).collect();
    let expected =
        [(2, 1, 1, Notification::Delete), (2, 3, 3, Notification::Parameter), (10, 2, 2, Notification::Add)];
    assert_eq!(found, expected);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let mut handle = RawHandle(7);
    // SAFETY: nothing begins.
    unsafe {
        let family = AF_INET as u16;
        let (note, nobody): (Option<InterfaceCallback>, Option<InterfaceCallback>) = (Some(note), None);
        assert_eq!(
            ndw_NotifyIpInterfaceChange(family, note, null_mut(), 0, Out::NULL),
            ERROR_INVALID_PARAMETER
        );
        for (family, callback) in [(family, nobody), (999, note)] {
            let target = Out::from(&mut handle);
            let refused = ndw_NotifyIpInterfaceChange(family, callback, null_mut(), 0, target);
            assert_eq!((refused, handle), (ERROR_INVALID_PARAMETER, RawHandle::NULL));
        }
    }
    assert_eq!(ndw_CancelMibChangeNotify2(RawHandle::NULL), ERROR_INVALID_PARAMETER);
}
