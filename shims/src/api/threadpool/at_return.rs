//! Actions when a callback returns.

use super::Instance;
use crate::api::event::ndw_SetEvent;
use crate::api::locks::ndw_LeaveCriticalSection;
use crate::api::mutex::ndw_ReleaseMutex;
use crate::api::semaphore::ndw_ReleaseSemaphore;
use crate::arguments::Out;
use crate::library::{Module, ndw_FreeLibrary};
use crate::object::RawHandle;
use crate::sync::critical::CriticalSection;

fn at_return(instance: Option<&mut Instance>, action: impl FnOnce() + 'static) {
    if let Some(instance) = instance {
        instance.at_return.push(Box::new(action));
    }
}

/// `SetEventWhenCallbackReturns`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetEventWhenCallbackReturns(instance: Option<&mut Instance>, event: RawHandle) {
    let set = move || {
        ndw_SetEvent(event);
    };
    at_return(instance, set);
}

/// `FreeLibraryWhenCallbackReturns`.
///
/// # Safety
/// As for `FreeLibrary`, when the callback returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_FreeLibraryWhenCallbackReturns(instance: Option<&mut Instance>, module: Module) {
    let free = move || {
        // SAFETY: nobody uses the library any more by then, as this function asks.
        unsafe { ndw_FreeLibrary(module) };
    };
    at_return(instance, free);
}

/// `ReleaseSemaphoreWhenCallbackReturns`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ReleaseSemaphoreWhenCallbackReturns(
    instance: Option<&mut Instance>,
    semaphore: RawHandle,
    more: u32,
) {
    let release = move || {
        ndw_ReleaseSemaphore(semaphore, more as i32, Out::NULL);
    };
    at_return(instance, release);
}

/// `ReleaseMutexWhenCallbackReturns`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ReleaseMutexWhenCallbackReturns(instance: Option<&mut Instance>, mutex: RawHandle) {
    let release = move || {
        ndw_ReleaseMutex(mutex);
    };
    at_return(instance, release);
}

/// `LeaveCriticalSectionWhenCallbackReturns`.
///
/// # Safety
/// The section must be live until the callback has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LeaveCriticalSectionWhenCallbackReturns(
    instance: Option<&mut Instance>,
    section: *const CriticalSection,
) {
    // SAFETY: the section is live until the callback has returned.
    let leave = move || ndw_LeaveCriticalSection(unsafe { section.as_ref() });
    at_return(instance, leave);
}
