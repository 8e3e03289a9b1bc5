//! Background progress, for programs that do not wait in this library: they spin on `HasOverlappedIoCompleted`, or sleep in a
//! poll loop of their own on a descriptor from this library.
//!
//! One thread per process, started with the first file. While requests are pending it ticks, and adopts the pollers of files that
//! no thread has attended to for two ticks: it watches them by epoll. A waiting thread takes its poller back. When all pending
//! requests are attended to, the ticking stops until that changes. So a program that waits in this library pays only for plain
//! loads and stores.
//!
//! The thread does not exist in a forked child, which must not use its parent's objects. Its own objects get a thread of the
//! child.

use super::File;
use crate::io::parker::Parker;
use crate::io::poller::{Poller, Source};
use crate::io::sync::{Arc, Ordering, Weak};
use crate::io::sys::{Deadline, sleep_on};
use crate::io::threads::{self, ForkLock};
use crate::io::unattended::{self, Background, THREAD};
use std::io;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(2);
/// The longest tick, while threads attend to everything.
const LONGEST_TICK: Duration = Duration::from_millis(16);
/// A file's poller is adopted after this many ticks without attendance.
const UNATTENDED: u32 = 2;
/// A poller that the kernel did not let the thread adopt is tried again at least after so many ticks.
const RETRY: u32 = 512;
/// The ticking stops after this many ticks in which nothing happens.
const LULL: u32 = 3;

/// A forked child starts without files: it must not watch its copies of the parent's, whose epoll sets are shared.
static FILES: ForkLock<Vec<Entry>> = ForkLock::new(Vec::new(), std::mem::take);

/// The background thread's record of a file.
struct Entry {
    file: Weak<File>,
    looks: usize,
    quiet: u32,
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

/// Registers a new file. Fails if the thread cannot be started.
pub(super) fn register(file: &Arc<File>) -> io::Result<()> {
    start()?;
    FILES.lock().push(Entry { file: Arc::downgrade(file), looks: 0, quiet: 0 });
    Ok(())
}

/// Unregisters a file.
pub(super) fn forget(file: &File) {
    let mut files = FILES.lock();
    if let Some(at) = files.iter().position(|entry| std::ptr::eq(entry.file.as_ptr(), file)) {
        files.swap_remove(at);
    }
}

/// The registered file at this address.
pub(super) fn file_at(address: usize) -> Option<Arc<File>> {
    FILES.lock().iter().find(|entry| entry.file.as_ptr().addr() == address)?.file.upgrade()
}

/// Starts the thread, unless it runs.
fn start() -> io::Result<()> {
    let mut started = THREAD.lock();
    if started.is_some() {
        return Ok(());
    }
    let (poller, parker) = (Poller::new()?, Parker::new());
    let background = Background { parker: parker.clone(), watcher: poller.clone() };
    threads::spawn("ndcompat-io", move || run(&poller, &parker))?;
    *started = Some(background);
    Ok(())
}

fn run(poller: &Arc<Poller>, parker: &Arc<Parker>) {
    // The thread must be registered before it can be woken.
    drop(THREAD.lock());
    let (mut idle, mut pause) = (0, TICK);
    loop {
        poller.wait(parker, Deadline::after(pause), || None::<()>);
        (idle, pause) = match tick(poller) {
            Sight::Nothing => (idle + 1, TICK),
            Sight::Attended => (0, LONGEST_TICK.min(2 * pause)),
            Sight::Alone => (0, TICK),
        };
        if idle >= LULL {
            idle = 0;
            unattended::sleep(anything_unattended, |is_over| {
                poller.wait(parker, Deadline::Never, || is_over().then_some(()));
            });
        }
    }
}

/// The result of a tick.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sight {
    /// Nothing is pending but adopted files, and files that a thread has waited on all the time.
    Nothing,
    /// Threads have attended to pending requests.
    Attended,
    /// Requests are pending unattended.
    Alone,
}

/// Checks every file, and adopts those with unattended requests.
fn tick(watching: &Poller) -> Sight {
    let mut sight = Sight::Nothing;
    // The last reference to a file must not be dropped under the lock, nor sources served.
    let mut files = Vec::new();
    let mut refused = Vec::new();
    for entry in FILES.lock().iter_mut() {
        let Some(file) = entry.file.upgrade() else { continue };
        let looks = file.poller().looks();
        if looks != entry.looks {
            entry.looks = looks;
            entry.quiet = 0;
            sight = sight.max(Sight::Attended);
        } else if file.is_unattended() {
            entry.quiet = entry.quiet.saturating_add(1);
            sight = Sight::Alone;
            let late = entry.quiet.saturating_sub(UNATTENDED);
            let tries = late.is_power_of_two() || late.is_multiple_of(RETRY);
            if late > 0 && !(tries && adopt(file.poller(), watching)) {
                refused.push(file.poller().clone());
            }
        } else {
            entry.quiet = 0;
        }
        files.push(file);
    }
    // Files of one port have one poller, and so have sockets.
    refused.sort_by_key(Arc::as_ptr);
    refused.dedup_by(|one, other| Arc::ptr_eq(one, other));
    serve(&refused);
    sight
}

fn anything_unattended() -> bool {
    let files: Vec<_> = FILES.lock().iter().filter_map(|entry| entry.file.upgrade()).collect();
    files.iter().any(|file| file.is_unattended())
}

/// Serves those pollers that have something ready.
fn serve(pollers: &[Arc<Poller>]) {
    if !pollers.is_empty() {
        let fds: Vec<_> = pollers.iter().map(|poller| poller.fd()).collect();
        sleep_on(&fds, Deadline::Now).into_iter().for_each(|at| pollers[at].serve_ready());
    }
}

/// Watches a poller; false if the kernel refuses that. It does when a descriptor is in hundreds of sets, as a device's is of which a
/// program has so many files. Their pollers are served at each tick.
fn adopt(poller: &Arc<Poller>, watching: &Poller) -> bool {
    let source = Arc::new(Adopted(Arc::downgrade(poller)));
    let adopted = watching.add(poller.fd(), source).is_ok();
    if adopted {
        poller.adopted.store(true, Ordering::SeqCst);
    }
    adopted
}
