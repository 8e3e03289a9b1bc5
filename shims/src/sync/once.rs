//! `INIT_ONCE`.

use super::Deadline;
use super::atomic::{AtomicUsize, Ordering::*};
use super::park::{FilterOp, park, unpark};

/// The states, in the two low bits, as on Windows, where programs can see them.
const STATE: usize = 3;
const RUNNING: usize = 1;
const DONE: usize = 2;
/// Several threads may initialise, and the first to finish wins.
const ASYNC: usize = 3;

/// `INIT_ONCE`: the context, whose two low bits are free, and the state in those.
#[repr(transparent)]
#[derive(Default)]
pub struct InitOnce(AtomicUsize);

/// What the calling thread has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Nothing: the context.
    Use(usize),
    /// Initialise, and then call [`InitOnce::complete`].
    Initialise,
}

/// Why a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The other kind of initialisation is in progress, or an argument is invalid.
    Invalid,
    /// Nothing is being initialised.
    NotBegun,
}

impl InitOnce {
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The context, if it is initialised.
    pub(crate) fn context(&self) -> Option<usize> {
        let now = self.0.load(Acquire);
        (now & STATE == DONE).then_some(now & !STATE)
    }

    /// Begins, or waits for the thread that has. With `shared` several threads may begin.
    pub(crate) fn begin(&self, shared: bool) -> Result<Task, Refused> {
        let mut now = self.0.load(Acquire);
        loop {
            match (now & STATE, shared) {
                (DONE, _) => return Ok(Task::Use(now & !STATE)),
                (RUNNING, true) | (ASYNC, false) => return Err(Refused::Invalid),
                (ASYNC, true) => return Ok(Task::Initialise),
                (RUNNING, false) => {
                    let is_running = || self.0.load(Relaxed) & STATE == RUNNING;
                    park(self.key(), 0, is_running, || (), || (), Deadline::Never);
                    now = self.0.load(Acquire);
                }
                _ => {
                    let begun = if shared { ASYNC } else { RUNNING };
                    match self.0.compare_exchange(now, begun, Acquire, Acquire) {
                        Ok(_) => return Ok(Task::Initialise),
                        Err(other) => now = other,
                    }
                }
            }
        }
    }

    /// Ends [`begin`](Self::begin) with the context; with `None` it has failed and the next thread begins.
    pub(crate) fn complete(&self, shared: bool, context: Option<usize>) -> Result<(), Refused> {
        let outcome = match context {
            Some(context) if context & STATE != 0 => return Err(Refused::Invalid),
            Some(context) => context | DONE,
            None if shared => return Err(Refused::Invalid),
            None => 0,
        };
        match self.0.load(Acquire) & STATE {
            // No other thread changes it now.
            RUNNING => {
                unpark(self.key(), |_| FilterOp::Unpark, |_, _| self.0.store(outcome, Release));
                Ok(())
            }
            ASYNC if !shared => Err(Refused::Invalid),
            ASYNC => {
                let won = self.0.compare_exchange(ASYNC, outcome, AcqRel, Relaxed).is_ok();
                if won { Ok(()) } else { Err(Refused::NotBegun) }
            }
            _ => Err(Refused::NotBegun),
        }
    }
}
