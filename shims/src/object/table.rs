//! A table of objects by position. The serials of open objects can be read without a lock.

use super::sync::{AtomicU32, Ordering, PoisonError, RwLock, RwLockWriteGuard};
use std::collections::VecDeque;

/// The part of a table under its lock.
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: VecDeque<usize>,
}

impl<T> Slots<T> {
    pub(super) const NONE: Slots<T> = Slots { slots: Vec::new(), free: VecDeque::new() };
}

struct Slot<T> {
    /// Different for each use of the slot.
    serial: u32,
    object: Option<T>,
    /// The flags of `SetHandleInformation`.
    flags: u8,
}

/// A table that has as many slots as there are `serials`.
pub(super) struct Table<T: 'static> {
    pub(super) slots: &'static RwLock<Slots<T>>,
    /// The serial of each slot in use, 0 of the others. Shows a cache, without a lock, whether its entry is still valid.
    pub(super) serials: &'static [AtomicU32],
    /// A slot is reused only after this many others were freed, so that serials recur late.
    pub(super) resting: usize,
}

impl<T: Clone> Table<T> {
    fn write(&self) -> RwLockWriteGuard<'_, Slots<T>> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an object into a free slot. Returns the position and the serial, which `next` derives from the slot's last one.
    /// `None` if the table is full.
    pub(super) fn open(&self, object: T, next: fn(u32) -> u32) -> Option<(usize, u32)> {
        let mut table = self.write();
        let rested = if table.free.len() > self.resting { table.free.pop_front() } else { None };
        let position = match rested {
            Some(position) => position,
            None if table.slots.len() < self.serials.len() => {
                table.slots.push(Slot { serial: 0, object: None, flags: 0 });
                table.slots.len() - 1
            }
            None => table.free.pop_front()?,
        };
        let slot = &mut table.slots[position];
        slot.serial = next(slot.serial);
        slot.object = Some(object);
        slot.flags = 0;
        self.serials[position].store(slot.serial, Ordering::Release);
        Some((position, slot.serial))
    }

    /// The object at a position, if `is_it` accepts its serial.
    pub(super) fn find(&self, position: usize, is_it: impl Fn(u32) -> bool) -> Option<T> {
        let table = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let slot = table.slots.get(position)?;
        if is_it(slot.serial) { slot.object.clone() } else { None }
    }

    /// Removes the object at a position, if `is_it` accepts its serial.
    pub(super) fn close(&self, position: usize, is_it: impl Fn(u32) -> bool) -> Option<T> {
        let mut table = self.write();
        let slot = table.slots.get_mut(position).filter(|slot| is_it(slot.serial))?;
        let object = slot.object.take()?;
        self.serials[position].store(0, Ordering::Release);
        table.free.push_back(position);
        Some(object)
    }

    /// Changes the flags of the object at a position that are in `mask`, if `is_it` accepts its serial; returns the previous
    /// ones.
    pub(super) fn change_flags(
        &self,
        position: usize,
        is_it: impl Fn(u32) -> bool,
        mask: u8,
        flags: u8,
    ) -> Option<u8> {
        let mut table = self.write();
        let slot =
            table.slots.get_mut(position).filter(|slot| slot.object.is_some() && is_it(slot.serial))?;
        let before = slot.flags;
        slot.flags = before & !mask | flags & mask;
        Some(before)
    }

    /// How many objects are open.
    pub(super) fn count(&self) -> usize {
        let table = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        table.slots.len() - table.free.len()
    }

    /// The serial of the open object at a position, or 0.
    #[inline]
    pub(super) fn serial(&self, position: usize) -> u32 {
        self.serials[position].load(Ordering::Acquire)
    }
}
