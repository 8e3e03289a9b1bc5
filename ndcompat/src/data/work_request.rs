//! Work requests: translation of ND requests to `ibv_send_wr` and `ibv_recv_wr`.

use crate::data::queue_pair::Core;
use crate::data::request_queue::Ticket;
use crate::device::limits::MAX_SGE;
use crate::types::{RequestFlags, RequestType, Sge};
use crate::verbs::{self, bindings::*, ops};
use std::mem::MaybeUninit;
use std::ptr;

/// Writes one field of a work request that may be uninitialized.
macro_rules! set {
    ($request:ident.$($field:ident).+ = $value:expr) => {{
        let value = $value;
        // SAFETY: the field is within the memory of the request; no reference is made.
        let field = unsafe { &raw mut (*$request.as_mut_ptr()).$($field).+ };
        // SAFETY: the request is borrowed mutably, and the field is aligned in its structure.
        unsafe { field.write(value) }
    }};
}

/// `IBV_SEND_*` by [`RequestFlags`], without `IBV_SEND_SIGNALED`.
const VERBS_FLAGS: [u8; 64] = {
    let mut table = [0; 64];
    let mut flags = 0;
    while flags < table.len() {
        let request = RequestFlags::from_bits_retain(flags as u32);
        if request.contains(RequestFlags::READ_FENCE) {
            table[flags] |= IBV_SEND_FENCE as u8;
        }
        if request.contains(RequestFlags::SOLICIT) {
            table[flags] |= IBV_SEND_SOLICITED as u8;
        }
        if request.contains(RequestFlags::INLINE) {
            table[flags] |= IBV_SEND_INLINE as u8;
        }
        flags += 1;
    }
    table
};

/// The peer's memory of a read or write; unused by a send.
#[derive(Clone, Copy, Default)]
pub(crate) struct Remote {
    pub address: u64,
    /// The rkey in network order, as the peer's `GetRemoteToken` returns it.
    pub token: u32,
}

/// A request for the initiator queue.
#[derive(Clone, Copy)]
pub(crate) struct WorkRequest<'a> {
    pub kind: RequestType,
    pub sge: &'a [Sge],
    pub flags: RequestFlags,
    pub remote: Remote,
}

impl WorkRequest<'_> {
    /// Posts the request to the device; returns what `ibv_post_send` returns.
    #[inline(always)]
    pub fn post(&self, core: &Core, ticket: Ticket) -> i32 {
        let mut wr = MaybeUninit::<ibv_send_wr>::uninit();
        self.fill(&mut wr, self.sge, 0, ticket.wr_id, self.verbs_flags(ticket.signalled));
        let mut bad = MaybeUninit::uninit();
        // SAFETY: the queue pair is alive, all fields of the opcode are filled in, and the callers of the unsafe posting
        // functions keep the memory of the SGEs valid until the request completes.
        unsafe { ops::post_send(core.qp.as_ptr(), wr.as_mut_ptr(), bad.as_mut_ptr()) }
    }

    /// As [`WorkRequest::post`], for a read with more SGEs than the device takes. Splits it into several reads; only the
    /// last is signalled.
    pub fn post_split(&self, core: &Core, ticket: Ticket) -> i32 {
        let mut chain = [const { MaybeUninit::<ibv_send_wr>::uninit() }; MAX_SGE as usize];
        let mut next: *mut ibv_send_wr = ptr::null_mut();
        let pieces = self.sge.chunks(core.limits.device_read_sge as usize);
        let mut left: u64 = self.sge.iter().map(|sge| u64::from(sge.length)).sum();
        // Built from the last to the first, as each has a pointer to the next.
        for (wr, piece) in chain.iter_mut().rev().zip(pieces.rev()) {
            left -= piece.iter().map(|sge| u64::from(sge.length)).sum::<u64>();
            let verbs_flags = self.verbs_flags(ticket.signalled && next.is_null());
            self.fill(wr, piece, left, ticket.wr_id, verbs_flags);
            set!(wr.next = next);
            next = wr.as_mut_ptr();
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair is alive, each request of the list is filled in, and the callers of the unsafe posting
        // functions keep the memory of the SGEs valid until the last completes.
        let result = unsafe { ops::post_send(core.qp.as_ptr(), next, &mut bad) };
        // The device has the pieces before the one that was refused. They cannot be taken back, so the connection ends.
        let is_split = result != 0 && !bad.is_null() && bad != next;
        if is_split { verbs::UNANNOUNCED } else { result }
    }

    /// The `IBV_SEND_*` flags.
    #[inline(always)]
    fn verbs_flags(&self, signalled: bool) -> u32 {
        // The flags were checked, so the remainder changes nothing: it removes the bounds check.
        let flags = u32::from(VERBS_FLAGS[self.flags.bits() as usize % VERBS_FLAGS.len()]);
        flags + u32::from(signalled) * IBV_SEND_SIGNALED
    }

    /// Writes the fields that the opcode has; providers read no others.
    #[inline(always)]
    fn fill(
        &self,
        wr: &mut MaybeUninit<ibv_send_wr>,
        sge: &[Sge],
        offset: u64,
        wr_id: u64,
        verbs_flags: u32,
    ) {
        let opcode = match self.kind {
            RequestType::Send | RequestType::Receive => IBV_WR_SEND,
            RequestType::Read => IBV_WR_RDMA_READ,
            RequestType::Write | RequestType::Bind | RequestType::Invalidate => IBV_WR_RDMA_WRITE,
        };
        set!(wr.wr_id = wr_id);
        set!(wr.next = ptr::null_mut());
        set!(wr.sg_list = sge.as_ptr().cast_mut().cast());
        set!(wr.num_sge = sge.len() as i32);
        set!(wr.opcode = opcode);
        set!(wr.send_flags = verbs_flags);
        if opcode != IBV_WR_SEND {
            set!(wr.wr.rdma.remote_addr = self.remote.address.wrapping_add(offset));
            set!(wr.wr.rdma.rkey = u32::from_be(self.remote.token));
        }
    }
}

/// Posts a receive to the device; returns what `ibv_post_recv` returns.
#[inline(always)]
pub(crate) fn post_receive(core: &Core, sge: &[Sge], ticket: Ticket) -> i32 {
    let mut wr = ibv_recv_wr {
        wr_id: ticket.wr_id,
        next: ptr::null_mut(),
        sg_list: sge.as_ptr().cast_mut().cast(),
        num_sge: sge.len() as i32,
    };
    let mut bad = MaybeUninit::uninit();
    // SAFETY: the queue pair is alive, the request is filled in, and the callers of the unsafe posting functions keep the
    // memory of the SGEs valid for writes until it completes.
    unsafe { ops::post_recv(core.qp.as_ptr(), &mut wr, bad.as_mut_ptr()) }
}
