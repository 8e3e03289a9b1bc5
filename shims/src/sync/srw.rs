//! `SRWLOCK`: many readers or one writer.

use super::sleep;
use crate::futex::{self, Deadline};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// The low half: the number of readers, or this.
const WRITER: u64 = u32::MAX as u64;
/// The high half: a waiting writer, a waiting reader.
const WRITER_WAITS: u64 = 1 << 32;
const READER_WAITS: u64 = 1 << 48;
/// Groups of sleepers.
const READERS: u32 = 1;
const WRITERS: u32 = 2;
const SPINS: usize = 100;

/// `SRWLOCK`: the size of a pointer; zeroes are a free lock, and nothing has to be given back.
///
/// One word holds everything, so that giving the lock back is a single operation that tells whom to wake: after
/// it the lock's memory may be gone. Writers go first: a reader queues up while one waits.
#[repr(transparent)]
#[derive(Default)]
pub struct SrwLock(AtomicU64);

const _: () = assert!(size_of::<SrwLock>() == 8 && align_of::<SrwLock>() == 8);

fn holders(lock: u64) -> u64 {
    lock & WRITER
}

fn writers_waiting(lock: u64) -> bool {
    lock & (READER_WAITS - WRITER_WAITS) != 0
}

/// How a reader or a writer takes the lock.
struct Mode {
    holds: u64,
    waits: u64,
    group: u32,
    barred: fn(u64) -> bool,
}

const WRITE: Mode =
    Mode { holds: WRITER, waits: WRITER_WAITS, group: WRITERS, barred: |lock| holders(lock) != 0 };
const READ: Mode = Mode {
    holds: 1,
    waits: READER_WAITS,
    group: READERS,
    barred: |lock| holders(lock) == WRITER || writers_waiting(lock),
};

impl SrwLock {
    /// The half that sleepers watch: both supported architectures store it first.
    fn word(&self) -> &AtomicU32 {
        const { assert!(cfg!(target_endian = "little")) };
        // SAFETY: the low half of a live, aligned atomic.
        unsafe { &*(&raw const self.0).cast::<AtomicU32>() }
    }

    /// Takes the lock and an announcement back, or returns the state that forbids it.
    fn attempt(&self, mode: &Mode, announced: u64) -> Result<(), u64> {
        let mut lock = self.0.load(Relaxed);
        loop {
            if (mode.barred)(lock) {
                return Err(lock);
            }
            match self.0.compare_exchange_weak(lock, lock - announced + mode.holds, Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => lock = now,
            }
        }
    }

    fn acquire(&self, mode: &Mode) {
        for _ in 0..SPINS {
            if self.attempt(mode, 0).is_ok() {
                return;
            }
            spin_loop();
        }
        self.0.fetch_add(mode.waits, Relaxed);
        while let Err(lock) = self.attempt(mode, mode.waits) {
            sleep(self.word(), lock as u32, mode.group, Deadline::Never);
        }
    }

    fn release(&self, held: u64) {
        let word: *const AtomicU32 = self.word();
        let lock = self.0.fetch_sub(held, Release) - held;
        if holders(lock) != 0 || lock == 0 {
            return;
        }
        if writers_waiting(lock) {
            futex::wake(word, 1, WRITERS);
        } else {
            futex::wake(word, i32::MAX, READERS);
        }
    }

    /// Takes the lock for writing if it is free.
    pub fn try_write(&self) -> bool {
        self.attempt(&WRITE, 0).is_ok()
    }

    /// Takes the lock for reading if no writer has it or waits for it.
    pub fn try_read(&self) -> bool {
        self.attempt(&READ, 0).is_ok()
    }

    /// Takes the lock for writing.
    pub fn write(&self) {
        self.acquire(&WRITE);
    }

    /// Takes the lock for reading.
    pub fn read(&self) {
        self.acquire(&READ);
    }

    /// Gives the lock back after writing.
    pub fn unlock_write(&self) {
        self.release(WRITER);
    }

    /// Gives the lock back after reading.
    pub fn unlock_read(&self) {
        self.release(1);
    }
}

/// Declares entry points that call one method of the lock they are given; NULL is ignored.
macro_rules! entry_points {
    ($($name:ident => $method:ident, $doc:literal;)+) => {
        $(#[doc = $doc]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: *const SrwLock) {
            // SAFETY: NULL or a lock by the function's contract.
            if let Some(lock) = unsafe { lock.as_ref() } {
                lock.$method();
            }
        })+
    };
}

entry_points! {
    ndw_AcquireSRWLockExclusive => write, "`AcquireSRWLockExclusive`.";
    ndw_AcquireSRWLockShared => read, "`AcquireSRWLockShared`.";
    ndw_ReleaseSRWLockExclusive => unlock_write, "`ReleaseSRWLockExclusive`.";
    ndw_ReleaseSRWLockShared => unlock_read, "`ReleaseSRWLockShared`.";
}

/// `InitializeSRWLock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitializeSRWLock(lock: *mut SrwLock) {
    if !lock.is_null() {
        // SAFETY: room for a lock that nobody uses yet, by the function's contract.
        unsafe { lock.write(SrwLock::default()) };
    }
}

/// `TryAcquireSRWLockExclusive`: a BOOLEAN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_TryAcquireSRWLockExclusive(lock: *const SrwLock) -> u8 {
    // SAFETY: NULL or a lock by the function's contract.
    unsafe { lock.as_ref() }.is_some_and(SrwLock::try_write).into()
}

/// `TryAcquireSRWLockShared`: a BOOLEAN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_TryAcquireSRWLockShared(lock: *const SrwLock) -> u8 {
    // SAFETY: NULL or a lock by the function's contract.
    unsafe { lock.as_ref() }.is_some_and(SrwLock::try_read).into()
}

#[cfg(test)]
mod tests {
    use super::*;
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
            while !writers_waiting(lock.0.load(SeqCst)) {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(!lock.try_read());
            let reader = scope.spawn(|| {
                lock.read();
                lock.unlock_read();
            });
            lock.unlock_read();
            reader.join().unwrap();
        });
        assert_eq!(lock.0.into_inner(), 0);
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
        // SAFETY: a lock of ours, or NULL.
        unsafe {
            ndw_AcquireSRWLockExclusive(&lock);
            assert_eq!(ndw_TryAcquireSRWLockShared(&lock), 0);
            ndw_ReleaseSRWLockExclusive(&lock);
            ndw_AcquireSRWLockShared(&lock);
            assert_eq!(ndw_TryAcquireSRWLockExclusive(&lock), 0);
            ndw_ReleaseSRWLockShared(&lock);
            assert_eq!(ndw_TryAcquireSRWLockExclusive(&lock), 1);
            ndw_AcquireSRWLockShared(std::ptr::null());
        }
    }
}
