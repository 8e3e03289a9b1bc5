//! Cleanup groups.

use super::{Group, with};
use crate::boundary::{guard, guard_handle};
use crate::object::RawHandle;
use crate::object::callbacks;
use std::ffi::c_void;
use std::sync::Arc;

/// `CreateThreadpoolCleanupGroup`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreateThreadpoolCleanupGroup() -> RawHandle {
    guard_handle(|| callbacks::open(Arc::<Group>::default()))
}

/// `CloseThreadpoolCleanupGroupMembers`: closes all members, and waits for their callbacks. With `cancel` callbacks that have not
/// started are dropped, and the environment's cleanup function is called for each member.
///
/// # Safety
/// The functions that environments name must be safe to call with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CloseThreadpoolCleanupGroupMembers(
    group: RawHandle,
    cancel: i32,
    context: *mut c_void,
) {
    with::<Group>(group, |group| {
        let members = std::mem::take(&mut *group.0.lock());
        for (handle, member) in &members {
            // If the program has closed it, the handle is invalid or another object's, and is left alone.
            callbacks::close_if(*handle, Arc::as_ptr(member).cast());
            member.stop();
            if cancel != 0 {
                member.base().callbacks.cancel();
            }
        }
        for (_, member) in &members {
            let base = member.base();
            base.callbacks.wait();
            if let Some(cancelled) = base.cancelled.filter(|_| cancel != 0) {
                // SAFETY: the program's callback, of this type, with the context of the object.
                unsafe { cancelled(base.context(), context) };
            }
        }
    });
}

/// `CloseThreadpoolCleanupGroup`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseThreadpoolCleanupGroup(group: RawHandle) {
    guard((), || drop(callbacks::take::<Group>(group)));
}
