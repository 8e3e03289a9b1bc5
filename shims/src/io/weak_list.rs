//! Lists of weak references.

use std::sync::{Arc, Weak};

/// Weak references in the order of insertion. Dead ones are removed when the list is full.
pub struct WeakList<T: ?Sized>(Vec<Weak<T>>);

impl<T: ?Sized> Default for WeakList<T> {
    fn default() -> Self {
        WeakList(Vec::new())
    }
}

impl<T: ?Sized> WeakList<T> {
    /// Adds an object, in amortised constant time: dead entries are removed only when the list is full, and it grows unless half
    /// of it becomes free.
    pub fn add(&mut self, object: Weak<T>) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|object| object.strong_count() > 0);
            self.0.reserve(self.0.len().max(4));
        }
        self.0.push(object);
    }

    /// For how many entries there is memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// The objects that are alive.
    pub fn living(&self) -> Vec<Arc<T>> {
        self.0.iter().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_are_found_in_their_order() {
        let mut list = WeakList::default();
        let objects: Vec<_> = (0..100).map(Arc::new).collect();
        for object in &objects {
            list.add(Arc::downgrade(object));
            list.add(Arc::downgrade(&Arc::new(-1)));
        }
        assert_eq!(list.living(), objects);
    }

    #[test]
    fn the_dead_make_room() {
        let mut list = WeakList::default();
        for number in 0..10_000 {
            list.add(Arc::downgrade(&Arc::new(number)));
        }
        assert!(list.0.capacity() <= 8, "{}", list.0.capacity());
    }
}
