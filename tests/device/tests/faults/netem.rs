//! A wire that loses, delays, reorders, duplicates and corrupts packets.

use crate::traffic::{WINDOW, exchange, over, read};
use crate::{BOUND, random, times, wire};
use ndcompat::Status;
use std::process::Command;
use std::time::Instant;
use support::lab::Wire;

/// Sets up the netem queueing discipline on the network devices of both ends, until dropped.
pub struct Netem<'a>(&'a Wire);

impl<'a> Netem<'a> {
    pub fn new(wire: &'a Wire, what: &str) -> Netem<'a> {
        for end in &wire.ends {
            let arguments = ["qdisc", "add", "dev", &end.netdev, "root", "netem"];
            let status = Command::new("tc").args(arguments).args(what.split(' ')).status().expect("tc runs");
            assert!(status.success(), "tc {what}");
        }
        Netem(wire)
    }
}

impl Drop for Netem<'_> {
    fn drop(&mut self) {
        for end in &self.0.ends {
            let _ = Command::new("tc").args(["qdisc", "del", "dev", &end.netdev, "root"]).status();
        }
    }
}

#[test]
fn a_bad_wire_spoils_no_message() {
    let (wire, mut random) = (wire(), random());
    for what in [
        "loss 0.1%",
        "loss 1%",
        "loss 10%",
        "delay 5ms",
        "delay 5ms reorder 25% 50%",
        "duplicate 5%",
        "corrupt 1%",
    ] {
        let (begin, mut arrived, mut broken, mut refused) = (Instant::now(), 0, Vec::new(), Vec::new());
        let netem = Netem::new(&wire, what);
        let heavy = what == "loss 10%";
        // A device gives up when several packets in turn are lost or spoilt, which is possible: then with a new connection.
        for _ in 0..if heavy { 1 } else { 3 } {
            match over(&wire) {
                Ok(mut pair) => {
                    for _ in 0..times(1) {
                        let exchanged = exchange(&mut pair, &mut random, 4 * WINDOW)
                            .and_then(|()| read(&mut pair, &mut random));
                        match exchanged {
                            Ok(()) => arrived += 5 * WINDOW,
                            Err(status) => {
                                broken.push(status);
                                break;
                            }
                        }
                    }
                }
                Err(status) => refused.push(status),
            }
            if arrived > 0 {
                break;
            }
        }
        drop(netem);
        println!(
            "{what}: {arrived} messages and reads in {:?}, broken {broken:?}, refused {refused:?}",
            begin.elapsed()
        );
        for &status in &broken {
            assert!([Status::IO_TIMEOUT, Status::CANCELED].contains(&status), "{what}: {status}");
        }
        assert!(heavy || arrived > 0, "{what}: nothing arrives, refused {refused:?}");
        assert!(begin.elapsed() < times(1) * 6 * BOUND, "{what}");
    }
    // After the fault everything works.
    let mut pair = over(&wire).expect("a connection");
    exchange(&mut pair, &mut random, 4 * WINDOW).expect("messages");
}
