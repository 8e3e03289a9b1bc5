//! `WaitOnAddress`.

use super::INFINITE;
use crate::api::locks::*;
use crate::error::{ERROR_INVALID_PARAMETER, ERROR_TIMEOUT, last_error};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::*};
use std::thread;

fn wait<T, V>(value: &T, seen: V, milliseconds: u32) -> i32 {
    let (address, compare) = ((&raw const *value).cast(), (&raw const seen).cast());
    // SAFETY: atomics of ours, and a comparand of their size.
    unsafe { ndw_WaitOnAddress(address, compare, size_of::<V>(), milliseconds) }
}

fn waiters(address: *const c_void) -> usize {
    crate::sync::park::queued(address.addr())
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
