//! Memory windows: byte-exact, revocable access to part of a region.
//!
//! ND promises that a peer cannot reach one byte beyond a window. Where the device has windows and keeps that promise, they
//! are used ([`crate::hardware_window`]). Soft-iWARP has none and soft-RoCE does not enforce their bounds: there a window
//! is a registration of its own, of exactly its bytes, with its own remote token; and `Bind` and `Invalidate`, which must
//! complete in order with the other requests of the queue pair, post a request that does nothing: an RDMA write of no
//! bytes. Mellanox's Windows provider works the same way.

use crate::adapter::Adapter;
use crate::hardware_window::HardwareWindow;
use crate::limits::Windows;
use crate::memory_region::MemoryRegion;
use crate::queue_pair::QueuePair;
use crate::status::{Result, Status};
use crate::types::{RequestType, mr_flags, op_flags};
use crate::verbs::{self, WindowType, bindings::*};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A memory window (`IND2MemoryWindow`). All methods are thread-safe. Dropping it ends the peers' access.
pub struct MemoryWindow {
    adapter: Arc<Adapter>,
    state: Mutex<State>,
    remote_token: AtomicU32,
}

struct State {
    /// The device's window, where it is used. Goes before its region.
    hardware: Option<HardwareWindow>,
    bound: Option<Bound>,
}

/// A window over part of a region.
struct Bound {
    /// The window's own registration, where the device's is not used.
    _registration: Option<verbs::MemoryRegion>,
    /// Counts as a window of the region, which cannot be deregistered meanwhile.
    region: Arc<MemoryRegion>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.region.window_unbound();
    }
}

impl MemoryWindow {
    pub(crate) fn new(adapter: &Arc<Adapter>) -> Result<MemoryWindow> {
        let kind = match adapter.limits().quirks.windows {
            Windows::Emulated => None,
            Windows::TypeOne => Some(WindowType::One),
            Windows::TypeTwo => Some(WindowType::Two),
        };
        let hardware = kind.map(|kind| HardwareWindow::new(adapter, kind)).transpose()?;
        let state = Mutex::new(State { hardware, bound: None });
        Ok(MemoryWindow { adapter: adapter.clone(), state, remote_token: AtomicU32::new(0) })
    }

    /// The token for the peer's reads and writes, in network order: valid as soon as `Bind` has returned.
    #[inline]
    pub fn remote_token(&self) -> u32 {
        self.remote_token.load(Ordering::Acquire)
    }

    /// The adapter that the window belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Flags of `Bind`.
const BIND_FLAGS: u32 =
    op_flags::SILENT_SUCCESS | op_flags::READ_FENCE | op_flags::ALLOW_READ | op_flags::ALLOW_WRITE;
/// Flags of `Invalidate`.
const INVALIDATE_FLAGS: u32 = op_flags::SILENT_SUCCESS | op_flags::READ_FENCE;

impl QueuePair {
    /// Opens `window` over the bytes of `region` at these addresses, for what `flags` allow (`Bind`).
    ///
    /// # Safety
    /// What peers do to the memory meanwhile must not be at odds with how Rust code uses it.
    pub unsafe fn bind(
        &self,
        context: u64,
        region: &Arc<MemoryRegion>,
        window: &MemoryWindow,
        addresses: Range<usize>,
        flags: u32,
    ) -> Result<()> {
        if flags & !BIND_FLAGS != 0 {
            return Err(Status::INVALID_PARAMETER_6);
        }
        if !Arc::ptr_eq(region.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_2);
        }
        if !Arc::ptr_eq(window.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_3);
        }
        if !self.core.was_connected() {
            return Err(Status::CONNECTION_INVALID);
        }
        let mut guard = window.lock();
        let state = &mut *guard;
        if state.bound.is_some() {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        let opened = region.open_window(&addresses, flags & op_flags::ALLOW_WRITE != 0)?;
        let mut access = 0;
        if flags & op_flags::ALLOW_READ != 0 {
            access |= IBV_ACCESS_REMOTE_READ;
        }
        if flags & op_flags::ALLOW_WRITE != 0 {
            access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
        }
        let (key, registration) = match &mut state.hardware {
            Some(hardware) => {
                // SAFETY: the region stays registered while the window is counted.
                let bound = unsafe {
                    hardware.bind(&self.core, (context, flags), opened.region(), &addresses, access)
                };
                (bound?, None)
            }
            None => {
                let address = addresses.start as *mut std::ffi::c_void;
                // SAFETY: the bytes are part of the region, which stays registered, and so mapped, while the window is
                // open.
                let registration = unsafe {
                    verbs::MemoryRegion::register(self.adapter().pd(), address, addresses.len(), access as _)
                }
                .map_err(|_| Status::INSUFFICIENT_RESOURCES)?;
                self.core.no_op(RequestType::Bind, context, flags)?;
                (registration.rkey(), Some(registration))
            }
        };
        window.remote_token.store(key.to_be(), Ordering::Release);
        state.bound = Some(Bound { _registration: registration, region: opened.keep() });
        Ok(())
    }

    /// Closes `window` (`Invalidate`): accesses under its token fail from now on.
    pub fn invalidate(&self, context: u64, window: &MemoryWindow, flags: u32) -> Result<()> {
        if flags & !INVALIDATE_FLAGS != 0 {
            return Err(Status::INVALID_PARAMETER_3);
        }
        if !Arc::ptr_eq(window.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_2);
        }
        if !self.core.was_connected() {
            return Err(Status::CONNECTION_INVALID);
        }
        let mut guard = window.lock();
        let state = &mut *guard;
        if state.bound.is_none() {
            return Err(Status::INVALID_DEVICE_REQUEST);
        }
        match &mut state.hardware {
            Some(hardware) => hardware.invalidate(&self.core, (context, flags))?,
            None => self.core.no_op(RequestType::Invalidate, context, flags)?,
        }
        state.bound = None;
        Ok(())
    }
}

/// A region's promise to stay registered for a window, unless the window does not come about.
pub(crate) struct Opened<'a>(&'a Arc<MemoryRegion>, *mut ibv_mr);

impl<'a> Opened<'a> {
    /// The caller has counted the window over what `region` has registered.
    pub(crate) fn new(region: &'a Arc<MemoryRegion>, registered: *mut ibv_mr) -> Opened<'a> {
        Opened(region, registered)
    }

    /// What the region has registered.
    fn region(&self) -> *mut ibv_mr {
        self.1
    }

    /// The window came about.
    fn keep(self) -> Arc<MemoryRegion> {
        let region = self.0.clone();
        std::mem::forget(self);
        region
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.window_unbound();
    }
}

/// Whether a region registered with these flags may have a window that can be written.
pub(crate) fn may_be_written(region_flags: u32) -> bool {
    region_flags & (mr_flags::ALLOW_LOCAL_WRITE | mr_flags::REMOTE_WRITE_BIT) != 0
}
