//! What is due when the poller's timer expires: deadlines, and connections that were woken. Whoever finds the timer expired does it.

use std::collections::BTreeSet;

use super::sync::Lock;

struct State<T> {
    deadlines: BTreeSet<(T, u64)>,
    /// The keys of what was woken.
    woken: Vec<u64>,
    /// What the timer is set to.
    set: Option<T>,
}

/// Deadlines and what was woken, by keys. `T` is the time.
pub(super) struct Schedule<T>(Lock<State<T>>);

impl<T: Copy + Ord> Schedule<T> {
    pub(super) fn new() -> Schedule<T> {
        Schedule(Lock::new(State { deadlines: BTreeSet::new(), woken: Vec::new(), set: None }))
    }

    /// Replaces the deadline `before` by the one `after`.
    pub(super) fn replace(&self, key: u64, before: Option<T>, after: Option<T>, set_timer: impl FnOnce(T)) {
        let mut state = self.0.lock();
        if let Some(before) = before {
            state.deadlines.remove(&(before, key));
        }
        if let Some(after) = after {
            state.deadlines.insert((after, key));
            state.set(after, set_timer);
        }
    }

    /// Has `resume` called for `key`, by the next [`expire`](Self::expire).
    pub(super) fn wake(&self, key: u64, now: T, set_timer: impl FnOnce(T)) {
        let mut state = self.0.lock();
        state.woken.push(key);
        state.set(now, set_timer);
    }

    /// The timer has expired, and was cleared before the time `now`. Another thread may have found the same.
    pub(super) fn expire(
        &self,
        now: T,
        mut resume: impl FnMut(u64),
        mut expired: impl FnMut(T, u64),
        set_timer: impl FnOnce(T),
    ) {
        // Who is woken meanwhile has its turn when other connections have had theirs.
        let woken = std::mem::take(&mut self.0.lock().woken);
        woken.into_iter().for_each(&mut resume);
        loop {
            let (at, key) = {
                let mut state = self.0.lock();
                match state.deadlines.first() {
                    Some(&due) if due.0 <= now => {
                        state.deadlines.pop_first();
                        due
                    }
                    first => {
                        let first = first.map(|&(at, _)| at);
                        state.set = if state.woken.is_empty() { first } else { Some(now) };
                        // With the lock, so that the last setting is the one that is known.
                        if let Some(next) = state.set {
                            set_timer(next);
                        }
                        return;
                    }
                }
            };
            expired(at, key);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        let mut state = self.0.lock();
        state.deadlines.clear();
        state.woken.clear();
    }
}

impl<T: Copy + Ord> State<T> {
    /// Sets the timer, unless it expires earlier: then it is set again when it does.
    fn set(&mut self, at: T, set_timer: impl FnOnce(T)) {
        if self.set.is_none_or(|set| at < set) {
            self.set = Some(at);
            set_timer(at);
        }
    }
}
