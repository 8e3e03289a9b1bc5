//! Documented statuses, on a real device.

#[path = "../../shared/adapter.rs"]
mod adapter;
#[path = "../../shared/connections.rs"]
mod connections;
#[path = "../../shared/requests.rs"]
mod requests;

/// On a device the tests are independent and need no turns.
struct Turn;

fn turn() -> Turn {
    Turn
}
