//! A device of our own, in place of libibverbs and librdmacm: for tests only.
//!
//! It exports the functions of those two that the library uses, and behaves like a perfect soft-RoCE with one port: queue
//! pairs of one process reach each other, requests complete within the call that posts them, connections follow the rules
//! of the InfiniBand connection manager. It has one network interface of its own ([`ADDRESS`]), so it needs none of
//! the machine. And it does what real devices do only on bad days, when told to ([`fail`], [`stall`], [`complete_with`],
//! [`replace_event`], [`raise_async`], [`raise_completion_event`], [`remove_device`]).
//!
//! A test program that links this crate, and whatever that loads, gets these functions instead of the real ones: those of
//! the program come first. Other programs can have it by `LD_PRELOAD`.
//!
//! For measurements it can be a null device, whose requests cost next to nothing ([`complete_at_once`]).
//!
//! The data path allocates nothing.

mod cm;
mod cm_id;
mod device;
mod faults;
mod memory;
mod null;
mod queue_pair;
mod queues;

pub use cm_id::{raise_event, remove_device};
pub use device::{ADDRESS, ADDRESS6, NAME, raise_async, raise_completion_event};
pub use faults::{CmEvent, Side, complete_with, fail, pending, replace_event, stall};
pub use null::complete_at_once;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A test's turn with the device: faults are everybody's, so tests take turns.
pub struct Turn(#[allow(dead_code)] MutexGuard<'static, ()>);

/// Waits for the turn. The device is as new.
pub fn turn() -> Turn {
    static TURNS: Mutex<()> = Mutex::new(());
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    faults::forget_all();
    device::renew();
    // Where the tests' own helpers look for the device under test.
    // SAFETY: only Rust code reads the environment here, under std's lock.
    unsafe {
        std::env::set_var("NDCOMPAT_ADDR", ADDRESS.to_string());
        std::env::set_var("NDCOMPAT_DEVICE", "double");
    }
    Turn(turn)
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(pending(), 0, "a fault that was asked for never happened");
        }
    }
}

static WEIGHING: AtomicBool = AtomicBool::new(false);
static WEIGHT: AtomicIsize = AtomicIsize::new(0);

/// How much of the heap is in use, in bytes: that of the main thread, and large blocks.
pub fn heap() -> isize {
    // SAFETY: no arguments.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as isize
}

/// How much of [`heap`] is the double's own, taken since this was first called. For programs with one thread.
pub fn weight() -> isize {
    WEIGHING.store(true, Ordering::Relaxed);
    WEIGHT.load(Ordering::Relaxed)
}

/// Does what the double is asked to, and notes what memory it takes.
#[inline]
fn weighed<R>(work: impl FnOnce() -> R) -> R {
    if !WEIGHING.load(Ordering::Relaxed) {
        return work();
    }
    let before = heap();
    let result = work();
    WEIGHT.fetch_add(heap() - before, Ordering::Relaxed);
    result
}

fn set_errno(errno: i32) {
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// The result of a verb that returns an errno.
fn verb(name: &str, call: impl FnOnce() -> Result<(), i32>) -> c_int {
    faults::call(name).and_then(|()| weighed(call)).err().unwrap_or(0)
}

/// The result of a call that returns -1 and sets errno.
fn posix(name: &str, call: impl FnOnce() -> Result<(), i32>) -> c_int {
    match faults::call(name).and_then(|()| weighed(call)) {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// The object that a call makes, or null and an errno.
fn created<T>(name: &str, make: impl FnOnce() -> Result<*mut T, i32>) -> *mut T {
    faults::call(name).and_then(|()| weighed(make)).unwrap_or_else(|errno| {
        set_errno(errno);
        std::ptr::null_mut()
    })
}
