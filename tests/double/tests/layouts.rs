//! Every layout of objects on files and of files on completion ports, once.
//!
//! `NDCOMPAT_LAYOUT` runs one of them. `NDCOMPAT_ROUNDS` runs all this many times, each time with other events, waits and orders
//! of release. `NDCOMPAT_STEP` runs every n-th only.

use double::{ADDRESS, SECOND_ADDRESS, add_second, raise_async, turn};
use ndcompat::SockAddr;
use ndcompat::verbs::bindings::IBV_EVENT_CQ_ERR;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use support::layout::{Devices, Layout, run};
use support::seed::variable;

fn at(address: impl Into<IpAddr>) -> SockAddr {
    SocketAddr::new(address.into(), 0).into()
}

#[test]
fn each_request_ends_once_and_where_it_should() {
    let _turn = turn();
    add_second();
    let devices = Devices {
        first: at(ADDRESS),
        second: at(SECOND_ADDRESS),
        fail_last_queue: Some(|| raise_async(IBV_EVENT_CQ_ERR)),
    };
    let numbers: Range<u64> = match variable("NDCOMPAT_LAYOUT") {
        Some(number) => number..number + 1,
        None => 0..variable("NDCOMPAT_ROUNDS").unwrap_or(1) * Layout::count(),
    };
    let step = variable("NDCOMPAT_STEP").unwrap_or(1) as usize;
    numbers.step_by(step).filter_map(Layout::new).for_each(|layout| run(&layout, &devices));
}
