//! Background progress, for programs that wait nowhere in this library: they spin on
//! `HasOverlappedIoCompleted`, or sleep in a poll loop of their own on a descriptor they got from us.
//!
//! One thread per process, started by the first request. While something is pending it ticks, and adopts the
//! pollers of files that no thread looked after for two ticks: it then sleeps in epoll on them. A thread that waits
//! takes its poller back. When all that is pending is adopted or waited for, the ticking stops until that changes.
//! So a program that waits here pays for this with plain loads and stores.
//!
//! The thread does not survive a `fork`, no more than the locks of this library do: a child process must not
//! use what its parent created.

use super::file::File;
use super::parker::Parker;
use super::poller::{Poller, Source};
use super::sync::{Arc, AtomicU32, AtomicU64, Lock, Ordering, Weak, fence};
use super::sys::{Deadline, Epoll};
use std::sync::OnceLock;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(2);
/// How long the ticks grow while threads look after everything.
const LONGEST_TICK: Duration = Duration::from_millis(16);
/// So many ticks without a look, and a file's poller is adopted.
const UNATTENDED: u32 = 2;
/// So many ticks in which nothing happens, and the ticking stops.
const LULL: u32 = 3;

/// The key of a poller that is not adopted.
pub(crate) const NOT_ADOPTED: u64 = Epoll::KICK;

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
    looks: usize,
    quiet: u32,
}

struct Worker {
    poller: Arc<Poller>,
    parker: Arc<Parker>,
}

/// An adopted poller as a source of the background thread's.
struct Adopted(Weak<Poller>);

impl Source for Adopted {
    fn ready(&self) {
        if let Some(poller) = self.0.upgrade() {
            poller.serve_ready();
        }
    }
}

/// Makes a new file known.
pub(super) fn register(file: &Arc<File>) {
    FILES.lock().push(Entry { file: Arc::downgrade(file), looks: 0, quiet: 0 });
}

/// Forgets a file that ends.
pub(super) fn forget(file: &File) {
    let mut files = FILES.lock();
    if let Some(at) = files.iter().position(|entry| std::ptr::eq(entry.file.as_ptr(), file)) {
        files.swap_remove(at);
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

/// A thread looks after `poller` now, or nothing does any more.
#[cold]
pub(crate) fn take_back(poller: &Poller) {
    let key = poller.adopted.swap(NOT_ADOPTED, Ordering::SeqCst);
    if key != NOT_ADOPTED
        && let Some(worker) = THREAD.get()
    {
        worker.poller.remove(poller.fd(), key);
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
    for entry in FILES.lock().iter_mut() {
        let Some(file) = entry.file.upgrade() else { continue };
        let looks = file.poller().looks();
        if looks != entry.looks {
            entry.looks = looks;
            entry.quiet = 0;
            sight = sight.max(Sight::Attended);
        } else if file.is_unattended() {
            entry.quiet += 1;
            sight = Sight::Alone;
            if entry.quiet > UNATTENDED {
                adopt(file.poller(), worker);
            }
        } else {
            entry.quiet = 0;
        }
        files.push(file);
    }
    sight
}

fn anything_unattended() -> bool {
    let files: Vec<_> = FILES.lock().iter().filter_map(|entry| entry.file.upgrade()).collect();
    files.iter().any(|file| file.is_unattended())
}

fn adopt(poller: &Arc<Poller>, worker: &Worker) {
    static NEXT_KEY: AtomicU64 = AtomicU64::new(NOT_ADOPTED + 1);
    let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
    let source = Arc::new(Adopted(Arc::downgrade(poller)));
    if worker.poller.add(poller.fd(), key, source).is_ok() {
        poller.adopted.store(key, Ordering::SeqCst);
    }
}
