//! Documented statuses, on a real device.

#[path = "../suites/adapter.rs"]
mod adapter;
#[path = "../suites/connections.rs"]
mod connections;
#[path = "../suites/requests.rs"]
mod requests;

/// The tests do not disturb each other here.
struct Turn;

fn turn() -> Turn {
    Turn
}
