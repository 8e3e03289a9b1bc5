//! The requests posted on a queue and not yet reported. Each must be reported once, in the order of posting.

use ndcompat::Status;
use ndcompat::types::{Completion, RequestType};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

/// A request that was posted.
pub struct Posted {
    /// Its context, unique in the queue.
    pub context: u64,
    /// Its kind.
    pub kind: RequestType,
    /// Posted with `ND_OP_FLAG_SILENT_SUCCESS`.
    pub silent: bool,
    /// The local slot that it uses, and how many words of it.
    pub slot: Option<(usize, usize)>,
    /// The peer's slot that is free after it.
    pub peer_slot: Option<usize>,
    /// The number that a read must find.
    pub number: u32,
    /// For the thread that waits for this request.
    pub outcome: Arc<Outcome>,
}

/// The outcome of a request that a thread waits for.
#[derive(Default)]
pub struct Outcome(AtomicBool, AtomicU32);

impl Outcome {
    /// Its status, once it is reported.
    pub fn status(&self) -> Option<Status> {
        self.0.load(Ordering::Acquire).then(|| Status(self.1.load(Ordering::Relaxed) as i32))
    }

    fn set(&self, status: Status) {
        self.1.store(status.0 as u32, Ordering::Relaxed);
        self.0.store(true, Ordering::Release);
    }
}

/// The requests of one thread on one queue, in the order of posting.
type Line = Mutex<VecDeque<Posted>>;

/// The requests of a queue, listed for each thread: the order between two threads that post concurrently is unknown.
pub struct Ledger(Vec<Line>);

/// The upper half of a context is the thread's number.
const THREAD_SHIFT: u32 = 32;

impl Ledger {
    /// A ledger for this many threads.
    pub fn new(threads: usize) -> Ledger {
        Ledger((0..threads).map(|_| Line::default()).collect())
    }

    /// The context of request `number` of `thread`.
    pub fn context(thread: usize, number: u32) -> u64 {
        (thread as u64) << THREAD_SHIFT | u64::from(number)
    }

    fn line(&self, context: u64) -> MutexGuard<'_, VecDeque<Posted>> {
        let line = self.0.get((context >> THREAD_SHIFT) as usize);
        line.unwrap_or_else(|| panic!("a result with the context {context:#x}")).lock().unwrap()
    }

    /// Posts a request and records it, under the lock that [`report`](Self::report) takes.
    pub fn post(&self, posted: Posted, post: impl FnOnce() -> Status) -> Result<(), (Status, Posted)> {
        let mut line = self.line(posted.context);
        let status = post();
        if status != Status::SUCCESS {
            return Err((status, posted));
        }
        line.push_back(posted);
        Ok(())
    }

    /// Removes the request that `result` reports, and earlier silent ones, which have succeeded by then. `ordered`: no other
    /// thread takes results at the same time.
    pub fn report(&self, result: &Completion, ordered: bool) -> Vec<Posted> {
        let mut line = self.line(result.request_context);
        let at = line.iter().position(|posted| posted.context == result.request_context);
        let Some(at) = at else {
            panic!(
                "{:?} {:#x} is reported, but not outstanding",
                result.request_type, result.request_context
            );
        };
        assert_eq!(line[at].kind, result.request_type, "of {:#x}", result.request_context);
        if line[at].silent && result.status == Status::SUCCESS {
            panic!("the success of a silent {:?} is reported", result.request_type);
        }
        let early = line.iter().take(at).position(|posted| !posted.silent);
        if let (true, Some(missed)) = (ordered, early) {
            let missed = &line[missed];
            panic!(
                "{:?} {:#x} is reported before the earlier {:?} {:#x}",
                result.request_type, result.request_context, missed.kind, missed.context
            );
        }
        let mut over = Vec::new();
        if ordered {
            over.extend(line.drain(..at));
            over.extend(line.pop_front());
        } else {
            over.extend(line.remove(at));
        }
        let reported = over.last().expect("the request itself");
        reported.outcome.set(result.status);
        over
    }

    /// The number of outstanding requests that must be reported, and the first of them.
    pub fn outstanding(&self) -> (usize, Option<(RequestType, u64)>) {
        let (mut count, mut first) = (0, None);
        for line in &self.0 {
            let line = line.lock().unwrap();
            let mut due = line.iter().filter(|posted| !posted.silent);
            if let Some(posted) = due.next() {
                count += 1 + due.count();
                first = first.or(Some((posted.kind, posted.context)));
            }
        }
        (count, first)
    }
}
