//! Processes that fork, on the double. The tests run one at a time, because no other thread may be inside the library during a
//! fork.

#[path = "../../shared/fork.rs"]
mod fork;

use double::turn;
