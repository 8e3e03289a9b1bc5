//! Cleanup groups.

use super::{Group, with};
use crate::boundary::{guard, guard_handle};
use crate::object::RawHandle;
use crate::object::callbacks;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `CreateThreadpoolCleanupGroup`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreateThreadpoolCleanupGroup() -> RawHandle {
    guard_handle(|| callbacks::open(Arc::<Group>::default()))
}

/// `CloseThreadpoolCleanupGroupMembers`: closes all members, and waits for their callbacks, those of I/O that has started included. With `cancel` callbacks that have not
/// started are dropped, and the environment's cleanup function is called for each member that the program has not released: it has
/// not closed the object, or the callback without one has not begun.
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
        members.iter().for_each(|(_, member)| member.base().leaving.store(true, Ordering::SeqCst));
        // Twice: a callback that ran meanwhile may have set its object once more.
        for _ in 0..2 {
            for (_, member) in &members {
                member.finish(cancel != 0);
                if cancel != 0 {
                    member.base().callbacks.cancel();
                }
            }
            members.iter().for_each(|(_, member)| member.base().callbacks.wait());
        }
        // Only now, as a callback may have closed a member, and freed its context.
        for (handle, member) in members.iter().filter(|(_, member)| member.base().release()) {
            callbacks::close_if(*handle, Arc::as_ptr(member).cast());
            let base = member.base();
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
