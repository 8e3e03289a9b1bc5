//! `WaitOnAddress`: waiting for a value of 1, 2, 4 or 8 bytes to change.

use super::{sleep, timed_out};
use crate::error::{ERROR_INVALID_PARAMETER, set_last_error};
use crate::futex::{self, ANYONE, Deadline};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread that waits; `woken` lies on its stack for as long as this is in the table.
struct Waiter {
    address: usize,
    woken: *const AtomicU32,
}

// SAFETY: the pointer is followed under the table's lock only, while the waiter cannot leave.
unsafe impl Send for Waiter {}

/// The waiters, by address. A kernel futex would serve values of 4 bytes only.
static TABLE: [Mutex<Vec<Waiter>>; 64] = [const { Mutex::new(Vec::new()) }; 64];

fn bucket(address: usize) -> MutexGuard<'static, Vec<Waiter>> {
    let hash = (address >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
    TABLE[hash].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the value at `address` still is the one at `compare`; `None` for an impossible size or alignment.
///
/// # Safety
/// Both point to `size` readable bytes; others change the first atomically.
unsafe fn unchanged(address: *const c_void, compare: *const c_void, size: usize) -> Option<bool> {
    if address.is_null() || compare.is_null() || !(address as usize).is_multiple_of(size.max(1)) {
        return None;
    }
    // SAFETY: aligned and readable; the comparand may have any alignment.
    unsafe {
        Some(match size {
            1 => (*address.cast::<AtomicU8>()).load(SeqCst) == compare.cast::<u8>().read(),
            2 => (*address.cast::<AtomicU16>()).load(SeqCst) == compare.cast::<u16>().read_unaligned(),
            4 => (*address.cast::<AtomicU32>()).load(SeqCst) == compare.cast::<u32>().read_unaligned(),
            8 => (*address.cast::<AtomicU64>()).load(SeqCst) == compare.cast::<u64>().read_unaligned(),
            _ => return None,
        })
    }
}

/// Wakes the first waiters of an address, `count` of them at most.
fn wake(address: *const c_void, count: usize) {
    let address = address as usize;
    let mut waiters = bucket(address);
    for _ in 0..count {
        let Some(first) = waiters.iter().position(|waiter| waiter.address == address) else { break };
        let waiter = waiters.remove(first);
        // SAFETY: the waiter needs the lock held here to leave, or this store; after it only the address is used.
        unsafe { (*waiter.woken).store(1, Release) };
        futex::wake(waiter.woken, 1, ANYONE);
    }
}

/// `WaitOnAddress`: TRUE once the value differs or a wake-up came, FALSE and `ERROR_TIMEOUT` when time passed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WaitOnAddress(
    address: *const c_void,
    compare: *const c_void,
    size: usize,
    milliseconds: u32,
) -> i32 {
    let deadline = Deadline::after_millis(milliseconds);
    let woken = AtomicU32::new(0);
    let key = address as usize;
    {
        // Looked at under the lock: whoever changes the value and wakes comes before the look or after the push.
        let mut waiters = bucket(key);
        // SAFETY: the function's contract.
        match unsafe { unchanged(address, compare, size) } {
            Some(true) => waiters.push(Waiter { address: key, woken: &woken }),
            Some(false) => return 1,
            None => {
                set_last_error(ERROR_INVALID_PARAMETER);
                return 0;
            }
        }
    }
    while woken.load(Acquire) == 0 && !deadline.passed() {
        sleep(&woken, 0, ANYONE, deadline);
    }
    if woken.load(Acquire) == 0 {
        let mut waiters = bucket(key);
        if let Some(own) = waiters.iter().position(|waiter| std::ptr::eq(waiter.woken, &woken)) {
            waiters.remove(own);
            return timed_out();
        }
    }
    1
}

/// `WakeByAddressSingle`: the thread that has waited longest.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WakeByAddressSingle(address: *const c_void) {
    wake(address, 1);
}

/// `WakeByAddressAll`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WakeByAddressAll(address: *const c_void) {
    wake(address, usize::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ERROR_TIMEOUT, last_error};
    use std::thread;

    const INFINITE: u32 = u32::MAX;

    fn wait<T, V>(value: &T, seen: V, milliseconds: u32) -> i32 {
        let (address, compare) = ((&raw const *value).cast(), (&raw const seen).cast());
        // SAFETY: atomics of ours, and a comparand of their size.
        unsafe { ndw_WaitOnAddress(address, compare, size_of::<V>(), milliseconds) }
    }

    fn waiters(address: *const c_void) -> usize {
        bucket(address as usize).iter().filter(|waiter| waiter.address == address as usize).count()
    }

    #[test]
    fn a_changed_value_does_not_wait() {
        assert_eq!(wait(&AtomicU8::new(1), 0u8, INFINITE), 1);
        assert_eq!(wait(&AtomicU16::new(1), 0u16, INFINITE), 1);
        assert_eq!(wait(&AtomicU32::new(1), 0u32, INFINITE), 1);
        assert_eq!(wait(&AtomicU64::new(1 << 40), 0u64, INFINITE), 1);
    }

    #[test]
    fn an_equal_value_times_out() {
        let value = AtomicU64::new(5);
        assert_eq!(wait(&value, 5u64, 10), 0);
        assert_eq!(last_error(), ERROR_TIMEOUT);
        assert_eq!(wait(&value, 5u64, 0), 0);
        assert_eq!(waiters((&raw const value).cast()), 0);
    }

    #[test]
    fn every_size_looks_at_its_own_bytes_and_is_woken() {
        let value = AtomicU64::new(0x0807_0605_0403_0201);
        let address: *const c_void = (&raw const value).cast();
        thread::scope(|scope| {
            let sleepers = [
                scope.spawn(|| wait(&value, 0x01u8, INFINITE)),
                scope.spawn(|| wait(&value, 0x0201u16, INFINITE)),
                scope.spawn(|| wait(&value, 0x0403_0201u32, INFINITE)),
                scope.spawn(|| wait(&value, 0x0807_0605_0403_0201u64, INFINITE)),
            ];
            while waiters(address) < 4 {
                thread::yield_now();
            }
            // The upper half alone: only the last of them would see a difference, but nobody looks before the wake-up.
            value.store(0x0403_0201, SeqCst);
            thread::sleep(std::time::Duration::from_millis(5));
            assert_eq!(waiters(address), 4);
            ndw_WakeByAddressAll(address);
            assert!(sleepers.into_iter().all(|sleeper| sleeper.join().unwrap() == 1));
        });
        assert_eq!(wait(&value, 0x0403_0201u32, 0), 0);
        assert_eq!(wait(&value, 0x0807_0605_0403_0201u64, INFINITE), 1);
        // Another address, even a neighbour, wakes nobody here.
        ndw_WakeByAddressSingle(std::ptr::null());
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(wait(&AtomicU32::new(0), [0u8; 3], 0), 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        // SAFETY: NULL is refused.
        assert_eq!(unsafe { ndw_WaitOnAddress(std::ptr::null(), std::ptr::null(), 4, 0) }, 0);
    }

    #[test]
    fn one_or_all_are_woken() {
        let value = AtomicU8::new(0);
        let address: *const c_void = (&raw const value).cast();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(wait(&value, 0u8, INFINITE), 1));
            }
            while waiters(address) < 3 {
                thread::yield_now();
            }
            // Windows wakes without looking at the value, and so do we.
            ndw_WakeByAddressSingle((&raw const value).cast());
            assert_eq!(waiters((&raw const value).cast()), 2);
            ndw_WakeByAddressAll((&raw const value).cast());
        });
        assert_eq!(waiters(address), 0);
    }

    #[test]
    fn two_threads_take_turns() {
        let turn = AtomicU16::new(0);
        let play = |mine: u16| {
            for _ in 0..2_000 {
                while turn.load(SeqCst) != mine {
                    wait(&turn, 1 - mine, INFINITE);
                }
                turn.store(1 - mine, SeqCst);
                ndw_WakeByAddressSingle((&raw const turn).cast());
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| play(0));
            scope.spawn(|| play(1));
        });
        assert_eq!(turn.load(SeqCst), 0);
    }
}
