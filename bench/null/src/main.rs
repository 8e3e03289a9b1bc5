//! Measures the layer's own price, see `bench/null/rows`.
//!
//!     ndcompat-null time     a line for each case: its name, nanoseconds ours and raw (medians), quartiles of the ratio
//!     ndcompat-null count    does each case once ours and once raw, for callgrind to count; prints their names
//!
//! Columns are separated by tabs.

use ndcompat_null::{CASES, Case, Ours, ROUND, Raw, Round};
use std::time::Instant;

/// How many rounds are timed.
const ROUNDS: usize = 4000;
/// How many rounds come first, so that all is warm.
const WARM_UP: usize = 50;

fn main() {
    // The device connects before it becomes a null device.
    let _turn = double::turn();
    let (ours, raw) = (Ours::new(), Raw::new());
    double::complete_at_once();
    match std::env::args().nth(1).as_deref() {
        Some("time") => CASES.iter().for_each(|case| time(case, &ours, &raw)),
        Some("count") => CASES.iter().for_each(|case| count(case, &ours, &raw)),
        _ => panic!("time or count?"),
    }
}

/// The time that a round takes for each operation, in nanoseconds.
fn once<P>(round: &Round<P>, path: &P) -> f64 {
    (round.prepare)(path);
    let begin = Instant::now();
    (round.run)(path);
    begin.elapsed().as_nanos() as f64 / ROUND as f64
}

/// Times rounds in turns, so that what disturbs the machine disturbs both sides.
fn time(case: &Case, ours: &Ours, raw: &Raw) {
    let [mut mine, mut its, mut ratios] = [const { Vec::new() }; 3];
    for number in 0..WARM_UP + ROUNDS {
        let (ours, raw) = (once(&case.ours, ours), once(&case.raw, raw));
        if number >= WARM_UP {
            mine.push(ours);
            its.push(raw);
            ratios.push(ours / raw);
        }
    }
    let [ours, raw] = [&mut mine, &mut its].map(|times| quartile(times, 2));
    let [lower, upper] = [1, 3].map(|number| quartile(&mut ratios, number));
    println!("{}\t{ours:.2}\t{raw:.2}\t{lower:.3}\t{upper:.3}", case.name);
}

fn quartile(values: &mut [f64], number: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * number / 4]
}

/// Lets callgrind count a round of each side; it collects in [`ndcompat_null_counted`] only.
fn count(case: &Case, ours: &Ours, raw: &Raw) {
    fn twice<P>(round: &Round<P>, path: &P) {
        (round.prepare)(path);
        (round.run)(path);
        (round.prepare)(path);
        ndcompat_null_counted(&mut || (round.run)(path));
    }
    twice(&case.ours, ours);
    twice(&case.raw, raw);
    println!("{}", case.name);
}

/// What is counted: found by this name.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn ndcompat_null_counted(run: &mut dyn FnMut()) {
    run();
}
