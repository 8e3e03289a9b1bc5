//! The threads of this library: starting them, and `fork`.
//!
//! In a forked child only the forking thread exists. A lock that another thread held stays locked there, and wait queues of locks
//! name threads that do not exist. So the threads of this library hold a gate while they work, and leave it while they sleep or
//! run callbacks: a fork waits until all have left. State that a child must reset is in a [`ForkLock`].

use super::thread_end::{self, Step, at_end};
use std::any::Any;
use std::cell::Cell;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{Builder, JoinHandle};

/// Held for reading by working threads of this library, and for writing by a forking thread. It is `std`'s, as is the lock in
/// [`ForkLock`]: `parking_lot` might hand it over to a thread that does not exist in the child.
static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether the thread is one of this library. Without a destructor, so that reading it is cheap.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
    /// The gate, while a thread of this library works. Without a destructor: what is done at the thread's end is work, too.
    static INSIDE: ManuallyDrop<Cell<Option<RwLockReadGuard<'static, ()>>>> =
        const { ManuallyDrop::new(Cell::new(None)) };
    /// The locks that a thread holds while it forks.
    static FORKING: Cell<Option<Forking>> = const { Cell::new(None) };
    /// The kernel's id of the thread; 0 before it was asked for, and in a forked child, whose thread has another one.
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// The kernel's id of the calling thread.
#[inline]
pub(crate) fn thread_id() -> u32 {
    match ID.get() {
        0 => find_thread_id(),
        id => id,
    }
}

#[cold]
fn find_thread_id() -> u32 {
    install();
    let id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    ID.set(id);
    id
}

/// Starts a thread of this library, with the program's signals blocked.
///
/// # Errors
/// What the system says if it has no thread to give.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    install();
    let work = || {
        IS_OURS.set(true);
        enter();
        at_end(Step::Gate, || _ = leave());
        crate::processor::priority::begin_thread();
        body();
        thread_end::routine_returned();
        if !thread_end::is_possible() {
            leave();
        }
    };
    with_signals_blocked(|| Builder::new().name(name.into()).spawn(work))
}

fn enter() {
    let gate = GATE.read().unwrap_or_else(PoisonError::into_inner);
    INSIDE.with(|inside| inside.set(Some(gate)));
}

/// Leaves the gate; returns whether the thread was inside.
fn leave() -> bool {
    INSIDE.with(|inside| inside.take()).is_some()
}

/// Runs `body`, which sleeps or is the program's code, outside the gate. The caller must hold no lock of this library.
#[inline]
pub(crate) fn outside<R>(body: impl FnOnce() -> R) -> R {
    if IS_OURS.get() { leave_for(body) } else { body() }
}

#[cold]
fn leave_for<R>(body: impl FnOnce() -> R) -> R {
    if !leave() {
        return body();
    }
    let result = body();
    enter();
    result
}

/// Synchronous signals. A program's crash handler must see those of every thread.
const SYNCHRONOUS: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Runs `start` with all but synchronous signals blocked, which new threads inherit.
pub fn with_signals_blocked<R>(start: impl FnOnce() -> R) -> R {
    let (mut all, mut former) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: initialises the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    for signal in SYNCHRONOUS {
        // SAFETY: the set was initialised above.
        unsafe { libc::sigdelset(all.as_mut_ptr(), signal) };
    }
    // SAFETY: reads the one set and initialises the other. It fails for an unknown first argument only.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), former.as_mut_ptr()) };
    let result = start();
    // SAFETY: the set was initialised by the first call.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, former.as_ptr(), null_mut()) };
    result
}

/// A lock that the forking thread holds during the fork, so that the child finds its value consistent and resets it.
pub(crate) struct ForkLock<T: 'static> {
    value: Mutex<T>,
    registered: Once,
    in_child: fn(&mut T) -> T,
}

impl<T: Send> ForkLock<T> {
    /// `in_child` resets the value, and returns what the child drops once all locks are released.
    pub(crate) const fn new(value: T, in_child: fn(&mut T) -> T) -> ForkLock<T> {
        ForkLock { value: Mutex::new(value), registered: Once::new(), in_child }
    }

    pub(crate) fn lock(&'static self) -> MutexGuard<'static, T> {
        self.registered.call_once(|| {
            install();
            fork_locks().push(self);
        });
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`ForkLock`], whatever it guards.
trait Registered: Sync {
    fn hold(&'static self) -> Box<dyn Held>;
}

/// The guard of a [`ForkLock`].
trait Held {
    fn begin_anew(&mut self) -> Box<dyn Any>;
}

impl<T: Send> Registered for ForkLock<T> {
    fn hold(&'static self) -> Box<dyn Held> {
        Box::new((self.lock(), self.in_child))
    }
}

impl<T> Held for (MutexGuard<'static, T>, fn(&mut T) -> T) {
    fn begin_anew(&mut self) -> Box<dyn Any> {
        Box::new((self.1)(&mut self.0))
    }
}

type ForkLocks = Vec<&'static dyn Registered>;

fn fork_locks() -> MutexGuard<'static, ForkLocks> {
    static LOCKS: Mutex<ForkLocks> = Mutex::new(Vec::new());
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The locks held during a fork. The gate comes first, as a working thread may need one of the locks.
struct Forking {
    _gate: RwLockWriteGuard<'static, ()>,
    _registry: MutexGuard<'static, ForkLocks>,
    locks: Vec<Box<dyn Held>>,
}

extern "C" fn prepare() {
    let _ = FORKING.try_with(|forking| {
        let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
        let registry = fork_locks();
        let locks = registry.iter().map(|lock| lock.hold()).collect();
        forking.set(Some(Forking { _gate: gate, _registry: registry, locks }));
    });
}

extern "C" fn in_parent() {
    drop(FORKING.try_with(Cell::take));
}

extern "C" fn in_child() {
    ID.set(0);
    if let Ok(Some(mut forking)) = FORKING.try_with(Cell::take) {
        let former: Vec<_> = forking.locks.iter_mut().map(|lock| lock.begin_anew()).collect();
        drop(forking);
        drop(former);
    }
}

/// Registers the handlers of forks.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay: this library is never unloaded.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    });
}

#[cfg(test)]
mod tests {
    use super::thread_id;

    #[test]
    fn the_thread_of_a_forked_child_has_an_id_of_its_own() {
        crate::alone::run("io::threads::tests::in_a_forked_child");
    }

    #[test]
    #[ignore = "run by the test above: it forks"]
    fn in_a_forked_child() {
        let parent = thread_id();
        let child = crate::alone::child(|| {
            i32::from(thread_id() == parent || thread_id() != rustix::thread::gettid().as_raw_pid() as u32)
        });
        let mut status = 0;
        // SAFETY: room for the status.
        assert_eq!((unsafe { libc::waitpid(child, &mut status, 0) }, status), (child, 0));
    }
}
