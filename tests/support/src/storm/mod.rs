//! A stress test: threads create, use and end connections concurrently and at random, and a model checks the results.
//!
//! Each overlapped request completes once and notifies once, in the way its file is set up for. Each posted request is reported
//! once, in the order of posting. Received data are what was sent. Nothing hangs, nothing leaks.
//!
//! Its choices come from a seed, which is printed. The scheduling of threads is not reproduced, so a failing seed may need
//! several runs to fail again.

mod counts;
mod end;
mod inbox;
mod ledger;
mod lobby;
mod memory;
mod pair;
mod parts;
mod pool;
mod queue;

use crate::client::{self, open};
use crate::com::{Adapter, Com};
use crate::library::{CancelIoEx, DllCanUnloadNow};
use crate::seed::{seed, variable};
use crate::waits::{self, Waits};
use crate::watched::{Completed, LIMIT, Ports, Way};
use counts::{Counts, descriptors};
use end::{DEPTH, End, Shape};
use fastrand::Rng;
use ledger::Outcome;
use lobby::Lobby;
use ndcompat::Status;
use ndcompat::types::{NotifyType, RequestFlags};
use pair::{BREAKS, Making, Pair};
use parts::File;
use pool::Pool;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The most connections at a time.
const PAIRS: usize = 8;
/// The number of completion ports that files share.
const PORTS: usize = 2;
/// How many times the adapter is opened.
const ADAPTERS: usize = 2;

/// The parameters of a storm.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// The seed of its random choices.
    pub seed: u64,
    /// The number of threads that use connections. Each port has two more, which take packets.
    pub threads: usize,
    /// How long it lasts.
    pub length: Length,
}

/// How long each thread of a storm goes on.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// For so many actions: the same choices each time.
    Actions(u64),
    /// For this time.
    Time(Duration),
}

impl Length {
    /// That of the storm before the one that counts.
    fn of_first(self) -> Length {
        match self {
            Length::Actions(count) => Length::Actions(count / 4),
            Length::Time(time) => Length::Time((time / 10).max(Duration::from_secs(2))),
        }
    }
}

/// Counts of what happened.
#[derive(Debug, Default)]
struct Tally {
    made: AtomicU64,
    broken: AtomicU64,
    /// By a listener that others used, too.
    met: AtomicU64,
    /// Ends that shared their queues.
    pooled: AtomicU64,
    ended: AtomicU64,
    results: AtomicU64,
    notified: AtomicU64,
    waits: waits::Count,
}

struct Shared {
    storm: Storm,
    adapters: Vec<Com<Adapter>>,
    ports: Ports,
    pairs: Mutex<Vec<Arc<Pair>>>,
    /// For each adapter, what ends share with others until enough have joined.
    pools: Vec<Mutex<Option<Arc<Pool>>>>,
    /// For each adapter, a listener that threads share until one replaces it.
    lobbies: Vec<Mutex<Option<Arc<Lobby>>>>,
    completed: Arc<Mutex<Completed>>,
    names: AtomicU32,
    over: AtomicBool,
    tally: Tally,
}

/// How the requests of a file notify.
fn way(chance: &mut Rng) -> Way {
    match chance.u32(..5) {
        0 => Way::Event,
        1 => Way::Callback,
        2 => Way::Nothing,
        _ => Way::Port(chance.usize(..PORTS)),
    }
}

/// Starts the thread pools of callbacks, which keep ports open until the process ends.
fn start_pools() {
    waits::start_pool();
    let file = File(client::file(&open()), Way::Callback);
    Ports::new(0).bind(file.0, file.1);
}

impl Storm {
    /// The storm that `NDCOMPAT_SEED`, `NDCOMPAT_STORM_SECONDS`, `NDCOMPAT_STORM_ACTIONS` and `NDCOMPAT_STORM_THREADS` describe;
    /// without them one in which each thread does `actions` things.
    pub fn from_environment(actions: u64) -> Storm {
        let length = match variable("NDCOMPAT_STORM_SECONDS") {
            Some(seconds) => Length::Time(Duration::from_secs(seconds)),
            None => Length::Actions(variable("NDCOMPAT_STORM_ACTIONS").unwrap_or(actions)),
        };
        let threads = variable("NDCOMPAT_STORM_THREADS").unwrap_or(4) as usize;
        Storm { seed: seed(), threads, length }
    }

    /// Runs it on the device under test, and checks that nothing has leaked.
    pub fn pass(self) {
        println!("{self:?}");
        // The first storm does what a process does once. A short one may bind no file to a callback, so the pools are started here.
        start_pools();
        Storm { length: self.length.of_first(), ..self }.blow();
        let (before, open) = (Counts::now(), descriptors());
        let tally = Storm { seed: !self.seed, ..self }.blow();
        println!("{tally:?}");
        let deadline = Instant::now() + LIMIT;
        loop {
            let after = Counts::now();
            if after.is_back_to(&before) {
                println!("{before:?} before, {after:?} after");
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{before:?} before, {after:?} after; {open:?} before, {:?} after",
                descriptors()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(tally.made.into_inner() > 0 && tally.results.into_inner() > 0, "a storm, and nothing moved");
    }

    fn blow(self) -> Tally {
        let shared = Shared {
            storm: self,
            adapters: (0..ADAPTERS).map(|_| open()).collect(),
            ports: Ports::new(PORTS),
            pairs: Mutex::default(),
            pools: (0..ADAPTERS).map(|_| Mutex::default()).collect(),
            lobbies: (0..ADAPTERS).map(|_| Mutex::default()).collect(),
            completed: Arc::default(),
            names: AtomicU32::new(1),
            over: AtomicBool::new(false),
            tally: Tally::default(),
        };
        // Written directly, not captured: the process may abort.
        std::panic::set_hook(Box::new(|panic| _ = writeln!(std::io::stderr(), "{panic}")));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let shared = &shared;
                    scope.spawn(move || Worker::new(shared, thread).work())
                })
                .collect();
            for number in 0..2 * PORTS {
                let shared = &shared;
                scope.spawn(move || {
                    while !shared.over.load(Ordering::Acquire) {
                        match number % 2 {
                            0 => shared.ports.take(number / 2, 20),
                            _ => shared.ports.take_all(number / 2, 20),
                        }
                    }
                });
            }
            let failed = workers.into_iter().map(|worker| worker.join()).filter(Result::is_err).count();
            if failed > 0 {
                // The other threads may wait for something that never arrives.
                eprintln!("seed {}: {failed} threads have failed", self.seed);
                std::process::abort();
            }
            let pairs = std::mem::take(&mut *shared.pairs.lock().unwrap());
            pairs.into_iter().for_each(|pair| drop(Arc::into_inner(pair).expect("nobody else has it")));
            shared.pools.iter().for_each(|pool| drop(pool.lock().unwrap().take()));
            shared.lobbies.iter().for_each(|lobby| drop(lobby.lock().unwrap().take()));
            // The scope waits for the port threads, which must be told to end even if this panics.
            let finish = AssertUnwindSafe(|| std::mem::take(&mut *shared.completed.lock().unwrap()).finish());
            let finished = catch_unwind(finish);
            shared.over.store(true, Ordering::Release);
            finished.unwrap_or_else(|panic| resume_unwind(panic));
        });
        let Shared { adapters, ports, tally, .. } = shared;
        drop((adapters, ports));
        // SAFETY: no arguments.
        assert_eq!(unsafe { DllCanUnloadNow() }, Status::SUCCESS, "objects are left");
        tally
    }
}

/// One thread of a storm.
struct Worker<'a> {
    shared: &'a Shared,
    thread: usize,
    chance: Rng,
    waits: Waits<'a>,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared, thread: usize) -> Worker<'a> {
        let seed = shared.storm.seed.wrapping_add(thread as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let waits = Waits::new(&shared.ports, &shared.tally.waits, !seed);
        Worker { shared, thread, chance: Rng::with_seed(seed), waits }
    }

    fn work(mut self) {
        let (begun, mut done) = (Instant::now(), 0);
        let length = self.shared.storm.length;
        let goes_on = |done: u64| match length {
            Length::Actions(count) => done < count,
            Length::Time(time) => begun.elapsed() < time,
        };
        while goes_on(done) {
            done += 1;
            let count = self.shared.pairs.lock().unwrap().len();
            if count == 0 || (count < PAIRS && self.chance.u32(..100) == 0) {
                self.make();
                continue;
            }
            let pair = {
                let pairs = self.shared.pairs.lock().unwrap();
                if pairs.is_empty() {
                    continue;
                }
                pairs[self.chance.usize(..pairs.len())].clone()
            };
            self.act(&pair);
        }
    }

    fn shape(&mut self) -> Shape {
        let chance = &mut self.chance;
        Shape {
            shared: chance.u32(..4) == 0,
            two_queues: chance.bool(),
            many_files: chance.bool(),
            free_polling: chance.u32(..4) == 0,
            ways: [way(chance), way(chance), way(chance)],
        }
    }

    /// Every third end, what it shares with others.
    fn pool(&mut self, adapter: usize) -> Option<Arc<Pool>> {
        if self.chance.u32(..3) > 0 {
            return None;
        }
        let mut pool = self.shared.pools[adapter].lock().unwrap();
        if let Some(pool) = pool.as_ref().filter(|pool| pool.join()) {
            return Some(pool.clone());
        }
        let notice = ([way(&mut self.chance), way(&mut self.chance)], self.chance.u32(..4) == 0);
        let (adapter, storm) = (&self.shared.adapters[adapter], &self.shared.storm);
        let whose = (&self.waits, &*self.shared.completed);
        let new = Arc::new(Pool::new(adapter, DEPTH, storm.threads, notice, whose, self.chance.u64(..)));
        new.join();
        *pool = Some(new.clone());
        Some(new)
    }

    /// For every other connection, a listener that others use, too.
    fn lobby(&mut self, adapter: usize) -> Option<Arc<Lobby>> {
        if self.chance.bool() {
            return None;
        }
        let mut lobby = self.shared.lobbies[adapter].lock().unwrap();
        if lobby.is_none() || self.chance.u32(..16) == 0 {
            let way = way(&mut self.chance);
            *lobby = Some(Arc::new(Lobby::new(&self.shared.adapters[adapter], &self.waits, way)));
        }
        lobby.clone()
    }

    fn make(&mut self) {
        let shared = self.shared;
        let adapters = [self.chance.usize(..ADAPTERS), self.chance.usize(..ADAPTERS)];
        let broken = BREAKS[self.chance.usize(..BREAKS.len())];
        // A connection that is broken off earlier than a peer gets it would leave that without one.
        let lobby = if broken.is_after_meeting() { self.lobby(adapters[1]) } else { None };
        let pools = adapters.map(|at| self.pool(at));
        // What shares nothing may be on an adapter of its own.
        let fresh = [pools[0].is_none(), pools[1].is_none() && lobby.is_none()]
            .map(|alone| (alone && self.chance.u32(..8) == 0).then(open));
        let making = Making {
            adapters: std::array::from_fn(|at| fresh[at].as_ref().unwrap_or(&shared.adapters[adapters[at]])),
            shapes: [self.shape(), self.shape()],
            pools,
            lobby,
            name: shared.names.fetch_add(2, Ordering::Relaxed),
            threads: shared.storm.threads,
            order: self.chance.u64(..),
            broken,
        };
        let tally = &shared.tally;
        tally.met.fetch_add(u64::from(making.lobby.is_some()), Ordering::Relaxed);
        tally.pooled.fetch_add(making.pools.iter().flatten().count() as u64, Ordering::Relaxed);
        match Pair::make(&making, &self.waits, &shared.completed) {
            Some(pair) => {
                shared.tally.made.fetch_add(1, Ordering::Relaxed);
                shared.pairs.lock().unwrap().push(pair);
            }
            None => drop(shared.tally.broken.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Does something with a pair, perhaps concurrently with others.
    fn act(&mut self, pair: &Arc<Pair>) {
        let (end, peer) = pair.from(self.chance.usize(..2));
        let words = self.chance.usize(2..=memory::SLOT / 4);
        let flags = match self.chance.u32(..4) {
            0 => RequestFlags::SILENT_SUCCESS,
            1 => RequestFlags::READ_FENCE,
            _ => RequestFlags::empty(),
        };
        // Without an order of results it is unknown which silent requests have completed.
        let flags = if end.takes_any_order() { flags & !RequestFlags::SILENT_SUCCESS } else { flags };
        match self.chance.u32(..1000) {
            0..300 => end.receive(self.thread),
            300..550 => {
                let solicit = if self.chance.bool() { RequestFlags::SOLICIT } else { RequestFlags::empty() };
                _ = end.send(peer, self.thread, words, flags | solicit);
            }
            550..650 => drop(end.write_and_read(peer, self.thread, words, flags, false)),
            650..920 => {
                self.shared.tally.results.fetch_add(end.poll() as u64, Ordering::Relaxed);
            }
            920..960 => self.notify(pair),
            960..970 => self.use_window(pair),
            970..980 => self.resize(pair),
            980..985 => self.wait_for_end(pair),
            985..990 => self.cancel(pair),
            990..993 => self.end(pair),
            993..998 => self.deliver(pair),
            _ => std::thread::yield_now(),
        }
    }

    /// Takes results of both ends.
    fn poll(&self, pair: &Pair) {
        for end in pair.ends() {
            self.shared.tally.results.fetch_add(end.poll() as u64, Ordering::Relaxed);
        }
    }

    /// Takes results until the request is reported. Returns whether it succeeded.
    fn outcome(&self, pair: &Pair, outcome: Option<Arc<Outcome>>) -> bool {
        let Some(outcome) = outcome else { return false };
        let deadline = Instant::now() + LIMIT;
        loop {
            self.poll(pair);
            match outcome.status() {
                Some(status) => return status == Status::SUCCESS,
                None if pair.is_ending() => return false,
                None => assert!(Instant::now() < deadline, "a request is not reported"),
            }
            std::thread::yield_now();
        }
    }

    /// Sends a message, and takes results until it has arrived.
    fn deliver(&mut self, pair: &Pair) {
        let (end, peer) = pair.from(self.chance.usize(..2));
        let Some(number) = end.send(peer, self.thread, memory::WORDS, RequestFlags::empty()) else { return };
        let deadline = Instant::now() + LIMIT;
        while !peer.has_heard(self.thread, number) && !pair.is_ending() {
            assert!(Instant::now() < deadline, "message {number} of thread {} does not arrive", self.thread);
            self.poll(pair);
            std::thread::yield_now();
        }
    }

    /// One end binds its window; the other writes and reads through it.
    fn use_window(&mut self, pair: &Pair) {
        let Ok(_alone) = pair.window.try_lock() else { return };
        let (end, peer) = pair.from(self.chance.usize(..2));
        if self.outcome(pair, peer.bind(self.thread)) {
            let words = self.chance.usize(2..=memory::SLOT / 4);
            let (written, read) = end.write_and_read(peer, self.thread, words, RequestFlags::empty(), true);
            // The window is invalidated once no request uses it any more.
            let used = [written, read].into_iter().flatten().all(|outcome| self.outcome(pair, Some(outcome)));
            if used || !pair.is_ending() {
                let mut invalidated = peer.invalidate(self.thread);
                while invalidated.is_none() && !pair.is_ending() {
                    // The queue is full.
                    self.poll(pair);
                    invalidated = peer.invalidate(self.thread);
                }
                self.outcome(pair, invalidated);
            }
        }
    }

    /// Starts a notification, and checks that earlier ones have completed.
    fn notify(&mut self, pair: &Pair) {
        pair.see_notifications(&self.waits, &self.shared.tally.notified);
        let kind = [NotifyType::Any, NotifyType::Any, NotifyType::Solicited][self.chance.usize(..3)];
        pair.notify(self.chance.usize(..2), self.chance.usize(..2), kind);
    }

    fn resize(&mut self, pair: &Pair) {
        let (end, _) = pair.from(self.chance.usize(..2));
        let depth = DEPTH * self.chance.u32(1..=4);
        let queue = &end.queues[self.chance.usize(..end.queues.len())];
        let status = queue.resize(2 * depth);
        let expected = [Status::SUCCESS, Status::BUFFER_OVERFLOW, Status::NOT_SUPPORTED];
        assert!(expected.contains(&status), "Resize: {status}");
        if let Some(queue) = &end.shared {
            // SAFETY: no pointers.
            let status = unsafe { queue.modify(depth, self.chance.u32(..2)) };
            let expected = [Status::SUCCESS, Status::BUFFER_OVERFLOW, Status::NOT_SUPPORTED];
            assert!(expected.contains(&status), "Modify: {status}");
        }
    }

    fn wait_for_end(&mut self, pair: &Pair) {
        let (end, _) = pair.from(self.chance.usize(..2));
        end.awaits_disconnect.store(true, Ordering::Release);
        // SAFETY: the request is watched to its end.
        let begun =
            pair.begin("NotifyDisconnect", end, 0, |ov| unsafe { end.connector.notify_disconnect(ov) });
        assert!(begun.is_ok() || pair.is_ending(), "NotifyDisconnect");
    }

    fn cancel(&mut self, pair: &Pair) {
        if self.chance.u32(..4) == 0 {
            let lobby = self.shared.lobbies[self.chance.usize(..ADAPTERS)].lock().unwrap().clone();
            return lobby.iter().for_each(|lobby| lobby.cancel(self.chance.bool()));
        }
        let (end, _) = pair.from(self.chance.usize(..2));
        if self.chance.bool() {
            // Nothing may be pending on the file.
            // SAFETY: the file is open; NULL means all requests.
            unsafe { CancelIoEx(end.file(self.chance.usize(..3)), null_mut()) };
            return;
        }
        // SAFETY: no arguments.
        let status = unsafe {
            match self.chance.u32(..4) {
                0 => end.connector.cancel_overlapped_requests(),
                1 => end.region.cancel_overlapped_requests(),
                2 if end.shared.is_some() => {
                    end.shared.as_ref().expect("it is there").cancel_overlapped_requests()
                }
                _ => end.queues[0].object.cancel_overlapped_requests(),
            }
        };
        assert_eq!(status, Status::SUCCESS, "CancelOverlappedRequests");
    }

    /// Ends a connection, in one of several ways.
    fn end(&mut self, pair: &Arc<Pair>) {
        if !pair.end() {
            return;
        }
        self.shared.pairs.lock().unwrap().retain(|other| !Arc::ptr_eq(other, pair));
        let first = self.chance.usize(..2);
        let (end, peer) = pair.from(first);
        let drained = match self.chance.u32(..7) {
            // Both ends disconnect, one after the other or at once.
            0..3 => {
                let one = pair.disconnect(end);
                let both = self.chance.bool().then(|| pair.disconnect(peer));
                one.map(|request| self.waits.wait(&request, Some(&end.connector)));
                let silent =
                    both.is_none() && !peer.awaits_disconnect.load(Ordering::Acquire) && self.chance.bool();
                let other = both.flatten().or_else(|| if silent { None } else { pair.disconnect(peer) });
                other.map(|request| self.waits.wait(&request, Some(&peer.connector)));
                // An end with a pending NotifyDisconnect keeps its requests until it has disconnected, too.
                if peer.awaits_disconnect.load(Ordering::Acquire) {
                    peer.flush();
                }
                true
            }
            3..5 => {
                end.flush();
                peer.flush();
                true
            }
            5 => {
                let request = pair.disconnect(end);
                pair.cancel(end);
                request.map(|request| self.waits.wait(&request, Some(&end.connector)));
                end.flush();
                peer.flush();
                true
            }
            // All objects are released without a disconnect.
            _ => false,
        };
        if drained {
            pair.drain();
        }
        // Other threads may still be posting. Those requests are reported, too. This one sleeps, as a thread that took a packet
        // and runs holds back packets that the others may wait for.
        let deadline = Instant::now() + LIMIT;
        while Arc::strong_count(pair) > 1 {
            assert!(Instant::now() < deadline, "somebody does not come back");
            std::thread::sleep(Duration::from_millis(1));
        }
        if drained {
            pair.drain();
            if self.chance.u32(..4) == 0 {
                self.deregister(pair, end);
            }
        }
        self.shared.tally.ended.fetch_add(1, Ordering::Relaxed);
    }
    /// Deregisters the memory of an end, which may have a window bound to it.
    fn deregister(&self, pair: &Pair, end: &End) {
        // SAFETY: the request is watched to its end.
        let status = pair
            .run("Deregister", end, 2, &end.region, &self.waits, |ov| unsafe { end.region.deregister(ov) });
        assert!([Status::SUCCESS, Status::DEVICE_BUSY].contains(&status), "Deregister: {status}");
    }
}
