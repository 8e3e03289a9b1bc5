//! Random calls over the device under test.

#[path = "../../shared/random_calls.rs"]
mod random_calls;

#[test]
fn random_calls_break_nothing() {
    random_calls::lives(20);
}
