//! Which requests are held back to be sent together in one call, and who sends them.
//!
//! A request is held back only if a thread will send it soon: its connection is then *listed* for the next look of any thread. If no
//! thread looks, the background thread does, when the take-over timer expires: it is set while that thread is off duty, unless a
//! thread is in `drive`, where nothing is held back.

use super::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Lock, Ordering, fence};

/// Requests sent unbatched after each look: typically a transfer and the message that announces it.
const UNBATCHED: u32 = 2;
/// The most requests sent together.
const BATCH_MAX: u32 = 16;
/// Longer requests are not held back.
const LENGTH_MAX: usize = 4096;

/// Connections with requests that are held back.
struct Waiting<C> {
    /// The background thread drives the poller. It may sleep until something is received, so nothing may be held back.
    on_duty: bool,
    connections: Vec<C>,
}

/// The connections of a poller that have requests held back, and the threads that may send them.
pub(super) struct Batches<C> {
    waiting: Lock<Waiting<C>>,
    /// Whether `waiting` may have connections: spares taking its lock.
    has_waiting: AtomicBool,
    /// There is a background thread.
    has_background: AtomicBool,
    /// A copy of the one in `waiting`, to be read without its lock.
    on_duty: AtomicBool,
    /// Threads of the program that are in `drive`.
    driving: AtomicUsize,
    /// When a thread of the program last said that it drives the poller; [`NEVER`] since the take-over timer has expired.
    noted: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl<C> Batches<C> {
    /// With room for some connections, so that posting does not allocate.
    pub(super) fn new() -> Batches<C> {
        Batches {
            waiting: Lock::new(Waiting { on_duty: false, connections: Vec::with_capacity(64) }),
            has_waiting: AtomicBool::new(false),
            has_background: AtomicBool::new(false),
            on_duty: AtomicBool::new(false),
            driving: AtomicUsize::new(0),
            noted: AtomicU64::new(NEVER),
        }
    }

    /// Has a connection flushed at the next look. Refuses if that may take long: while a thread of the program waits in `drive`,
    /// or the background thread on the epoll set.
    pub(super) fn defer(&self, connection: impl FnOnce() -> Option<C>) -> bool {
        if self.is_on_duty() || !self.has_background() {
            return false;
        }
        let mut waiting = self.waiting.lock();
        self.has_waiting.store(true, Ordering::Relaxed);
        // Store-load pair with `begin_driving`: either this sees `driving`, or that thread sees `has_waiting`, and flushes once the
        // lock is free.
        fence(Ordering::SeqCst);
        if waiting.on_duty || self.is_driven() {
            return false;
        }
        let Some(connection) = connection() else { return false };
        waiting.connections.push(connection);
        true
    }

    /// Calls `send` for each listed connection.
    pub(super) fn flush(&self, mut send: impl FnMut(C)) {
        if !self.has_waiting.load(Ordering::Relaxed) {
            return;
        }
        self.has_waiting.store(false, Ordering::Relaxed);
        loop {
            let connection = self.waiting.lock().connections.pop();
            match connection {
                Some(connection) => send(connection),
                None => return,
            }
        }
    }

    /// Forgets the listed connections.
    pub(super) fn clear(&self) {
        let connections = std::mem::take(&mut self.waiting.lock().connections);
        // Dropped without the lock, as these may be the last references.
        drop(connections);
    }

    /// A thread of the program enters `drive`. It must flush before it waits.
    pub(super) fn begin_driving(&self) {
        self.driving.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// It leaves. It must [`note`](Self::note) that, for the take-over timer to be set.
    pub(super) fn end_driving(&self) {
        self.driving.fetch_sub(1, Ordering::Release);
        // Store-load pair with `take_over`: either that sees nobody in `drive`, or `note` that the timer has expired.
        fence(Ordering::SeqCst);
    }

    /// A thread of the program drives the poller at the time `now`. Relieves the background thread if that is on duty, and has
    /// the take-over timer set by `set_timer`, unless that was done less than `pause` ago. `set_timer` is told whether somebody was
    /// relieved.
    pub(super) fn note(&self, now: u64, pause: u64, set_timer: impl FnOnce(bool)) {
        let before = self.noted.load(Ordering::Relaxed);
        let on_duty = self.is_on_duty();
        if !on_duty && before != NEVER && now.saturating_sub(before) < pause {
            return;
        }
        // One of several threads is enough.
        if self.noted.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            if on_duty {
                self.relieve(|| set_timer(true));
            } else {
                set_timer(false);
            }
        }
    }

    fn is_driven(&self) -> bool {
        self.driving.load(Ordering::Acquire) != 0
    }

    /// The background thread starts, or has ended: then nothing is held back any more.
    pub(super) fn set_background(&self, there: bool, send: impl FnMut(C)) {
        self.has_background.store(there, Ordering::SeqCst);
        if !there {
            self.go_on_duty(send);
        }
    }

    pub(super) fn has_background(&self) -> bool {
        self.has_background.load(Ordering::Relaxed)
    }

    /// The background thread takes over, as the timer has expired, and sends what was held back; nothing is held back from now on.
    /// Refuses while a thread is in `drive`, which sets the timer again when it leaves.
    pub(super) fn take_over(&self, send: impl FnMut(C)) -> bool {
        self.noted.store(NEVER, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let taken = !self.is_driven();
        if taken {
            self.go_on_duty(send);
        }
        taken
    }

    fn go_on_duty(&self, send: impl FnMut(C)) {
        self.waiting.lock().on_duty = true;
        self.on_duty.store(true, Ordering::Relaxed);
        self.has_waiting.store(true, Ordering::Relaxed);
        self.flush(send);
    }

    /// Whether the background thread is on duty.
    pub(super) fn is_on_duty(&self) -> bool {
        self.on_duty.load(Ordering::Relaxed)
    }

    /// A thread of the program relieves the background thread, and sets the take-over timer: not before, since the background thread
    /// may go on duty by that setting at once, and nobody would be left to take over.
    fn relieve(&self, set_timer: impl FnOnce()) {
        self.waiting.lock().on_duty = false;
        self.on_duty.store(false, Ordering::Relaxed);
        set_timer();
    }
}

/// Which requests of a connection are held back. Used with its queue pair locked.
pub(super) struct Pace {
    /// The number of looks when the last request was posted.
    looks: AtomicU64,
    /// Requests posted since that look.
    posted: AtomicU32,
    /// Requests that are held back.
    held_back: AtomicU32,
    /// The connection is listed, or a thread that has taken it off the list waits for the lock.
    listed: AtomicBool,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace {
            looks: AtomicU64::new(0),
            posted: AtomicU32::new(0),
            held_back: AtomicU32::new(0),
            listed: AtomicBool::new(false),
        }
    }

    /// Whether to hold back a request. `list` lists the connection, or refuses.
    pub(super) fn holds(&self, looks: u64, bytes: usize, list: impl FnOnce() -> bool) -> bool {
        let same = self.looks.load(Ordering::Relaxed) == looks;
        self.looks.store(looks, Ordering::Relaxed);
        let posted = if same { self.posted.load(Ordering::Relaxed) } else { 0 };
        self.posted.store(posted.saturating_add(1), Ordering::Relaxed);
        let held_back = self.held_back.load(Ordering::Relaxed);
        if posted < UNBATCHED && held_back == 0 || bytes > LENGTH_MAX || held_back + 1 >= BATCH_MAX {
            return false;
        }
        if !self.listed.load(Ordering::Relaxed) {
            if !list() {
                return false;
            }
            self.listed.store(true, Ordering::Relaxed);
        }
        self.held_back.store(held_back + 1, Ordering::Relaxed);
        true
    }

    /// Whether requests are held back.
    pub(super) fn holds_any(&self) -> bool {
        self.held_back.load(Ordering::Relaxed) != 0
    }

    /// All requests are being sent.
    pub(super) fn sent(&self) {
        self.held_back.store(0, Ordering::Relaxed);
    }

    /// Locks the queue pair of a connection that was taken off the list. Its mark goes only then: before, a thread that is just
    /// posting would set it again, and its next requests would count on a list that the connection is not on.
    pub(super) fn unlist<P>(&self, lock: impl FnOnce() -> P) -> P {
        let pair = lock();
        self.listed.store(false, Ordering::Relaxed);
        pair
    }
}
