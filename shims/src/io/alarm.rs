//! Timed calls, made by one thread of the process, which is started for the first one.

use super::threads::{self, ForkLock, outside};
use std::collections::BTreeMap;
use std::io;
use std::thread::Thread;
use std::time::Instant;

/// A call. It must be short, as others wait for it.
type Call = Box<dyn FnOnce() + Send>;

/// The key of a scheduled call.
pub(crate) type Alarm = (Instant, u64);

struct Alarms {
    calls: BTreeMap<Alarm, Call>,
    next: u64,
    /// The thread, once it runs.
    thread: Option<Thread>,
}

impl Alarms {
    const NONE: Alarms = Alarms { calls: BTreeMap::new(), next: 0, thread: None };

    fn start(&mut self) -> io::Result<()> {
        if self.thread.is_none() {
            self.thread = Some(threads::spawn("ndcompat-timer", serve)?.thread().clone());
        }
        Ok(())
    }
}

/// A forked child starts without calls. The parent's are leaked in it, not dropped.
static ALARMS: ForkLock<Alarms> = ForkLock::new(Alarms::NONE, |alarms| {
    std::mem::forget(std::mem::take(&mut alarms.calls));
    std::mem::replace(alarms, Alarms::NONE)
});

/// Starts the thread, if it is not running. Afterwards [`set`] cannot fail.
pub(crate) fn start() -> io::Result<()> {
    ALARMS.lock().start()
}

/// Schedules `call`. `None` if the thread cannot be started.
pub(crate) fn set(when: Instant, call: impl FnOnce() + Send + 'static) -> Option<Alarm> {
    let mut alarms = ALARMS.lock();
    alarms.start().ok()?;
    let alarm = (when, alarms.next);
    alarms.next += 1;
    alarms.calls.insert(alarm, Box::new(call));
    let is_first = alarms.calls.first_key_value().is_some_and(|(first, _)| *first == alarm);
    if let Some(thread) = alarms.thread.as_ref().filter(|_| is_first) {
        thread.unpark();
    }
    Some(alarm)
}

/// Cancels a call. Returns whether it had not started.
pub(crate) fn cancel(alarm: Alarm) -> bool {
    // Dropped without the lock: destructors of what the call owns may schedule or cancel calls.
    let call = ALARMS.lock().calls.remove(&alarm);
    call.is_some()
}

/// The first call if it is due, else the time of the first call, if there is one.
fn next() -> Result<Call, Option<Instant>> {
    let mut alarms = ALARMS.lock();
    match alarms.calls.first_entry() {
        Some(first) if first.key().0 <= Instant::now() => Ok(first.remove()),
        Some(first) => Err(Some(first.key().0)),
        None => Err(None),
    }
}

fn serve() {
    loop {
        // A new first call ends the sleep, also one that has not started yet.
        match next() {
            Ok(call) => call(),
            Err(None) => outside(std::thread::park),
            Err(Some(due)) => {
                outside(|| std::thread::park_timeout(due.saturating_duration_since(Instant::now())));
            }
        }
    }
}

/// Makes who sets or cancels a call wait, as long as the result lives.
#[cfg(test)]
pub(crate) fn hold() -> impl Drop {
    ALARMS.lock()
}
