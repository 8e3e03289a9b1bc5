//! The room that a server has: how much memory all its connections have together, and how many there are.

use crate::protocol::{MOST_CONNECTIONS, MOST_MEMORY_OF_ALL};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is taken of it. Clones are the same room.
#[derive(Clone, Default)]
pub struct Room(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    memory: u64,
    connections: u32,
}

/// The part of one connection, which is free again on drop.
pub struct Share {
    room: Room,
    memory: u64,
}

impl Room {
    /// Takes the part of a connection with so many bytes of memory, if there is room for it.
    pub fn take(&self, memory: u64) -> Option<Share> {
        let mut taken = self.lock();
        if taken.connections >= MOST_CONNECTIONS || taken.memory + memory > MOST_MEMORY_OF_ALL {
            return None;
        }
        taken.memory += memory;
        taken.connections += 1;
        drop(taken);
        Some(Share { room: self.clone(), memory })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        taken.memory -= self.memory;
        taken.connections -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::MOST_MEMORY;

    #[test]
    fn connections_have_so_much_memory_together_and_are_so_many() {
        let room = Room::default();
        let mut large: Vec<_> = (0..4).map(|_| room.take(MOST_MEMORY).unwrap()).collect();
        assert!(room.take(1).is_none());
        large.pop();
        let small: Vec<_> = (3..MOST_CONNECTIONS).map(|_| room.take(1).unwrap()).collect();
        assert!(room.take(0).is_none());
        drop((large, small));
        assert!(room.take(MOST_MEMORY_OF_ALL).is_some());
    }
}
