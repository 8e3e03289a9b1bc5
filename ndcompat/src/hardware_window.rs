//! Memory windows of the device's own: type 2 where it has them, type 1 otherwise.

use crate::adapter::Adapter;
use crate::queue_pair::Core;
use crate::request_queue::Ticket;
use crate::status::{Result, Status};
use crate::types::{RequestType, op_flags};
use crate::verbs::{self, WindowType, bindings::*, errno, ops};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// A window that the device binds and invalidates, in the order of the queue pair's other requests.
pub(crate) struct HardwareWindow {
    mw: verbs::MemoryWindow,
    kind: WindowType,
    /// What peers name the window by, in host order. Each binding changes its last byte.
    key: u32,
    /// The region it was bound to last, which type 1 needs to be unbound.
    region: *mut ibv_mr,
}

// SAFETY: the region is only named, and stays registered while the window is bound.
unsafe impl Send for HardwareWindow {}

impl HardwareWindow {
    pub(crate) fn new(adapter: &Adapter, kind: WindowType) -> Result<HardwareWindow> {
        let mw =
            verbs::MemoryWindow::create(adapter.pd(), kind).map_err(|error| match Status::from(error) {
                Status::NOT_SUPPORTED => Status::NOT_SUPPORTED,
                _ => Status::INSUFFICIENT_RESOURCES,
            })?;
        Ok(HardwareWindow { key: mw.rkey(), mw, kind, region: ptr::null_mut() })
    }

    /// Posts the binding, and says by what key peers will name the window.
    ///
    /// # Safety
    /// `region` must be registered, hold the addresses, and stay registered until the window is invalidated.
    pub(crate) unsafe fn bind(
        &mut self,
        core: &Arc<Core>,
        (context, flags): (u64, u32),
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
        let silent = flags & op_flags::SILENT_SUCCESS != 0;
        match self.kind {
            WindowType::One => {
                core.post_initiator(RequestType::Bind, context, silent, |ticket| {
                    self.bind_one(core, ticket, flags, info)
                })?;
                self.key = self.mw.rkey();
            }
            WindowType::Two => {
                let key = self.key & !0xFF | self.key.wrapping_add(1) & 0xFF;
                core.post_initiator(RequestType::Bind, context, silent, |ticket| {
                    let mut wr = request(IBV_WR_BIND_MW, &ticket, flags);
                    wr.__bindgen_anon_2.bind_mw = ibv_send_wr__bindgen_ty_4__bindgen_ty_1 {
                        mw: self.mw.as_ptr(),
                        rkey: key,
                        bind_info: info,
                    };
                    post(core, wr)
                })?;
                // Not every provider notes the new key, which the next binding starts from.
                // SAFETY: the window lives, and this is the only access to it.
                unsafe { (*self.mw.as_ptr()).rkey = key };
                self.key = key;
            }
        }
        self.region = region;
        Ok(self.key)
    }

    /// Posts the invalidation.
    pub(crate) fn invalidate(&mut self, core: &Arc<Core>, (context, flags): (u64, u32)) -> Result<()> {
        let silent = flags & op_flags::SILENT_SUCCESS != 0;
        core.post_initiator(RequestType::Invalidate, context, silent, |ticket| match self.kind {
            WindowType::One => {
                // To bind nothing is to unbind.
                let nothing = ibv_mw_bind_info { mr: self.region, addr: 0, length: 0, mw_access_flags: 0 };
                self.bind_one(core, ticket, flags, nothing)
            }
            WindowType::Two => {
                let mut wr = request(IBV_WR_LOCAL_INV, &ticket, flags);
                wr.__bindgen_anon_1.invalidate_rkey = self.key;
                post(core, wr)
            }
        })
    }

    fn bind_one(&self, core: &Core, ticket: Ticket, flags: u32, bind_info: ibv_mw_bind_info) -> i32 {
        let send_flags = send_flags(&ticket, flags);
        let mut bind = ibv_mw_bind { wr_id: ticket.wr_id, send_flags, bind_info };
        // SAFETY: queue pair, window and region live.
        errno(unsafe { ops::bind_mw(core.qp.as_ptr(), self.mw.as_ptr(), &mut bind) })
    }
}

fn send_flags(ticket: &Ticket, flags: u32) -> u32 {
    let signalled = if ticket.signalled { IBV_SEND_SIGNALED } else { 0 };
    let fence = if flags & op_flags::READ_FENCE != 0 { IBV_SEND_FENCE } else { 0 };
    signalled | fence
}

fn request(opcode: ibv_wr_opcode, ticket: &Ticket, flags: u32) -> ibv_send_wr {
    // SAFETY: all-zero is a valid request.
    let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
    (wr.wr_id, wr.opcode, wr.send_flags) = (ticket.wr_id, opcode, send_flags(ticket, flags));
    wr
}

fn post(core: &Core, mut wr: ibv_send_wr) -> i32 {
    let mut bad = ptr::null_mut();
    // SAFETY: the queue pair lives, the request is well-formed.
    errno(unsafe { ops::post_send(core.qp.as_ptr(), &mut wr, &mut bad) })
}
