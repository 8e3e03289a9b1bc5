//! Measures the layer's own price, see `bench/null/rows`.
//!
//!     ndcompat-null time     a line for each case, and for threads that use the same queues: its name, nanoseconds ours and
//!                            raw (medians), quartiles of the ratio
//!     ndcompat-null count    does each case once ours and once raw, for callgrind to count; prints their names
//!     ndcompat-null memory   the library's own bytes of heap for each of the first 500 connections, and of the next 500
//!
//! Columns are separated by tabs.

use ndcompat_null::{CASES, Case, Ours, ROUND, Raw, Round, together};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::time::Instant;
use support::client::{Client, connect, file, open};
use support::com::{Com, CompletionQueue, create};

/// How many rounds are timed.
const ROUNDS: usize = 4000;
/// How many threads use the same queues at once, and how many times that is timed.
const THREADS: [u64; 2] = [2, 4];
const TURNS: usize = 41;
/// How many connections are weighed, twice.
const CONNECTIONS: usize = 500;
/// How many rounds come before the one whose instructions are counted: the queues are the thread's own then.
const COLD: usize = 8;
/// How many rounds come first, so that all is warm.
const WARM_UP: usize = 50;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("memory") {
        return memory();
    }
    // The device connects before it becomes a null device.
    let _turn = double::turn();
    let (ours, raw) = (Ours::new(), Raw::new());
    double::complete_at_once();
    match std::env::args().nth(1).as_deref() {
        Some("time") => {
            CASES.iter().for_each(|case| time(case, &ours, &raw));
            THREADS.into_iter().for_each(|threads| time_together(threads, &ours, &raw));
        }
        Some("count") => CASES.iter().for_each(|case| count(case, &ours, &raw)),
        _ => panic!("time, count or memory?"),
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
    let turns = (0..WARM_UP + ROUNDS).map(|_| (once(&case.ours, ours), once(&case.raw, raw)));
    tell(case.name, turns.skip(WARM_UP).collect());
}

/// Times threads that use the same queues.
fn time_together(threads: u64, ours: &Ours, raw: &Raw) {
    let turns = (0..TURNS).map(|_| (together(ours, threads), together(raw, threads)));
    tell(&format!("Send, GetResults, {threads} threads at once on the same queues"), turns.collect());
}

/// Prints a line for times ours and raw.
fn tell(name: &str, times: Vec<(f64, f64)>) {
    let mut ratios: Vec<_> = times.iter().map(|(ours, raw)| ours / raw).collect();
    let (mut ours, mut raw): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    let [ours, raw] = [&mut ours, &mut raw].map(|times| quartile(times, 2));
    let [lower, upper] = [1, 3].map(|number| quartile(&mut ratios, number));
    println!("{name}\t{ours:.2}\t{raw:.2}\t{lower:.3}\t{upper:.3}");
}

fn quartile(values: &mut [f64], number: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * number / 4]
}

/// Lets callgrind count a round of each side; it collects in [`ndcompat_null_counted`] only.
fn count(case: &Case, ours: &Ours, raw: &Raw) {
    fn warm<P>(round: &Round<P>, path: &P) {
        for _ in 0..COLD {
            (round.prepare)(path);
            (round.run)(path);
        }
        (round.prepare)(path);
        ndcompat_null_counted(&mut || (round.run)(path));
    }
    warm(&case.ours, ours);
    warm(&case.raw, raw);
    println!("{}", case.name);
}

/// What is counted: found by this name.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn ndcompat_null_counted(run: &mut dyn FnMut()) {
    run();
}

/// Prints what connections weigh, without what the device has for them. Each is a connector with a queue pair and a
/// completion queue of its own; they share a file.
fn memory() {
    let _turn = double::turn();
    let adapter = open();
    let file = file(&adapter);
    let end = || {
        // SAFETY: each object is made with those made before it, which live; the results are locals.
        unsafe {
            let queue: Com<CompletionQueue> =
                create(|iid, out| adapter.create_completion_queue(iid, file, 32, 0, 0, out)).unwrap();
            let pair = create(|iid, out| {
                let queue = queue.as_ptr();
                adapter.create_queue_pair(iid, queue, queue, null_mut(), 16, 16, 2, 2, 0, out)
            });
            Client {
                connector: create(|iid, out| adapter.create_connector(iid, file, out)).unwrap(),
                queue_pair: pair.unwrap(),
                completion_queue: queue,
                region: create(|iid, out| adapter.create_memory_region(iid, file, out)).unwrap(),
                memory: Box::new([]),
                file,
                adapter: adapter.cast().unwrap(),
            }
        }
    };
    let mut connections = Vec::with_capacity(2 * CONNECTIONS);
    let mut open_two = || {
        let (active, passive) = (ManuallyDrop::new(end()), ManuallyDrop::new(end()));
        drop(connect(&active, &passive));
        connections.push((active, passive));
    };
    open_two();
    for _ in 0..2 {
        let before = double::heap() - double::weight();
        (0..CONNECTIONS / 2).for_each(|_| open_two());
        println!("{}", (double::heap() - double::weight() - before) / CONNECTIONS as isize);
    }
}
