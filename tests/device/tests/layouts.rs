//! Some layouts of objects on files and of files on completion ports.
//!
//! `NDCOMPAT_SEED` chooses them, `NDCOMPAT_LAYOUTS` says how many, `NDCOMPAT_LAYOUT` repeats one.

use support::lab::two_kinds;
use support::layout::{Devices, Layout, run};
use support::seed::{seed, variable};

/// How many layouts there are at least.
const COUNT: u64 = 100;

#[test]
fn each_request_ends_once_and_where_it_should() {
    let [first, second] = two_kinds().map(|device| device.address);
    let devices = Devices { first, second, fail_last_queue: None };
    if let Some(layout) = variable("NDCOMPAT_LAYOUT") {
        return run(&Layout::new(layout).expect("a layout"), &devices);
    }
    let mut numbers = fastrand::Rng::with_seed(seed());
    let layouts = std::iter::repeat_with(|| numbers.u64(..1000 * Layout::count())).filter_map(Layout::new);
    let count = variable("NDCOMPAT_LAYOUTS").unwrap_or(COUNT) as usize;
    layouts.take(count).for_each(|layout| run(&layout, &devices));
}
