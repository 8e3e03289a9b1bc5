//! Handles of overlapped files, and the events of `OVERLAPPED`s.

use super::{Object, RawHandle, handle};
use crate::io::signal::Signal;
use crate::io::{File, Outstanding, Overlapped, Request};
use std::sync::Arc;

/// The event of an `OVERLAPPED`, if any, and whether its low-order bit suppresses the completion packet.
///
/// # Safety
/// `ov` must point to an `OVERLAPPED`, of which only `hEvent` needs a value.
unsafe fn event_of(ov: *mut Overlapped) -> (Option<Arc<Signal>>, bool) {
    // SAFETY: the program has set the event. No reference is made: other fields may be uninitialised.
    let named = unsafe { (*ov).event };
    match handle::get(named) {
        Some(Object::Event(event)) => (Some(event), named.is_tagged()),
        _ => (None, named.is_tagged()),
    }
}

impl File {
    /// Opens a handle to the file; `NULL` when there are too many handles.
    pub fn handle(self: &Arc<Self>) -> RawHandle {
        handle::open(Object::File(self.clone()))
    }

    /// Starts a request: marks `ov` pending and resets its event.
    ///
    /// # Safety
    /// `ov` must point to an `OVERLAPPED` that stays valid until the request completes; of its fields only
    /// `hEvent` needs a value.
    pub unsafe fn begin(self: &Arc<Self>, ov: *mut Overlapped) -> Request {
        // SAFETY: the event has a value.
        let (event, tagged) = unsafe { event_of(ov) };
        // SAFETY: valid until the request completes, as the caller promises.
        unsafe { Request::begin(self, ov, event, tagged) }
    }

    /// As [`File::begin`], for a request with another notification: `hEvent` is ignored, and there is no packet.
    ///
    /// # Safety
    /// `ov` must point to an `OVERLAPPED` that stays valid until the request completes.
    pub(crate) unsafe fn begin_quietly(self: &Arc<Self>, ov: *mut Overlapped) -> Request {
        // SAFETY: valid until the request completes, as the caller promises.
        unsafe { Request::begin(self, ov, None, true) }
    }

    /// Completes an operation that has succeeded at once. The packet is omitted if the program has asked for that.
    ///
    /// # Safety
    /// `ov` must point to an `OVERLAPPED`, of which only `hEvent` needs a value.
    pub(crate) unsafe fn finish_at_once(self: &Arc<Self>, ov: *mut Overlapped, bytes: usize) {
        // SAFETY: the event has a value.
        let (event, tagged) = unsafe { event_of(ov) };
        // SAFETY: valid for this call, as the caller promises.
        unsafe { Request::finish_at_once(self, ov, event, tagged, bytes, false) };
    }

    /// Completes an operation that has succeeded at once, but that the program is told to pend: so it has its packet whatever the program
    /// has asked for.
    ///
    /// # Safety
    /// As for [`File::finish_at_once`].
    pub(crate) unsafe fn finish_as_pended(self: &Arc<Self>, ov: *mut Overlapped, bytes: usize) {
        // SAFETY: the event has a value.
        let (event, tagged) = unsafe { event_of(ov) };
        // SAFETY: valid for this call, as the caller promises.
        unsafe { Request::finish_at_once(self, ov, event, tagged, bytes, true) };
    }
}

impl Outstanding {
    /// As [`File::begin`], and counts the request until it has completed.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn begin(self: &Arc<Self>, file: &Arc<File>, ov: *mut Overlapped) -> Request {
        let counted = self.count();
        // SAFETY: valid until the request completes, as the caller promises; `hEvent` has its value.
        unsafe { file.begin(ov) }.counted(counted)
    }
}
