//! Work objects, and callbacks without an object.

use super::{Base, Environment, Instance, Member, WorkCallback, close, open, with_member};
use crate::arguments::In;
use crate::boundary::{guard_bool, guard_handle};
use crate::error::*;
use crate::object::RawHandle;
use std::ffi::c_void;
use std::sync::Arc;

/// `TrySubmitThreadpoolCallback`.
///
/// # Safety
/// The callback must be safe to call on any thread with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_TrySubmitThreadpoolCallback(
    callback: Option<unsafe extern "C" fn(*mut Instance, *mut c_void)>,
    context: *mut c_void,
    environment: In<'_, Environment>,
) -> i32 {
    guard_bool(|| {
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        let (base, group) = Base::new(environment, context)?;
        let work = Arc::new(Simple(base));
        if let Some(group) = group {
            group.add(RawHandle::NULL, work.clone());
        }
        let begun = work.clone();
        work.0.submit(move |instance, context| {
            // It has no close function, and may free its context.
            begun.0.release();
            // SAFETY: the program's callback, of this type, with the context that it gave for it.
            unsafe { callback(instance, context) };
        });
        Ok(())
    })
}

/// A callback without an object.
struct Simple(Base);

impl Member for Simple {
    fn base(&self) -> &Base {
        &self.0
    }
}

struct Work {
    base: Base,
    callback: WorkCallback,
}

impl Member for Work {
    fn base(&self) -> &Base {
        &self.base
    }
}

/// `CreateThreadpoolWork`.
///
/// # Safety
/// The callback must be safe to call on any thread with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateThreadpoolWork(
    callback: Option<WorkCallback>,
    context: *mut c_void,
    environment: In<'_, Environment>,
) -> RawHandle {
    guard_handle(|| {
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        let (base, group) = Base::new(environment, context)?;
        open(Arc::new(Work { base, callback }), group)
    })
}

/// `SubmitThreadpoolWork`: one callback for each call.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SubmitThreadpoolWork(work: RawHandle) {
    with_member::<Work>(work, |object| {
        let callback = object.callback;
        // SAFETY: the program's callback, of this type, with the context that it gave for it.
        object.base.submit(move |instance, context| unsafe { callback(instance, context, work) });
    });
}

/// `WaitForThreadpoolWorkCallbacks`: with `cancel` callbacks that have not started are dropped.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForThreadpoolWorkCallbacks(work: RawHandle, cancel: i32) {
    with_member::<Work>(work, |work| work.base.wait(cancel));
}

/// `CloseThreadpoolWork`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseThreadpoolWork(work: RawHandle) {
    close::<Work>(work);
}
