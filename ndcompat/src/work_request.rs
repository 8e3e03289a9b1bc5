//! The data path: from the caller's arguments to the device's queues.
//!
//! What is called for each request answers with a bare status, which is what goes back to C: results would have to be taken
//! apart.

use crate::limits::MAX_SGE;
use crate::lock::Hold;
use crate::queue_pair::{Core, QueuePair};
use crate::request_queue::{KeptBack, Place, Producer, RequestQueue, Ticket};
use crate::status::{Result, Status};
use crate::types::{RequestType, Sge, op_flags};
use crate::verbs::{bindings::*, errno, ops};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that any device takes inline, and so the most that is gathered on the stack.
const MAX_INLINE: usize = 1024;

/// Flags of a send.
const SEND_FLAGS: u32 =
    op_flags::SILENT_SUCCESS | op_flags::READ_FENCE | op_flags::SOLICIT | op_flags::INLINE;
/// Flags of a read or write. A read ignores `INLINE`, which programs leave set.
const RDMA_FLAGS: u32 = op_flags::SILENT_SUCCESS | op_flags::READ_FENCE | op_flags::INLINE;

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
struct Remote {
    address: u64,
    /// As the peer's `GetRemoteToken` gave it: the rkey in network order.
    token: u32,
}

/// A scatter/gather list as C passes it.
#[derive(Clone, Copy)]
struct List {
    pieces: *const Sge,
    count: u32,
}

impl List {
    fn new(sge: &[Sge]) -> List {
        // More than a device takes is too many, whatever the number.
        List { pieces: sge.as_ptr(), count: sge.len().try_into().unwrap_or(u32::MAX) }
    }

    /// The only piece, if it is shorter than the `bound`.
    ///
    /// In this order, so that compilers let each test be a branch: together the first and the last would take longer.
    #[inline(always)]
    unsafe fn only_below<'a>(self, bound: &AtomicU64) -> Option<&'a Sge> {
        if self.count != 1 {
            return None;
        }
        let bound = bound.load(Ordering::Relaxed);
        // SAFETY: the caller's list.
        let one = unsafe { self.pieces.as_ref()? };
        if u64::from(one.length) < bound { Some(one) } else { None }
    }

    /// The pieces. A list without a pointer is empty, or an error.
    unsafe fn pieces<'a>(self) -> Result<&'a [Sge]> {
        if self.count == 0 {
            return Ok(&[]);
        }
        if self.pieces.is_null() {
            return Err(Status::INVALID_PARAMETER_2);
        }
        // SAFETY: the caller's list.
        Ok(unsafe { slice::from_raw_parts(self.pieces, self.count as usize) })
    }
}

/// Posts to a queue pair that somebody else keeps: for the data path, a step less. As in C, a list is a pointer, which is
/// `ND_INVALID_PARAMETER_2` if it is null, and a number of pieces.
#[derive(Clone, Copy)]
pub struct Poster(NonNull<Core>);

// SAFETY: all methods of a queue pair may be called from several threads.
unsafe impl Send for Poster {}
// SAFETY: as above.
unsafe impl Sync for Poster {}

impl QueuePair {
    /// What posts to the queue pair, for somebody who keeps it.
    pub fn poster(&self) -> Poster {
        // SAFETY: the pointer of an `Arc` is not null.
        Poster(unsafe { NonNull::new_unchecked(Arc::as_ptr(&self.core).cast_mut()) })
    }

    /// Sends `sge` to the peer's next receive (`Send`).
    ///
    /// # Safety
    /// The memory named in `sge` must stay valid until the request completes (with `INLINE`: during the call).
    pub unsafe fn send(&self, context: u64, sge: &[Sge], flags: u32) -> Result<()> {
        let List { pieces, count } = List::new(sge);
        // SAFETY: passed on to the caller.
        unsafe { self.poster().send(context, pieces, count, flags) }.ok()
    }

    /// Writes `sge` to the peer's memory (`Write`).
    ///
    /// # Safety
    /// As [`QueuePair::send`].
    pub unsafe fn write(
        &self,
        context: u64,
        sge: &[Sge],
        address: u64,
        token: u32,
        flags: u32,
    ) -> Result<()> {
        let List { pieces, count } = List::new(sge);
        // SAFETY: passed on to the caller.
        unsafe { self.poster().write(context, pieces, count, address, token, flags) }.ok()
    }

    /// Reads the peer's memory into `sge` (`Read`). A connection without an outbound read limit refuses
    /// (`ND_INVALID_DEVICE_REQUEST`).
    ///
    /// # Safety
    /// As [`QueuePair::send`]; the memory is written to.
    pub unsafe fn read(&self, context: u64, sge: &[Sge], address: u64, token: u32, flags: u32) -> Result<()> {
        let List { pieces, count } = List::new(sge);
        // SAFETY: passed on to the caller.
        unsafe { self.poster().read(context, pieces, count, address, token, flags) }.ok()
    }

    /// Offers `sge` to the peer's next send (`Receive`). Legal in any state, but not with a shared receive queue
    /// (`ND_INVALID_DEVICE_REQUEST`).
    ///
    /// # Safety
    /// The memory named in `sge` must stay valid until the request completes; it is written to.
    pub unsafe fn receive(&self, context: u64, sge: &[Sge]) -> Result<()> {
        let List { pieces, count } = List::new(sge);
        // SAFETY: passed on to the caller.
        unsafe { self.poster().receive(context, pieces, count) }.ok()
    }
}

impl Poster {
    /// [`QueuePair::send`].
    ///
    /// # Safety
    /// The queue pair must be alive, and the list be one; otherwise as there.
    #[inline(always)]
    pub unsafe fn send(self, context: u64, pieces: *const Sge, count: u32, flags: u32) -> Status {
        let list = List { pieces, count };
        // SAFETY: passed on to the caller.
        unsafe { self.initiate(context, list, flags, RequestType::Send, Remote::default()) }
    }

    /// [`QueuePair::write`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn write(
        self,
        context: u64,
        pieces: *const Sge,
        count: u32,
        address: u64,
        token: u32,
        flags: u32,
    ) -> Status {
        let list = List { pieces, count };
        // SAFETY: passed on to the caller.
        unsafe { self.initiate(context, list, flags, RequestType::Write, Remote { address, token }) }
    }

    /// [`QueuePair::read`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn read(
        self,
        context: u64,
        pieces: *const Sge,
        count: u32,
        address: u64,
        token: u32,
        flags: u32,
    ) -> Status {
        let list = List { pieces, count };
        // SAFETY: passed on to the caller.
        unsafe {
            if !self.core().may_read() {
                return self.refuse_read(list, flags);
            }
            let fence = if self.core().limits.fenced_reads { 0 } else { op_flags::READ_FENCE };
            let flags = flags & !op_flags::INLINE & !fence;
            self.initiate(context, list, flags, RequestType::Read, Remote { address, token })
        }
    }

    /// [`QueuePair::receive`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn receive(self, context: u64, pieces: *const Sge, count: u32) -> Status {
        let list = List { pieces, count };
        // SAFETY: passed on to the caller.
        unsafe {
            self.receive_one(list, |queue| queue.reserve_own(context, RequestType::Receive, false))
                .unwrap_or_else(|| self.receive_shared(context, list))
        }
    }

    /// As [`Poster::receive`], if the queue is not the thread's own.
    #[inline(never)]
    unsafe fn receive_shared(self, context: u64, list: List) -> Status {
        // SAFETY: passed on to the caller.
        unsafe {
            self.receive_one(list, |queue| queue.reserve_now(context, RequestType::Receive, false))
                .unwrap_or_else(|| self.receive_any(context, list))
        }
    }

    /// Posts a receive of one piece, if `reserve` has a slot for it.
    #[inline(always)]
    unsafe fn receive_one<'a, H: Hold<'a, Producer>>(
        self,
        list: List,
        reserve: impl FnOnce(&'a RequestQueue) -> Option<Place<H>>,
    ) -> Option<Status> {
        // SAFETY: passed on to the caller.
        let core = unsafe { self.core() };
        // SAFETY: as above.
        let one = unsafe { list.only_below(&core.receive_bound)? };
        let queue = core.receive.as_ref()?;
        let place = reserve(queue)?;
        let error = core.post_receive(slice::from_ref(one), place.ticket());
        Some(place.settle(error))
    }

    /// The long way of [`Poster::receive`].
    #[cold]
    #[inline(never)]
    unsafe fn receive_any(self, context: u64, list: List) -> Status {
        // SAFETY: passed on to the caller.
        Status::of(unsafe { list.pieces().and_then(|sge| self.arc().receive_checked(context, sge)) })
    }

    /// What is usual takes few instructions, and calls none but the device: a request of one piece that is to be reported, on a
    /// connected queue pair that is the thread's own and has room. What is called otherwise has its arguments in the order
    /// that they come in from C, so that none must be moved.
    #[inline(always)]
    unsafe fn initiate(
        self,
        context: u64,
        list: List,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        let usual = allowed(kind) & !op_flags::SILENT_SUCCESS;
        // SAFETY: passed on to the caller.
        unsafe {
            if flags & !usual != 0 {
                return self.initiate_otherwise(context, list, flags, kind, remote);
            }
            let one =
                self.initiate_one(list, flags, kind, remote, |queue| queue.reserve_own(context, kind, false));
            one.unwrap_or_else(|| self.initiate_shared(context, list, flags, kind, remote))
        }
    }

    /// As [`Poster::initiate`], with other flags.
    #[inline(never)]
    unsafe fn initiate_otherwise(
        self,
        context: u64,
        list: List,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        // SAFETY: passed on to the caller.
        unsafe {
            if flags & !allowed(kind) != 0 {
                return list.pieces().err().unwrap_or(bad_flags(kind));
            }
            self.core().expect_silent();
            let one =
                self.initiate_one(list, flags, kind, remote, |queue| queue.reserve_own(context, kind, true));
            one.unwrap_or_else(|| self.initiate_shared(context, list, flags, kind, remote))
        }
    }

    /// As [`Poster::initiate`], if the queue is not the thread's own.
    #[inline(never)]
    unsafe fn initiate_shared(
        self,
        context: u64,
        list: List,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        let silent = flags & op_flags::SILENT_SUCCESS != 0;
        // SAFETY: passed on to the caller.
        unsafe {
            let one = self
                .initiate_one(list, flags, kind, remote, |queue| queue.reserve_now(context, kind, silent));
            one.unwrap_or_else(|| self.initiate_any(context, list, flags, kind, remote))
        }
    }

    /// Posts a request of one piece, if `reserve` has a slot for it.
    #[inline(always)]
    unsafe fn initiate_one<'a, H: Hold<'a, Producer>>(
        self,
        list: List,
        flags: u32,
        kind: RequestType,
        remote: Remote,
        reserve: impl FnOnce(&'a RequestQueue) -> Option<Place<H>>,
    ) -> Option<Status> {
        // SAFETY: passed on to the caller.
        let core = unsafe { self.core() };
        // SAFETY: as above.
        let one = unsafe { list.only_below(core.bound(flags & op_flags::INLINE != 0))? };
        let place = reserve(&core.initiator)?;
        let request = Initiation { kind, sge: slice::from_ref(one), flags, remote };
        let error = request.post_whole(core, place.ticket());
        Some(place.settle(error))
    }

    /// The long way of [`Poster::initiate`].
    #[cold]
    #[inline(never)]
    unsafe fn initiate_any(
        self,
        context: u64,
        list: List,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        // SAFETY: passed on to the caller.
        let posted = unsafe {
            list.pieces()
                .and_then(|sge| Initiation { kind, sge, flags, remote }.check_and_post(&self.arc(), context))
        };
        Status::of(posted)
    }

    /// A read without leave to have one outstanding.
    #[cold]
    #[inline(never)]
    unsafe fn refuse_read(self, list: List, flags: u32) -> Status {
        // SAFETY: passed on to the caller.
        if let Err(status) = unsafe { list.pieces() } {
            return status;
        }
        // SAFETY: as above.
        match unsafe { self.core() } {
            _ if flags & !RDMA_FLAGS != 0 => bad_flags(RequestType::Read),
            core if core.was_connected() => Status::INVALID_DEVICE_REQUEST,
            _ => Status::CONNECTION_INVALID,
        }
    }

    /// The queue pair.
    ///
    /// # Safety
    /// It must be alive.
    #[inline(always)]
    unsafe fn core<'a>(self) -> &'a Core {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ref() }
    }

    /// A reference of somebody else's.
    ///
    /// # Safety
    /// As [`Poster::core`].
    unsafe fn arc(self) -> ManuallyDrop<Arc<Core>> {
        // SAFETY: the pointer came from an `Arc`, whose reference stays where it is.
        ManuallyDrop::new(unsafe { Arc::from_raw(self.0.as_ptr()) })
    }
}

/// The flags that a request may have.
#[inline(always)]
fn allowed(kind: RequestType) -> u32 {
    if kind == RequestType::Send { SEND_FLAGS } else { RDMA_FLAGS }
}

/// What becomes of a request with others.
fn bad_flags(kind: RequestType) -> Status {
    if kind == RequestType::Send { Status::INVALID_PARAMETER_4 } else { Status::INVALID_PARAMETER_6 }
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

    fn receive_checked(self: &Arc<Self>, context: u64, sge: &[Sge]) -> Result<()> {
        let Some(queue) = &*self.receive else { return Err(Status::INVALID_DEVICE_REQUEST) };
        check_list(sge, self.limits.max_receive_sge, self.limits.max_transfer)?;
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
    fn post_receive(&self, sge: &[Sge], ticket: Ticket) -> i32 {
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
struct Initiation<'a> {
    kind: RequestType,
    sge: &'a [Sge],
    flags: u32,
    remote: Remote,
}

impl Initiation<'_> {
    /// Posts whatever may be posted.
    ///
    /// # Safety
    /// As [`QueuePair::send`].
    unsafe fn check_and_post(self, core: &Arc<Core>, context: u64) -> Result<()> {
        if !core.was_connected() {
            return Err(Status::CONNECTION_INVALID);
        }
        let limits = &core.limits;
        let mut gathered = MaybeUninit::<[u8; MAX_INLINE]>::uninit();
        let mut one = [Sge::default()];
        let mut sge = self.sge;
        if self.flags & op_flags::INLINE != 0 {
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
        let request = Initiation { sge, ..self };
        let silent = self.flags & op_flags::SILENT_SUCCESS != 0;
        core.post_initiator(self.kind, context, silent, |ticket| request.post(core, ticket))
    }

    /// Hands the checked request to the device; answers with an error number.
    fn post(&self, core: &Core, ticket: Ticket) -> i32 {
        if self.kind == RequestType::Read && self.sge.len() as u32 > core.limits.device_read_sge {
            self.post_split_read(core, ticket)
        } else {
            self.post_whole(core, ticket)
        }
    }

    #[inline(always)]
    fn post_whole(&self, core: &Core, ticket: Ticket) -> i32 {
        let mut wr = MaybeUninit::<ibv_send_wr>::uninit();
        self.fill(&mut wr, self.sge, 0, ticket.wr_id, ticket.signalled);
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
        // Sound flags are a place in the table.
        let send_flags = u32::from(VERBS_FLAGS[self.flags as usize % VERBS_FLAGS.len()]);
        let send_flags = if signalled { send_flags } else { send_flags & !IBV_SEND_SIGNALED };
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
            if opcode != IBV_WR_SEND {
                (&raw mut (*wr).wr.rdma.remote_addr).write(self.remote.address.wrapping_add(offset));
                (&raw mut (*wr).wr.rdma.rkey).write(u32::from_be(self.remote.token));
            }
        }
    }
}

/// Checks a scatter/gather list; returns the bytes in it.
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
