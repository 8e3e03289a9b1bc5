//! Posting of `ibv_send_wr` and `ibv_recv_wr`.

use std::ffi::c_int;
use std::slice;

use verbs_sys::*;

use super::cancellation::PutOff;
use super::limits::PIECES_MAX;
use super::memory::rights;
use super::queue_pair::{Qp, Srq};
use crate::memory::Binding;
use crate::queue_pair::{Payload, Phase, Piece, PostError, SendRequest, Work};
use crate::wire::SendKind;

/// A scatter/gather list, copied.
struct List {
    pieces: [Piece; PIECES_MAX],
    count: usize,
}

/// A scatter/gather list as a slice.
///
/// # Safety
/// It has as many entries.
unsafe fn list<'a>(list: *const ibv_sge, count: c_int) -> Result<&'a [ibv_sge], PostError> {
    let count = usize::try_from(count).ok().filter(|&count| count <= PIECES_MAX).ok_or(PostError::Invalid)?;
    // SAFETY: as many entries as `count` says, as the caller promises.
    Ok(if count == 0 { &[] } else { unsafe { slice::from_raw_parts(list, count) } })
}

impl List {
    /// # Safety
    /// The list has as many entries.
    unsafe fn copy(from: *const ibv_sge, count: c_int) -> Result<List, PostError> {
        // SAFETY: as many entries as `count` says, as the caller promises.
        let from = unsafe { list(from, count) }?;
        let mut copy =
            List { pieces: [Piece { offset: 0, length: 0, token: 0 }; PIECES_MAX], count: from.len() };
        for (piece, entry) in copy.pieces.iter_mut().zip(from) {
            *piece = Piece { offset: entry.addr, length: entry.length, token: entry.lkey };
        }
        Ok(copy)
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces[..self.count]
    }
}

fn number(error: PostError) -> c_int {
    match error {
        PostError::Full => libc::ENOMEM,
        PostError::Invalid | PostError::NotConnected => libc::EINVAL,
    }
}

/// The operation of a work request, and whether it has a payload.
///
/// # Safety
/// The request is as ibv_post_send(3) requires.
unsafe fn work(wr: &ibv_send_wr) -> Result<(Work, bool), PostError> {
    let solicited = wr.send_flags & IBV_SEND_SOLICITED != 0;
    // SAFETY: of the union, requests of RDMA have this part filled in; it is looked at for no others.
    let remote = || unsafe { wr.wr.rdma };
    // SAFETY: of the union, requests that invalidate have this part filled in; it is looked at for no others.
    let invalidated = || unsafe { wr.__bindgen_anon_1.invalidate_rkey };
    Ok(match wr.opcode {
        IBV_WR_SEND => (Work::Send(SendKind { solicited, invalidate: None }), true),
        IBV_WR_SEND_WITH_INV => (Work::Send(SendKind { solicited, invalidate: Some(invalidated()) }), true),
        IBV_WR_RDMA_WRITE => (Work::Write { token: remote().rkey, offset: remote().remote_addr }, true),
        IBV_WR_RDMA_READ => (Work::Read { token: remote().rkey, offset: remote().remote_addr }, true),
        IBV_WR_LOCAL_INV => (Work::Invalidate(invalidated()), false),
        IBV_WR_BIND_MW => {
            // SAFETY: of the union, requests that bind have this part filled in.
            let bind = unsafe { wr.__bindgen_anon_2.bind_mw };
            let info = bind.bind_info;
            let binding = Binding {
                token: bind.rkey,
                // SAFETY: not NULL, hence a region that lives, as verbs ask.
                region: if info.mr.is_null() { 0 } else { unsafe { (*info.mr).rkey } },
                offset: info.addr,
                length: usize::try_from(info.length).map_err(|_| PostError::Invalid)?,
                rights: rights(info.mw_access_flags).map_err(|_| PostError::Invalid)?,
            };
            (Work::Bind(binding), false)
        }
        _ => return Err(PostError::Invalid),
    })
}

impl Qp {
    /// Posts a request by `post`.
    ///
    /// # Safety
    /// The request is as ibv_post_send(3) requires.
    unsafe fn send(
        &self,
        wr: &ibv_send_wr,
        mut post: impl FnMut(&SendRequest<'_>) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        // SAFETY: its opcode says which fields of the union are filled in, as verbs ask.
        let (work, has_payload) = unsafe { work(wr) }?;
        let (id, fence) = (wr.wr_id, wr.send_flags & IBV_SEND_FENCE != 0);
        let signaled = self.signals_all || wr.send_flags & IBV_SEND_SIGNALED != 0;
        let mut post = |payload| post(&SendRequest { id, work, payload, signaled, fence });
        if !has_payload {
            return post(Payload::Pieces(&[]));
        }
        if wr.send_flags & IBV_SEND_INLINE == 0 {
            // SAFETY: as many entries as `num_sge` says, as verbs ask.
            let list = unsafe { List::copy(wr.sg_list, wr.num_sge) }?;
            return post(Payload::Pieces(list.pieces()));
        }
        // SAFETY: as many entries as `num_sge` says, as verbs ask.
        let list = unsafe { list(wr.sg_list, wr.num_sge) }?;
        let mut parts: [&[u8]; PIECES_MAX] = [&[]; PIECES_MAX];
        for (part, entry) in parts.iter_mut().zip(list) {
            if entry.length > 0 {
                // SAFETY: inline data is there, and nobody writes it, while it is posted.
                *part = unsafe { slice::from_raw_parts(entry.addr as *const u8, entry.length as usize) };
            }
        }
        post(Payload::Inline(&parts[..list.len()]))
    }
}

/// `context->ops.post_send`
///
/// # Safety
/// The queue pair lives and is this device's; each request leads to the next or NULL and has the fields of its opcode, with
/// memory that stays until it completes; there is room for the address of a bad one.
pub(super) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: made by `ibv_create_qp`, and not destroyed during the call, as verbs ask.
    let own = unsafe { Qp::of(qp) };
    let _put_off = PutOff::new();
    let connection = own.ends.connection.get();
    // SAFETY: NULL or the first work request of the caller's list, as verbs ask.
    let several = unsafe { wr.as_ref() }.is_some_and(|first| !first.next.is_null());
    // A single request may be held back for a batch, unless the program is about to wait for it. SAFETY: queues live as long as
    // the queue pairs on them.
    let mut posting =
        connection.filter(|_| several || unsafe { own.is_waited_for() }).and_then(|it| it.posting());
    // SAFETY: NULL or a work request: each leads to the next.
    while let Some(request) = unsafe { wr.as_ref() } {
        let post = |request: &SendRequest<'_>| match (&mut posting, connection) {
            (Some(posting), _) => posting.post_send(request),
            (None, Some(connection)) => connection.post_send(request),
            (None, None) => {
                let posted = own.ends.pair.lock().post_send(request);
                own.ends.catch_up();
                posted
            }
        };
        // SAFETY: a work request, with memory that stays until its completion, as verbs ask.
        if let Err(error) = unsafe { own.send(request, post) } {
            // SAFETY: the caller has room for it.
            unsafe { *bad = wr };
            return number(error);
        }
        wr = request.next;
    }
    0
}

/// Posts a list of receives.
///
/// # Safety
/// The list is valid, and `bad` may be written to.
unsafe fn receive(
    mut wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
    mut post: impl FnMut(u64, &[Piece]) -> Result<(), PostError>,
) -> c_int {
    // SAFETY: NULL or a work request: each leads to the next.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: as many entries as `num_sge` says, as verbs ask.
        let list = unsafe { List::copy(request.sg_list, request.num_sge) };
        if let Err(error) = list.and_then(|list| post(request.wr_id, list.pieces())) {
            // SAFETY: room for a pointer, as verbs ask.
            unsafe { *bad = wr };
            return number(error);
        }
        wr = request.next;
    }
    0
}

/// `context->ops.post_recv`
///
/// # Safety
/// The queue pair lives and is this device's; each request leads to the next or NULL, with memory that may be written until it
/// completes; there is room for the address of a bad one.
pub(super) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: made by `ibv_create_qp`, and not destroyed during the call, as verbs ask.
    let own = unsafe { Qp::of(qp) };
    let _put_off = PutOff::new();
    // SAFETY: a list of work requests and room for a pointer, as verbs ask.
    unsafe {
        receive(wr, bad, |id, pieces| {
            let mut pair = own.ends.pair.lock();
            let posted = pair.post_receive(id, pieces);
            let ended = pair.phase() == Phase::Ended;
            drop(pair);
            if ended {
                // The receive was flushed, and its queue may have had no room for it.
                own.ends.catch_up();
            }
            posted
        })
    }
}

/// `context->ops.post_srq_recv`
///
/// # Safety
/// The queue lives and is this device's; each request leads to the next or NULL, with memory that may be written until it
/// completes; there is room for the address of a bad one.
pub(super) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
    let own = unsafe { Srq::of(srq) };
    let _put_off = PutOff::new();
    // SAFETY: a list of work requests and room for a pointer, as verbs ask.
    unsafe { receive(wr, bad, |id, pieces| own.queue.post(id, pieces)) }
}
