//! `SRWLOCK`.

use super::dawdle;
use crate::api::locks::*;
use crate::sync::srw::SrwLock;
use std::cell::UnsafeCell;
use std::thread;
use std::time::Duration;

struct Guarded(SrwLock, UnsafeCell<[u64; 2]>);
// SAFETY: the cell is used under the lock only.
unsafe impl Sync for Guarded {}

#[test]
fn readers_share_and_writers_do_not() {
    let lock = SrwLock::default();
    assert!(lock.try_read() && lock.try_read() && !lock.try_write());
    lock.unlock_read();
    assert!(!lock.try_write());
    lock.unlock_read();
    assert!(lock.try_write() && !lock.try_read() && !lock.try_write());
    lock.unlock_write();
    assert!(lock.try_read());
}

#[test]
fn a_waiting_writer_keeps_new_readers_out() {
    let lock = SrwLock::default();
    lock.read();
    thread::scope(|scope| {
        scope.spawn(|| {
            lock.write();
            lock.unlock_write();
        });
        // Until the writer waits others may read.
        while lock.try_read() {
            lock.unlock_read();
            thread::yield_now();
        }
        let reader = scope.spawn(|| {
            lock.read();
            lock.unlock_read();
        });
        lock.unlock_read();
        reader.join().unwrap();
    });
    assert!(lock.try_write());
}

#[test]
fn nothing_is_torn_and_nobody_is_forgotten() {
    let guarded = Guarded(SrwLock::default(), UnsafeCell::new([0; 2]));
    thread::scope(|scope| {
        for writes in [true, true, false, false, false] {
            let guarded = &guarded;
            scope.spawn(move || {
                for round in 0..20_000 {
                    if writes {
                        guarded.0.write();
                        // SAFETY: nobody else is inside.
                        let value = unsafe { &mut *guarded.1.get() };
                        value[0] += 1;
                        if round % 64 == 0 {
                            thread::yield_now();
                        }
                        value[1] += 1;
                        guarded.0.unlock_write();
                    } else {
                        guarded.0.read();
                        // SAFETY: only readers are inside.
                        let value = unsafe { *guarded.1.get() };
                        assert_eq!(value[0], value[1]);
                        if round % 64 == 0 {
                            thread::yield_now();
                        }
                        guarded.0.unlock_read();
                    }
                }
            });
        }
    });
    assert_eq!(guarded.1.into_inner(), [40_000; 2]);
}

#[test]
fn entry_points() {
    let lock = SrwLock::default();
    ndw_AcquireSRWLockExclusive(Some(&lock));
    assert_eq!(ndw_TryAcquireSRWLockShared(Some(&lock)), 0);
    ndw_ReleaseSRWLockExclusive(Some(&lock));
    ndw_AcquireSRWLockShared(Some(&lock));
    assert_eq!(ndw_TryAcquireSRWLockExclusive(Some(&lock)), 0);
    ndw_ReleaseSRWLockShared(Some(&lock));
    assert_eq!(ndw_TryAcquireSRWLockExclusive(Some(&lock)), 1);
    ndw_AcquireSRWLockShared(None);
}

/// A reader comes while a writer waits for a lock that has just become free, and is so late to its sleep that the writer
/// has come and gone by then.
#[test]
fn who_is_late_to_its_sleep_does_not_miss_the_end_of_its_wait() {
    for _ in 0..10 {
        let lock = SrwLock::default();
        lock.read();
        thread::scope(|scope| {
            scope.spawn(|| {
                dawdle(Duration::from_millis(10));
                lock.write();
                lock.unlock_write();
            });
            while lock.try_read() {
                lock.unlock_read();
                thread::yield_now();
            }
            lock.unlock_read();
            scope.spawn(|| {
                dawdle(Duration::from_millis(30));
                lock.read();
                lock.unlock_read();
            });
        });
        assert!(lock.try_write());
    }
}

#[test]
fn a_lock_may_be_given_back_by_another_thread_and_only_if_it_is_held() {
    let lock = SrwLock::default();
    lock.unlock_read();
    lock.unlock_write();
    lock.write();
    lock.unlock_read();
    assert!(!lock.try_read());
    super::in_another_thread(|| lock.unlock_write());
    lock.read();
    lock.unlock_write();
    assert!(!lock.try_write());
    super::in_another_thread(|| lock.unlock_read());
    assert!(lock.try_write());
}
