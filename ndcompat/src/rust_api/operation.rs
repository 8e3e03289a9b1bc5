//! Overlapped requests for Rust programs: safe forms of the calls that take an `OVERLAPPED`.

use crate::control::connector::{Connector, Offer};
use crate::control::listener::Listener;
use crate::control::shared_endpoint::SharedEndpoint;
use crate::data::completion_queue::CompletionQueue;
use crate::data::queue_pair::QueuePair;
use crate::data::shared_receive_queue::SharedReceiveQueue;
use crate::memory::memory_region::MemoryRegion;
use crate::rust_api::abandoned;
use crate::rust_api::waiting::{self, is_wanted};
use crate::status::{Result, Status};
use crate::types::{Completion, NotifyType, RegionFlags};
use crate::verbs::SockAddr;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use win32::io::{self, CancelScope, File, Overlapped, result};

/// A pending overlapped request, with its `OVERLAPPED`.
///
/// It is a future; [`wait`](Self::wait) blocks instead. Dropping it does not cancel the request, whose `OVERLAPPED` is
/// freed when it has completed.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::types::NotifyType;
/// use ndcompat::{Provider, Session, Status};
/// use std::time::Duration;
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0))?;
/// let notified = queue.begin_notify(NotifyType::Any)?;
/// // Nothing completes: it is still pending.
/// let notified = notified.wait_for(Duration::from_millis(1)).unwrap_err();
/// queue.cancel();
/// assert_eq!(session.wait(notified), Err(Status::CANCELED)); // a future, like any other
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[must_use = "the request has only begun"]
pub struct Operation {
    file: Arc<File>,
    ov: NonNull<Overlapped>,
    /// A waker is registered for the `OVERLAPPED`.
    awaited: bool,
    /// Dropping this cancels the request.
    cancels: bool,
}

// SAFETY: requests may be waited for by any thread, and the OVERLAPPED consists of atomics.
unsafe impl Send for Operation {}
// SAFETY: a shared reference only reads the OVERLAPPED, which consists of atomics.
unsafe impl Sync for Operation {}

impl Operation {
    /// Begins a request on `file` by `call`, which gets the `OVERLAPPED`.
    ///
    /// # Errors
    /// Those of `call`.
    ///
    /// # Safety
    /// When `call` succeeds it must have begun a request on that `OVERLAPPED`, when it fails it must not.
    pub unsafe fn begin<T>(
        file: &Arc<File>,
        call: impl FnOnce(*mut Overlapped) -> Result<T>,
    ) -> Result<Operation> {
        // Who waits on a port is woken by a waker. Nobody would take the packet if the operation is waited for otherwise.
        let ov = NonNull::from(Box::leak(Box::new(Overlapped::without_packet())));
        match call(ov.as_ptr()) {
            Ok(_) => Ok(Operation { file: file.clone(), ov, awaited: false, cancels: false }),
            Err(status) => {
                // SAFETY: it was a box, and no request uses it.
                drop(unsafe { Box::from_raw(ov.as_ptr()) });
                Err(status)
            }
        }
    }

    /// The request's status; `ND_PENDING` until it has completed.
    pub fn status(&self) -> Status {
        // SAFETY: a request was begun on the OVERLAPPED, which is still there.
        Status(unsafe { result(&self.file, self.ov.as_ptr(), false) })
    }

    /// Blocks until the request has completed. Meanwhile, the thread handles the file's events itself.
    ///
    /// # Errors
    /// The status of a request that has failed.
    pub fn wait(self) -> Result<()> {
        // SAFETY: the OVERLAPPED lives until this is dropped.
        Status(unsafe { result(&self.file, self.ov.as_ptr(), true) }).ok()
    }

    /// For a request that changes nothing but what it tells: dropping this cancels it.
    fn cancelled_with_this(mut self) -> Operation {
        self.cancels = true;
        self
    }

    /// The task that was to be woken is not woken any more.
    pub(crate) fn forget_task(&mut self) {
        if std::mem::take(&mut self.awaited) {
            io::forget_tasks(self.ov.as_ptr());
        }
    }

    /// As [`wait`](Self::wait), but for no longer than `limit`.
    ///
    /// # Errors
    /// The operation itself, still pending, if it has not completed by then.
    pub fn wait_for(self, limit: Duration) -> std::result::Result<Result<()>, Operation> {
        let ended = || self.status() != Status::PENDING;
        if io::wait_for(&self.file, self.ov.as_ptr(), limit, ended) { Ok(self.wait()) } else { Err(self) }
    }
}

/// Ready when the request has completed. The error is the status of a request that has failed.
impl Future for Operation {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut status = self.status();
        if status == Status::PENDING && is_wanted(context.waker()) {
            self.awaited = true;
            self.file.expect_poll_loop();
            io::wake_when_complete(self.ov.as_ptr(), &waiting::caught(context.waker()));
            status = self.status();
        }
        if status == Status::PENDING { Poll::Pending } else { Poll::Ready(status.ok()) }
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.forget_task();
        if self.cancels && self.status() == Status::PENDING {
            self.file.cancel(CancelScope::Overlapped(self.ov.as_ptr()));
        }
        if self.status() == Status::PENDING {
            // SAFETY: it was a box, a request was begun on it, and this was its only user.
            unsafe { abandoned::free_when_complete(self.ov) };
        } else {
            // SAFETY: it was a box, and the request has completed.
            drop(unsafe { Box::from_raw(self.ov.as_ptr()) });
        }
    }
}

/// [`Operation::begin`] by a method whose last parameter is the `OVERLAPPED`.
macro_rules! begin {
    ($object:ident.$method:ident($($argument:expr),*)) => {{
        // SAFETY: the operation keeps the OVERLAPPED until the request has completed.
        let call = |ov| unsafe { $object.$method($($argument,)* ov) };
        // SAFETY: the method begins a request if, and only if, it succeeds.
        unsafe { Operation::begin($object.file(), call) }
    }};
}

/// [`Operation::begin`] by a call that returns `ND_PENDING` if, and only if, it has begun a request.
fn begin_pending(file: &Arc<File>, call: impl FnOnce(*mut Overlapped) -> Status) -> Result<Operation> {
    let begun = |ov| match call(ov) {
        Status::PENDING => Ok(()),
        status => Err(status),
    };
    // SAFETY: the three callers pass methods that return `ND_PENDING` if, and only if, they have begun a request.
    unsafe { Operation::begin(file, begun) }
}

impl Connector {
    /// [`Connector::connect`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`Connector::connect`].
    pub fn begin_connect(&self, pair: &QueuePair, to: SockAddr, offer: Offer<'_>) -> Result<Operation> {
        begin!(self.connect(pair, to, offer))
    }

    /// [`Connector::connect_with_shared_endpoint`], with an `OVERLAPPED` of its own. [`SharedEndpoint`] has an example.
    ///
    /// # Errors
    /// Those of [`Connector::connect_with_shared_endpoint`].
    pub fn begin_connect_with_shared_endpoint(
        &self,
        pair: &QueuePair,
        endpoint: &SharedEndpoint,
        to: SockAddr,
        offer: Offer<'_>,
    ) -> Result<Operation> {
        begin!(self.connect_with_shared_endpoint(pair, endpoint, to, offer))
    }

    /// [`Connector::complete_connect`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`Connector::complete_connect`].
    pub fn begin_complete_connect(&self) -> Result<Operation> {
        begin!(self.complete_connect())
    }

    /// [`Connector::accept`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`Connector::accept`].
    pub fn begin_accept(&self, pair: &QueuePair, offer: Offer<'_>) -> Result<Operation> {
        begin!(self.accept(pair, offer))
    }

    /// [`Connector::notify_disconnect`], with an `OVERLAPPED` of its own. Dropping the operation cancels the request.
    ///
    /// # Errors
    /// Those of [`Connector::notify_disconnect`].
    pub fn begin_notify_disconnect(&self) -> Result<Operation> {
        begin!(self.notify_disconnect()).map(Operation::cancelled_with_this)
    }

    /// [`Connector::disconnect`], with an `OVERLAPPED` of its own. Does not wait.
    ///
    /// # Errors
    /// Those of [`Connector::disconnect`].
    pub fn begin_disconnect(&self) -> Result<Operation> {
        begin!(self.start_disconnect())
    }
}

impl Listener {
    /// [`Listener::connection_request`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`Listener::connection_request`].
    pub fn begin_connection_request(&self, connector: &Arc<Connector>) -> Result<Operation> {
        begin!(self.connection_request(connector))
    }

    /// [`Listener::close_request`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`Listener::close_request`].
    pub fn begin_close(&self) -> Result<Operation> {
        begin!(self.close_request())
    }
}

impl SharedEndpoint {
    /// [`SharedEndpoint::close_request`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`SharedEndpoint::close_request`].
    pub fn begin_close(&self) -> Result<Operation> {
        begin!(self.close_request())
    }
}

impl MemoryRegion {
    /// [`MemoryRegion::register`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`MemoryRegion::register`].
    ///
    /// # Safety
    /// The memory must stay mapped while it is registered, and nothing else may use it while the device or a peer does.
    pub unsafe fn begin_register(
        self: &Arc<Self>,
        address: *mut u8,
        length: usize,
        flags: RegionFlags,
    ) -> Result<Operation> {
        // SAFETY: the caller keeps the memory valid; the operation keeps the OVERLAPPED until the request has completed.
        begin_pending(self.file(), |ov| unsafe { self.register(address, length, flags, ov) })
    }

    /// [`MemoryRegion::deregister`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`MemoryRegion::deregister`].
    pub fn begin_deregister(&self) -> Result<Operation> {
        // SAFETY: the operation keeps the OVERLAPPED until the request has completed.
        begin_pending(self.file(), |ov| unsafe { self.deregister(ov) })
    }
}

impl SharedReceiveQueue {
    /// [`SharedReceiveQueue::notify`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`SharedReceiveQueue::notify`].
    pub fn begin_notify(&self) -> Result<Operation> {
        begin!(self.notify())
    }
}

impl CompletionQueue {
    /// [`CompletionQueue::notify`], with an `OVERLAPPED` of its own.
    ///
    /// # Errors
    /// Those of [`CompletionQueue::notify`].
    pub fn begin_notify(&self, kind: NotifyType) -> Result<Operation> {
        // SAFETY: the operation keeps the OVERLAPPED until the request has completed.
        begin_pending(self.file(), |ov| unsafe { self.notify(kind, ov) })
    }

    /// Takes results as [`CompletionQueue::results`] does, but blocks until there is one.
    ///
    /// # Errors
    /// Those of [`CompletionQueue::notify`]; `ND_CANCELED` if its notifications are cancelled meanwhile;
    /// `ND_DEVICE_REMOVED` once the device is gone.
    pub fn wait_for_results(&self, results: &mut [Completion]) -> Result<usize> {
        loop {
            match self.results(results) {
                0 if !results.is_empty() => self.begin_notify(NotifyType::Any)?.wait()?,
                count => return Ok(count),
            }
        }
    }
}
