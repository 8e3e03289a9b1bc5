//! The lock of one word that the others are made of.

use super::sleep;
use crate::futex::{self, ANYONE, Deadline};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering::*};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody may sleep for it.
const AWAITED: u32 = 2;

/// A lock without an owner.
#[repr(transparent)]
pub struct RawLock(AtomicU32);

impl RawLock {
    pub const fn new() -> RawLock {
        RawLock(AtomicU32::new(FREE))
    }

    pub fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// Takes the lock; looks up to `spins` times before it sleeps.
    pub fn lock(&self, spins: usize) {
        for _ in 0..=spins {
            if self.try_lock() {
                return;
            }
            spin_loop();
        }
        // A sleeper leaves the word at AWAITED even when it was the last one: that costs one wake-up too many,
        // but never one too few.
        while self.0.swap(AWAITED, Acquire) != FREE {
            sleep(&self.0, AWAITED, ANYONE, Deadline::Never);
        }
    }

    pub fn unlock(&self) {
        if self.0.swap(FREE, Release) == AWAITED {
            futex::wake(&self.0, 1, ANYONE);
        }
    }
}
