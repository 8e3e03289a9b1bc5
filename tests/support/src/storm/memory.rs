//! The memory of an end, in slots that say who has written them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of a slot in bytes. A slot holds one message or is the target of one write.
pub const SLOT: usize = 512;

/// The free slots.
pub struct Slots(Mutex<Vec<usize>>);

impl Slots {
    /// The slots of a range.
    pub fn new(range: std::ops::Range<usize>) -> Slots {
        Slots(Mutex::new(range.collect()))
    }

    /// One of them.
    pub fn take(&self) -> Option<usize> {
        self.0.lock().unwrap().pop()
    }

    /// Gives one back.
    pub fn give(&self, slot: usize) {
        self.0.lock().unwrap().push(slot);
    }
}

/// Memory that devices and threads write concurrently, in different slots.
pub struct Memory(Box<[AtomicU32]>);

/// The words of a slot.
pub const WORDS: usize = SLOT / 4;

impl Memory {
    /// This many slots.
    pub fn new(slots: usize) -> Memory {
        Memory((0..slots * WORDS).map(|_| AtomicU32::new(0)).collect())
    }

    fn slot(&self, slot: usize) -> &[AtomicU32] {
        &self.0[slot * WORDS..][..WORDS]
    }

    /// A slot's address.
    pub fn address(&self, slot: usize) -> u64 {
        self.slot(slot).as_ptr() as u64
    }

    /// Fills a slot with a pattern derived from `sender` and `number`.
    pub fn fill(&self, slot: usize, words: usize, sender: u32, number: u32) {
        let slot = &self.slot(slot)[..words];
        slot[0].store(sender, Ordering::Relaxed);
        slot[1].store(number, Ordering::Relaxed);
        for (at, word) in slot.iter().enumerate().skip(2) {
            word.store(pattern(sender, number, at), Ordering::Relaxed);
        }
    }

    /// The sender and the number in a slot; asserts that the rest of the pattern fits.
    pub fn read(&self, slot: usize, words: usize) -> (u32, u32) {
        let slot = &self.slot(slot)[..words];
        let (sender, number) = (slot[0].load(Ordering::Relaxed), slot[1].load(Ordering::Relaxed));
        for (at, word) in slot.iter().enumerate().skip(2) {
            let found = word.load(Ordering::Relaxed);
            let (expected, rest) = (pattern(sender, number, at), slot.len() - at);
            assert_eq!(found, expected, "word {at} of {sender:#x}'s {number}, {rest} before the end");
        }
        (sender, number)
    }
}

fn pattern(sender: u32, number: u32, at: usize) -> u32 {
    (sender ^ number.wrapping_mul(0x9E37_79B9)).wrapping_add((at as u32).wrapping_mul(0x85EB_CA6B))
}
