//! Documented statuses, on the double: what the suites for real devices show, too.

#[path = "../../suites/adapter.rs"]
mod adapter;
#[path = "../../suites/connections.rs"]
mod connections;
#[path = "../../suites/requests.rs"]
mod requests;

use double::turn;
