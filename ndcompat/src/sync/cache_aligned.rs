//! Memory on separate cache lines.

use crate::sync::lock::Lock;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;

/// The size of a cache line, in bytes.
pub(crate) const CACHE_LINE: usize = 64;

/// A value on separate cache lines.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub T);

const _: () = assert!(align_of::<Padded<u8>>() == CACHE_LINE && align_of::<Lock<u8>>() == CACHE_LINE);

/// The allocator's alignment, in bytes.
///
/// For a greater alignment, glibc allocates a larger block and splits it, which takes four times as much memory as aligning
/// here.
const MALLOC_ALIGNMENT: usize = 16;

/// A value on the heap with room after it, on separate cache lines.
pub(crate) struct CacheAligned<T> {
    value: NonNull<T>,
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns the value, as a box does.
unsafe impl<T: Send> Send for CacheAligned<T> {}
// SAFETY: it owns the value, as a box does.
unsafe impl<T: Sync> Sync for CacheAligned<T> {}

impl<T> CacheAligned<T> {
    /// Allocates the value, and `room` bytes after it on a new cache line. `make` gets both addresses and returns the
    /// value.
    pub fn new(room: usize, make: impl FnOnce(*mut T, *mut u8) -> T) -> CacheAligned<T> {
        const { assert!(align_of::<T>() == CACHE_LINE) };
        let size = size_of::<T>() + room.next_multiple_of(CACHE_LINE) + CACHE_LINE - MALLOC_ALIGNMENT;
        let layout =
            Layout::from_size_align(size, MALLOC_ALIGNMENT).expect("a queue is no larger than memory");
        // SAFETY: the size is not zero.
        let Some(memory) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: the layout has extra bytes for the alignment to a cache line.
        let start = unsafe { memory.add(memory.align_offset(CACHE_LINE)) };
        let value = start.cast::<T>();
        let made = make(value.as_ptr(), start.as_ptr().wrapping_add(size_of::<T>()));
        // SAFETY: it is aligned, and within the new allocation.
        unsafe { value.write(made) };
        CacheAligned { value, memory, layout }
    }
}

impl<T> Deref for CacheAligned<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value lives until this is dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for CacheAligned<T> {
    fn drop(&mut self) {
        // SAFETY: the value is initialized, and not used after this.
        unsafe { self.value.drop_in_place() };
        // SAFETY: the memory was allocated with this layout.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn value_and_room_are_on_lines_of_their_own() {
        let owner = Rc::new(());
        let all: Vec<_> = (0..20)
            .map(|i| {
                let aligned =
                    CacheAligned::new(10 * i, |value: *mut Padded<(usize, *mut u8, Rc<()>)>, room| {
                        assert_eq!(value.addr() % CACHE_LINE, 0);
                        assert_eq!(value.addr() + CACHE_LINE, room.addr());
                        // SAFETY: within the room asked for.
                        unsafe { room.write_bytes(i as u8, 10 * i) };
                        Padded((i, room, owner.clone()))
                    });
                assert_eq!((&raw const *aligned).addr() % CACHE_LINE, 0);
                aligned
            })
            .collect();
        for (i, value) in all.iter().enumerate() {
            assert_eq!(value.0.0, i);
            // SAFETY: these bytes were written.
            assert!(unsafe { std::slice::from_raw_parts(value.0.1, 10 * i) }.iter().all(|&b| b == i as u8));
        }
        assert_eq!(Rc::strong_count(&owner), 21);
        drop(all);
        assert_eq!(Rc::strong_count(&owner), 1);
    }
}
