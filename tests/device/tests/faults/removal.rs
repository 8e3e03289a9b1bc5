//! A link, an address and a device that go away while messages are in flight.

use crate::traffic::{WINDOW, exchange, over};
use crate::{BOUND, random, times, wire};
use fastrand::Rng;
use ndcompat::{Status, provider};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::is_iwarp;
use support::lab::Wire;

/// Calls `harm` while messages are in flight, then `mend` if there is one. Returns how many messages arrived, and the first
/// failure.
fn under_load(
    wire: &Wire,
    random: &mut Rng,
    harm: impl FnOnce(),
    mend: Option<&dyn Fn()>,
) -> (usize, Option<Status>) {
    let mut pair = over(wire).expect("a connection");
    let (mended, begun) = (AtomicBool::new(false), AtomicBool::new(false));
    let (before, away) = (random.u64(0..50), random.u64(20..300));
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let (mut random, mut arrived) = (Rng::with_seed(before), 0);
            loop {
                let last = mended.load(Ordering::Acquire);
                match exchange(&mut pair, &mut random, WINDOW) {
                    Ok(()) => arrived += WINDOW,
                    Err(status) => return (arrived, Some(status)),
                }
                begun.store(true, Ordering::Release);
                if last {
                    return (arrived, None);
                }
            }
        });
        while !begun.load(Ordering::Acquire) && !traffic.is_finished() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(before));
        harm();
        std::thread::sleep(Duration::from_millis(away));
        // Without `mend`, traffic ends by a failure.
        if let Some(mend) = mend {
            mend();
            mended.store(true, Ordering::Release);
        }
        traffic.join().expect("traffic ends as it may")
    })
}

/// Asserts that every message arrives unchanged or is reported as failed, in bounded time, and that everything works afterwards.
fn survives(what: &str, harm: impl Fn(&Wire), mend: impl Fn(&Wire)) {
    let (wire, mut random) = (wire(), random());
    for _ in 0..times(2) {
        let begin = Instant::now();
        let (arrived, failed) = under_load(&wire, &mut random, || harm(&wire), Some(&|| mend(&wire)));
        println!("{what}: {arrived} messages in {:?}, then {failed:?}", begin.elapsed());
        if let Some(status) = failed {
            assert!([Status::IO_TIMEOUT, Status::CANCELED].contains(&status), "{status}");
        }
        wire.restore_links();
        let mut pair = over(&wire).expect("a connection");
        exchange(&mut pair, &mut random, 4 * WINDOW).expect("messages");
    }
}

#[test]
fn a_link_goes_down_and_comes_up_under_load() {
    survives("link", |wire| wire.ends[1].lose_link(), |wire| wire.ends[1].find_link());
}

#[test]
fn an_address_goes_and_comes_under_load() {
    // rxe may fail a message that finds no route, or not retransmit it, so that it stays for more than a minute.
    if !is_iwarp() {
        return;
    }
    survives("address", |wire| wire.ends[0].has_address(false), |wire| wire.ends[0].has_address(true));
}

#[test]
fn a_device_is_deleted_under_load() {
    let (wire, mut random) = (wire(), random());
    for _ in 0..times(2) {
        let (begin, mut deleting) = (Instant::now(), None);
        let (arrived, failed) =
            under_load(&wire, &mut random, || deleting = Some(wire.ends[1].delete()), None);
        // The kernel waits until no process has the device open. librdmacm closes it when an address is resolved, at the latest.
        let mut deleting = deleting.expect("it was deleted");
        let gone = loop {
            let _ = provider::resolve_address(wire.ends[1].address);
            match deleting.try_wait().expect("rdma ends") {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
            assert!(begin.elapsed() < 2 * BOUND, "the device stays");
        };
        println!("device: {arrived} messages, then {failed:?}, all over after {:?}", begin.elapsed());
        assert!(gone.success());
        // Before any assertion, because the next tests need the device.
        wire.ends[1].restore();
        let status = failed.expect("nothing goes over a device that is gone");
        // The kernel may remove a region before the queue pair that still uses it, which gives an access error.
        let ends = [Status::CANCELED, Status::DEVICE_REMOVED, Status::IO_TIMEOUT, Status::ACCESS_VIOLATION];
        assert!(ends.contains(&status), "{status}");
        let mut pair = over(&wire).expect("a connection");
        exchange(&mut pair, &mut random, 4 * WINDOW).expect("messages");
    }
}
