//! Completion routines of overlapped requests, which run in alertable waits.

use super::errors::error_of;
use crate::io::apc::Apcs;
use crate::io::{File, Overlapped, Request, STATUS_SUCCESS};
use std::sync::Arc;

/// `WSAOVERLAPPED_COMPLETION_ROUTINE`.
pub(super) type CompletionRoutine = unsafe extern "C" fn(u32, u32, *mut Overlapped, u32);

/// A completion routine, and the thread that runs it in an alertable wait.
pub(super) struct Call {
    routine: CompletionRoutine,
    apcs: Arc<Apcs>,
}

impl Call {
    /// One for the calling thread.
    pub(super) fn of(routine: CompletionRoutine) -> Call {
        Call { routine, apcs: Apcs::current() }
    }

    pub(super) fn queue(self, overlapped: *mut Overlapped, status: i32, bytes: usize) {
        let (routine, error, overlapped) = (self.routine, error_of(status), overlapped.expose_provenance());
        // Dropped if the thread has ended.
        self.apcs.queue(Box::new(move || {
            // SAFETY: the program's routine for its OVERLAPPED, which it has asked to be called.
            unsafe { routine(error, bytes as u32, std::ptr::with_exposed_provenance_mut(overlapped), 0) }
        }));
    }
}

/// Begins a request that ends with a call of the routine, if there is one.
///
/// # Safety
/// As for [`File::begin`].
pub(super) unsafe fn begin(file: &Arc<File>, overlapped: *mut Overlapped, call: Option<&Call>) -> Request {
    match call {
        // SAFETY: an OVERLAPPED that stays until the request has completed, as the caller promises.
        None => unsafe { file.begin(overlapped) },
        // SAFETY: an OVERLAPPED that stays until the request has completed, as the caller promises.
        Some(_) => unsafe { file.begin_quietly(overlapped) },
    }
}

/// Completes a request that could be done at once.
///
/// # Safety
/// As for [`File::finish_at_once`].
pub(super) unsafe fn finish_at_once(
    file: &Arc<File>,
    overlapped: *mut Overlapped,
    bytes: usize,
    call: Option<Call>,
) {
    match call {
        // SAFETY: an OVERLAPPED that no other request has, as the caller promises.
        None => unsafe { file.finish_at_once(overlapped, bytes) },
        Some(call) => {
            // SAFETY: an OVERLAPPED that no other request has, as the caller promises.
            unsafe { file.begin_quietly(overlapped) }.complete(STATUS_SUCCESS, bytes);
            call.queue(overlapped, STATUS_SUCCESS, bytes);
        }
    }
}
