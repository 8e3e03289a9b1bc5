//! A scripted device in place of libibverbs and librdmacm, for tests.
//!
//! It exports the functions of those two that the library uses, and behaves like soft-RoCE with one port: queue pairs of one
//! process reach each other, requests complete within the call that posts them, connections follow the rules of the InfiniBand
//! connection manager. It has a network interface of its own ([`ADDRESS`]) and needs none of the machine's. There can be a second
//! device of the same kind ([`add_second`]). It reports attributes of other devices ([`report_attributes`],
//! [`report_longest_message`], [`limit_inline_room`]), and connections of others ([`set_path`]). It injects faults when told to ([`fail`], [`stall`], [`hold`], [`complete_with`],
//! [`delay_reads`], [`refuse_doorbell`], [`flush_nothing`], [`replace_event`], [`raise_async`], [`raise_completion_event`], [`stop_newest_queue_pair`],
//! [`remove_device`]), or
//! lets one call after the other fail ([`fail_call`]), among them the system calls in `system`.
//!
//! A test program that links this crate, and any library that it loads, gets these functions instead of the real ones, because
//! the dynamic linker searches the program first. Other programs can use it by `LD_PRELOAD`.
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
mod system;

pub use cm_id::{raise_event, remove_device};
pub use device::{
    ADDRESS, ADDRESS6, NAME, SECOND_ADDRESS, SECOND_ADDRESS6, add_second, forget_objects, imitate_rxe,
    objects, raise_async, raise_completion_event, report_attributes, report_longest_message, set_path,
    share_guid, take_port_down,
};
pub use faults::{
    Calls, CmEvent, Side, call_that_failed, complete_with, delay_reads, fail, fail_call, failed_call,
    flush_nothing, forget_all, hold, pending, refuse_doorbell, replace_event, stall, take_completions_along,
};
pub use null::complete_at_once;
pub use queue_pair::{complete_reads, limit_inline_room, path_of_newest_queue_pair, stop_newest_queue_pair};
pub use queues::newest_vector;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A test's turn with the device. Faults are global, so tests run one at a time.
pub struct Turn(#[allow(dead_code)] MutexGuard<'static, ()>);

/// Waits for the turn, and resets the device.
pub fn turn() -> Turn {
    static TURNS: Mutex<()> = Mutex::new(());
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    faults::forget_all();
    device::renew();
    // The test helpers read the address of the device under test from here. SAFETY: only Rust code reads the environment here,
    // under std's lock.
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

/// The bytes in use on the main thread's heap and in large blocks.
pub fn heap() -> isize {
    // SAFETY: no arguments.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as isize
}

/// The part of [`heap`] that the double has allocated since the first call of this. For programs with one thread.
pub fn weight() -> isize {
    WEIGHING.store(true, Ordering::Relaxed);
    WEIGHT.load(Ordering::Relaxed)
}

/// Runs a call of the double, and counts the memory that it allocates.
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
fn verb(name: &'static str, call: impl FnOnce() -> Result<(), i32>) -> c_int {
    faults::call(name).and_then(|()| weighed(call)).err().unwrap_or(0)
}

/// The result of a call that destroys an object. If it fails, the object stays, and is listed here, where LeakSanitizer finds it.
fn destroyed<T>(name: &'static str, object: *mut T, destroy: impl FnOnce()) -> c_int {
    let status = verb(name, || {
        destroy();
        Ok(())
    });
    if status != 0 {
        keep(object);
    }
    status
}

/// Lists an object that is never destroyed.
fn keep<T>(object: *mut T) {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(object.expose_provenance());
}

/// The result of a call that returns -1 and sets errno.
fn posix(name: &'static str, call: impl FnOnce() -> Result<(), i32>) -> c_int {
    match faults::call(name).and_then(|()| weighed(call)) {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// The object that a call makes, or null and an errno.
fn created<T>(name: &'static str, make: impl FnOnce() -> Result<*mut T, i32>) -> *mut T {
    faults::call(name).and_then(|()| weighed(make)).unwrap_or_else(|errno| {
        set_errno(errno);
        std::ptr::null_mut()
    })
}
