//! What is done when a thread ends, by the destructor of a `pthread` key.
//!
//! The destructors of Rust's thread-locals run too early for it: before those of C++'s that were made earlier, and also in `exit`, before
//! the handlers of `atexit` and the destructors of static objects. On Windows all of these find the thread as it was.
//!
//! Callbacks of the program's are called earlier if possible. On Windows they come when the thread's routine has returned, before the
//! destructors of C++'s thread-locals, which they may use; and in `exit` when the program's handlers and destructors have run.

use crate::cancellation::put_off;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::OnceLock;

/// In the order in which they are done.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Callbacks of the program's.
    Callbacks,
    /// Mutexes are abandoned.
    Mutexes,
    /// The thread's object is set.
    Object,
    /// Memory is freed that the others may use.
    Memory,
    /// A thread of this library works no more.
    Gate,
}

const STEPS: usize = Step::Gate as usize + 1;

type Planned = [Option<fn()>; STEPS];

thread_local! {
    static PLANNED: Cell<Planned> = const { Cell::new([None; STEPS]) };
    /// Whether the destructors of other keys have had a round.
    static OTHERS_CAME: Cell<bool> = const { Cell::new(false) };
}

/// Does `action` when the calling thread ends. What another key's destructor plans after that is done as well, in the next round.
pub(crate) fn at_end(step: Step, action: fn()) {
    let mut planned = PLANNED.get();
    if planned[step as usize].replace(action).is_none() {
        PLANNED.set(planned);
        ask();
    }
}

/// The calling thread's routine has returned, or the process ends: calls the callbacks, which may use all that the thread has.
pub(crate) fn routine_returned() {
    put_off(|| run(Step::Callbacks as usize));
}

/// Whether anything can be done at the end of a thread: the process may have used up its keys.
pub(crate) fn is_possible() -> bool {
    key().is_some()
}

fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: writes the key. The function stays: this library is never unloaded.
        let error = unsafe { libc::pthread_key_create(&mut key, Some(ended)) };
        (error == 0).then_some(key)
    })
}

/// Has the destructor called.
fn ask() {
    if let Some(key) = key() {
        // Any value but NULL: the destructor is called for such.
        // SAFETY: a key that is never deleted; the value is not used.
        unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
    }
}

extern "C" fn ended(_: *mut c_void) {
    if !OTHERS_CAME.replace(true) {
        // The destructors of the program's keys may use what the thread has: they come first.
        return ask();
    }
    // A thread whose routine has returned can still be cancelled, which would unwind these frames.
    put_off(|| (0..STEPS).for_each(run));
}

/// Does what is planned for a step. It may plan for later ones, and for the next round.
fn run(step: usize) {
    let mut planned = PLANNED.get();
    let action = planned[step].take();
    PLANNED.set(planned);
    if let Some(action) = action {
        action();
    }
}

/// Called in `exit`, after the handlers of `atexit` and the destructors of the program's static objects.
#[used]
#[unsafe(link_section = ".fini_array")]
static PROCESS_ENDS: extern "C" fn() = process_ends;

extern "C" fn process_ends() {
    routine_returned();
}
