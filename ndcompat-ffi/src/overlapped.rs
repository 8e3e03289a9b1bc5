//! `IND2Overlapped`, the base of all interfaces with overlapped requests.

use crate::com::{HResult, Interface, This};
use crate::interfaces::IND2Overlapped;
use ndcompat::Status;
use win32::io::{File, Overlapped};

/// An object with overlapped requests.
pub(crate) trait Requests: Interface {
    /// The file that the requests run on.
    fn file(&self) -> &File;
    /// Completes all pending requests with `ND_CANCELED`.
    fn cancel(&self);
}

impl<I: Requests> IND2Overlapped for I {
    unsafe fn cancel_overlapped_requests(this: This<I>) -> HResult {
        this.cancel();
        Status::SUCCESS.0
    }

    unsafe fn get_overlapped_result(this: This<I>, ov: *mut Overlapped, wait: i32) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER.0;
        }
        // SAFETY: C callers pass an `OVERLAPPED` on which a request was begun.
        unsafe { win32::io::result(this.file(), ov, wait != 0) }
    }
}

/// Implements `GetNotifyAffinity` of completion queues and shared receive queues: stores the group and mask of `ask`.
///
/// # Safety
/// The pointers must be valid or null.
pub(crate) unsafe fn give_affinity(
    ask: impl FnOnce() -> ndcompat::Result<(u16, u64)>,
    group: *mut u16,
    affinity: *mut usize,
) -> HResult {
    // SAFETY: the caller passes a valid result pointer, or null.
    let Some(group) = (unsafe { group.as_mut() }) else { return Status::INVALID_PARAMETER.0 };
    // SAFETY: the caller passes a valid result pointer, or null.
    let Some(affinity) = (unsafe { affinity.as_mut() }) else { return Status::INVALID_PARAMETER.0 };
    match ask() {
        Ok((told_group, told_affinity)) => {
            (*group, *affinity) = (told_group, told_affinity as usize);
            Status::SUCCESS.0
        }
        Err(status) => status.0,
    }
}
