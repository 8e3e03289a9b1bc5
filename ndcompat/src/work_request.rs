//! Work requests: what the device is handed, and what becomes of what it is not.

use crate::limits::MAX_SGE;
use crate::queue_pair::Core;
use crate::request_queue::{KeptBack, Ticket};
use crate::scatter_gather::{self, Gathered};
use crate::status::{Result, Status};
use crate::types::{RequestType, Sge, op_flags};
use crate::verbs::{bindings::*, errno, ops};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

/// What verbs calls the flags of a request whose success is to be reported.
const VERBS_FLAGS: [u8; 64] = {
    let mut table = [IBV_SEND_SIGNALED as u8; 64];
    let mut flags = 0;
    while flags < table.len() {
        if flags as u32 & op_flags::READ_FENCE != 0 {
            table[flags] |= IBV_SEND_FENCE as u8;
        }
        if flags as u32 & op_flags::SOLICIT != 0 {
            table[flags] |= IBV_SEND_SOLICITED as u8;
        }
        if flags as u32 & op_flags::INLINE != 0 {
            table[flags] |= IBV_SEND_INLINE as u8;
        }
        flags += 1;
    }
    table
};

/// Where a read or write goes at the peer; nothing to a send.
#[derive(Clone, Copy, Default)]
pub(crate) struct Remote {
    pub address: u64,
    /// As the peer's `GetRemoteToken` gave it: the rkey in network order.
    pub token: u32,
}

impl Core {
    /// Posts a request that does nothing but complete, in its turn: an RDMA write of no bytes.
    pub(crate) fn no_op(self: &Arc<Self>, kind: RequestType, context: u64, flags: u32) -> Result<()> {
        let flags = flags & (op_flags::SILENT_SUCCESS | op_flags::READ_FENCE);
        // SAFETY: there is no memory to vouch for.
        unsafe {
            Initiation { kind, sge: &[], flags, remote: Remote::default() }.check_and_post(self, context)
        }
    }

    pub(crate) fn receive_checked(self: &Arc<Self>, context: u64, sge: &[Sge]) -> Result<()> {
        let Some(queue) = &*self.receive else { return Err(Status::INVALID_DEVICE_REQUEST) };
        scatter_gather::check(sge, self.limits.max_receive_sge, self.limits.max_transfer)?;
        let sge = if sge.is_empty() { self.limits.empty_list } else { sge };
        match queue.reserve(context, RequestType::Receive, false) {
            Ok(place) => {
                let error = self.post_receive(sge, place.ticket());
                place.settle(error).ok()
            }
            Err(reason) => self.keep(reason),
        }
    }

    /// Hands a receive to the device; answers with an error number.
    #[inline(always)]
    pub(crate) fn post_receive(&self, sge: &[Sge], ticket: Ticket) -> i32 {
        let mut wr = ibv_recv_wr {
            wr_id: ticket.wr_id,
            next: ptr::null_mut(),
            sg_list: sge.as_ptr().cast_mut().cast(),
            num_sge: sge.len() as i32,
        };
        let mut bad = MaybeUninit::uninit();
        // SAFETY: the queue pair lives, the request is well-formed; its memory is the caller's promise.
        errno(unsafe { ops::post_recv(self.qp.as_ptr(), &mut wr, bad.as_mut_ptr()) })
    }

    /// Posts a request to the initiator queue, as `device` does it; makes room first where silent requests take it.
    pub(crate) fn post_initiator(
        self: &Arc<Self>,
        kind: RequestType,
        context: u64,
        silent: bool,
        device: impl Fn(Ticket) -> i32,
    ) -> Result<()> {
        if silent {
            self.expect_silent();
        }
        let post = || match self.initiator.reserve(context, kind, silent) {
            Ok(place) => {
                let error = device(place.ticket());
                place.settle(error).ok()
            }
            Err(reason) => self.keep(reason),
        };
        let posted = post();
        if posted == Err(Status::NO_MORE_ENTRIES) && self.initiator.has_silent() {
            self.reap_initiator();
            return post();
        }
        posted
    }

    /// Has the device of a failed queue pair report on its last request, if it would not do so unasked.
    pub(crate) fn ask_for_last_word(&self) {
        let nothing = Initiation {
            kind: RequestType::Write,
            sge: self.limits.empty_list,
            flags: 0,
            remote: Remote::default(),
        };
        self.initiator.last_word(|wr_id| {
            // Another thread may be about to destroy the queue pair.
            self.qp.if_live(|| nothing.post_whole(self, wr_id, IBV_SEND_SIGNALED)) == Some(0)
        });
    }

    /// Sees to a request that does not go to the device.
    #[cold]
    #[inline(never)]
    fn keep(self: &Arc<Self>, reason: KeptBack) -> Result<()> {
        match reason {
            KeptBack::Full => Err(Status::NO_MORE_ENTRIES),
            KeptBack::Flushed => {
                self.report_flushed();
                Ok(())
            }
        }
    }
}

/// A request for the initiator queue.
#[derive(Clone, Copy)]
pub(crate) struct Initiation<'a> {
    pub kind: RequestType,
    pub sge: &'a [Sge],
    pub flags: u32,
    pub remote: Remote,
}

impl Initiation<'_> {
    /// Posts whatever may be posted.
    ///
    /// # Safety
    /// As [`QueuePair::send`].
    pub unsafe fn check_and_post(self, core: &Arc<Core>, context: u64) -> Result<()> {
        if !core.was_connected() {
            return Err(Status::CONNECTION_INVALID);
        }
        let limits = &core.limits;
        let mut gathered = Gathered::uninit();
        let mut one = [Sge::default()];
        let mut sge = self.sge;
        if self.flags & op_flags::INLINE != 0 {
            let length = scatter_gather::check(sge, u32::MAX, limits.max_inline.into())?;
            if sge.len() as u32 > limits.max_initiator_sge {
                // SAFETY: the caller vouches for the pieces; together they fit, since no device takes more inline.
                one[0] = unsafe { scatter_gather::gather(sge, &mut gathered, length as u32) };
                sge = &one;
            }
        } else {
            scatter_gather::check(sge, limits.max_initiator_sge, limits.max_transfer)?;
        }
        if sge.is_empty() {
            sge = limits.empty_list;
        }
        let request = Initiation { sge, ..self };
        let silent = self.flags & op_flags::SILENT_SUCCESS != 0;
        core.post_initiator(self.kind, context, silent, |ticket| request.post(core, ticket))
    }

    /// Hands the checked request to the device; answers with an error number.
    fn post(&self, core: &Core, ticket: Ticket) -> i32 {
        if self.kind == RequestType::Read && self.sge.len() as u32 > core.limits.device_read_sge {
            self.post_split_read(core, ticket)
        } else {
            self.post_whole(core, ticket.wr_id, self.verbs_flags(ticket.signalled))
        }
    }

    #[inline(always)]
    pub fn post_whole(&self, core: &Core, wr_id: u64, verbs_flags: u32) -> i32 {
        let mut wr = MaybeUninit::<ibv_send_wr>::uninit();
        self.fill(&mut wr, self.sge, 0, wr_id, verbs_flags);
        let mut bad = MaybeUninit::uninit();
        // SAFETY: the queue pair lives, the request is well-formed; its memory is the caller's promise.
        errno(unsafe { ops::post_send(core.qp.as_ptr(), wr.as_mut_ptr(), bad.as_mut_ptr()) })
    }

    /// Posts one read for each piece, of which the last completes: some devices fill but the first piece.
    #[cold]
    #[inline(never)]
    fn post_split_read(&self, core: &Core, ticket: Ticket) -> i32 {
        let mut chain = [const { MaybeUninit::<ibv_send_wr>::uninit() }; MAX_SGE as usize];
        let mut next: *mut ibv_send_wr = ptr::null_mut();
        let pieces = self.sge.chunks(core.limits.device_read_sge as usize);
        let mut left: u64 = self.sge.iter().map(|sge| u64::from(sge.length)).sum();
        // From the last to the first, each with the address of the one after it.
        for (wr, piece) in chain.iter_mut().rev().zip(pieces.rev()) {
            left -= piece.iter().map(|sge| u64::from(sge.length)).sum::<u64>();
            let verbs_flags = self.verbs_flags(ticket.signalled && next.is_null());
            self.fill(wr, piece, left, ticket.wr_id, verbs_flags);
            // SAFETY: filled above; the chain does not move any more.
            unsafe { (&raw mut (*wr.as_mut_ptr()).next).write(next) };
            next = wr.as_mut_ptr();
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair lives, the list is well-formed; its memory is the caller's promise.
        errno(unsafe { ops::post_send(core.qp.as_ptr(), next, &mut bad) })
    }

    /// What verbs calls the flags.
    #[inline(always)]
    pub fn verbs_flags(&self, signalled: bool) -> u32 {
        // Sound flags are a place in the table.
        let verbs_flags = u32::from(VERBS_FLAGS[self.flags as usize % VERBS_FLAGS.len()]);
        if signalled { verbs_flags } else { verbs_flags & !IBV_SEND_SIGNALED }
    }

    /// Writes all fields that the operation has; the device looks at no others.
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
        let wr = wr.as_mut_ptr();
        // SAFETY: the fields of a request of our own.
        unsafe {
            (&raw mut (*wr).wr_id).write(wr_id);
            (&raw mut (*wr).next).write(ptr::null_mut());
            (&raw mut (*wr).sg_list).write(sge.as_ptr().cast_mut().cast());
            (&raw mut (*wr).num_sge).write(sge.len() as i32);
            (&raw mut (*wr).opcode).write(opcode);
            (&raw mut (*wr).send_flags).write(verbs_flags);
            if opcode != IBV_WR_SEND {
                (&raw mut (*wr).wr.rdma.remote_addr).write(self.remote.address.wrapping_add(offset));
                (&raw mut (*wr).wr.rdma.rkey).write(u32::from_be(self.remote.token));
            }
        }
    }
}
