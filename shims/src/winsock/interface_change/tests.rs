use super::super::ioctl::tests::{leave_the_network, loopback};
use super::*;
use std::ptr::from_ref;
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

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

/// Waits until the program has been told of all that there is.
fn is_up_to_date(watch: &Watch) {
    let end = Instant::now() + LONG;
    while present(watch.family).as_ref() != Ok(&watch.state.lock().seen) {
        assert!(Instant::now() < end, "a change is not told");
        std::thread::sleep(Duration::from_millis(1));
    }
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
    let watch = callbacks::get::<Watch>(handle).unwrap();
    let (idle, nobody) = channel();
    let cancelled = notify(AF_INET, &idle, 0);
    assert_eq!(ndw_CancelMibChangeNotify2(cancelled), 0);
    let lo_has_changed = |(row, what): Told| {
        let row = row.unwrap();
        assert_eq!((row.family, row.index, row.luid), (AF_INET as u16, 1, 24 << 48 | 1 << 24));
        assert_eq!(what, Notification::Parameter);
    };
    for up in [true, false] {
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        loopback(up);
        lo_has_changed(receiver.recv_timeout(LONG).unwrap());
        // The kernel may tell of the interface and of its address one after the other.
        is_up_to_date(&watch);
        receiver.try_iter().for_each(lo_has_changed);
    }
    assert_eq!(ndw_CancelMibChangeNotify2(handle), 0);
    drop(watch);
    // One that is told by the same threads knows when the others would have been told.
    let (witness, is_told) = channel();
    let handle = notify(AF_INET, &witness, 0);
    loopback(true);
    lo_has_changed(is_told.recv_timeout(LONG).unwrap());
    assert_eq!(ndw_CancelMibChangeNotify2(handle), 0);
    assert!(receiver.try_recv().is_err() && nobody.try_recv().is_err());
}

#[test]
fn no_change_between_two_looks_is_lost() {
    crate::alone::run("winsock::interface_change::tests::hears_of_earlier_changes");
}

#[test]
#[ignore = "is in another network; the test above runs it"]
fn hears_of_earlier_changes() {
    if !leave_the_network() {
        return;
    }
    // Up and down again: nothing is different then, but it was told.
    let interfaces = Interfaces::new().unwrap();
    let look = || (interfaces.drain(), interfaces.look()).1;
    let before = look();
    assert_eq!(look(), before);
    [true, false].into_iter().for_each(loopback);
    let after = look();
    assert_ne!(after, before);
    assert_eq!(look(), after);
    // Between the first look and the first request.
    let (sender, receiver) = channel::<Told>();
    let context = from_ref(&sender).cast_mut().cast();
    let watch = Watch::new(AF_INET, note, context, false).unwrap();
    loopback(true);
    watch.wait();
    assert_eq!(receiver.recv_timeout(LONG).unwrap().1, Notification::Parameter);
    is_up_to_date(&watch);
    watch.end();
}

#[test]
fn what_has_not_begun_leaves_nothing_behind() {
    let watch = Watch::new(AF_UNSPEC, note, null_mut(), false).unwrap();
    let key = watch.key;
    assert!(pool::is_key(key));
    drop(watch);
    assert!(!pool::is_key(key));
}

#[test]
fn a_look_that_fails_says_nothing_of_the_interfaces() {
    let seen = || All::from([((2, 1), Seen { luid: 1, is_up: true, addresses: Vec::new() })]);
    let mut state = State { seen: seen(), begins: false, over: false };
    assert_eq!(state.update(Err(ERROR_NOT_ENOUGH_MEMORY)), []);
    assert_eq!(state.seen, seen());
    assert_eq!(state.update(Ok(All::new())).len(), 1);
    assert_eq!(state.seen, All::new());
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
