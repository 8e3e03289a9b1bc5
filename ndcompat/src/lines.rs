//! Memory that begins with a cache line.
//!
//! Where more alignment is asked for than all memory has, glibc takes a larger piece and gives back what lies around: that
//! costs four times as much as to keep it, as is done here.

use crate::lock::CACHE_LINE;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;

/// What all memory is aligned to.
const USUAL: usize = 16;

/// A value, and room behind it, on cache lines that nothing else is on.
pub(crate) struct Lines<T> {
    value: NonNull<T>,
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns the value, as a box does.
unsafe impl<T: Send> Send for Lines<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Lines<T> {}

impl<T> Lines<T> {
    /// Puts there what `make` makes, which is told where the value will be, and where the room of so many bytes: behind it, on
    /// a cache line of its own, and free when the value goes.
    pub fn new(room: usize, make: impl FnOnce(*mut T, *mut u8) -> T) -> Lines<T> {
        const { assert!(align_of::<T>() == CACHE_LINE) };
        let size = size_of::<T>() + room.next_multiple_of(CACHE_LINE) + CACHE_LINE - USUAL;
        let layout = Layout::from_size_align(size, USUAL).expect("a queue is no larger than memory");
        // SAFETY: the size is not zero.
        let Some(memory) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: a cache line begins within the bytes that were added for that, and then there are as many as are needed.
        let (value, room) = unsafe {
            let start = memory.add(memory.align_offset(CACHE_LINE));
            (start.cast::<T>(), start.add(size_of::<T>()))
        };
        let made = make(value.as_ptr(), room.as_ptr());
        // SAFETY: it is aligned, and nobody else's.
        unsafe { value.write(made) };
        Lines { value, memory, layout }
    }
}

impl<T> Deref for Lines<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value lives until this is dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for Lines<T> {
    fn drop(&mut self) {
        // SAFETY: the value is there, nobody uses it any more, and its memory was allocated so.
        unsafe {
            self.value.drop_in_place();
            dealloc(self.memory.as_ptr(), self.layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Padded;
    use std::rc::Rc;

    #[test]
    fn value_and_room_are_on_lines_of_their_own() {
        let owner = Rc::new(());
        let all: Vec<_> = (0..20)
            .map(|i| {
                let lines = Lines::new(10 * i, |value: *mut Padded<(usize, *mut u8, Rc<()>)>, room| {
                    assert_eq!(value.addr() % CACHE_LINE, 0);
                    assert_eq!(value.addr() + CACHE_LINE, room.addr());
                    // SAFETY: there is room for so many.
                    unsafe { room.write_bytes(i as u8, 10 * i) };
                    Padded((i, room, owner.clone()))
                });
                assert_eq!((&raw const *lines).addr() % CACHE_LINE, 0);
                lines
            })
            .collect();
        for (i, lines) in all.iter().enumerate() {
            assert_eq!(lines.0.0, i);
            // SAFETY: as many as were written.
            assert!(unsafe { std::slice::from_raw_parts(lines.0.1, 10 * i) }.iter().all(|&b| b == i as u8));
        }
        assert_eq!(Rc::strong_count(&owner), 21);
        drop(all);
        assert_eq!(Rc::strong_count(&owner), 1);
    }
}
