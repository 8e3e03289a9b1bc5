//! Random calls on the double. `NDCOMPAT_LIVES` is the number of runs, of 400 calls each.

#[path = "../../shared/random_calls.rs"]
mod random_calls;

#[test]
fn random_calls_break_nothing() {
    let _turn = double::turn();
    let lives = std::env::var("NDCOMPAT_LIVES").map_or(2000, |lives| lives.parse().expect("a number"));
    random_calls::lives(lives);
}
