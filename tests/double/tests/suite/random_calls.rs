//! Random calls on the double. `NDCOMPAT_LIVES` is the number of runs, of 400 calls each.

#[path = "../../../shared/random_calls.rs"]
mod shared;

#[test]
fn random_calls_break_nothing() {
    let _turn = double::turn();
    shared::lives(support::seed::variable("NDCOMPAT_LIVES").unwrap_or(2000));
}
