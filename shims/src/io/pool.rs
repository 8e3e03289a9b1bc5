//! The threads behind `BindIoCompletionCallback`: they wait on one port for all files that are bound this way.
//!
//! The key of a packet is the callback. One thread more than there are callbacks running waits at any time, so
//! that a callback may wait for another one.

use super::Overlapped;
use super::queue::Queue;
use super::sync::Arc;
use super::sys::{Deadline, with_signals_blocked};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `LPOVERLAPPED_COMPLETION_ROUTINE`. Its first argument is the NTSTATUS, not a Win32 error.
pub type Callback = unsafe extern "C" fn(status: u32, bytes: u32, overlapped: *mut Overlapped);

/// As many as Windows' own pool has at most.
const MOST_THREADS: usize = 500;

static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();
static THREADS: AtomicUsize = AtomicUsize::new(0);
static IDLE: AtomicUsize = AtomicUsize::new(0);

/// The pool's queue; the first call starts the pool.
pub(super) fn queue() -> io::Result<Arc<Queue>> {
    if let Some(queue) = QUEUE.get() {
        return Ok(queue.clone());
    }
    let queue = Queue::new(usize::MAX)?;
    let queue = QUEUE.get_or_init(|| queue);
    if THREADS.load(Ordering::SeqCst) == 0 {
        spawn(queue)?;
    }
    Ok(queue.clone())
}

fn spawn(queue: &Arc<Queue>) -> io::Result<()> {
    THREADS.fetch_add(1, Ordering::SeqCst);
    IDLE.fetch_add(1, Ordering::SeqCst);
    let queue = queue.clone();
    let thread = std::thread::Builder::new().name("ndcompat-pool".into());
    let started = with_signals_blocked(|| thread.spawn(move || work(&queue)));
    if let Err(error) = started {
        THREADS.fetch_sub(1, Ordering::SeqCst);
        IDLE.fetch_sub(1, Ordering::SeqCst);
        return Err(error);
    }
    Ok(())
}

fn work(queue: &Arc<Queue>) {
    while let Ok(packet) = queue.next(Deadline::Never) {
        if IDLE.fetch_sub(1, Ordering::SeqCst) == 1 && THREADS.load(Ordering::SeqCst) < MOST_THREADS {
            // Should this fail, the other threads will come back in time.
            let _ = spawn(queue);
        }
        // SAFETY: keys of this queue are callbacks, given to `BindIoCompletionCallback`, which vouches for them.
        unsafe {
            let callback = std::mem::transmute::<usize, Callback>(packet.key);
            callback(
                packet.status as u32,
                packet.bytes,
                std::ptr::with_exposed_provenance_mut(packet.overlapped),
            );
        }
        IDLE.fetch_add(1, Ordering::SeqCst);
    }
}
