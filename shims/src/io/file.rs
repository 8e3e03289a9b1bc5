//! Overlapped files.

use super::background;
use super::poller::{Poller, Source};
use super::queue::{Packet, Queue};
use super::signal::Signal;
use super::sync::Lock;
use super::sys::thread_id;
use super::{Overlapped, Request, WeakList, Which};
use crate::error::*;
use crate::object::{Object, RawHandle, guard, handle};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Something that can cancel the requests pending on it, for `CancelIo` and `CancelIoEx`.
pub trait Canceller: Send + Sync {
    /// Cancels the requests that are meant before it returns; says how many there were.
    fn cancel(&self, which: Which) -> usize;
}

/// An overlapped file: the sources of one adapter user, and perhaps the port its completions go to.
pub struct File {
    /// Watches the sources until the file is bound; see [`File::poller`].
    own: Arc<Poller>,
    port: OnceLock<(Arc<Queue>, usize)>,
    sources: Lock<Vec<Watched>>,
    cancellers: Lock<WeakList<dyn Canceller>>,
    /// Pending requests, and other reasons to make progress.
    interest: AtomicUsize,
    /// What `SetFileCompletionNotificationModes` set: bits can only be added.
    modes: AtomicU8,
    /// The state of the file handle itself, which stands in for a missing `hEvent`.
    signal: Arc<Signal>,
}

/// A source and where it is registered.
struct Watched {
    fd: RawFd,
    key: u64,
    source: Arc<dyn Source>,
}

/// Keeps a source registered with its file; dropping it removes the source.
pub struct Registration {
    file: Arc<File>,
    key: u64,
}

/// `FILE_SKIP_COMPLETION_PORT_ON_SUCCESS`: concerns operations that complete at once, which ours never do.
pub const SKIP_PORT_ON_SUCCESS: u8 = 1;
/// `FILE_SKIP_SET_EVENT_ON_HANDLE`: a request without an event sets nothing.
pub const SKIP_SET_EVENT: u8 = 2;

/// A key that no other source in the process has.
fn unique_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl File {
    /// Makes a file without sources.
    pub fn new() -> io::Result<Arc<File>> {
        let file = Arc::new(File {
            own: Poller::new()?,
            port: OnceLock::new(),
            sources: Lock::default(),
            cancellers: Lock::default(),
            interest: AtomicUsize::new(0),
            modes: AtomicU8::new(0),
            signal: Signal::new(false, false),
        });
        background::register(&file);
        Ok(file)
    }

    /// Opens a handle to the file; `NULL` when there are too many handles.
    pub fn handle(self: &Arc<Self>) -> RawHandle {
        handle::open(Object::File(self.clone()))
    }

    /// The file that a handle names, if it names one. The low two bits of the handle do not matter.
    pub fn from_handle(handle: RawHandle) -> Option<Arc<File>> {
        match handle::get(handle) {
            Some(Object::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Watches `fd`: whenever it is readable, a thread that waits (or polls) calls [`Source::ready`].
    ///
    /// `fd` must stay open until the registration is dropped. A thread that saw it ready just before may still
    /// make its call of `ready` then; no other is made.
    pub fn add_source(self: &Arc<Self>, fd: RawFd, source: Arc<dyn Source>) -> io::Result<Registration> {
        let key = unique_key();
        let mut sources = self.sources.lock();
        self.poller().add(fd, key, source.clone())?;
        sources.push(Watched { fd, key, source });
        Ok(Registration { file: self.clone(), key })
    }

    /// Lets `CancelIo` and `CancelIoEx` on this file reach `canceller`.
    pub fn add_canceller(&self, canceller: Weak<dyn Canceller>) {
        self.cancellers.lock().add(canceller);
    }

    /// Starts a request: marks `ov` pending and resets its event.
    ///
    /// # Safety
    /// `ov` must point to an `OVERLAPPED` that stays valid until the request completes; of its fields only
    /// `hEvent` needs a value.
    pub unsafe fn begin(self: &Arc<Self>, ov: *mut Overlapped) -> Request {
        // SAFETY: the caller vouches for `ov`.
        unsafe { Request::begin(self, ov) }
    }

    /// What `SetFileCompletionNotificationModes` does: adds to the modes, none of which can be removed.
    pub fn add_notification_modes(&self, modes: u8) {
        self.modes.fetch_or(modes, Ordering::Relaxed);
    }

    /// Dispatches what is ready now; never blocks.
    pub fn progress(&self) {
        self.poller().poll();
    }

    /// Asks for progress in the background even while no request is pending, until as many calls of
    /// [`File::no_more_events`].
    pub fn expect_events(&self) {
        self.interest.fetch_add(1, Ordering::SeqCst);
        if !self.poller().is_adopted() {
            background::wanted();
        }
    }

    /// Takes back one [`File::expect_events`].
    pub fn no_more_events(&self) {
        self.interest.fetch_sub(1, Ordering::Release);
    }

    /// What a request without an event of its own sets at completion.
    pub(super) fn own_signal(&self) -> Option<&Arc<Signal>> {
        (self.modes.load(Ordering::Relaxed) & SKIP_SET_EVENT == 0).then_some(&self.signal)
    }

    pub(crate) fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// Posts the completion packet of a request, if there is a port to post it to.
    pub(super) fn post(&self, overlapped: usize, status: i32, bytes: usize) {
        if let Some((queue, key)) = self.port.get() {
            queue.post(Packet { key: *key, overlapped, bytes: bytes as u32, status });
        }
    }

    /// The poller whose leader makes progress on this file: once it is bound, that of its port.
    #[inline]
    pub(super) fn poller(&self) -> &Arc<Poller> {
        self.poller_if(self.is_bound())
    }

    /// The poller as it is, or was, when the file is bound, or not yet.
    #[inline]
    pub(super) fn poller_if(&self, bound: bool) -> &Arc<Poller> {
        match self.port.get() {
            Some((queue, _)) if bound => &queue.poller,
            _ => &self.own,
        }
    }

    /// Whether completions go to a port.
    #[inline]
    pub(super) fn is_bound(&self) -> bool {
        self.port.get().is_some()
    }

    /// Whether progress is wanted and no thread watches for it.
    pub(super) fn is_unattended(&self) -> bool {
        let poller = self.poller();
        self.interest.load(Ordering::SeqCst) > 0 && !poller.is_watched() && !poller.is_adopted()
    }

    /// Sends the completions of this file to a port. That can be done once.
    ///
    /// The port's poller watches the sources from now on: watched by both, each event would cost twice. Who waits for
    /// an earlier request waits on where there is nothing left to serve, and is woken when it completes, which somebody
    /// on the port sees to, or the background thread.
    pub(super) fn bind(&self, queue: &Arc<Queue>, key: usize) -> Result<(), u32> {
        let sources = self.sources.lock();
        if self.is_bound() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        for (at, watched) in sources.iter().enumerate() {
            if let Err(error) = queue.poller.add(watched.fd, watched.key, watched.source.clone()) {
                sources[..at].iter().for_each(|watched| queue.poller.remove(watched.fd, watched.key));
                return Err(errno_to_win32(error.raw_os_error().unwrap_or(libc::ENOMEM)));
            }
        }
        self.port.set((queue.clone(), key)).map_err(|_| ERROR_INVALID_PARAMETER)?;
        sources.iter().for_each(|watched| self.own.remove(watched.fd, watched.key));
        drop(sources);
        if self.interest.load(Ordering::SeqCst) > 0 {
            background::take_back(&self.own);
        }
        Ok(())
    }

    fn cancel(&self, which: Which) -> usize {
        let cancellers = self.cancellers.lock().living();
        cancellers.iter().map(|canceller| canceller.cancel(which)).sum()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        background::forget(self);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = {
            let mut sources = self.file.sources.lock();
            let at = sources.iter().position(|watched| watched.key == self.key);
            at.map(|at| {
                let watched = sources.swap_remove(at);
                self.file.poller().remove(watched.fd, watched.key);
                watched
            })
        };
        // The source may end here, and with it much else: not under the lock.
        drop(removed);
    }
}

/// `CancelIoEx`: cancels the request on `overlapped`, or all requests of the file.
///
/// # Safety
/// None beyond C's: `overlapped` is only compared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CancelIoEx(file: RawHandle, overlapped: *mut Overlapped) -> i32 {
    guard(0, || {
        let Some(file) = File::from_handle(file) else {
            set_last_error(ERROR_INVALID_HANDLE);
            return 0;
        };
        let cancelled = file.cancel(if overlapped.is_null() { Which::All } else { Which::On(overlapped) });
        if cancelled == 0 {
            set_last_error(ERROR_NOT_FOUND);
        }
        (cancelled > 0).into()
    })
}

/// `CancelIo`: cancels the requests of the file that the calling thread began, and succeeds if there were none.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CancelIo(file: RawHandle) -> i32 {
    guard(0, || match File::from_handle(file) {
        Some(file) => {
            file.cancel(Which::OfThread(thread_id()));
            1
        }
        None => {
            set_last_error(ERROR_INVALID_HANDLE);
            0
        }
    })
}

/// `SetFileCompletionNotificationModes`: the modes can only be added to.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetFileCompletionNotificationModes(file: RawHandle, modes: u8) -> i32 {
    guard(0, || match File::from_handle(file) {
        Some(_) if modes & !(SKIP_PORT_ON_SUCCESS | SKIP_SET_EVENT) != 0 => {
            set_last_error(ERROR_INVALID_PARAMETER);
            0
        }
        Some(file) => {
            file.add_notification_modes(modes);
            1
        }
        None => {
            set_last_error(ERROR_INVALID_HANDLE);
            0
        }
    })
}
