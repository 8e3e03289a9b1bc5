//! Overlapped files.

mod background;
mod progress;

pub use progress::Progress;

use super::overlapped::Overlapped;
use super::poller::{Poller, Source};
use super::queue::{Packet, Queue};
use super::signal::Signal;
use super::sync::Lock;
use super::unattended;
use super::weak_list::WeakList;
use crate::error::*;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Something that can cancel the requests pending on it, for `CancelIo` and `CancelIoEx`.
pub trait Canceller: Send + Sync {
    /// Cancels the requests in `scope` before it returns; returns their number.
    fn cancel(&self, scope: CancelScope) -> usize;
}

/// Which of the pending requests are cancelled.
#[derive(Clone, Copy, Debug)]
pub enum CancelScope {
    /// All of them.
    All,
    /// The one on this `OVERLAPPED`.
    Overlapped(*mut Overlapped),
    /// Those that the thread with this id has started.
    Thread(u32),
}

/// A port's queue, and the key of the file's packets.
pub(super) struct Binding {
    queue: Arc<Queue>,
    key: usize,
}

/// An overlapped file: its sources, and the completion port to which it is bound, if any.
pub struct File {
    /// Watches the sources until the file is bound; see [`File::poller`].
    own: Arc<Poller>,
    port: OnceLock<Binding>,
    /// The registered sources.
    sources: Lock<Vec<(RawFd, Arc<dyn Source>)>>,
    cancellers: Lock<WeakList<dyn Canceller>>,
    /// The number of pending requests and other reasons to make progress.
    interest: AtomicUsize,
    /// The modes of `SetFileCompletionNotificationModes`, which can only be added.
    modes: AtomicU8,
    /// Whether pending requests are cancelled when the program closes its handle. ND's are not.
    ends_with_its_handle: AtomicBool,
    /// The signal of the file handle itself, which replaces a missing `hEvent`.
    signal: Arc<Signal>,
}

/// The poller to which a signal was attached, as the file may be bound later.
pub(crate) struct Attachment(Arc<Poller>);

/// Keeps a source registered with its file; dropping it removes the source.
pub struct Registration {
    file: Arc<File>,
    fd: RawFd,
}

/// `FILE_SKIP_COMPLETION_PORT_ON_SUCCESS`: for operations that complete at once, which those of sockets may and ND's never do.
pub const SKIP_PORT_ON_SUCCESS: u8 = 1;
/// `FILE_SKIP_SET_EVENT_ON_HANDLE`: a request without an event sets nothing.
pub const SKIP_SET_EVENT: u8 = 2;

impl File {
    /// A file without sources.
    ///
    /// # Errors
    /// No descriptor is free, or the first file's background thread cannot be started.
    pub fn new() -> io::Result<Arc<File>> {
        File::watched_by(Poller::new()?)
    }

    /// A file for a socket, of which a program may have many: until they are bound they share one poller, which takes two
    /// descriptors.
    pub(crate) fn sharing() -> io::Result<Arc<File>> {
        static SHARED: OnceLock<Arc<Poller>> = OnceLock::new();
        let poller = match SHARED.get() {
            Some(poller) => poller.clone(),
            None => {
                let poller = Poller::new()?;
                SHARED.get_or_init(|| poller).clone()
            }
        };
        File::watched_by(poller)
    }

    fn watched_by(own: Arc<Poller>) -> io::Result<Arc<File>> {
        let file = Arc::new(File {
            own,
            port: OnceLock::new(),
            sources: Lock::default(),
            cancellers: Lock::default(),
            interest: AtomicUsize::new(0),
            modes: AtomicU8::new(0),
            ends_with_its_handle: AtomicBool::new(false),
            signal: Signal::new(false, false),
        });
        background::register(&file)?;
        Ok(file)
    }

    /// Watches `fd`: whenever it is readable, a thread that waits or polls calls [`Source::ready`].
    ///
    /// `fd` must stay open until the registration is dropped. A thread that has just seen it ready may still call `ready`
    /// afterwards.
    ///
    /// A descriptor may be registered several times, with one file or several, but always with the same source, as a device's
    /// descriptor is with each of its files. It is watched until the last registration is dropped.
    ///
    /// # Errors
    /// Those of `epoll_ctl(2)`; `EEXIST` for a descriptor that is registered with another source.
    pub fn add_source(self: &Arc<Self>, fd: RawFd, source: Arc<dyn Source>) -> io::Result<Registration> {
        self.watch(fd, source)?;
        Ok(Registration { file: self.clone(), fd })
    }

    /// As [`File::add_source`], until the file is dropped. The source must not own the file.
    pub(crate) fn keep_source(&self, fd: RawFd, source: Arc<dyn Source>) -> io::Result<()> {
        self.watch(fd, source)
    }

    fn watch(&self, fd: RawFd, source: Arc<dyn Source>) -> io::Result<()> {
        let mut sources = self.sources.lock();
        self.poller().add(fd, source.clone())?;
        sources.push((fd, source));
        Ok(())
    }

    /// Makes closing the program's handle cancel pending requests.
    pub(crate) fn cancel_on_close(&self) {
        self.ends_with_its_handle.store(true, Ordering::Relaxed);
    }

    /// The program has closed a handle to this file.
    pub(crate) fn handle_closed(&self) {
        if self.ends_with_its_handle.load(Ordering::Relaxed) {
            self.cancel_all();
        }
    }

    /// Cancels all pending requests.
    pub(crate) fn cancel_all(&self) {
        self.cancel(CancelScope::All);
    }

    /// Lets `CancelIo` and `CancelIoEx` on this file reach `canceller`.
    pub fn add_canceller(&self, canceller: Weak<dyn Canceller>) {
        self.cancellers.lock().add(canceller);
    }

    /// `SetFileCompletionNotificationModes`: adds modes.
    pub fn add_notification_modes(&self, modes: u8) {
        self.modes.fetch_or(modes, Ordering::Relaxed);
    }

    /// Serves what is ready; never blocks.
    pub fn progress(&self) {
        self.poller().poll();
    }

    /// Makes threads that wait for `signal` serve this file, and requests progress, until [`File::detach`].
    pub(crate) fn attach(&self, signal: &Signal) -> Attachment {
        let poller = self.poller().clone();
        signal.attach(&poller);
        self.expect_events();
        Attachment(poller)
    }

    /// Undoes one [`File::attach`].
    pub(crate) fn detach(&self, signal: &Signal, attachment: &Attachment) {
        signal.detach(&attachment.0);
        self.no_more_events();
    }

    /// Requests background progress even without pending requests, until as many calls of [`File::no_more_events`].
    pub fn expect_events(&self) {
        self.interest.fetch_add(1, Ordering::SeqCst);
        if !self.poller().is_adopted() {
            unattended::left_alone();
        }
    }

    /// Undoes one [`File::expect_events`].
    pub fn no_more_events(&self) {
        self.interest.fetch_sub(1, Ordering::Release);
    }

    /// The file at this address, if there is one.
    pub(super) fn at(address: usize) -> Option<Arc<File>> {
        background::file_at(address)
    }

    /// Whether operations that succeed at once have completion packets.
    pub(super) fn tells_of_success(&self) -> bool {
        self.modes.load(Ordering::Relaxed) & SKIP_PORT_ON_SUCCESS == 0
    }

    /// The signal of requests without an event.
    pub(crate) fn own_signal(&self) -> Option<&Arc<Signal>> {
        (self.modes.load(Ordering::Relaxed) & SKIP_SET_EVENT == 0).then_some(&self.signal)
    }

    pub(crate) fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// The port to which the file is bound.
    #[inline]
    pub(super) fn port(&self) -> Option<&Binding> {
        self.port.get()
    }

    /// Publishes that a request has completed; returns the port to which its packet goes, if the file is bound.
    ///
    /// The file is not bound in between: who sees the status and binds the file then gets no packet, and who binds it while the
    /// request is still pending gets one.
    #[inline]
    pub(super) fn publish(&self, publish: impl FnOnce()) -> Option<&Binding> {
        if let Some(port) = self.port.get() {
            publish();
            return Some(port);
        }
        // Held so that the file is not bound meanwhile.
        let _sources = self.sources.lock();
        publish();
        self.port.get()
    }

    /// The poller whose leader makes progress on this file: once it is bound, that of its port.
    #[inline]
    pub(super) fn poller(&self) -> &Arc<Poller> {
        self.poller_if(self.is_bound())
    }

    /// The poller of the file when bound, or before.
    #[inline]
    pub(super) fn poller_if(&self, bound: bool) -> &Arc<Poller> {
        match self.port.get() {
            Some(port) if bound => &port.queue.poller,
            _ => &self.own,
        }
    }

    /// Whether completions go to a port.
    #[inline]
    pub(crate) fn is_bound(&self) -> bool {
        self.port.get().is_some()
    }

    /// Whether progress is requested and no thread attends to it.
    pub(super) fn is_unattended(&self) -> bool {
        let poller = self.poller();
        self.interest.load(Ordering::SeqCst) > 0 && !poller.is_watched() && !poller.is_adopted()
    }

    /// Binds the file to a port, which can be done once.
    ///
    /// From then on the port's poller alone watches the sources, as each event would be served twice otherwise. A thread that
    /// waits for an earlier request stays in the old poller, which has nothing left to serve, and is woken when a thread on the
    /// port or the background thread completes the request.
    pub(crate) fn bind(&self, queue: &Arc<Queue>, key: usize) -> Result<(), u32> {
        let sources = self.sources.lock();
        if self.is_bound() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        for (at, (fd, source)) in sources.iter().enumerate() {
            if let Err(error) = queue.poller.add(*fd, source.clone()) {
                sources[..at].iter().for_each(|(fd, _)| queue.poller.remove(*fd));
                return Err(errno_to_win32(error.raw_os_error().unwrap_or(libc::ENOMEM)));
            }
        }
        self.port.set(Binding { queue: queue.clone(), key }).map_err(|_| ERROR_INVALID_PARAMETER)?;
        sources.iter().for_each(|(fd, _)| self.own.remove(*fd));
        drop(sources);
        if self.interest.load(Ordering::SeqCst) > 0 {
            self.own.take_back();
        }
        Ok(())
    }

    /// Cancels pending requests. Returns how many.
    pub fn cancel(&self, scope: CancelScope) -> usize {
        let cancellers = self.cancellers.lock().living();
        cancellers.iter().map(|canceller| canceller.cancel(scope)).sum()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.interest.load(Ordering::Relaxed);
        f.debug_struct("File")
            .field("bound", &self.is_bound())
            .field("interest", &pending)
            .finish_non_exhaustive()
    }
}

impl Binding {
    /// Posts the completion packet of a request.
    pub(super) fn post(&self, overlapped: usize, status: i32, bytes: usize) {
        self.queue.post(Packet { key: self.key, overlapped, bytes: bytes as u32, status });
    }
}

impl Registration {
    /// Updates the watched events of the descriptor.
    ///
    /// # Errors
    /// Those of `epoll_ctl(2)`.
    pub(crate) fn renew(&self) -> io::Result<()> {
        // Held so that the file is not bound meanwhile.
        let _sources = self.file.sources.lock();
        self.file.poller().watch_again(self.fd)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        background::forget(self);
        // Registrations that have no owner.
        for (fd, _) in std::mem::take(&mut *self.sources.lock()) {
            self.poller().remove(fd);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = {
            let mut sources = self.file.sources.lock();
            let at = sources.iter().position(|(fd, _)| *fd == self.fd);
            at.map(|at| {
                self.file.poller().remove(self.fd);
                sources.swap_remove(at)
            })
        };
        // The source may be dropped here, with everything that it owns, so without the lock.
        drop(removed);
    }
}
