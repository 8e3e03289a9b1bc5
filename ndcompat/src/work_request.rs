//! The data path: from the caller's arguments to the device's queues.

use crate::limits::MAX_SGE;
use crate::queue_pair::{Core, QueuePair};
use crate::request_queue::{Posted, Ticket};
use crate::status::{Result, Status};
use crate::types::{RequestType, Sge, op_flags};
use crate::verbs::{bindings::*, errno, ops};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

/// The most that any device takes inline, and so the most that is gathered on the stack.
const MAX_INLINE: usize = 1024;

/// Flags of a send.
const SEND_FLAGS: u32 =
    op_flags::SILENT_SUCCESS | op_flags::READ_FENCE | op_flags::SOLICIT | op_flags::INLINE;
/// Flags of a read or write. A read ignores `INLINE`, which programs leave set.
const RDMA_FLAGS: u32 = op_flags::SILENT_SUCCESS | op_flags::READ_FENCE | op_flags::INLINE;

/// Where a read or write goes at the peer.
#[derive(Clone, Copy)]
struct Remote {
    address: u64,
    /// As the peer's `GetRemoteToken` gave it: the rkey in network order.
    token: u32,
}

impl QueuePair {
    /// Sends `sge` to the peer's next receive (`Send`).
    ///
    /// # Safety
    /// The memory named in `sge` must stay valid until the request completes (with `INLINE`: during the call).
    #[inline]
    pub unsafe fn send(&self, context: u64, sge: &[Sge], flags: u32) -> Result<()> {
        if flags & !SEND_FLAGS != 0 {
            return Err(Status::INVALID_PARAMETER_4);
        }
        // SAFETY: passed on to the caller.
        unsafe { self.core.initiate(RequestType::Send, context, sge, flags, None) }
    }

    /// Writes `sge` to the peer's memory (`Write`).
    ///
    /// # Safety
    /// As [`QueuePair::send`].
    #[inline]
    pub unsafe fn write(
        &self,
        context: u64,
        sge: &[Sge],
        address: u64,
        token: u32,
        flags: u32,
    ) -> Result<()> {
        if flags & !RDMA_FLAGS != 0 {
            return Err(Status::INVALID_PARAMETER_6);
        }
        // SAFETY: passed on to the caller.
        unsafe {
            self.core.initiate(RequestType::Write, context, sge, flags, Some(Remote { address, token }))
        }
    }

    /// Reads the peer's memory into `sge` (`Read`). A connection without an outbound read limit refuses
    /// (`ND_INVALID_DEVICE_REQUEST`).
    ///
    /// # Safety
    /// As [`QueuePair::send`]; the memory is written to.
    #[inline]
    pub unsafe fn read(&self, context: u64, sge: &[Sge], address: u64, token: u32, flags: u32) -> Result<()> {
        if flags & !RDMA_FLAGS != 0 {
            return Err(Status::INVALID_PARAMETER_6);
        }
        if self.core.was_connected() && !self.core.may_read() {
            return Err(Status::INVALID_DEVICE_REQUEST);
        }
        let fence = if self.core.limits.fenced_reads { 0 } else { op_flags::READ_FENCE };
        let flags = flags & !op_flags::INLINE & !fence;
        // SAFETY: passed on to the caller.
        unsafe { self.core.initiate(RequestType::Read, context, sge, flags, Some(Remote { address, token })) }
    }

    /// Offers `sge` to the peer's next send (`Receive`). Legal in any state, but not with a shared receive queue
    /// (`ND_INVALID_DEVICE_REQUEST`).
    ///
    /// # Safety
    /// The memory named in `sge` must stay valid until the request completes; it is written to.
    #[inline]
    pub unsafe fn receive(&self, context: u64, sge: &[Sge]) -> Result<()> {
        let core = &self.core;
        let Some(queue) = &*core.receive else { return Err(Status::INVALID_DEVICE_REQUEST) };
        check_list(sge, core.limits.max_receive_sge, core.limits.max_transfer)?;
        let sge = if sge.is_empty() { core.limits.empty_list } else { sge };
        let posted = queue.post(context, RequestType::Receive, false, |ticket| {
            let mut wr = ibv_recv_wr {
                wr_id: ticket.wr_id,
                next: ptr::null_mut(),
                sg_list: sge.as_ptr().cast_mut().cast(),
                num_sge: sge.len() as i32,
            };
            let mut bad = ptr::null_mut();
            // SAFETY: the queue pair lives, the request is well-formed; its memory is the caller's promise.
            errno(unsafe { ops::post_recv(core.qp.as_ptr(), &mut wr, &mut bad) })
        })?;
        if posted == Posted::Flushed {
            core.report_flushed();
        }
        Ok(())
    }
}

impl Core {
    /// Posts a request that does nothing but complete, in its turn: an RDMA write of no bytes.
    pub(crate) fn no_op(self: &Arc<Self>, kind: RequestType, context: u64, flags: u32) -> Result<()> {
        let flags = flags & (op_flags::SILENT_SUCCESS | op_flags::READ_FENCE);
        // SAFETY: there is no memory to vouch for.
        unsafe { self.initiate(kind, context, &[], flags, Some(Remote { address: 0, token: 0 })) }
    }

    #[inline]
    unsafe fn initiate(
        self: &Arc<Self>,
        kind: RequestType,
        context: u64,
        sge: &[Sge],
        flags: u32,
        remote: Option<Remote>,
    ) -> Result<()> {
        if !self.was_connected() {
            return Err(Status::CONNECTION_INVALID);
        }
        let limits = &self.limits;
        let mut gathered = MaybeUninit::<[u8; MAX_INLINE]>::uninit();
        let mut one = [Sge::default()];
        let mut sge = sge;
        if flags & op_flags::INLINE != 0 {
            let length = check_list(sge, u32::MAX, limits.max_inline.into())?;
            if sge.len() as u32 > limits.max_initiator_sge {
                // SAFETY: the caller vouches for the pieces; together they fit, since no device takes more inline.
                one[0] = unsafe { gather(sge, &mut gathered, length as u32) };
                sge = &one;
            }
        } else {
            check_list(sge, limits.max_initiator_sge, limits.max_transfer)?;
        }
        if sge.is_empty() {
            sge = limits.empty_list;
        }
        let request = Initiation { kind, sge, flags, remote };
        let silent = flags & op_flags::SILENT_SUCCESS != 0;
        self.post_initiator(kind, context, silent, |ticket| request.post(self, ticket))
    }

    /// Posts a request to the initiator queue, as `device` does it; makes room first where silent requests take it.
    #[inline]
    pub(crate) fn post_initiator(
        self: &Arc<Self>,
        kind: RequestType,
        context: u64,
        silent: bool,
        device: impl Fn(Ticket) -> i32,
    ) -> Result<()> {
        let mut posted = self.initiator.post(context, kind, silent, &device);
        if posted == Err(Status::NO_MORE_ENTRIES) && self.initiator.has_silent() {
            self.reap_initiator();
            posted = self.initiator.post(context, kind, silent, &device);
        }
        if posted? == Posted::Flushed {
            self.report_flushed();
        }
        Ok(())
    }
}

/// A checked request for the initiator queue.
struct Initiation<'a> {
    kind: RequestType,
    sge: &'a [Sge],
    flags: u32,
    remote: Option<Remote>,
}

impl Initiation<'_> {
    /// Hands the request to the device; answers with an error number.
    #[inline]
    fn post(&self, core: &Core, ticket: Ticket) -> i32 {
        if self.kind == RequestType::Read && self.sge.len() as u32 > core.limits.device_read_sge {
            return self.post_split_read(core, ticket);
        }
        let mut wr = MaybeUninit::<ibv_send_wr>::uninit();
        self.fill(&mut wr, self.sge, 0, ticket.wr_id, ticket.signalled);
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair lives, the request is well-formed; its memory is the caller's promise.
        errno(unsafe { ops::post_send(core.qp.as_ptr(), wr.as_mut_ptr(), &mut bad) })
    }

    /// Posts one read for each piece, of which the last completes: some devices fill but the first piece.
    #[cold]
    fn post_split_read(&self, core: &Core, ticket: Ticket) -> i32 {
        let mut chain = [const { MaybeUninit::<ibv_send_wr>::uninit() }; MAX_SGE as usize];
        let mut next: *mut ibv_send_wr = ptr::null_mut();
        let pieces = self.sge.chunks(core.limits.device_read_sge as usize);
        let mut left: u64 = self.sge.iter().map(|sge| u64::from(sge.length)).sum();
        // From the last to the first, each with the address of the one after it.
        for (wr, piece) in chain.iter_mut().rev().zip(pieces.rev()) {
            left -= piece.iter().map(|sge| u64::from(sge.length)).sum::<u64>();
            self.fill(wr, piece, left, ticket.wr_id, ticket.signalled && next.is_null());
            // SAFETY: filled above; the chain does not move any more.
            unsafe { (&raw mut (*wr.as_mut_ptr()).next).write(next) };
            next = wr.as_mut_ptr();
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair lives, the list is well-formed; its memory is the caller's promise.
        errno(unsafe { ops::post_send(core.qp.as_ptr(), next, &mut bad) })
    }

    /// Writes all fields that the operation has; the device looks at no others.
    #[inline(always)]
    fn fill(&self, wr: &mut MaybeUninit<ibv_send_wr>, sge: &[Sge], offset: u64, wr_id: u64, signalled: bool) {
        let mut send_flags = if signalled { IBV_SEND_SIGNALED } else { 0 };
        for (flag, verbs) in [
            (op_flags::READ_FENCE, IBV_SEND_FENCE),
            (op_flags::SOLICIT, IBV_SEND_SOLICITED),
            (op_flags::INLINE, IBV_SEND_INLINE),
        ] {
            if self.flags & flag != 0 {
                send_flags |= verbs;
            }
        }
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
            (&raw mut (*wr).send_flags).write(send_flags);
            if let Some(remote) = self.remote {
                (&raw mut (*wr).wr.rdma.remote_addr).write(remote.address.wrapping_add(offset));
                (&raw mut (*wr).wr.rdma.rkey).write(u32::from_be(remote.token));
            }
        }
    }
}

/// Checks a scatter/gather list; returns the bytes in it.
#[inline]
pub(crate) fn check_list(sge: &[Sge], max_sge: u32, max_bytes: u64) -> Result<u64> {
    if sge.len() > max_sge as usize {
        return Err(Status::DATA_OVERRUN);
    }
    let bytes = sge.iter().map(|sge| u64::from(sge.length)).sum();
    if bytes > max_bytes { Err(Status::BUFFER_OVERFLOW) } else { Ok(bytes) }
}

/// Copies the pieces of an inline request together, for a queue pair that takes fewer pieces.
///
/// # Safety
/// The pieces must be readable and be `length` bytes in all, no more than `MAX_INLINE`.
#[cold]
unsafe fn gather(pieces: &[Sge], into: &mut MaybeUninit<[u8; MAX_INLINE]>, length: u32) -> Sge {
    let start = into.as_mut_ptr().cast::<u8>();
    let mut at = start;
    for piece in pieces {
        // SAFETY: the caller's promise.
        unsafe {
            at.copy_from_nonoverlapping(piece.buffer as *const u8, piece.length as usize);
            at = at.add(piece.length as usize);
        }
    }
    Sge { buffer: start as u64, length, token: 0 }
}
