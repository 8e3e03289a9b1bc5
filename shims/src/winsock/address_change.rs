//! `NotifyAddrChange`: requests that end when the IPv4 addresses of the host change, on a handle of the process's own.

use super::changes::{self, Addresses, Changes};
use crate::arguments::Out;
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::io::{CancelScope, File, Overlapped};
use crate::object::{RawHandle, handle};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// What the requests are pending on.
struct Notifier {
    handle: RawHandle,
    file: Arc<File>,
    changes: Arc<Changes>,
}

static NOTIFIER: Mutex<Option<Notifier>> = Mutex::new(None);

impl Notifier {
    fn new() -> io::Result<Notifier> {
        let changes = Changes::of(Box::new(Addresses::of(libc::AF_INET)?));
        let file = File::sharing()?;
        file.keep_source(changes.fd(), changes.clone())?;
        let canceller = Arc::downgrade(&changes);
        file.add_canceller(canceller);
        file.cancel_on_close();
        match file.handle() {
            RawHandle::NULL => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            handle => Ok(Notifier { handle, file, changes }),
        }
    }
}

/// The process's notifier; a new one once its handle was closed.
fn notifier() -> Result<(RawHandle, Arc<File>, Arc<Changes>), u32> {
    let mut notifier = NOTIFIER.lock();
    let known = notifier.take().filter(|notifier| handle::get(notifier.handle).is_some());
    let known = match known {
        Some(known) => known,
        None => Notifier::new().map_err(|error| io_to_win32(&error))?,
    };
    let known = notifier.insert(known);
    Ok((known.handle, known.file.clone(), known.changes.clone()))
}

/// `NotifyAddrChange`: the error is the result. Without handle and `OVERLAPPED` it waits for a change.
///
/// # Safety
/// `overlapped` is NULL, or stays valid until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_NotifyAddrChange(
    handle: Out<'_, RawHandle>,
    overlapped: *mut Overlapped,
) -> u32 {
    let notify = || {
        if handle.is_null() != overlapped.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let (own, file, changes) = notifier()?;
        if overlapped.is_null() {
            return changes::wait(&file, &changes);
        }
        handle.put(own);
        // SAFETY: C's caller keeps the OVERLAPPED until the request has completed.
        unsafe { changes.begin(&file, overlapped, None) }?;
        Err(ERROR_IO_PENDING)
    };
    guard(ERROR_INTERNAL_ERROR, || notify().err().unwrap_or(ERROR_SUCCESS))
}

/// `CancelIPChangeNotify`.
///
/// # Safety
/// None beyond C's: `overlapped` is only compared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CancelIPChangeNotify(overlapped: *mut Overlapped) -> i32 {
    guard_bool(|| {
        let file = NOTIFIER.lock().as_ref().map(|notifier| notifier.file.clone());
        let scope = CancelScope::Overlapped(overlapped);
        match file.filter(|_| !overlapped.is_null()).map(|file| file.cancel(scope)) {
            Some(1..) => Ok(()),
            _ => Err(ERROR_INVALID_PARAMETER),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::event::{ndw_CreateEventA, ndw_ResetEvent};
    use crate::api::handle::close_handle;
    use crate::api::overlapped::ndw_GetOverlappedResult;
    use crate::api::wait::ndw_WaitForSingleObject;
    use crate::arguments::Text;
    use std::ptr::{null, null_mut};

    /// Waits for the end; its error.
    fn end(handle: RawHandle, request: &Overlapped) -> u32 {
        let mut bytes = 0;
        // SAFETY: a request that has begun, and a local.
        let done = unsafe { ndw_GetOverlappedResult(handle, request, &mut bytes, 1) };
        if done != 0 { 0 } else { last_error() }
    }

    #[test]
    fn a_notice_of_address_changes_pends_until_it_is_cancelled() {
        let event = ndw_CreateEventA(null(), 1, 0, Text::NULL);
        let [mut first, mut second] = [(); 2].map(|()| Overlapped { event, ..Overlapped::default() });
        let [mut handle, mut another] = [RawHandle::NULL; 2];
        // SAFETY: the requests end within the test.
        unsafe {
            assert_eq!(ndw_NotifyAddrChange(Out::from(&mut handle), &mut first), ERROR_IO_PENDING);
            assert_eq!(ndw_NotifyAddrChange(Out::from(&mut another), &mut second), ERROR_IO_PENDING);
            assert!(handle == another && handle != RawHandle::NULL);
            assert_eq!(ndw_WaitForSingleObject(event, 0), 0x102);
            assert_eq!(ndw_CancelIPChangeNotify(&mut first), 1);
            assert_eq!(end(handle, &first), ERROR_OPERATION_ABORTED);
            assert_eq!((ndw_WaitForSingleObject(event, 0), ndw_ResetEvent(event)), (0, 1));
            let pending = ndw_GetOverlappedResult(handle, &second, &mut 0, 0);
            assert_eq!((pending, last_error()), (0, ERROR_IO_INCOMPLETE), "the other goes on");
            assert_eq!((ndw_CancelIPChangeNotify(&mut first), last_error()), (0, ERROR_INVALID_PARAMETER));
            assert_eq!((ndw_CancelIPChangeNotify(null_mut()), last_error()), (0, ERROR_INVALID_PARAMETER));
            // Programs should not close the handle; the next notice has another one.
            assert_eq!(close_handle(handle), 1);
            assert_eq!(end(handle, &second), ERROR_OPERATION_ABORTED);
            assert_eq!(ndw_NotifyAddrChange(Out::from(&mut another), &mut first), ERROR_IO_PENDING);
            assert!(another != handle);
            assert_eq!(
                (ndw_CancelIPChangeNotify(&mut first), end(another, &first)),
                (1, ERROR_OPERATION_ABORTED)
            );
            assert_eq!(ndw_NotifyAddrChange(Out::NULL, &mut first), ERROR_INVALID_PARAMETER);
            assert_eq!(ndw_NotifyAddrChange(Out::from(&mut another), null_mut()), ERROR_INVALID_PARAMETER);
        }
        close_handle(event);
    }
}
