//! Background progress, for programs that wait nowhere in this library: they spin on
//! `HasOverlappedIoCompleted`, or sleep in a poll loop of their own on a descriptor they got from us.
//!
//! One thread per process, started by the first request. While something is pending it ticks, and adopts the
//! files that no thread looked after for two ticks: it then sleeps in epoll on them. A thread that waits takes
//! its file back. When all that is pending is adopted or waited for, the ticking stops until that changes.
//! So a program that waits here pays for this with plain loads and stores.
//!
//! The thread does not survive a `fork`, no more than the locks of this library do: a child process must not
//! use what its parent created.

use super::file::File;
use super::parker::Parker;
use super::poller::{Poller, Source};
use super::sync::{Arc, AtomicU32, Lock, Ordering, Weak, fence};
use super::sys::Deadline;
use std::sync::OnceLock;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(2);
/// How long the ticks grow while threads look after everything.
const LONGEST_TICK: Duration = Duration::from_millis(16);
/// So many ticks without a look, and a file is adopted.
const UNATTENDED: u32 = 2;
/// So many ticks in which nothing happens, and the ticking stops.
const LULL: u32 = 3;

const NOT_STARTED: u32 = 0;
const TICKING: u32 = 1;
const DORMANT: u32 = 2;
const FAILED: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(NOT_STARTED);
static FILES: Lock<Vec<Entry>> = Lock::new(Vec::new());
static THREAD: OnceLock<Worker> = OnceLock::new();

/// What the background thread knows about a file.
struct Entry {
    file: Weak<File>,
    key: u64,
    looks: usize,
    quiet: u32,
    adopted: bool,
}

struct Worker {
    poller: Arc<Poller>,
    parker: Arc<Parker>,
}

/// An adopted file as a source of the background thread's poller.
struct Adopted(Weak<File>);

impl Source for Adopted {
    fn ready(&self) {
        if let Some(file) = self.0.upgrade() {
            file.poller.serve_ready();
        }
    }
}

/// Makes a new file known.
pub(super) fn register(file: &Arc<File>, key: u64) {
    FILES.lock().push(Entry { file: Arc::downgrade(file), key, looks: 0, quiet: 0, adopted: false });
}

/// Forgets a file that is about to close its descriptors.
pub(super) fn forget(file: &File) {
    let mut files = FILES.lock();
    if let Some(at) = files.iter().position(|entry| std::ptr::eq(entry.file.as_ptr(), file)) {
        let mut entry = files.swap_remove(at);
        entry.release(file);
    }
}

/// Something is pending that nobody may be looking after.
pub(super) fn wanted() {
    match STATE.load(Ordering::SeqCst) {
        TICKING | FAILED => {}
        DORMANT => rouse(),
        _ => start(),
    }
}

/// A thread stopped looking after a poller, and said so in an access of the order `SeqCst`.
#[inline]
pub(crate) fn left_alone() {
    if STATE.load(Ordering::SeqCst) == DORMANT {
        rouse();
    }
}

/// A thread looks after `poller` now: releases the files that it covers.
#[cold]
pub(crate) fn take_back(poller: &Poller) {
    poller.adopted.store(false, Ordering::SeqCst);
    let mut files = Vec::new();
    {
        let mut entries = FILES.lock();
        for entry in entries.iter_mut().filter(|entry| entry.adopted) {
            if let Some(file) = entry.file.upgrade() {
                if file.pollers().any(|own| std::ptr::eq(&**own, poller)) {
                    entry.release(&file);
                }
                files.push(file);
            }
        }
    }
    wanted();
}

fn rouse() {
    if STATE.swap(TICKING, Ordering::SeqCst) == DORMANT
        && let Some(worker) = THREAD.get()
    {
        worker.parker.wake();
    }
}

#[cold]
fn start() {
    if STATE.compare_exchange(NOT_STARTED, TICKING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        return;
    }
    let started = Poller::new().and_then(|poller| {
        // The program's signals are not this thread's business: it starts with all of them blocked.
        let thread = std::thread::Builder::new().name("ndcompat-io".into());
        super::sys::with_signals_blocked(|| thread.spawn(move || run(&poller)))
    });
    if started.is_err() {
        STATE.store(FAILED, Ordering::SeqCst);
    }
}

fn run(poller: &Arc<Poller>) {
    let worker = THREAD.get_or_init(|| Worker { poller: poller.clone(), parker: Parker::current() });
    let (mut idle, mut pause) = (0, TICK);
    loop {
        worker.poller.wait(Deadline::after(pause), || None::<()>);
        (idle, pause) = match tick(worker) {
            Sight::Nothing => (idle + 1, TICK),
            Sight::Attended => (0, LONGEST_TICK.min(2 * pause)),
            Sight::Alone => (0, TICK),
        };
        if idle >= LULL {
            idle = 0;
            STATE.store(DORMANT, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if anything_unattended() {
                STATE.store(TICKING, Ordering::SeqCst);
            }
            let roused = || (STATE.load(Ordering::SeqCst) == TICKING).then_some(());
            worker.poller.wait(Deadline::Never, roused);
        }
    }
}

/// What a tick has found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sight {
    /// Nothing that is pending and not adopted, or only what a thread has been waiting for all the time.
    Nothing,
    /// Threads have looked after what is pending.
    Attended,
    /// Something is pending that nobody looks after.
    Alone,
}

/// Looks at every file, and adopts those that are pending and unattended.
fn tick(worker: &Worker) -> Sight {
    let mut sight = Sight::Nothing;
    // A file whose last owner lets go meanwhile must not end under the lock.
    let mut files = Vec::new();
    for entry in FILES.lock().iter_mut().filter(|entry| !entry.adopted) {
        let Some(file) = entry.file.upgrade() else { continue };
        let looks = file.pollers().fold(0, |sum: usize, poller| sum.wrapping_add(poller.looks()));
        if looks != entry.looks {
            entry.looks = looks;
            entry.quiet = 0;
            sight = sight.max(Sight::Attended);
        } else if file.is_unattended() {
            entry.quiet += 1;
            sight = Sight::Alone;
            if entry.quiet > UNATTENDED {
                entry.adopt(&file, worker);
            }
        } else {
            entry.quiet = 0;
        }
        files.push(file);
    }
    sight
}

fn anything_unattended() -> bool {
    let files: Vec<_> =
        FILES.lock().iter().filter(|entry| !entry.adopted).filter_map(|entry| entry.file.upgrade()).collect();
    files.iter().any(|file| file.is_unattended())
}

impl Entry {
    fn adopt(&mut self, file: &Arc<File>, worker: &Worker) {
        let source = Arc::new(Adopted(self.file.clone()));
        if worker.poller.add(file.poller.fd(), self.key, source).is_ok() {
            self.adopted = true;
            self.quiet = 0;
            file.pollers().for_each(|poller| poller.adopted.store(true, Ordering::SeqCst));
        }
    }

    fn release(&mut self, file: &File) {
        if self.adopted
            && let Some(worker) = THREAD.get()
        {
            worker.poller.remove(file.poller.fd(), self.key);
            self.adopted = false;
        }
    }
}
