//! The data path allocates nothing.

use ndcompat::connector::Offer;
use ndcompat::types::{Completion, RequestFlags, RequestType};
use ndcompat::{Status, types::Sge};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::{End, Pair, adapter, address};

/// The system's allocator, with a count of each thread's calls.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    COUNT.with(|count| count.set(count.get() + 1));
}

// SAFETY: an allocator as the system's is, which does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller passes a layout of more than no bytes, as `alloc` asks.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller passes memory of this allocator, which is the system's, and its layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller passes memory of this allocator, which is the system's, and its layout.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `work` calls the allocator.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    work();
    COUNT.with(Cell::get) - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 2);
}

/// Takes `wanted` results, which must be successes.
fn take(end: &End, wanted: usize) {
    let mut results = [Completion {
        status: Status::PENDING,
        bytes_transferred: 0,
        queue_pair_context: 0,
        request_context: 0,
        request_type: RequestType::Bind,
    }; 4];
    let mut taken = 0;
    while taken < wanted {
        let count = end.completion_queue.results(&mut results);
        for result in &results[..count] {
            assert!(result.status == Status::SUCCESS, "a request failed");
        }
        taken += count;
        std::thread::yield_now();
    }
    assert!(taken == wanted, "more than was asked for");
}

/// Posts a request of each kind and takes its result.
fn round(active: &End, passive: &End, lists: &[Sge; 2], token: u32) {
    let (ours, theirs) = (&active.queue_pair, passive.memory.remote_address(4096));
    passive.receive(1, 0..64).unwrap();
    active.send(2, 0..64, RequestFlags::empty()).unwrap();
    take(active, 1);
    take(passive, 1);
    // SAFETY: the memory outlives the requests, all of which are waited for.
    unsafe {
        passive.queue_pair.receive(3, &[passive.memory.sge(0..16), passive.memory.sge(16..2048)]).unwrap();
        // More entries than the queue pair takes, which inline requests may have.
        let pieces = [lists[0], lists[1], lists[0]].map(|sge| Sge { length: 8, ..sge });
        ours.send(4, &pieces, RequestFlags::INLINE).unwrap();
        take(active, 1);
        take(passive, 1);
        ours.write(5, lists, theirs, token, RequestFlags::SILENT_SUCCESS).unwrap();
        ours.write(6, lists, theirs, token, RequestFlags::empty()).unwrap();
        take(active, 1);
        ours.read(7, lists, theirs, token, RequestFlags::empty()).unwrap();
        take(active, 1);
        ours.read(8, &lists[..1], theirs, token, RequestFlags::READ_FENCE).unwrap();
        take(active, 1);
    }
}

#[test]
fn posting_and_reaping_allocate_nothing() {
    let offer = Offer { inbound_read_limit: 2, outbound_read_limit: 2, private_data: b"" };
    let adapter = adapter();
    let Pair { active, passive } =
        Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer);
    let lists = [active.memory.sge(0..100), active.memory.sge(8192..8392)];
    let token = passive.memory.region.remote_token();
    round(&active, &passive, &lists, token);
    let calls = || {
        allocations(|| {
            for _ in 0..50 {
                round(&active, &passive, &lists, token);
            }
        })
    };
    // What the data path allocates it allocates each time. A thread that meets another one in a lock for the first time, as on a busy
    // machine, allocates once: then `parking_lot` makes room for the thread.
    assert!((0..5).any(|_| calls() == 0), "{} calls of the allocator in 50 rounds", calls());
}
