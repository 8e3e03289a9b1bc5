//! Peers that have connected over TCP and asked for nothing: how many there may be, as each has a descriptor of the process.

use std::collections::VecDeque;
use std::sync::Weak;

use parking_lot::Mutex;

/// The most of them. Beyond that the oldest ones are closed.
const ARRIVALS_MAX: usize = 1024;
/// They may have one of so many of the descriptors that the process may have.
const PART: usize = 4;
/// One of so many is closed at a time.
const TURNED_AWAY: usize = 8;

/// A peer that has connected over TCP.
pub(super) trait Arrival: Send + Sync {
    /// Whether it may be closed if there are too many: it has not asked for a connection that can be.
    fn is_arriving(&self) -> bool;
    /// Closes it if that is still so.
    fn turn_away(&self);
}

/// The arrivals of all listeners of a poller, oldest first. Some may be connections meanwhile.
#[derive(Default)]
pub(super) struct Arrivals(Mutex<VecDeque<Weak<dyn Arrival>>>);

/// How many there may be. The program may change its limit at any time.
fn most() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there while the call lasts.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } {
        0 => ARRIVALS_MAX.min(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) / PART).max(1),
        _ => ARRIVALS_MAX,
    }
}

impl Arrivals {
    /// Adds one. If there are too many, the oldest are turned away.
    pub(super) fn add(&self, one: Weak<dyn Arrival>) {
        let most = most();
        let mut all = self.0.lock();
        all.push_back(one);
        let are_many = all.len() > most;
        drop(all);
        if are_many {
            self.turn_away(|count| if count > most { count - most + most / TURNED_AWAY } else { 0 });
        }
    }

    /// Turns half of them away: the process has no descriptor left.
    pub(super) fn make_room(&self) {
        self.turn_away(|count| count.div_ceil(2));
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }

    /// Turns the oldest away, of whose number `count` makes how many.
    fn turn_away(&self, count: impl FnOnce(usize) -> usize) {
        let mut all = self.0.lock();
        all.retain(|one| one.upgrade().is_some_and(|one| one.is_arriving()));
        let count = count(all.len()).min(all.len());
        let oldest: Vec<_> = all.drain(..count).collect();
        // Closed without the lock.
        drop(all);
        for one in oldest.iter().filter_map(Weak::upgrade) {
            one.turn_away();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Peer(Mutex<bool>);

    impl Arrival for Peer {
        fn is_arriving(&self) -> bool {
            *self.0.lock()
        }

        fn turn_away(&self) {
            *self.0.lock() = false;
        }
    }

    /// Which peers are still there after `count` have come, of which the first is a connection now.
    fn arrive(arrivals: &Arrivals, count: usize) -> Vec<Arc<Peer>> {
        let peers: Vec<_> = (0..count).map(|_| Arc::new(Peer(Mutex::new(true)))).collect();
        for peer in &peers {
            let one: Weak<Peer> = Arc::downgrade(peer);
            arrivals.add(one);
            *peers[0].0.lock() = false;
        }
        peers
    }

    fn left(peers: &[Arc<Peer>]) -> Vec<usize> {
        peers.iter().enumerate().filter(|(_, peer)| peer.is_arriving()).map(|(number, _)| number).collect()
    }

    #[test]
    fn the_oldest_half_makes_room() {
        let arrivals = Arrivals::default();
        let peers = arrive(&arrivals, 6);
        arrivals.make_room();
        assert_eq!(left(&peers), [4, 5], "of the five that have asked for nothing, three have gone");
        arrivals.make_room();
        assert_eq!(left(&peers), [5]);
        arrivals.make_room();
        arrivals.make_room();
        assert!(left(&peers).is_empty());
    }

    #[test]
    fn there_are_never_more_than_may_be() {
        let arrivals = Arrivals::default();
        let most = most();
        let peers = arrive(&arrivals, most + 1);
        assert_eq!(left(&peers).len(), most, "the first has asked and does not count");
        let more = arrive(&arrivals, 2);
        assert_eq!(left(&peers).len() + left(&more).len(), most - most / TURNED_AWAY);
        assert_eq!(left(&peers).first(), Some(&(2 + most / TURNED_AWAY)), "the oldest have gone");
    }
}
