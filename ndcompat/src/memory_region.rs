//! Memory regions.

use crate::adapter::Adapter;
use crate::limits::{Quirks, Windows};
use crate::memory_window::{Opened, may_be_written};
use crate::overlapped_file::AdapterFile;
use crate::patience::without_limit;
use crate::status::{Result, Status};
use crate::types::mr_flags;
use crate::verbs::{self, bindings::*};
use crate::worker;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use win32::io::{Canceller, File, Overlapped, Request, Which};

/// A memory region (`IND2MemoryRegion`). All methods are thread-safe. Dropping it deregisters its memory.
pub struct MemoryRegion {
    file: Arc<AdapterFile>,
    state: Mutex<State>,
    local_token: AtomicU32,
    remote_token: AtomicU32,
}

/// From this size on, a registration is left to another thread: to pin so much memory takes milliseconds.
///
/// Below, it is done when `Register` returns: programs rely on being rid of the `OVERLAPPED` then.
const LARGE: usize = 64 << 20;

#[derive(Default)]
struct State {
    registered: Option<Registered>,
    /// The registration under way, and its number.
    pending: Option<(u64, Request)>,
    /// How many registrations there were.
    asked: u64,
    /// Whether `CancelIoEx` finds the region.
    cancellable: bool,
}

/// What a region has registered.
struct Registered {
    region: verbs::MemoryRegion,
    addresses: Range<usize>,
    flags: u32,
    /// How many memory windows are open over it.
    windows: usize,
}

impl MemoryRegion {
    pub(crate) fn new(file: Arc<AdapterFile>) -> MemoryRegion {
        MemoryRegion {
            file,
            state: Mutex::default(),
            local_token: AtomicU32::new(0),
            remote_token: AtomicU32::new(0),
        }
    }

    /// Registers `length` bytes at `address` with `ND_MR_FLAG_*` flags (`Register`).
    ///
    /// Answers `ND_PENDING`. Of less than 64 MiB, it is done then; more is registered by another thread, and until
    /// the request completes nothing is registered.
    ///
    /// # Safety
    /// The memory must stay mapped while it is registered; `ov` must be valid until the request completes.
    pub unsafe fn register(
        self: &Arc<Self>,
        address: *mut u8,
        length: usize,
        flags: u32,
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
        // SAFETY: passed on to the caller.
        let request = unsafe { self.file.file().begin(ov) };
        state.asked += 1;
        let number = state.asked;
        state.pending = Some((number, request));
        let large = length >= LARGE;
        let first_large = large && !std::mem::replace(&mut state.cancellable, true);
        drop(state);
        let start = address as usize;
        let (this, addresses) = (self.clone(), start..start + length);
        // SAFETY: passed on to the caller.
        let register = move || unsafe { this.register_now(number, addresses, flags) };
        if !large {
            register();
            return Status::PENDING;
        }
        if first_large {
            self.file.file().add_canceller(Arc::downgrade(self) as Weak<dyn Canceller>);
        }
        let in_worker = register.clone();
        if let Err(error) = worker::run(move || without_limit(in_worker)) {
            tracing::warn!(%error, "no thread to register from");
            register();
        }
        Status::PENDING
    }

    /// Registers, and completes the request with this number unless that was cancelled meanwhile.
    ///
    /// # Safety
    /// As [`MemoryRegion::register`].
    unsafe fn register_now(&self, number: u64, addresses: Range<usize>, flags: u32) {
        let access = access(flags, &self.adapter().limits().quirks);
        let (address, length) = (addresses.start as *mut c_void, addresses.len());
        // SAFETY: passed on to the caller.
        let made = unsafe { verbs::MemoryRegion::register(self.adapter().pd(), address, length, access) };
        let mut state = self.lock();
        let Some((_, request)) = state.pending.take_if(|(pending, _)| *pending == number) else {
            // Cancelled. The memory is let go of without the lock.
            drop(state);
            return drop(made);
        };
        let status = match made {
            Ok(region) => {
                self.local_token.store(region.lkey(), Ordering::Release);
                // Network order: so peers of other architectures and Windows providers expect it.
                self.remote_token.store(region.rkey().to_be(), Ordering::Release);
                state.registered = Some(Registered { region, addresses, flags, windows: 0 });
                Status::SUCCESS
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EFAULT | libc::EINVAL | libc::EPERM | libc::EACCES) => Status::ACCESS_VIOLATION,
                Some(libc::ENODEV | libc::EIO) => Status::DEVICE_REMOVED,
                _ => Status::INSUFFICIENT_RESOURCES,
            },
        };
        drop(state);
        request.complete(status.0, 0);
    }

    /// Completes a registration that is under way with `ND_CANCELED`: nothing is registered.
    pub fn cancel(&self) {
        Canceller::cancel(self, Which::All);
    }

    /// Ends the registration (`Deregister`). Done when it returns `ND_PENDING`. `ND_DEVICE_BUSY` while memory windows
    /// are open over it.
    ///
    /// # Safety
    /// `ov` must be valid.
    pub unsafe fn deregister(&self, ov: *mut Overlapped) -> Status {
        let mut state = self.lock();
        let registered = &mut state.registered;
        let Some(taken) = registered.take_if(|registered| registered.windows == 0) else {
            return if registered.is_some() { Status::DEVICE_BUSY } else { Status::INVALID_DEVICE_STATE };
        };
        if let Err((region, error)) = taken.region.deregister() {
            *registered = Some(Registered { region, ..taken });
            // A window that is invalidated, but not yet in its turn.
            return match error.raw_os_error() {
                Some(libc::EBUSY | libc::EINVAL) => Status::DEVICE_BUSY,
                _ => error.into(),
            };
        }
        drop(state);
        // SAFETY: passed on to the caller.
        unsafe { self.file.file().begin(ov) }.complete(Status::SUCCESS.0, 0);
        Status::PENDING
    }

    /// The token for local scatter/gather entries; 0 when nothing is registered.
    #[inline]
    pub fn local_token(&self) -> u32 {
        self.local_token.load(Ordering::Acquire)
    }

    /// The token for the peer's reads and writes, in network order.
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

    /// Counts a memory window over `addresses`, which must be registered and, for writing, writable.
    pub(crate) fn open_window(
        self: &Arc<Self>,
        addresses: &Range<usize>,
        for_writing: bool,
    ) -> Result<Opened<'_>> {
        let mut state = self.lock();
        let registered = state.registered.as_mut().ok_or(Status::ACCESS_VIOLATION)?;
        let all = &registered.addresses;
        let inside =
            all.start <= addresses.start && addresses.start < addresses.end && addresses.end <= all.end;
        if !inside || (for_writing && !may_be_written(registered.flags)) {
            return Err(Status::ACCESS_VIOLATION);
        }
        registered.windows += 1;
        Ok(Opened::new(self, registered.region.as_ptr()))
    }

    /// A memory window over the region is gone.
    pub(crate) fn window_unbound(&self) {
        if let Some(registered) = self.lock().registered.as_mut() {
            registered.windows -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Canceller for MemoryRegion {
    fn cancel(&self, which: Which) -> usize {
        let chosen = |(_, request): &mut (u64, Request)| request.is_among(which);
        let cancelled = self.lock().pending.take_if(chosen);
        let count = cancelled.is_some().into();
        if let Some((_, request)) = cancelled {
            request.complete(Status::CANCELED.0, 0);
        }
        count
    }
}

/// Verbs access flags for ND ones. Unknown bits are some vendor's and ignored.
fn access(flags: u32, quirks: &Quirks) -> ibv_access_flags {
    let mut access = if quirks.windows == Windows::Emulated { 0 } else { IBV_ACCESS_MW_BIND };
    if flags & (mr_flags::ALLOW_LOCAL_WRITE | mr_flags::REMOTE_WRITE_BIT | mr_flags::RDMA_READ_SINK) != 0 {
        access |= IBV_ACCESS_LOCAL_WRITE;
    }
    if flags & mr_flags::ALLOW_REMOTE_READ != 0 {
        access |= IBV_ACCESS_REMOTE_READ;
    }
    // On iWARP the answer to a read comes as a write.
    if flags & mr_flags::REMOTE_WRITE_BIT != 0 || (quirks.iwarp && flags & mr_flags::RDMA_READ_SINK != 0) {
        access |= IBV_ACCESS_REMOTE_WRITE;
    }
    access as ibv_access_flags
}
