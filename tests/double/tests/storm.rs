//! The storm on the double.

use double::turn;
use support::storm::Storm;

#[test]
fn a_storm_passes() {
    let _turn = turn();
    Storm::from_environment(60_000).pass();
}
