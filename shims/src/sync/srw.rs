//! `SRWLOCK`: many readers or one writer.
//!
//! `parking_lot`'s `RawRwLock` accesses its word after a reader has released it, when the memory may be freed; this one does not.

use super::Deadline;
use super::atomic::{AtomicUsize, Ordering::*};
use super::park::{FilterOp, Parked, SpinWait, park, unpark};

/// A writer holds the lock.
const WRITER: usize = 1;
/// Threads are queued. Changed under the queue's lock only.
const QUEUED: usize = 2;
/// One reader. The bits from here on count the readers that hold the lock.
const READER: usize = 4;

/// What queued threads want.
const WRITE: usize = 0;
const READ: usize = 1;

/// `SRWLOCK`: the size of a pointer. Queued threads are served in order, but a writer that finds the lock free takes it.
///
/// Invariant: while threads are queued and the lock is free, one of them has been woken and is about to try. It takes the lock
/// and wakes the next on release, or finds a holder that will.
#[repr(transparent)]
#[derive(Default)]
pub struct SrwLock(AtomicUsize);

impl SrwLock {
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Adds `holder`, unless one of `bars` is set or `holder` is the writer and there are readers.
    fn attempt(&self, holder: usize, bars: usize) -> bool {
        let mut lock = self.0.load(Relaxed);
        while lock & bars == 0 {
            match self.0.compare_exchange_weak(lock, lock + holder, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => lock = now,
            }
        }
        false
    }

    /// Takes the lock for writing if it is free.
    #[inline]
    pub fn try_write(&self) -> bool {
        self.attempt(WRITER, !QUEUED)
    }

    /// Takes the lock for reading if no writer holds it and no thread is queued.
    #[inline]
    pub fn try_read(&self) -> bool {
        self.attempt(READER, WRITER | QUEUED)
    }

    /// Takes the lock for writing.
    #[inline]
    pub fn write(&self) {
        if !self.try_write() {
            self.wait(WRITE, WRITER, !QUEUED, !QUEUED);
        }
    }

    /// Takes the lock for reading.
    #[inline]
    pub fn read(&self) {
        if !self.try_read() {
            // A woken thread is not delayed by threads queued behind it.
            self.wait(READ, READER, WRITER | QUEUED, WRITER);
        }
    }

    /// Takes the lock. `bars` are the bits that make the thread wait on arrival, `later_bars` after it was queued and woken.
    #[cold]
    fn wait(&self, kind: usize, holder: usize, mut bars: usize, later_bars: usize) {
        let mut spin = SpinWait::new();
        while spin.spin() {
            if self.attempt(holder, bars) {
                return;
            }
        }
        while !self.attempt(holder, bars) {
            let must_wait = || {
                let mut lock = self.0.load(Relaxed);
                while lock & bars != 0 {
                    match self.0.compare_exchange_weak(lock, lock | QUEUED, Relaxed, Relaxed) {
                        Ok(_) => return true,
                        Err(now) => lock = now,
                    }
                }
                false
            };
            if park(self.key(), kind, must_wait, || (), || (), Deadline::Never) == Parked::Woken {
                bars = later_bars;
            }
        }
    }

    /// Releases the lock after writing, on any thread. Does nothing if no writer holds it.
    #[inline]
    pub fn unlock_write(&self) {
        if let Err(lock) = self.0.compare_exchange(WRITER, 0, Release, Relaxed)
            && lock & WRITER != 0
        {
            self.release_and_wake(WRITER);
        }
    }

    /// Releases the lock after reading, on any thread. Does nothing if no reader holds it.
    #[inline]
    pub fn unlock_read(&self) {
        let mut lock = self.0.load(Relaxed);
        while lock != READER | QUEUED {
            if lock < READER {
                return;
            }
            match self.0.compare_exchange_weak(lock, lock - READER, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => lock = now,
            }
        }
        self.release_and_wake(READER);
    }

    /// Wakes a writer, or all readers before the first writer. The lock is released under the queue's lock: a thread that is
    /// about to wait is in the queue before and is woken, or sees the free lock afterwards. The lock is not accessed later.
    #[cold]
    fn release_and_wake(&self, holder: usize) {
        let mut woken = None;
        let choose = |kind| match (woken, kind) {
            (None, _) | (Some(READ), READ) => {
                woken = Some(kind);
                FilterOp::Unpark
            }
            _ => FilterOp::Stop,
        };
        unpark(self.key(), choose, |_, others_stay| {
            if others_stay {
                self.0.fetch_sub(holder, Release);
            } else {
                let release = |lock| Some((lock - holder) & !QUEUED);
                let _ = self.0.fetch_update(Release, Relaxed, release);
            }
        });
    }
}
