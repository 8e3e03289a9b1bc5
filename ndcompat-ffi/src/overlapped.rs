//! `IND2Overlapped`: the two methods that all interfaces with overlapped requests share.

use crate::com::{HResult, Interface, Object, UnknownMethods, boundary};
use ndcompat::Status;
use std::ffi::c_void;
use win32::io::{File, Overlapped};

/// The methods of `IND2Overlapped`, which begin every interface derived from it.
#[repr(C)]
pub(crate) struct OverlappedMethods {
    pub unknown: UnknownMethods,
    pub cancel_overlapped_requests: unsafe extern "C" fn(*mut c_void) -> HResult,
    pub get_overlapped_result: unsafe extern "C" fn(*mut c_void, *mut Overlapped, i32) -> HResult,
}

/// An interface with overlapped requests.
pub(crate) trait OverlappedInterface: Interface {
    /// The file that the requests run on.
    fn file(&self) -> &File;
    /// Completes all pending requests with `ND_CANCELED`.
    fn cancel(&self);
}

impl<I: OverlappedInterface> Object<I> {
    /// The first five methods, for [`Interface::TABLE`].
    pub(crate) const OVERLAPPED: OverlappedMethods = OverlappedMethods {
        unknown: Self::UNKNOWN,
        cancel_overlapped_requests: Self::cancel_overlapped_requests,
        get_overlapped_result: Self::get_overlapped_result,
    };

    unsafe extern "C" fn cancel_overlapped_requests(this: *mut c_void) -> HResult {
        boundary(|| {
            // SAFETY: C callers pass the object itself.
            unsafe { Self::inner(this) }.cancel();
            Status::SUCCESS.0
        })
    }

    unsafe extern "C" fn get_overlapped_result(this: *mut c_void, ov: *mut Overlapped, wait: i32) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER.0;
        }
        boundary(|| {
            // SAFETY: C callers pass the object itself, and an OVERLAPPED whose request was started.
            unsafe { win32::io::result(Self::inner(this).file(), ov, wait != 0) }
        })
    }
}
