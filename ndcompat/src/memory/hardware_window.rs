//! The device's memory windows (`ibv_alloc_mw`): of type 2; of type 1 if `NDCOMPAT_MEMORY_WINDOWS` says so.

use crate::data::queue_pair::Core;
use crate::data::request_queue::Ticket;
use crate::device::adapter::Adapter;
use crate::status::{Result, Status};
use crate::types::{RequestFlags, RequestType};
use crate::verbs::{self, WindowType, bindings::*, errno, ops};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// A window that the device binds and invalidates, in order with the other requests of the queue pair.
pub(crate) struct HardwareWindow {
    mw: verbs::MemoryWindow,
    kind: WindowType,
    /// The rkey, in host order. Each binding changes its last byte.
    key: u32,
    /// Of type 2: the last bytes that it has had.
    had: Keys,
    /// The region that it was bound to last, and the address that it began at: needed to unbind type 1.
    region: *mut ibv_mr,
    start: u64,
}

// SAFETY: the pointer to the region is only passed to verbs, and the region stays registered while the window is bound.
unsafe impl Send for HardwareWindow {}

impl HardwareWindow {
    pub(crate) fn new(adapter: &Adapter, kind: WindowType) -> Result<HardwareWindow> {
        let mw = verbs::MemoryWindow::create(adapter.pd(), kind).map_err(|error| {
            match Status::from_io(&error) {
                Status::NOT_SUPPORTED => Status::NOT_SUPPORTED.because(&error),
                _ => Status::INSUFFICIENT_RESOURCES.because(&error),
            }
        })?;
        let (key, mut had) = (mw.rkey(), Keys::default());
        had.add(key as u8);
        Ok(HardwareWindow { key, had, mw, kind, region: ptr::null_mut(), start: 0 })
    }

    /// Posts the binding, and returns the new rkey.
    ///
    /// # Safety
    /// `region` must contain the addresses, and stay registered until the window is invalidated.
    pub(crate) unsafe fn bind(
        &mut self,
        core: &Arc<Core>,
        (context, flags): (u64, RequestFlags),
        region: *mut ibv_mr,
        addresses: &Range<usize>,
        access: u32,
    ) -> Result<u32> {
        let info = ibv_mw_bind_info {
            mr: region,
            addr: addresses.start as u64,
            length: addresses.len() as u64,
            mw_access_flags: access,
        };
        let silent = flags.contains(RequestFlags::SILENT_SUCCESS);
        match self.kind {
            WindowType::One => {
                core.post_initiator(RequestType::Bind, context, silent, 0, |ticket| {
                    self.bind_one(core, ticket, flags, info)
                })?;
                self.key = self.mw.rkey();
            }
            WindowType::Two => {
                let next = self.had.next();
                let key = self.key & !0xFF | u32::from(next);
                core.post_initiator(RequestType::Bind, context, silent, 0, |ticket| {
                    let mut wr = request(IBV_WR_BIND_MW, &ticket, flags);
                    wr.__bindgen_anon_2.bind_mw = ibv_send_wr__bindgen_ty_4__bindgen_ty_1 {
                        mw: self.mw.as_ptr(),
                        rkey: key,
                        bind_info: info,
                    };
                    post(core, wr)
                })?;
                // The next binding starts from this key, which not every provider stores. SAFETY: the window is alive, and
                // only `self` uses it.
                unsafe { (*self.mw.as_ptr()).rkey = key };
                self.key = key;
                self.had.add(next);
            }
        }
        (self.region, self.start) = (region, info.addr);
        Ok(self.key)
    }

    /// Posts the invalidation.
    pub(crate) fn invalidate(
        &mut self,
        core: &Arc<Core>,
        (context, flags): (u64, RequestFlags),
    ) -> Result<()> {
        let silent = flags.contains(RequestFlags::SILENT_SUCCESS);
        core.post_initiator(RequestType::Invalidate, context, silent, 0, |ticket| match self.kind {
            WindowType::One => {
                // Binding no bytes unbinds the window. Drivers compare the address with the region's.
                let (mr, addr) = (self.region, self.start);
                let nothing = ibv_mw_bind_info { mr, addr, length: 0, mw_access_flags: 0 };
                self.bind_one(core, ticket, flags, nothing)
            }
            WindowType::Two => {
                let mut wr = request(IBV_WR_LOCAL_INV, &ticket, flags);
                wr.__bindgen_anon_1.invalidate_rkey = self.key;
                post(core, wr)
            }
        })
    }

    fn bind_one(&self, core: &Core, ticket: Ticket, flags: RequestFlags, bind_info: ibv_mw_bind_info) -> i32 {
        let send_flags = send_flags(&ticket, flags);
        let mut bind = ibv_mw_bind { wr_id: ticket.wr_id, send_flags, bind_info };
        // SAFETY: queue pair and window are alive; the region is registered.
        errno(unsafe { ops::bind_mw(core.qp.as_ptr(), self.mw.as_ptr(), &mut bind) })
    }
}

/// Keys of a window: a peer that has had the token of one binding cannot tell that of the next, and none comes again before all have
/// been used.
#[derive(Default)]
struct Keys([u128; 2]);

impl Keys {
    fn has(&self, key: u8) -> bool {
        self.0[usize::from(key >> 7)] >> (key & 0x7F) & 1 != 0
    }

    /// A random key that was not used.
    fn next(&self) -> u8 {
        // Hashes with random keys, which std asks the system for once a thread.
        let random = RandomState::new().build_hasher().finish() as u8;
        (0..=u8::MAX).map(|more| random.wrapping_add(more)).find(|&key| !self.has(key)).unwrap_or(random)
    }

    fn add(&mut self, key: u8) {
        self.0[usize::from(key >> 7)] |= 1 << (key & 0x7F);
        if self.0 == [u128::MAX; 2] {
            // All but the one in use may come again.
            self.0 = [0; 2];
            self.add(key);
        }
    }
}

fn send_flags(ticket: &Ticket, flags: RequestFlags) -> u32 {
    let signalled = if ticket.signalled { IBV_SEND_SIGNALED } else { 0 };
    let fence = if flags.contains(RequestFlags::READ_FENCE) { IBV_SEND_FENCE } else { 0 };
    signalled | fence
}

fn request(opcode: ibv_wr_opcode, ticket: &Ticket, flags: RequestFlags) -> ibv_send_wr {
    let mut wr: ibv_send_wr = zeroed();
    (wr.wr_id, wr.opcode, wr.send_flags) = (ticket.wr_id, opcode, send_flags(ticket, flags));
    wr
}

fn post(core: &Core, mut wr: ibv_send_wr) -> i32 {
    let mut bad = ptr::null_mut();
    // SAFETY: the queue pair is alive; the request is filled in, and has no memory.
    errno(unsafe { ops::post_send(core.qp.as_ptr(), &mut wr, &mut bad) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_no_order_and_none_comes_again_before_all_have_been_used() {
        let walk = || {
            let mut keys = Keys::default();
            keys.add(7);
            std::array::from_fn::<u8, 510, _>(|_| {
                let key = keys.next();
                keys.add(key);
                key
            })
        };
        let mut steps = std::collections::HashSet::new();
        for round in walk().chunks(255) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 255);
            steps.extend(round.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
        }
        assert!(steps.len() > 20, "{steps:?}");
        assert_ne!(walk(), walk());
    }
}
