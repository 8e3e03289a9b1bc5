//! Tests on the double that change nothing of their process for good. Each takes its turn.

mod causes;
mod connection_faults;
mod connections;
mod device;
mod faults;
mod files;
mod notifications;
mod order;
mod random_calls;
mod receivers;
mod status;
#[path = "../../../shared/surprises.rs"]
mod surprises;

// For the modules of tests/shared, which take it from where they are.
use double::turn;
