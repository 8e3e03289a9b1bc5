//! The device within a process: its sockets, memory and queue pairs.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Once, Weak};

use parking_lot::Mutex;

use verbs_sys::ibv_context;

use super::context::Context;
use super::ends::Ends;
use super::ports::Ports;
use super::process::Process;
use super::{errno, removal};
use crate::memory::Memory;
use crate::socket::{Background, Poller};

/// What is told that the device is removed.
pub(super) trait Bound: Send + Sync {
    fn device_removed(&self);
}

/// What is bound to the device, in the order in which it was.
#[derive(Default)]
struct Bounds {
    removed: bool,
    last: u64,
    all: BTreeMap<u64, Weak<dyn Bound>>,
}

/// The device of this process. It exists until the process ends, also when it was removed: objects that were made on it are left.
pub(super) struct Rnic {
    pub poller: Arc<Poller>,
    pub memory: Arc<Memory>,
    /// The addresses in use.
    pub ports: Ports,
    queue_pairs: Mutex<HashMap<u32, Weak<Ends>>>,
    last_number: AtomicU32,
    bounds: Mutex<Bounds>,
    process: Process,
    background: Mutex<Option<Background>>,
}

static RNIC: AtomicPtr<Rnic> = AtomicPtr::new(ptr::null_mut());

/// After a fork the child has a device of its own: the parent's sockets and threads are not the child's.
fn forget_in_children() {
    extern "C" fn child() {
        RNIC.store(ptr::null_mut(), Ordering::Release);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function stays: this library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    });
}

/// The device of this process.
///
/// # Errors
/// The system's error, for want of a file descriptor or a thread; `ENODEV` while the device is gone.
pub(super) fn rnic() -> io::Result<&'static Rnic> {
    let known = RNIC.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: set below, and never freed.
        return Ok(unsafe { &*known });
    }
    if removal::is_gone() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    forget_in_children();
    let poller = Poller::new()?;
    let new = Box::into_raw(Box::new(Rnic {
        background: Mutex::new(Some(Background::start(Arc::clone(&poller))?)),
        poller,
        memory: Memory::new(),
        ports: Ports::default(),
        queue_pairs: Mutex::default(),
        last_number: AtomicU32::new(0),
        bounds: Mutex::default(),
        process: Process::this(),
    }));
    match RNIC.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: never freed from now on.
            let new = unsafe { &*new };
            new.watch()?;
            Ok(new)
        }
        Err(other) => {
            // SAFETY: another thread was faster; nobody else has seen this one.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: set here, and never freed.
            Ok(unsafe { &*other })
        }
    }
}

/// The device of this process, for a call on a context.
///
/// # Safety
/// The context is this device's, and not closed.
pub(super) unsafe fn rnic_of(context: *mut ibv_context) -> Result<&'static Rnic, c_int> {
    // SAFETY: not closed, as the caller says.
    if unsafe { Context::is_removed(context) } {
        Err(libc::ENODEV)
    } else {
        rnic().map_err(|error| errno(&error))
    }
}

impl Rnic {
    /// Whether the device is this process's, and not its parent's.
    pub(super) fn is_own(&self) -> bool {
        self.process.is_this()
    }

    /// Has whoever drives the sockets notice that the device is gone.
    fn watch(&'static self) -> io::Result<()> {
        let Some(folder) = removal::watch()? else { return Ok(()) };
        self.poller.watch(folder, move |folder| {
            removal::drain(folder);
            if removal::is_gone() {
                self.remove_device();
            }
        })?;
        // It may have gone just before.
        if removal::is_gone() {
            self.remove_device();
        }
        Ok(())
    }

    /// Removes the device: all that is bound to it is told so, then its connections end. Objects on it can still be used and
    /// destroyed, but new ones cannot be made.
    fn remove_device(&self) {
        let bounds = {
            let mut bounds = self.bounds.lock();
            if std::mem::replace(&mut bounds.removed, true) {
                return;
            }
            std::mem::take(&mut bounds.all)
        };
        let own = ptr::from_ref(self).cast_mut();
        let _ = RNIC.compare_exchange(own, ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
        for bound in bounds.values().filter_map(Weak::upgrade) {
            bound.device_removed();
        }
        Context::device_removed();
        self.poller.remove_device();
        if let Some(background) = self.background.lock().take() {
            background.dismiss();
        }
    }

    /// Fails with `ENODEV` if the device was removed.
    pub(super) fn check(&self) -> Result<(), c_int> {
        if self.bounds.lock().removed { Err(libc::ENODEV) } else { Ok(()) }
    }

    /// Has `bound` told when the device is removed, until it is unbound by the number that this returns; `ENODEV` if the device was
    /// removed.
    pub(super) fn bind(&self, bound: Weak<dyn Bound>) -> Result<u64, c_int> {
        let mut bounds = self.bounds.lock();
        if bounds.removed {
            return Err(libc::ENODEV);
        }
        bounds.last += 1;
        let number = bounds.last;
        bounds.all.insert(number, bound);
        Ok(number)
    }

    pub(super) fn unbind(&self, number: u64) {
        self.bounds.lock().all.remove(&number);
    }

    /// A number for a new queue pair.
    pub(super) fn number(&self) -> u32 {
        let queue_pairs = self.queue_pairs.lock();
        loop {
            let number = self.last_number.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & 0xFF_FFFF;
            if number != 0 && !queue_pairs.contains_key(&number) {
                return number;
            }
        }
    }

    pub(super) fn add(&self, number: u32, ends: &Arc<Ends>) {
        self.queue_pairs.lock().insert(number, Arc::downgrade(ends));
    }

    pub(super) fn remove(&self, number: u32) {
        self.queue_pairs.lock().remove(&number);
    }

    pub(super) fn queue_pair(&self, number: u32) -> Option<Arc<Ends>> {
        self.queue_pairs.lock().get(&number)?.upgrade()
    }
}
