//! Spinning before a sleep.

use crate::io::spin::{MOST, SHORT, Spinner};
use std::cell::Cell;

#[test]
fn what_does_not_pay_is_left_off_and_tried_again() {
    let spinner = Spinner::default();
    let looked = Cell::new(false);
    let spins = |found: bool| {
        looked.set(false);
        spinner.spin(SHORT, || {
            looked.set(true);
            found.then_some(())
        });
        looked.get()
    };
    let tries = (0..1000).filter(|_| spins(false)).count();
    assert!((5..20).contains(&tries), "{tries} of 1000");
    assert!((0..=2 * MOST).any(|_| spins(true)), "it is given up for good");
    assert!((0..1000).all(|_| spins(true)), "it pays again");
}
