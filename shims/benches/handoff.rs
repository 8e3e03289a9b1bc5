//! What a hand-off between two threads costs, and a lock that nobody else wants: completion ports, events and locks of this library,
//! beside what a Linux program would use in their place.
//!
//!     cargo bench -p ndcompat-win32 --bench handoff [-- [--quick | --check] [TEXT]]
//!
//! Prints the rows with TEXT in their names as `bench/report` reads them: nanoseconds per hand-off as medians of
//! interleaved rounds, `ratio` being the median of ours / raw within a round, and `spread` the quartiles of that. With
//! `--quick` there are fewer rounds; with `--check` it is over soon, and tells little.

use std::collections::VecDeque;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;
use win32::api::completion_port::*;
use win32::api::event::*;
use win32::api::handle::ndw_CloseHandle;
use win32::api::locks::*;
use win32::api::wait::ndw_WaitForSingleObject;
use win32::arguments::Out;
use win32::arguments::Text;
use win32::object::RawHandle;
use win32::sync::critical::CriticalSection;
use win32::sync::srw::SrwLock;

const HANDOFFS: usize = 10_000;
const INFINITE: u32 = u32::MAX;
/// What a program hands over: as much as a completion packet holds.
type Item = [usize; 3];

/// Hands items from one thread to another.
trait Channel: Clone + Send + 'static {
    fn new() -> Self;
    fn send(&self, item: Item);
    fn receive(&self) -> Item;
    fn close(&self) {}
}

#[derive(Clone)]
struct Port(RawHandle);

impl Channel for Port {
    fn new() -> Port {
        Port(ndw_CreateIoCompletionPort(RawHandle::INVALID, RawHandle::NULL, 0, 0))
    }

    fn send(&self, [bytes, key, overlapped]: Item) {
        ndw_PostQueuedCompletionStatus(
            self.0,
            bytes as u32,
            key,
            std::ptr::without_provenance_mut(overlapped),
        );
    }

    fn receive(&self) -> Item {
        let (mut bytes, mut key, mut overlapped) = (0, 0, null_mut());
        ndw_GetQueuedCompletionStatus(
            self.0,
            Out::from(&mut bytes),
            Out::from(&mut key),
            Out::from(&mut overlapped),
            INFINITE,
        );
        [bytes as usize, key, overlapped.addr()]
    }

    fn close(&self) {
        // SAFETY: its own handle.
        unsafe { ndw_CloseHandle(self.0) };
    }
}

/// The queue that everybody writes.
#[derive(Clone)]
struct Locked(Arc<(Mutex<VecDeque<Item>>, Condvar)>);

impl Channel for Locked {
    fn new() -> Locked {
        Locked(Arc::default())
    }

    fn send(&self, item: Item) {
        self.0.0.lock().unwrap().push_back(item);
        self.0.1.notify_one();
    }

    fn receive(&self) -> Item {
        let mut items = self.0.0.lock().unwrap();
        loop {
            match items.pop_front() {
                Some(item) => return item,
                None => items = self.0.1.wait(items).unwrap(),
            }
        }
    }
}

#[derive(Clone)]
struct Crossbeam(crossbeam_channel::Sender<Item>, crossbeam_channel::Receiver<Item>);

impl Channel for Crossbeam {
    fn new() -> Crossbeam {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Crossbeam(sender, receiver)
    }

    fn send(&self, item: Item) {
        self.0.send(item).unwrap();
    }

    fn receive(&self) -> Item {
        self.1.recv().unwrap()
    }
}

/// An auto-reset event as a channel of nothing.
#[derive(Clone)]
struct Event(RawHandle);

impl Channel for Event {
    fn new() -> Event {
        Event(ndw_CreateEventW(std::ptr::null(), 0, 0, Text::NULL))
    }

    fn send(&self, _: Item) {
        ndw_SetEvent(self.0);
    }

    fn receive(&self) -> Item {
        ndw_WaitForSingleObject(self.0, INFINITE);
        Item::default()
    }

    fn close(&self) {
        // SAFETY: its own handle.
        unsafe { ndw_CloseHandle(self.0) };
    }
}

/// What the kernel offers: one word.
#[derive(Clone)]
struct Futex(Arc<AtomicU32>);

impl Futex {
    fn call(&self, operation: i32, value: u32) {
        // SAFETY: the word is live; without a time-out there is no other pointer.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                operation | libc::FUTEX_PRIVATE_FLAG,
                value,
                0usize,
            )
        };
    }
}

impl Channel for Futex {
    fn new() -> Futex {
        Futex(Arc::default())
    }

    fn send(&self, _: Item) {
        self.0.store(1, Ordering::Release);
        self.call(libc::FUTEX_WAKE, 1);
    }

    fn receive(&self) -> Item {
        while self.0.swap(0, Ordering::Acquire) == 0 {
            self.call(libc::FUTEX_WAIT, 0);
        }
        Item::default()
    }
}

/// Nanoseconds per hand-off when an item goes to and fro.
fn ping_pong<C: Channel>() -> f64 {
    let (there, back) = (C::new(), C::new());
    let peer = {
        let (there, back) = (there.clone(), back.clone());
        std::thread::spawn(move || (0..HANDOFFS / 2).for_each(|_| back.send(there.receive())))
    };
    let begin = Instant::now();
    for n in 0..HANDOFFS / 2 {
        there.send([n, n, n]);
        back.receive();
    }
    let taken = begin.elapsed();
    peer.join().unwrap();
    there.close();
    back.close();
    taken.as_nanos() as f64 / HANDOFFS as f64
}

/// Nanoseconds per item when one thread sends and another receives.
fn stream<C: Channel>() -> f64 {
    let channel = C::new();
    let sender = {
        let channel = channel.clone();
        std::thread::spawn(move || (0..10 * HANDOFFS).for_each(|n| channel.send([n, n, n])))
    };
    let begin = Instant::now();
    for n in 0..10 * HANDOFFS {
        assert_eq!(channel.receive()[1], n);
    }
    let taken = begin.elapsed();
    sender.join().unwrap();
    channel.close();
    taken.as_nanos() as f64 / (10 * HANDOFFS) as f64
}

/// Nanoseconds of setting and resetting an event that nobody waits for.
fn set_and_reset() -> f64 {
    let event = Event::new();
    let begin = Instant::now();
    for _ in 0..10 * HANDOFFS {
        ndw_SetEvent(event.0);
        ndw_ResetEvent(event.0);
    }
    let taken = begin.elapsed();
    event.close();
    taken.as_nanos() as f64 / (20 * HANDOFFS) as f64
}

/// Nanoseconds of an eventfd written and read, which is what an event costs that the kernel keeps.
fn write_and_read() -> f64 {
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    let mut value = 1u64;
    let begin = Instant::now();
    for _ in 0..HANDOFFS {
        // SAFETY: the buffer is eight bytes of ours.
        unsafe {
            libc::write(fd, (&raw const value).cast(), 8);
            libc::read(fd, (&raw mut value).cast(), 8);
        }
    }
    let taken = begin.elapsed();
    // SAFETY: our own descriptor.
    unsafe { libc::close(fd) };
    taken.as_nanos() as f64 / (2 * HANDOFFS) as f64
}

/// Nanoseconds of taking and giving up a lock that nobody else wants.
fn uncontended<E, L>(enter: impl Fn() -> E, leave: impl Fn() -> L) -> f64 {
    let begin = Instant::now();
    for _ in 0..100 * HANDOFFS {
        enter();
        leave();
    }
    begin.elapsed().as_nanos() as f64 / (100 * HANDOFFS) as f64
}

fn section() -> f64 {
    let section = CriticalSection::new(0);
    // SAFETY: a section of ours.
    uncontended(|| ndw_EnterCriticalSection(Some(&section)), || ndw_LeaveCriticalSection(Some(&section)))
}

fn recursive_mutex() -> f64 {
    // SAFETY: a mutex of ours, initialised before and never moved.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_settype(&mut attributes, libc::PTHREAD_MUTEX_RECURSIVE);
        let mut mutex: libc::pthread_mutex_t = std::mem::zeroed();
        libc::pthread_mutex_init(&mut mutex, &attributes);
        let mutex = &raw mut mutex;
        uncontended(|| libc::pthread_mutex_lock(mutex), || libc::pthread_mutex_unlock(mutex))
    }
}

fn srw_lock() -> f64 {
    let lock = SrwLock::default();
    uncontended(|| ndw_AcquireSRWLockShared(Some(&lock)), || ndw_ReleaseSRWLockShared(Some(&lock)))
}

fn rw_lock() -> f64 {
    // SAFETY: a lock of ours, initialised before and never moved.
    unsafe {
        let mut lock: libc::pthread_rwlock_t = std::mem::zeroed();
        libc::pthread_rwlock_init(&mut lock, null_mut::<libc::pthread_rwlockattr_t>());
        let lock = &raw mut lock;
        uncontended(|| libc::pthread_rwlock_rdlock(lock), || libc::pthread_rwlock_unlock(lock))
    }
}

/// The value `part` of the way from the least to the greatest.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}

fn compare(name: &str, ours: fn() -> f64, raw: fn() -> f64) {
    // The first argument that is no option, for cargo adds its own.
    if std::env::args().skip(1).find(|arg| !arg.starts_with('-')).is_some_and(|only| !name.contains(&only)) {
        return;
    }
    let has = |option| std::env::args().any(|arg| arg == option);
    let rounds = if has("--check") {
        3
    } else if has("--quick") {
        7
    } else {
        21
    };
    ours();
    raw();
    // In turn, so that whatever else the machine does hits both.
    let rounds: Vec<_> = (0..rounds).map(|_| (ours(), raw())).collect();
    let mut ratios: Vec<_> = rounds.iter().map(|(ours, raw)| ours / raw).collect();
    let (mut ours, mut raw): (Vec<_>, Vec<_>) = rounds.into_iter().unzip();
    println!(
        r#"{{"name":"{name}","device":"none","unit":"ns","ours":{:.1},"raw":{:.1},"ratio":{:.3},"spread":[{:.3},{:.3}]}}"#,
        quantile(&mut ours, 0.5),
        quantile(&mut raw, 0.5),
        quantile(&mut ratios, 0.5),
        quantile(&mut ratios, 0.25),
        quantile(&mut ratios, 0.75),
    );
}

fn main() {
    // The C library's locks do without atomic instructions in a process that never had another thread.
    std::thread::spawn(|| ()).join().unwrap();
    compare("port ping-pong / mutex and condvar", ping_pong::<Port>, ping_pong::<Locked>);
    compare("port ping-pong / crossbeam-channel", ping_pong::<Port>, ping_pong::<Crossbeam>);
    compare("port stream / mutex and condvar", stream::<Port>, stream::<Locked>);
    compare("port stream / crossbeam-channel", stream::<Port>, stream::<Crossbeam>);
    compare("event ping-pong / futex", ping_pong::<Event>, ping_pong::<Futex>);
    compare("event set and reset / eventfd", set_and_reset, write_and_read);
    compare("critical section / recursive mutex", section, recursive_mutex);
    compare("SRW lock, shared / pthread_rwlock", srw_lock, rw_lock);
}
