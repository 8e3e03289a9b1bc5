//! Methods of all interfaces on any objects, with arguments that fit and that do not, on the double. A connection that nobody
//! touches works all the time.

#![no_main]

#[path = "../../tests/shared/random_calls.rs"]
#[allow(dead_code)]
mod random_calls;

use support::chance::Chance;
use support::client::Client;
use support::watched::Ports;

/// What lasts: the turn with the double, a connection, and a port.
type Lasting = (double::Turn, (Client, Client), Ports);

thread_local! {
    static LASTING: Lasting = (double::turn(), support::client::connected(), Ports::new(1));
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    LASTING.with(|(_turn, (active, passive), ports)| {
        random_calls::life(Chance::with_bytes(data), random_calls::CALLS, ports);
        support::client::messages_pass(active, passive);
    });
});
