//! Layouts of objects on files and of files on completion ports, as many as there is time for.
//!
//! `NDCOMPAT_SEED` repeats a run, `NDCOMPAT_LAYOUT` one of its layouts.

use std::time::{Duration, Instant, SystemTime};
use support::lab::two_kinds;
use support::layout::{Devices, Layout, run};

/// No layout is started after this time.
const TIME: Duration = Duration::from_secs(20);

fn variable(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[test]
fn each_request_ends_once_and_where_it_should() {
    let [first, second] = two_kinds().map(|device| device.address);
    let devices = Devices { first, second, fail_last_queue: None };
    if let Some(layout) = variable("NDCOMPAT_LAYOUT") {
        return run(&Layout::new(layout).expect("a layout"), &devices);
    }
    let seed = variable("NDCOMPAT_SEED").unwrap_or_else(|| {
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64 % 1_000_000)
    });
    println!("NDCOMPAT_SEED={seed}");
    let mut numbers = fastrand::Rng::with_seed(seed);
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < TIME {
        if let Some(layout) = Layout::new(numbers.u64(..1000 * Layout::count())) {
            run(&layout, &devices);
            count += 1;
        }
    }
    println!("{count} layouts");
    assert!(count > 0);
}
