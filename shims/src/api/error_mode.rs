//! `SetErrorMode` and related functions: modes are stored and have no effect, as no dialogue is ever shown.

use crate::arguments::Out;
use crate::error::*;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU32};

const SEM_FAILCRITICALERRORS: u32 = 0x1;
const SEM_NOGPFAULTERRORBOX: u32 = 0x2;
const SEM_NOALIGNMENTFAULTEXCEPT: u32 = 0x4;
const SEM_NOOPENFILEERRORBOX: u32 = 0x8000;

static PROCESS: AtomicU32 = AtomicU32::new(0);
thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// `SetErrorMode`: the mode before. `SEM_NOALIGNMENTFAULTEXCEPT` stays once it is set.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetErrorMode(mode: u32) -> u32 {
    let set = |before: u32| Some(mode | before & SEM_NOALIGNMENTFAULTEXCEPT);
    PROCESS.fetch_update(Relaxed, Relaxed, set).unwrap_or_default()
}

/// `SetUnhandledExceptionFilter`: the filter before. It is kept and never called, as no fault becomes an exception.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetUnhandledExceptionFilter(filter: *mut c_void) -> *mut c_void {
    static FILTER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    FILTER.swap(filter, AcqRel)
}

/// `GetErrorMode`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetErrorMode() -> u32 {
    PROCESS.load(Relaxed)
}

/// `SetThreadErrorMode`: refuses modes that apply to whole processes only.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadErrorMode(mode: u32, before: Out<'_, u32>) -> i32 {
    if mode & !(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX) != 0 {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    }
    let old = THREAD.replace(mode);
    before.put(old);
    1
}

/// `GetThreadErrorMode`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadErrorMode() -> u32 {
    THREAD.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_each_thread_have_an_error_mode() {
        let first = ndw_SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOALIGNMENTFAULTEXCEPT);
        assert_eq!(first, 0);
        assert_eq!(ndw_SetErrorMode(SEM_NOOPENFILEERRORBOX), 5);
        assert_eq!(ndw_GetErrorMode(), SEM_NOOPENFILEERRORBOX | SEM_NOALIGNMENTFAULTEXCEPT, "one stays");

        let mut before = 77;
        assert_eq!(ndw_SetThreadErrorMode(SEM_NOGPFAULTERRORBOX, Out::from(&mut before)), 1);
        assert_eq!((before, ndw_GetThreadErrorMode()), (0, SEM_NOGPFAULTERRORBOX));
        set_last_error(0);
        assert_eq!(ndw_SetThreadErrorMode(SEM_NOALIGNMENTFAULTEXCEPT, Out::NULL), 0);
        assert_eq!(
            (last_error(), ndw_GetThreadErrorMode()),
            (ERROR_INVALID_PARAMETER, SEM_NOGPFAULTERRORBOX)
        );
        let other = std::thread::spawn(|| ndw_GetThreadErrorMode());
        assert_eq!(other.join().unwrap(), 0, "each thread its own");
    }

    #[test]
    fn an_exception_filter_is_kept_and_given_back() {
        let filters = [1usize, 2].map(std::ptr::without_provenance_mut);
        let first = ndw_SetUnhandledExceptionFilter(filters[0]);
        assert_eq!(ndw_SetUnhandledExceptionFilter(filters[1]), filters[0]);
        assert_eq!(ndw_SetUnhandledExceptionFilter(first), filters[1]);
    }
}
