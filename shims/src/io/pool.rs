//! The thread pool of `BindIoCompletionCallback` and all other callbacks. Its threads wait on one port.
//!
//! The key of a packet is a callback, marks the packet as a job, or selects a receiver. There is always one more thread waiting
//! than callbacks running, so that a callback may wait for another one.

use super::Overlapped;
use super::queue::{Packet, Queue};
use super::sync::Arc;
use super::sys::Deadline;
use super::threads::{self, ForkLock, outside};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `LPOVERLAPPED_COMPLETION_ROUTINE`. Its first argument is the NTSTATUS, not a Win32 error.
pub type Callback = unsafe extern "C" fn(status: u32, bytes: u32, overlapped: *mut Overlapped);

/// A job for one of the threads.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The key of a packet whose `overlapped` is a job. It is no callback's address.
const JOB: usize = 0;

/// Receives the packets of a file of `CreateThreadpoolIo`.
type Receiver = Arc<dyn Fn(Packet) + Send + Sync>;

/// The bit of keys of [`RECEIVERS`]. No callback's address has it.
const RECEIVER: usize = 1 << 63;

static RECEIVERS: Mutex<Receivers> = Mutex::new(Receivers { last: RECEIVER, known: BTreeMap::new() });

struct Receivers {
    /// The key that was given last.
    last: usize,
    known: BTreeMap<usize, Receiver>,
}

/// The limit of Windows' default pool.
const MOST_THREADS: usize = 500;

/// The pool's queue, once it is started. A forked child starts its own, and leaks the parent's, as the epoll set is shared with
/// the parent.
static QUEUE: ForkLock<Option<Arc<Queue>>> = ForkLock::new(None, |queue| {
    std::mem::forget(queue.take());
    THREADS.store(0, Ordering::SeqCst);
    IDLE.store(0, Ordering::SeqCst);
    None
});
static THREADS: AtomicUsize = AtomicUsize::new(0);
static IDLE: AtomicUsize = AtomicUsize::new(0);

/// The pool's queue; the first call starts the pool.
pub(crate) fn queue() -> io::Result<Arc<Queue>> {
    let mut known = QUEUE.lock();
    if let Some(queue) = &*known {
        return Ok(queue.clone());
    }
    let queue = Queue::new(usize::MAX)?;
    spawn(&queue)?;
    *known = Some(queue.clone());
    Ok(queue)
}

/// Runs a job on one of the threads.
pub(crate) fn run(job: Job) -> io::Result<()> {
    let queue = queue()?;
    let job = Box::into_raw(Box::new(job)).expose_provenance();
    queue.post(Packet { key: JOB, overlapped: job, ..Packet::default() });
    Ok(())
}

/// A key whose packets go to `receiver`, until [`unbind`]. Keys are not reused.
pub(crate) fn key_of(receiver: Receiver) -> usize {
    let mut receivers = RECEIVERS.lock();
    receivers.last += 1;
    let key = receivers.last;
    receivers.known.insert(key, receiver);
    key
}

/// Packets of the key are dropped from now on.
pub(crate) fn unbind(key: usize) {
    let receiver = RECEIVERS.lock().known.remove(&key);
    drop(receiver);
}

/// Whether packets of the key go anywhere.
#[cfg(test)]
pub(crate) fn is_key(key: usize) -> bool {
    RECEIVERS.lock().known.contains_key(&key)
}

fn serve(packet: Packet) {
    if packet.key == JOB {
        let job = std::ptr::with_exposed_provenance_mut::<Job>(packet.overlapped);
        // SAFETY: made by `Box::into_raw` in `run`, for this packet alone.
        return unsafe { Box::from_raw(job) }();
    }
    if packet.key & RECEIVER != 0 {
        let receiver = RECEIVERS.lock().known.get(&packet.key).cloned();
        return receiver.into_iter().for_each(|receive| receive(packet));
    }
    // SAFETY: the other keys of this queue are the addresses of callbacks.
    let callback = unsafe { std::mem::transmute::<usize, Callback>(packet.key) };
    let overlapped = std::ptr::with_exposed_provenance_mut(packet.overlapped);
    // SAFETY: the program gave the callback to `BindIoCompletionCallback`, for any thread and each of the file's requests.
    unsafe { callback(packet.status as u32, packet.bytes, overlapped) };
}

fn spawn(queue: &Arc<Queue>) -> io::Result<()> {
    THREADS.fetch_add(1, Ordering::SeqCst);
    IDLE.fetch_add(1, Ordering::SeqCst);
    let queue = queue.clone();
    if let Err(error) = threads::spawn("ndcompat-pool", move || work(&queue)) {
        THREADS.fetch_sub(1, Ordering::SeqCst);
        IDLE.fetch_sub(1, Ordering::SeqCst);
        return Err(error);
    }
    Ok(())
}

fn work(queue: &Arc<Queue>) {
    while let Ok(packet) = queue.next(Deadline::Never) {
        if IDLE.fetch_sub(1, Ordering::SeqCst) == 1 && THREADS.load(Ordering::SeqCst) < MOST_THREADS {
            // If this fails, packets wait until a callback returns.
            let _ = spawn(queue);
        }
        outside(|| serve(packet));
        IDLE.fetch_add(1, Ordering::SeqCst);
    }
}
