//! Memory regions: registering memory with the device.

use crate::device::adapter::{Adapter, AdapterFile};
use crate::device::limits::{Quirks, Windows};
use crate::diagnosis::host;
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::sync::worker;
use crate::types::RegionFlags;
use crate::verbs::{self, bindings::*};
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use win32::io::{CancelScope, Canceller, File, Outstanding, Overlapped, Request};
use win32::memory::secured::Secured;

/// A memory region (`IND2MemoryRegion`). All methods are thread-safe. Dropping it deregisters its memory.
///
/// [`Buffer`](crate::Buffer) and [`SharedMemory`](crate::SharedMemory) are the safe forms.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::types::RegionFlags;
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let mut memory = vec![0; 4096];
/// let region = session.adapter().create_memory_region(session.file())?;
/// let flags = RegionFlags::ALLOW_REMOTE_READ;
/// // SAFETY: the memory lives until it is deregistered.
/// unsafe { region.begin_register(memory.as_mut_ptr(), memory.len(), flags) }?.wait()?;
/// println!("tokens {:#x} and {:#x}", region.local_token(), region.remote_token());
/// region.begin_deregister()?.wait()?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct MemoryRegion {
    file: Arc<AdapterFile>,
    requests: Arc<Outstanding>,
    state: Mutex<State>,
    local_token: AtomicU32,
    remote_token: AtomicU32,
}

impl fmt::Debug for MemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRegion")
            .field("local_token", &self.local_token())
            .field("remote_token", &self.remote_token())
            .finish_non_exhaustive()
    }
}

/// From this size on, in bytes, a worker registers the memory, as pinning takes milliseconds.
///
/// Below, `Register` completes before it returns, as programs reuse the `OVERLAPPED` when it returns.
const LARGE: usize = 64 << 20;

#[derive(Default)]
struct State {
    registered: Option<Registered>,
    /// The number of the pending `Register`, and its request.
    pending: Option<(u64, Request)>,
    /// The number of the last `Register`.
    last: u64,
    /// The region is registered with its file as a [`Canceller`].
    cancellable: bool,
}

/// Registered memory.
struct Registered {
    region: verbs::MemoryRegion,
    addresses: Range<usize>,
    flags: RegionFlags,
    /// Whether the device's own windows may be bound to it.
    bindable: bool,
    /// How many memory windows are bound to it.
    windows: usize,
    /// Has the program called back before the memory is unmapped (`AddSecureMemoryCacheCallback`).
    secured: Secured,
}

impl Adapter {
    /// Creates a memory region without memory, whose requests run on `file` (`IND2Adapter::CreateMemoryRegion`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors
    /// run out.
    pub fn create_memory_region(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<MemoryRegion>> {
        self.check()?;
        Ok(Arc::new(MemoryRegion::new(self.file(file)?)))
    }
}

impl MemoryRegion {
    fn new(file: Arc<AdapterFile>) -> MemoryRegion {
        MemoryRegion {
            file,
            state: Mutex::default(),
            requests: Arc::default(),
            local_token: AtomicU32::new(0),
            remote_token: AtomicU32::new(0),
        }
    }

    /// Registers `length` bytes at `address` for the accesses in `flags` (`IND2MemoryRegion::Register`).
    ///
    /// Returns `ND_PENDING`, or an error without beginning a request: `ND_INVALID_PARAMETER` for null or for a length
    /// beyond the adapter's limit, `ND_INVALID_BUFFER_SIZE` for a length of 0, `ND_INVALID_DEVICE_STATE` if memory is
    /// registered or a `Register` is pending, `ND_DEVICE_REMOVED`. Less than 64 MiB are registered before it returns, more
    /// by a worker. The request completes with `ND_ACCESS_VIOLATION` for memory that is not mapped, or not writable as
    /// `flags` require, `ND_INSUFFICIENT_RESOURCES`, `ND_DEVICE_REMOVED` or `ND_CANCELED`.
    ///
    /// # Safety
    /// The memory must stay mapped while it is registered; `ov` must be valid until the request completes.
    pub unsafe fn register(
        self: &Arc<Self>,
        address: *mut u8,
        length: usize,
        flags: RegionFlags,
        ov: *mut Overlapped,
    ) -> Status {
        if address.is_null() {
            return Status::INVALID_PARAMETER;
        }
        if length == 0 {
            return Status::INVALID_BUFFER_SIZE;
        }
        if let Err(status) = self.adapter().check() {
            return status;
        }
        let limits = self.adapter().limits();
        if length > limits.info.max_registration_size {
            return Status::INVALID_PARAMETER;
        }
        let mut state = self.lock();
        if state.registered.is_some() || state.pending.is_some() {
            return Status::INVALID_DEVICE_STATE;
        }
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let request = unsafe { self.requests.begin(self.file.file(), ov) };
        state.last += 1;
        let number = state.last;
        state.pending = Some((number, request));
        let large = length >= LARGE;
        let first_large = large && !std::mem::replace(&mut state.cancellable, true);
        drop(state);
        let start = address as usize;
        let (this, addresses) = (self.clone(), start..start + length);
        // SAFETY: the caller keeps the memory mapped while it is registered.
        let register = move || unsafe { this.register_now(number, addresses, flags) };
        if !large {
            register();
            return Status::PENDING;
        }
        if first_large {
            self.file.file().add_canceller(Arc::downgrade(self) as Weak<dyn Canceller>);
        }
        let in_worker = register.clone();
        if let Err(error) = worker::run(in_worker) {
            tracing::warn!(target: "ndcompat::memory", %error, "no thread to register from");
            register();
        }
        Status::PENDING
    }

    /// Registers the memory, and completes the request with this number unless it has been cancelled.
    ///
    /// # Safety
    /// As [`MemoryRegion::register`].
    unsafe fn register_now(&self, number: u64, addresses: Range<usize>, flags: RegionFlags) {
        let mut access = access(flags, &self.adapter().limits().quirks);
        let (address, length) = (addresses.start as *mut c_void, addresses.len());
        let secured = Secured::new(addresses.clone());
        // SAFETY: the caller keeps the memory mapped while it is registered.
        let register =
            |access| unsafe { verbs::MemoryRegion::register(self.adapter().pd(), address, length, access) };
        let mut made = register(access);
        // The kernel binds windows to writable pages only, whatever they allow (`ib_access_writable`). Constants do without.
        if is_refused_for_windows(&made, access) {
            access &= !IBV_ACCESS_MW_BIND;
            made = register(access);
        }
        match &made {
            Ok(region) => {
                tracing::debug!(target: "ndcompat::memory", address = format_args!("{address:p}"), length, ?flags,
                lkey = region.lkey(), rkey = region.rkey(), "Register")
            }
            // EPERM: the process may not lock any memory.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM)) => {
                host::no_memory(error, Some(length))
            }
            Err(error) => {
                tracing::debug!(target: "ndcompat::memory", address = format_args!("{address:p}"), length, ?flags,
                "Register: {error}")
            }
        }
        let mut state = self.lock();
        let Some((_, request)) = state.pending.take_if(|(pending, _)| *pending == number) else {
            // Cancelled: deregister, without the lock.
            drop(state);
            return drop(made);
        };
        let status = match made {
            Ok(region) => {
                self.local_token.store(region.lkey(), Ordering::Release);
                // In network order, as of Windows providers.
                self.remote_token.store(region.rkey().to_be(), Ordering::Release);
                let bindable = access & IBV_ACCESS_MW_BIND != 0;
                state.registered =
                    Some(Registered { region, addresses, flags, bindable, windows: 0, secured });
                Status::SUCCESS
            }
            Err(error) => {
                let status = match error.raw_os_error() {
                    Some(libc::EFAULT | libc::EINVAL | libc::EACCES) => Status::ACCESS_VIOLATION,
                    Some(libc::ENODEV | libc::EIO) => Status::DEVICE_REMOVED,
                    _ => Status::INSUFFICIENT_RESOURCES,
                };
                status.because(&error)
            }
        };
        drop(state);
        request.complete(status.0, 0);
    }

    /// The pending requests.
    pub fn requests(&self) -> &Outstanding {
        &self.requests
    }

    /// Completes a pending `Register` with `ND_CANCELED`; the memory is not registered.
    pub fn cancel(&self) {
        Canceller::cancel(self, CancelScope::All);
    }

    /// Deregisters the memory (`IND2MemoryRegion::Deregister`).
    ///
    /// Returns `ND_PENDING`, after the request has completed, or an error without beginning a request: `ND_DEVICE_BUSY`
    /// while memory windows are bound to the region, `ND_INVALID_DEVICE_STATE` if no memory is registered.
    ///
    /// # Safety
    /// `ov` must be valid.
    pub unsafe fn deregister(&self, ov: *mut Overlapped) -> Status {
        let mut state = self.lock();
        let registered = &mut state.registered;
        let Some(taken) = registered.take_if(|registered| registered.windows == 0) else {
            return if registered.is_some() { Status::DEVICE_BUSY } else { Status::INVALID_DEVICE_STATE };
        };
        tracing::debug!(target: "ndcompat::memory", lkey = taken.region.lkey(), "Deregister");
        if let Err((region, error)) = taken.region.deregister() {
            *registered = Some(Registered { region, ..taken });
            // A window is still bound: the device has not yet executed its invalidation.
            return match error.raw_os_error() {
                Some(libc::EBUSY | libc::EINVAL) => Status::DEVICE_BUSY.because(&error),
                _ => error.into(),
            };
        }
        drop(state);
        drop(taken.secured);
        // SAFETY: the caller keeps `ov` valid until the request completes.
        unsafe { self.requests.begin(self.file.file(), ov) }.complete(Status::SUCCESS.0, 0);
        Status::PENDING
    }

    /// Deregisters the memory, if any is registered. Returns whether it is certain that the device does not access it any
    /// more.
    pub(crate) fn release(&self) -> bool {
        let mut state = self.lock();
        if state.pending.is_some() {
            return false;
        }
        let Some(registered) = state.registered.take() else { return true };
        if registered.windows > 0 {
            state.registered = Some(registered);
            return false;
        }
        match registered.region.deregister() {
            Ok(()) => true,
            Err((region, _)) => {
                state.registered = Some(Registered { region, ..registered });
                false
            }
        }
    }

    /// The token for local SGEs (`IND2MemoryRegion::GetLocalToken`); 0 before the first registration.
    #[inline]
    pub fn local_token(&self) -> u32 {
        self.local_token.load(Ordering::Acquire)
    }

    /// The token for the peer's reads and writes, in network order (`IND2MemoryRegion::GetRemoteToken`); 0 before the first
    /// registration.
    #[inline]
    pub fn remote_token(&self) -> u32 {
        self.remote_token.load(Ordering::Acquire)
    }

    /// The file that the region's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// The adapter that the region belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.file.adapter()
    }

    /// Counts a memory window on `addresses`, one of the device's own if `by_device`. Fails unless the region contains them, is
    /// writable for writing, and takes windows of the device.
    pub(crate) fn open_window(
        self: &Arc<Self>,
        addresses: &Range<usize>,
        for_writing: bool,
        by_device: bool,
    ) -> Result<WindowCount<'_>> {
        let mut state = self.lock();
        let registered = state.registered.as_mut().ok_or(Status::ACCESS_VIOLATION)?;
        let all = &registered.addresses;
        let inside =
            all.start <= addresses.start && addresses.start < addresses.end && addresses.end <= all.end;
        let allowed =
            (!for_writing || may_be_written(registered.flags)) && (!by_device || registered.bindable);
        if !inside || !allowed {
            return Err(Status::ACCESS_VIOLATION);
        }
        registered.windows += 1;
        Ok(WindowCount(self, registered.region.as_ptr()))
    }

    /// Uncounts a memory window, which is no longer bound to the region.
    pub(crate) fn window_unbound(&self) {
        if let Some(registered) = self.lock().registered.as_mut() {
            registered.windows -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Canceller for MemoryRegion {
    fn cancel(&self, scope: CancelScope) -> usize {
        let chosen = |(_, request): &mut (u64, Request)| request.is_in(scope);
        let cancelled = self.lock().pending.take_if(chosen);
        let count = cancelled.is_some().into();
        if let Some((_, request)) = cancelled {
            tracing::debug!(target: "ndcompat::memory", "Register is cancelled");
            request.complete(Status::CANCELED.0, 0);
        }
        count
    }
}

/// A window about to be bound, counted by the region, which stays registered. Dropping it uncounts the window.
pub(crate) struct WindowCount<'a>(&'a Arc<MemoryRegion>, *mut ibv_mr);

impl WindowCount<'_> {
    /// The device's memory region.
    pub(crate) fn region(&self) -> *mut ibv_mr {
        self.1
    }

    /// Keeps the count for a bound window, until [`MemoryRegion::window_unbound`].
    pub(crate) fn into_region(self) -> Arc<MemoryRegion> {
        let region = self.0.clone();
        std::mem::forget(self);
        region
    }
}

impl Drop for WindowCount<'_> {
    fn drop(&mut self) {
        self.0.window_unbound();
    }
}

/// Whether the pages may be read-only, which windows alone forbid.
fn is_refused_for_windows(made: &std::io::Result<verbs::MemoryRegion>, access: ibv_access_flags) -> bool {
    let writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    access & IBV_ACCESS_MW_BIND != 0
        && access & writes == 0
        && made.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EFAULT))
}

/// Whether windows on a region registered with these flags may be writable.
fn may_be_written(flags: RegionFlags) -> bool {
    flags.intersects(RegionFlags::ALLOW_REMOTE_WRITE)
}

/// The bit of remote writing alone; the flag includes local writing.
const REMOTE_WRITE: RegionFlags = RegionFlags::ALLOW_REMOTE_WRITE.difference(RegionFlags::ALLOW_LOCAL_WRITE);

/// The verbs access flags for ND flags.
fn access(flags: RegionFlags, quirks: &Quirks) -> ibv_access_flags {
    let mut access = if quirks.windows == Windows::Emulated { 0 } else { IBV_ACCESS_MW_BIND };
    if flags.intersects(RegionFlags::ALLOW_REMOTE_WRITE | RegionFlags::RDMA_READ_SINK) {
        access |= IBV_ACCESS_LOCAL_WRITE;
    }
    if flags.contains(RegionFlags::ALLOW_REMOTE_READ) {
        access |= IBV_ACCESS_REMOTE_READ;
    }
    // Over iWARP, the response to a read is a remote write.
    if flags.contains(REMOTE_WRITE) || (quirks.iwarp && flags.contains(RegionFlags::RDMA_READ_SINK)) {
        access |= IBV_ACCESS_REMOTE_WRITE;
    }
    access as ibv_access_flags
}
