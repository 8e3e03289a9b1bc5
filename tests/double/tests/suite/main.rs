//! Tests on the double that change nothing of their process for good. Each takes its turn.

mod causes;
mod connection_faults;
mod connections;
mod device;
mod faults;
mod files;
mod hardware;
mod notifications;
mod order;
mod random_calls;
mod receivers;
mod status;
#[path = "../../../shared/surprises.rs"]
mod surprises;

// For the modules of tests/shared, which take it from where they are.
use double::turn;

use support::client::Client;
use support::com::{Com, SharedReceiveQueue, create};

/// A shared receive queue on the file of `client`.
fn shared_queue(client: &Client, depth: u32, threshold: u32) -> Com<SharedReceiveQueue> {
    // SAFETY: `create` passes an id and a place for the object; the file is the client's.
    create(|iid, out| unsafe {
        client.adapter.create_shared_receive_queue(iid, client.file, depth, 1, threshold, 0, 0, out)
    })
    .unwrap()
}
