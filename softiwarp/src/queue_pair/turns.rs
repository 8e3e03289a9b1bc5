//! Who gets the receives that are posted to a shared queue while messages wait for some: the messages in the order in which they began
//! to wait. A message that arrives now does not get in before them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

/// A connection with a message that waits for a receive.
pub(crate) trait Waiter: Send + Sync {
    /// Has the connection go on soon, on another call: it is called with queue pairs locked.
    fn wake(&self);
}

/// Calls the waiter, if it is still there. No lock of a shared queue may be held, as this may drop the waiter.
pub(super) fn wake(waiter: Option<&Weak<dyn Waiter>>) {
    if let Some(waiter) = waiter.and_then(Weak::upgrade) {
        waiter.wake();
    }
}

/// Those that wait, by their numbers, which grow.
#[derive(Default)]
pub(super) struct Turns {
    last: u64,
    waiting: BTreeMap<u64, Weak<dyn Waiter>>,
    /// Those that were called and have not come. Each has one of the receives that are there.
    called: BTreeSet<u64>,
}

impl Turns {
    /// How many of the receives that are there belong to somebody who was called.
    pub(super) fn promised(&self) -> usize {
        self.called.len()
    }

    /// Begins to wait.
    pub(super) fn join(&mut self, waiter: Weak<dyn Waiter>) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, waiter);
        self.last
    }

    /// There is a receive that belongs to nobody. Returns who is to be woken.
    pub(super) fn call(&mut self) -> Option<Weak<dyn Waiter>> {
        let (turn, waiter) = self.waiting.pop_first()?;
        self.called.insert(turn);
        Some(waiter)
    }

    /// Whether this one was called.
    pub(super) fn is_called(&self, turn: u64) -> bool {
        self.called.contains(&turn)
    }

    /// It takes its receive, if it was called.
    pub(super) fn take(&mut self, turn: u64) -> bool {
        self.called.remove(&turn)
    }

    /// It does not wait any more. If it was called, the next one is: returns who is to be woken.
    pub(super) fn leave(&mut self, turn: u64) -> Option<Weak<dyn Waiter>> {
        if self.waiting.remove(&turn).is_none() && self.called.remove(&turn) { self.call() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Waiter for Nobody {
        fn wake(&self) {}
    }

    fn join(turns: &mut Turns) -> u64 {
        turns.join(Weak::<Nobody>::new())
    }

    #[test]
    fn receives_go_to_those_who_have_waited_longest() {
        let mut turns = Turns::default();
        assert!(turns.call().is_none(), "nobody waits");
        let [first, second, third] = [(); 3].map(|()| join(&mut turns));
        assert!(turns.call().is_some() && turns.call().is_some());
        assert_eq!([first, second, third].map(|turn| turns.is_called(turn)), [true, true, false]);
        assert_eq!(turns.promised(), 2);
        assert!(turns.take(second) && !turns.take(second) && !turns.take(third));
        assert_eq!(turns.promised(), 1);
    }

    #[test]
    fn who_leaves_hands_its_receive_on() {
        let mut turns = Turns::default();
        let [first, second, third, fourth] = [(); 4].map(|()| join(&mut turns));
        assert!(turns.call().is_some());
        assert!(turns.leave(second).is_none(), "it had none");
        assert!(turns.leave(first).is_some());
        assert!(turns.is_called(third));
        assert!(turns.take(third));
        assert!(turns.leave(third).is_none(), "it has taken its receive");
        assert!(turns.call().is_some() && turns.leave(fourth).is_none());
        assert_eq!(turns.promised(), 0, "nobody is left, and the receive is anybody's");
    }
}
