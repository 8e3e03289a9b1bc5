//! A connection that ends by a fault is reported on both sides. In a process of its own, as the report is the process's.

mod support;

use std::time::Duration;

use parking_lot::Mutex;
use softiwarp::queue_pair::Work;
use softiwarp::wire::{SendKind, Violation};
use support::device::*;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn a_message_without_a_receive_is_named_on_both_sides() {
    softiwarp::report::set(|text| SAID.lock().push(text.to_owned()));
    // At once, and after it has waited.
    for limit in [None, Some(Duration::from_millis(50))] {
        let pair = connected("127.0.0.1:0", OFFER);
        if let Some(limit) = limit {
            pair.ends.1.pair.lock().wait_for_receives(limit);
        }
        let kind = SendKind { solicited: false, invalidate: None };
        post(&pair.connections.0, 1, Work::Send(kind), &[]);
        let both = [&pair.devices.0, &pair.devices.1];
        until(&both, || (SAID.lock().len() == 2).then_some(()));
        let mut said = std::mem::take(&mut *SAID.lock());
        said.sort();
        assert!(said.iter().all(|line| line.contains("A message without a receive.")), "{said:?}");
        assert!(said.iter().all(|line| line.contains("NDCOMPAT_EMULATOR_RNR_TIMEOUT")), "{said:?}");
        assert!(said[0].contains("by its peer") && said[1].contains("by what its peer has sent"), "{said:?}");
    }
}

#[test]
fn every_violation_has_a_text() {
    assert_eq!(Violation::NO_BUFFER.text(), Some("A message without a receive."));
    assert_eq!(Violation { code: 0xEE, ..Violation::NO_BUFFER }.text(), None);
}
