//! What ends of several connections share: a completion queue and a shared receive queue, with the memory of its receives.

use super::inbox::Inbox;
use super::memory::{Memory, SLOT};
use super::parts::{File, Held, Part, release};
use super::queue::Queue;
use crate::client::{self, EVERYTHING};
use crate::com::{Adapter, Com, MemoryRegion, SharedReceiveQueue, create};
use crate::waits::Waits;
use crate::watched::{Completed, Watched, Way};
use ndcompat::Status;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// How many ends share one.
const ENDS: u32 = 16;
/// How many slots the memory has.
const SLOTS: usize = 64;

/// Objects for several ends.
pub struct Pool {
    /// The completion queue. Its ends keep it and the other queue themselves, and release all three in any order.
    pub queue: Arc<Queue>,
    /// The shared receive queue.
    pub shared: Arc<Com<SharedReceiveQueue>>,
    /// Its receives.
    pub inbox: Arc<Inbox>,
    region: Held<MemoryRegion>,
    files: Vec<File>,
    joined: AtomicU32,
    /// Decides in which order the objects are released.
    order: u64,
}

impl Pool {
    /// A pool whose queues have `depth` requests of each end. Its files notify in these ways.
    pub fn new(
        adapter: &Com<Adapter>,
        depth: u32,
        threads: usize,
        (ways, free_polling): ([Way; 2], bool),
        (waits, completed): (&Waits<'_>, &Mutex<Completed>),
        order: u64,
    ) -> Pool {
        let files: Vec<File> = ways.map(|way| File(client::file(adapter), way)).into();
        files.iter().for_each(|file| waits.ports().bind(file.0, file.1));
        let (first, second) = ((files[0].0, files[0].1), files[1].0);
        // SAFETY: `create` passes an id and a place for the object.
        let (shared, region) = unsafe {
            (
                create(|iid, out| {
                    adapter.create_shared_receive_queue(iid, first.0, 2 * depth, 1, 0, 0, 0, out)
                }),
                create(|iid, out| adapter.create_memory_region(iid, second, out)),
            )
        };
        let region: Held<MemoryRegion> = Held::new(region);
        let memory = Arc::new(Memory::new(SLOTS));
        let bytes = memory.address(0) as *const c_void;
        let request = Watched::new("Register", second, files[1].1);
        // SAFETY: the memory goes after its region, and the request is watched to its end.
        let status = unsafe { region.register(bytes, SLOTS * SLOT, EVERYTHING, request.ptr()) };
        assert_eq!(status, Status::PENDING, "Register");
        completed.lock().unwrap().add(request.clone());
        assert_eq!(waits.wait(&request, Some(&*region)), Status::SUCCESS, "Register");
        let inbox = Inbox::new(memory, 0..SLOTS, threads, true);
        // SAFETY: no arguments.
        inbox.token.store(unsafe { region.get_local_token() }, Ordering::Release);
        Pool {
            queue: Queue::new(adapter, first, 2 * depth, ENDS, free_polling),
            shared: Arc::new(shared.expect("a shared receive queue")),
            inbox,
            region,
            files,
            joined: AtomicU32::new(0),
            order,
        }
    }

    /// Whether one more end may use it, which is then taken into account.
    pub fn join(&self) -> bool {
        self.joined.fetch_add(1, Ordering::Relaxed) < ENDS
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut parts = vec![self.region.take()];
        parts.extend(self.files.drain(..).map(|file| Box::new(file) as Part));
        release(parts, self.order);
    }
}
