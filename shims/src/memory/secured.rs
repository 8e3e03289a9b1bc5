//! Secured memory: memory that a device has mapped, and the callbacks before it is freed or its protection changes.
//!
//! On Windows a driver secures memory that it maps (`MmSecureVirtualMemory`); here each registration with an adapter does, by a
//! [`Secured`]. `notify` may run within `malloc` or `free`, so it neither allocates nor uses thread-local storage until callbacks
//! have to be called.

use crate::crt::set_errno;
use crate::error::{ERROR_INVALID_PARAMETER, ERROR_NOT_ENOUGH_MEMORY};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// `PSECURE_MEMORY_CACHE_CALLBACK`. Its result is ignored: memory may be freed even if it is still secured.
pub type Callback = unsafe extern "C" fn(address: *mut c_void, size: usize) -> u8;

/// The most callbacks.
const CALLBACKS: usize = 32;

struct State {
    /// The secured ranges by their start, once for each time that they were secured.
    ranges: Vec<Range<usize>>,
    /// An upper limit of the lengths of ranges.
    longest: usize,
    callbacks: [Option<Callback>; CALLBACKS],
}

impl State {
    const EMPTY: State = State { ranges: Vec::new(), longest: 0, callbacks: [None; CALLBACKS] };

    fn overlaps(&self, range: &Range<usize>) -> bool {
        let before_end = self.ranges.partition_point(|secured| secured.start < range.end);
        self.ranges[..before_end]
            .iter()
            .rev()
            .take_while(|secured| secured.start.saturating_add(self.longest) > range.start)
            .any(|secured| secured.end > range.start)
    }
}

/// The state. A forked child resets it, as the parent may have been changing it.
struct Shared(UnsafeCell<Mutex<State>>);

// SAFETY: the mutex is replaced by the only thread of a new process, and by nobody else.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared(UnsafeCell::new(Mutex::new(State::EMPTY)));
/// How many callbacks there are.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn in_child() {
    LISTENERS.store(0, Ordering::Relaxed);
    // SAFETY: the only thread, in which nobody holds the lock: nothing is called while it is held.
    unsafe { SHARED.0.get().write(Mutex::new(State::EMPTY)) };
}

fn state() -> MutexGuard<'static, State> {
    // SAFETY: replaced only while there is no other thread, and no guard.
    unsafe { &*SHARED.0.get() }.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resets the state in forked children.
fn prepare_for_forks() {
    static ONCE: Once = Once::new();
    // SAFETY: the function stays: this library is never unloaded.
    ONCE.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
}

/// Secured memory, until dropped.
pub struct Secured(Range<usize>);

impl Secured {
    /// Secures memory.
    pub fn new(range: Range<usize>) -> Secured {
        prepare_for_forks();
        let mut room = Vec::new();
        loop {
            let mut state = state();
            let (length, capacity) = (state.ranges.len(), state.ranges.capacity());
            if length == capacity && room.capacity() <= length {
                // Nothing is allocated or freed under the lock, which is taken when memory is allocated or freed.
                drop(state);
                room = Vec::with_capacity(2 * length + 64);
                continue;
            }
            if length == capacity {
                room.append(&mut state.ranges);
                std::mem::swap(&mut room, &mut state.ranges);
            }
            let place = state.ranges.partition_point(|secured| secured.start < range.start);
            state.longest = state.longest.max(range.len());
            state.ranges.insert(place, range.clone());
            drop(state);
            return Secured(range);
        }
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        let mut state = state();
        let from = state.ranges.partition_point(|secured| secured.start < self.0.start);
        let same = state.ranges[from..].iter().take_while(|secured| secured.start == self.0.start);
        // Not listed in a forked child.
        if let Some(place) = same.clone().position(|secured| secured.end == self.0.end) {
            state.ranges.remove(from + place);
        }
    }
}

/// Whether there are callbacks and some of the memory is secured.
pub(super) fn concerns(range: &Range<usize>) -> bool {
    LISTENERS.load(Ordering::Relaxed) != 0 && state().overlaps(range)
}

/// Calls the callbacks if some of the memory, which is about to be freed or to change its protection, is secured.
pub(super) fn notify(range: &Range<usize>) {
    if range.is_empty() || !concerns(range) {
        return;
    }
    let callbacks = state().callbacks;
    // Freeing memory must not change errno.
    let error = std::io::Error::last_os_error().raw_os_error();
    for callback in callbacks.into_iter().flatten() {
        // SAFETY: the program's function, which it has not taken back.
        unsafe { callback(range.start as *mut c_void, range.len()) };
    }
    set_errno(error.unwrap_or(0));
}

/// Adds a callback. It is called as often as it was added.
///
/// # Errors
/// `ERROR_NOT_ENOUGH_MEMORY` if there are 32.
pub fn add(callback: Callback) -> Result<(), u32> {
    prepare_for_forks();
    let mut state = state();
    let free = state.callbacks.iter_mut().find(|place| place.is_none());
    *free.ok_or(ERROR_NOT_ENOUGH_MEMORY)? = Some(callback);
    LISTENERS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Removes a callback, which may still be running on another thread.
///
/// # Errors
/// `ERROR_INVALID_PARAMETER` if it is none.
pub fn remove(callback: Callback) -> Result<(), u32> {
    let mut state = state();
    let place = state
        .callbacks
        .iter_mut()
        .find(|place| place.is_some_and(|found| std::ptr::fn_addr_eq(found, callback)))
        .ok_or(ERROR_INVALID_PARAMETER)?;
    *place = None;
    LISTENERS.fetch_sub(1, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_where_they_share_a_byte() {
        let mut state = State::EMPTY;
        for range in [10..20, 12..90, 30..40, 100..101] {
            state.longest = state.longest.max(range.len());
            state.ranges.push(range);
        }
        let overlapping: Vec<usize> = (0..110).filter(|at| state.overlaps(&(*at..*at + 1))).collect();
        assert_eq!(overlapping, (10..90).chain([100]).collect::<Vec<_>>());
        assert!(state.overlaps(&(0..11)) && state.overlaps(&(89..1000)) && state.overlaps(&(0..usize::MAX)));
        assert!(
            !state.overlaps(&(0..10)) && !state.overlaps(&(90..100)) && !state.overlaps(&(101..usize::MAX))
        );
    }
}
