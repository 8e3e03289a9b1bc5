//! Posting: from the caller's arguments to a work request. The shortest way is for what is usual, see [`Poster`].
//!
//! What is called for each request answers with a bare status, which is what goes back to C: results would have to be taken
//! apart.

use crate::lock::{Either, Own, Shared, Way};
use crate::queue_pair::{Core, QueuePair};
use crate::scatter_gather::SgeList;
use crate::status::{Result, Status};
use crate::types::{RequestType, Sge, op_flags};
use crate::verbs::bindings::{IBV_SEND_INLINE, IBV_SEND_SIGNALED};
use crate::work_request::{Initiation, Remote};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

/// Flags of a send.
const SEND_FLAGS: u32 =
    op_flags::SILENT_SUCCESS | op_flags::READ_FENCE | op_flags::SOLICIT | op_flags::INLINE;
/// Flags of a read or write. A read ignores `INLINE`, which programs leave set.
const RDMA_FLAGS: u32 = op_flags::SILENT_SUCCESS | op_flags::READ_FENCE | op_flags::INLINE;

/// Posts to a queue pair that somebody else keeps: for the data path, a step less.
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
        // SAFETY: passed on to the caller.
        unsafe { self.poster().send(context, sge.into(), flags) }.ok()
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
        // SAFETY: passed on to the caller.
        unsafe { self.poster().write(context, sge.into(), address, token, flags) }.ok()
    }

    /// Reads the peer's memory into `sge` (`Read`). A connection without an outbound read limit refuses
    /// (`ND_INVALID_DEVICE_REQUEST`).
    ///
    /// # Safety
    /// As [`QueuePair::send`]; the memory is written to.
    pub unsafe fn read(&self, context: u64, sge: &[Sge], address: u64, token: u32, flags: u32) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.poster().read(context, sge.into(), address, token, flags) }.ok()
    }

    /// Offers `sge` to the peer's next send (`Receive`). Legal in any state, but not with a shared receive queue
    /// (`ND_INVALID_DEVICE_REQUEST`).
    ///
    /// # Safety
    /// The memory named in `sge` must stay valid until the request completes; it is written to.
    pub unsafe fn receive(&self, context: u64, sge: &[Sge]) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.poster().receive(context, sge.into()) }.ok()
    }
}

impl Poster {
    /// [`QueuePair::send`].
    ///
    /// # Safety
    /// The queue pair must be alive, and the list be one; otherwise as there.
    #[inline(always)]
    pub unsafe fn send(self, context: u64, list: SgeList, flags: u32) -> Status {
        // SAFETY: passed on to the caller.
        unsafe { self.initiate(context, list, flags, RequestType::Send, Remote::default()) }
    }

    /// [`QueuePair::write`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn write(self, context: u64, list: SgeList, address: u64, token: u32, flags: u32) -> Status {
        // SAFETY: passed on to the caller.
        unsafe { self.initiate(context, list, flags, RequestType::Write, Remote { address, token }) }
    }

    /// [`QueuePair::read`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn read(self, context: u64, list: SgeList, address: u64, token: u32, flags: u32) -> Status {
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
    pub unsafe fn receive(self, context: u64, list: SgeList) -> Status {
        // SAFETY: passed on to the caller.
        unsafe {
            self.receive_now::<Own>(context, list).unwrap_or_else(|| self.receive_shared(context, list))
        }
    }

    /// Posts what is usual, where the queue's lock can be had that way.
    #[inline(always)]
    unsafe fn receive_now<'a, W: Way<'a>>(self, context: u64, list: SgeList) -> Option<Status> {
        // SAFETY: passed on to the caller; without a queue of receives the bound is 0, which no piece is below.
        unsafe {
            let core: &'a Core = self.core();
            let one = list.only_below(&core.receive_bound)?;
            let queue = core.receive.as_ref().unwrap_unchecked();
            let place = queue.reserve_now::<W>(context, RequestType::Receive, false)?;
            let error = core.post_receive(slice::from_ref(one), place.ticket());
            Some(place.settle(error))
        }
    }

    #[inline(never)]
    unsafe fn receive_shared(self, context: u64, list: SgeList) -> Status {
        // SAFETY: passed on to the caller.
        unsafe {
            self.receive_now::<Shared>(context, list).unwrap_or_else(|| self.receive_any(context, list))
        }
    }

    /// The long way of [`Poster::receive`].
    #[cold]
    #[inline(never)]
    unsafe fn receive_any(self, context: u64, list: SgeList) -> Status {
        // SAFETY: passed on to the caller.
        Status::of(unsafe { list.pieces().and_then(|sge| self.arc().receive_checked(context, sge)) })
    }

    /// What is usual takes few instructions, and calls none but the device: a request of one piece that is to be reported, without
    /// a fence, on a connected queue pair that has room, by the one thread that posts to it. What is called otherwise could do
    /// that, too, and has its arguments in the order that they come in from C, so that none must be moved.
    #[inline(always)]
    unsafe fn initiate(
        self,
        context: u64,
        list: SgeList,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        let usual = if kind == RequestType::Read { 0 } else { op_flags::INLINE };
        // SAFETY: passed on to the caller.
        unsafe {
            if flags & !usual != 0 {
                return self.initiate_otherwise(context, list, flags, kind, remote);
            }
            self.initiate_now::<Own, false>(context, list, flags, kind, remote)
                .unwrap_or_else(|| self.initiate_shared(context, list, flags, kind, remote))
        }
    }

    /// As [`Poster::initiate`], by any thread.
    #[inline(never)]
    unsafe fn initiate_shared(
        self,
        context: u64,
        list: SgeList,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        // SAFETY: passed on to the caller.
        unsafe {
            self.initiate_now::<Shared, false>(context, list, flags, kind, remote)
                .unwrap_or_else(|| self.initiate_any(context, list, flags, kind, remote))
        }
    }

    /// As [`Poster::initiate`], with any flags, by any thread.
    #[inline(never)]
    unsafe fn initiate_otherwise(
        self,
        context: u64,
        list: SgeList,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        // SAFETY: passed on to the caller.
        unsafe {
            if flags & !allowed(kind) != 0 {
                return list.pieces().err().unwrap_or(bad_flags(kind));
            }
            if flags & op_flags::SILENT_SUCCESS != 0 {
                self.core().expect_silent();
            }
            self.initiate_now::<Either<'_>, true>(context, list, flags, kind, remote)
                .unwrap_or_else(|| self.initiate_any(context, list, flags, kind, remote))
        }
    }

    /// Posts a request of one piece, where there is room and the queue's lock can be had that way.
    #[inline(always)]
    unsafe fn initiate_now<'a, W: Way<'a>, const OTHER_FLAGS: bool>(
        self,
        context: u64,
        list: SgeList,
        flags: u32,
        kind: RequestType,
        remote: Remote,
    ) -> Option<Status> {
        // SAFETY: passed on to the caller.
        unsafe {
            let core: &'a Core = self.core();
            let silent = OTHER_FLAGS && flags & op_flags::SILENT_SUCCESS != 0;
            let one = list.only_below(core.bound(flags & op_flags::INLINE != 0))?;
            let place = core.initiator.reserve_now::<W>(context, kind, silent)?;
            let request = Initiation { kind, sge: slice::from_ref(one), flags, remote };
            let ticket = place.ticket();
            let verbs_flags = if OTHER_FLAGS {
                request.verbs_flags(ticket.signalled)
            } else {
                // That flag or none.
                IBV_SEND_SIGNALED + flags / op_flags::INLINE * IBV_SEND_INLINE
            };
            let error = request.post_whole(core, ticket.wr_id, verbs_flags);
            Some(place.settle(error))
        }
    }

    /// The long way of [`Poster::initiate`].
    #[cold]
    #[inline(never)]
    unsafe fn initiate_any(
        self,
        context: u64,
        list: SgeList,
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
    unsafe fn refuse_read(self, list: SgeList, flags: u32) -> Status {
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
