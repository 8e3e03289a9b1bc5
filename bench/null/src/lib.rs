//! The same requests by ND's interfaces, as programs call them, and by raw verbs, on a device whose requests complete at
//! once: the difference is the layer's own price.
//!
//! The library is the one that `ci/build` made. Both sides end in the same functions of the null device.

mod ours;
mod raw;

pub use ours::Ours;
pub use raw::Raw;
use std::thread;
use std::time::Instant;

/// How many operations a round has.
pub const ROUND: u64 = 256;
/// The deepest queue that a round needs.
pub const DEPTH: u32 = ROUND as u32;
/// The most results taken at a time.
pub const BATCH: usize = 16;
/// How many bytes a request has.
pub const BYTES: u32 = 64;

/// What a request is, besides its list of one entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A send.
    Send,
    /// A send that carries its bytes itself.
    Inline,
    /// A send that reports only its failure.
    Silent,
    /// A read of the peer's memory.
    Read,
    /// A write to the peer's memory.
    Write,
    /// A receive.
    Receive,
}

/// How the completion of a request is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the notification is complete, with `GetOverlappedResult`.
    Result,
    /// Until the packet of the notification comes through a completion port.
    Port,
}

/// A way to the device: ours, or raw.
pub trait Path {
    /// Posts a request. The `number`th silent one of a round is one of many.
    fn post(&self, kind: Kind, number: u64);
    /// Asks for an event, posts a send, waits for the event, and takes the result. Raw has one way to wait.
    fn await_send(&self, how: Wait, number: u64);
    /// Takes up to `most` results, at most [`BATCH`], all of which must be good; says how many.
    fn results(&self, most: usize) -> usize;
}

/// One thing to measure.
pub struct Case {
    /// What it is.
    pub name: &'static str,
    /// A round of it, our way.
    pub ours: Round<Ours>,
    /// The same, raw.
    pub raw: Round<Raw>,
}

/// A round of [`ROUND`] operations on a way to the device.
pub struct Round<P> {
    /// What comes before it and is not measured.
    pub prepare: fn(&P),
    /// What is measured.
    pub run: fn(&P),
}

macro_rules! case {
    ($name:literal, $prepare:ident, $run:ident $(, $argument:path)?) => {
        Case {
            name: $name,
            ours: Round { prepare: $prepare, run: |path| $run(path $(, $argument)?) },
            raw: Round { prepare: $prepare, run: |path| $run(path $(, $argument)?) },
        }
    };
}

/// All there is to measure.
pub const CASES: &[Case] = &[
    case!("Send, GetResults", nothing, post_and_reap, Kind::Send),
    case!("Send inline, GetResults", nothing, post_and_reap, Kind::Inline),
    case!("Receive, GetResults", nothing, post_and_reap, Kind::Receive),
    case!("Read, GetResults", nothing, post_and_reap, Kind::Read),
    case!("Write, GetResults", nothing, post_and_reap, Kind::Write),
    case!("Send silent", nothing, post_silently),
    case!("GetResults of 16, each", fill, reap_batches),
    case!("GetResults of an empty queue", nothing, find_nothing),
    case!("Notify, Send, GetOverlappedResult, GetResults", nothing, await_sends, Wait::Result),
    case!("Notify, Send, completion port, GetResults", nothing, await_sends, Wait::Port),
    // The last: from then on, the queues are nobody's own.
    case!("Send, GetResults, queues of two threads", use_elsewhere, post_and_reap, Kind::Send),
];

fn nothing<P: Path>(_path: &P) {}

/// A way that another thread uses, while its own waits for that, or posts and reaps, too.
struct Lent<'a, P>(&'a P);

// SAFETY: requests may be posted and reaped by any thread.
unsafe impl<P> Send for Lent<'_, P> {}

impl<P: Path> Lent<'_, P> {
    fn post_and_reap(self, times: u64) {
        for number in 0..times {
            self.0.post(Kind::Send, number);
            // There is one for each thread that has posted and not reaped, perhaps another's than its own.
            assert!(self.0.results(1) == 1);
        }
    }
}

fn use_elsewhere<P: Path>(path: &P) {
    let lent = Lent(path);
    thread::scope(|scope| scope.spawn(|| lent.post_and_reap(1)).join()).expect("no panic there");
}

/// Has so many threads post and reap on the same queue pair and queue at once; nanoseconds for each of all requests.
pub fn together<P: Path>(path: &P, threads: u64) -> f64 {
    const EACH: u64 = 20_000;
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            let lent = Lent(path);
            scope.spawn(|| lent.post_and_reap(EACH));
        }
    });
    begin.elapsed().as_nanos() as f64 / (threads * EACH) as f64
}

#[inline(always)]
fn post_and_reap<P: Path>(path: &P, kind: Kind) {
    for number in 0..ROUND {
        path.post(kind, number);
        assert!(path.results(1) == 1);
    }
}

#[inline(always)]
fn post_silently<P: Path>(path: &P) {
    for number in 0..ROUND {
        path.post(Kind::Silent, number);
    }
}

fn fill<P: Path>(path: &P) {
    for number in 0..ROUND {
        path.post(Kind::Send, number);
    }
}

#[inline(always)]
fn reap_batches<P: Path>(path: &P) {
    for _ in 0..ROUND / BATCH as u64 {
        assert!(path.results(BATCH) == BATCH);
    }
}

#[inline(always)]
fn find_nothing<P: Path>(path: &P) {
    for _ in 0..ROUND {
        assert!(path.results(1) == 0);
    }
}

#[inline(always)]
fn await_sends<P: Path>(path: &P, how: Wait) {
    for number in 0..ROUND {
        path.await_send(how, number);
    }
}
