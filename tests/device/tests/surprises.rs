//! Unusual uses of requests and memory, on the device under test.

#[path = "../../shared/surprises.rs"]
mod surprises;

/// On a device the tests are independent and need no turns.
struct Turn;

fn turn() -> Turn {
    Turn
}
