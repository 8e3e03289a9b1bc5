//! Memory windows: byte-exact, revocable access to part of a region.
//!
//! ND requires that a peer cannot access a byte outside a window. On devices whose windows keep to that, these are used
//! (`hardware_window`). Soft-iWARP has no windows, and soft-RoCE does not enforce their bounds: there, a window is a
//! registration of exactly its bytes, with its own remote token. As `Bind` and `Invalidate` complete in order with the
//! other requests of the queue pair, they then post an RDMA write of no bytes. Mellanox's Windows provider works the same
//! way.

use crate::data::queue_pair::QueuePair;
use crate::device::adapter::Adapter;
use crate::device::limits::Windows;
use crate::memory::hardware_window::HardwareWindow;
use crate::memory::memory_region::MemoryRegion;
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::types::{RequestFlags, RequestType};
use crate::verbs::{self, WindowType, bindings::*};
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// A memory window (`IND2MemoryWindow`). All methods are thread-safe. Dropping it revokes the peers' access.
///
/// ```
#[doc = include_str!("../rust_api/connected_objects.txt")]
/// use ndcompat::types::{Completion, RegionFlags, RequestFlags};
/// use ndcompat::{Provider, QueuePairConfig, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (adapter, file) = (session.adapter(), session.file());
/// let queue = adapter.create_completion_queue(file, 64, (0, 0))?;
/// let pair = || adapter.create_queue_pair(QueuePairConfig::new(&queue));
/// let (active, passive) = (pair()?, pair()?);
///
/// let mut memory = vec![0; 4096];
/// let region = adapter.create_memory_region(file)?;
/// // SAFETY: the memory outlives the region.
/// unsafe { region.begin_register(memory.as_mut_ptr(), 4096, RegionFlags::ALLOW_LOCAL_WRITE) }?.wait()?;
///
/// let connection = connect(&session, &active, &passive)?;
/// let window = adapter.create_memory_window()?;
/// let start = memory.as_ptr() as usize;
/// // SAFETY: there are no references to the memory while the window is bound.
/// unsafe { active.bind(1, &region, &window, start..start + 100, RequestFlags::ALLOW_WRITE) }?;
/// let mut results = [Completion::default()];
/// queue.wait_for_results(&mut results)?;
/// results[0].status.ok()?;
/// println!("a peer may write 100 bytes, with token {:#x}", window.remote_token());
///
/// active.invalidate(2, &window, RequestFlags::empty())?;
/// queue.wait_for_results(&mut results)?;
/// results[0].status.ok()?;
/// # drop((connection, active, passive, window));
/// # drop(region);
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct MemoryWindow {
    adapter: Arc<Adapter>,
    state: Mutex<State>,
}

struct State {
    /// The device's window, if those are used. Declared first, to be dropped before its region.
    hardware: Option<HardwareWindow>,
    bound: Option<Bound>,
    /// The token of the last binding, in network order.
    token: u32,
}

impl fmt::Debug for MemoryWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryWindow").field("adapter", &self.adapter).finish_non_exhaustive()
    }
}

/// A bound window.
struct Bound {
    /// The registration of the window, if the device's windows are not used. Dropping it ends the peers' access.
    registration: Cell<Option<verbs::MemoryRegion>>,
    /// The region, which counts the window, and cannot be deregistered until the window is unbound.
    region: Arc<MemoryRegion>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // First: once the window does not count, the region can be deregistered, and the program may free the memory.
        drop(self.registration.take());
        self.region.window_unbound();
    }
}

impl Adapter {
    /// Creates a memory window that is not bound (`IND2Adapter::CreateMemoryWindow`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_NOT_SUPPORTED` or `ND_INSUFFICIENT_RESOURCES` if the device has
    /// none left.
    pub fn create_memory_window(self: &Arc<Self>) -> Result<Arc<MemoryWindow>> {
        self.check()?;
        Ok(Arc::new(MemoryWindow::new(self)?))
    }
}

impl MemoryWindow {
    fn new(adapter: &Arc<Adapter>) -> Result<MemoryWindow> {
        let kind = match adapter.limits().quirks.windows {
            Windows::Emulated => None,
            Windows::TypeOne => Some(WindowType::One),
            Windows::TypeTwo => Some(WindowType::Two),
        };
        let hardware = kind.map(|kind| HardwareWindow::new(adapter, kind)).transpose()?;
        tracing::debug!(target: "ndcompat::memory", device = adapter.device_name(), ?kind, "CreateMemoryWindow");
        let state = Mutex::new(State { hardware, bound: None, token: 0 });
        Ok(MemoryWindow { adapter: adapter.clone(), state })
    }

    /// The token for the peer's reads and writes, in network order (`IND2MemoryWindow::GetRemoteToken`). Valid once `Bind`
    /// has returned or, on any thread, has completed.
    pub fn remote_token(&self) -> u32 {
        self.lock().token
    }

    /// The adapter that the window belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The flags allowed for `Bind`.
const BIND_FLAGS: RequestFlags =
    INVALIDATE_FLAGS.union(RequestFlags::ALLOW_READ).union(RequestFlags::ALLOW_WRITE);
/// The flags allowed for `Invalidate`.
const INVALIDATE_FLAGS: RequestFlags = RequestFlags::SILENT_SUCCESS.union(RequestFlags::READ_FENCE);

impl QueuePair {
    /// Binds `window` to these addresses of `region`, for the accesses in `flags` (`IND2QueuePair::Bind`).
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_6` for flags that `Bind` does not allow; `ND_INVALID_PARAMETER_2` and `_3` for a region and a
    /// window of another adapter; `ND_CONNECTION_INVALID` before the queue pair is connected; `ND_INVALID_DEVICE_STATE` if
    /// the window is bound; `ND_ACCESS_VIOLATION` for addresses outside the region, for writing on a region registered for
    /// reading only, or for read-only pages on a device with windows of its own; `ND_INSUFFICIENT_RESOURCES` if the device has no more windows; `ND_NO_MORE_ENTRIES` if the initiator
    /// queue is full.
    ///
    /// # Safety
    /// While the window is bound, peers may read or write the memory as `flags` allow: Rust references to it must not
    /// conflict with that.
    pub unsafe fn bind(
        &self,
        context: u64,
        region: &Arc<MemoryRegion>,
        window: &MemoryWindow,
        addresses: Range<usize>,
        flags: RequestFlags,
    ) -> Result<()> {
        if !BIND_FLAGS.contains(flags) {
            return Err(Status::INVALID_PARAMETER_6);
        }
        if !Arc::ptr_eq(region.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_2);
        }
        if !Arc::ptr_eq(window.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_3);
        }
        self.core.check_connected()?;
        let mut guard = window.lock();
        let state = &mut *guard;
        if state.bound.is_some() {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        let opened = region.open_window(
            &addresses,
            flags.contains(RequestFlags::ALLOW_WRITE),
            state.hardware.is_some(),
        )?;
        let mut access = 0;
        if flags.contains(RequestFlags::ALLOW_READ) {
            access |= IBV_ACCESS_REMOTE_READ;
        }
        if flags.contains(RequestFlags::ALLOW_WRITE) {
            access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
        }
        let (key, registration) = match &mut state.hardware {
            Some(hardware) => {
                // SAFETY: the region stays registered while it counts the window.
                let bound = unsafe {
                    hardware.bind(&self.core, (context, flags), opened.region(), &addresses, access)
                };
                (bound?, None)
            }
            None => {
                let address = addresses.start as *mut std::ffi::c_void;
                // SAFETY: the addresses are part of the region, which stays registered, and so mapped, while the window is
                // bound.
                let registration = unsafe {
                    verbs::MemoryRegion::register(self.adapter().pd(), address, addresses.len(), access as _)
                }
                .map_err(|error| Status::INSUFFICIENT_RESOURCES.because(&error))?;
                self.core.no_op(RequestType::Bind, context, flags, || ())?;
                (registration.rkey(), Some(registration))
            }
        };
        state.token = key.to_be();
        state.bound = Some(Bound { registration: Cell::new(registration), region: opened.into_region() });
        Ok(())
    }

    /// Unbinds `window` (`IND2QueuePair::Invalidate`): from now on, accesses by its token fail.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_3` for flags that `Invalidate` does not allow; `ND_INVALID_PARAMETER_2` for a window of
    /// another adapter; `ND_CONNECTION_INVALID` before the queue pair is connected; `ND_INVALID_DEVICE_REQUEST` if the
    /// window is not bound; `ND_NO_MORE_ENTRIES` if the initiator queue is full.
    pub fn invalidate(&self, context: u64, window: &MemoryWindow, flags: RequestFlags) -> Result<()> {
        if !INVALIDATE_FLAGS.contains(flags) {
            return Err(Status::INVALID_PARAMETER_3);
        }
        if !Arc::ptr_eq(window.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_2);
        }
        self.core.check_connected()?;
        let mut guard = window.lock();
        let state = &mut *guard;
        let Some(bound) = &state.bound else {
            return Err(Status::INVALID_DEVICE_REQUEST);
        };
        match &mut state.hardware {
            Some(hardware) => hardware.invalidate(&self.core, (context, flags))?,
            // Revoke access first: another thread may take the completion at once.
            None => self
                .core
                .no_op(RequestType::Invalidate, context, flags, || drop(bound.registration.take()))?,
        }
        state.bound = None;
        Ok(())
    }
}
