//! `SetThreadDescription` and `GetThreadDescription`: a name for debuggers, which is Linux's thread name, too.

use super::handle::resolve;
use crate::arguments::{Out, Text};
use crate::boundary::guard;
use crate::error::*;
use crate::memory::heap::local::ndw_LocalAlloc;
use crate::object::thread::Thread;
use crate::object::{Object, RawHandle};
use crate::text::{Wchar, store, to_wide};
use std::sync::Arc;

/// `HRESULT_FROM_NT(STATUS_SUCCESS)`, which Windows returns here.
const DONE: i32 = 0x1000_0000;
/// The longest thread name on Linux, in bytes.
const KEPT: usize = 15;

const fn hresult(code: u32) -> i32 {
    (0x8007_0000 | code) as i32
}

fn find(handle: RawHandle) -> Result<Arc<Thread>, i32> {
    match resolve(handle) {
        Some(Object::Thread(thread)) => Ok(thread),
        _ => Err(hresult(ERROR_INVALID_HANDLE)),
    }
}

/// The first characters, as many as fit `KEPT` bytes.
fn shortened(name: &str) -> &str {
    let end = (0..=KEPT.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// `SetThreadDescription`. Linux's own name of the thread becomes the first 15 bytes of it.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadDescription(thread: RawHandle, description: Text<'_, Wchar>) -> i32 {
    guard(hresult(ERROR_INTERNAL_ERROR), || {
        let set = || {
            let thread = find(thread)?;
            let description = description.read().unwrap_or_default();
            if thread.number() != 0 && !description.is_empty() {
                // Fails if the thread has ended.
                let path = format!("/proc/self/task/{}/comm", thread.number());
                let _ = std::fs::write(path, shortened(&description));
            }
            thread.describe(description);
            Ok(DONE)
        };
        set().unwrap_or_else(|failure| failure)
    })
}

/// `GetThreadDescription`: empty if none was set. The caller frees it with `LocalFree`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadDescription(thread: RawHandle, description: Out<'_, *mut Wchar>) -> i32 {
    guard(hresult(ERROR_INTERNAL_ERROR), || {
        let get = || {
            let place = description.required(hresult(ERROR_INVALID_PARAMETER))?;
            let text = to_wide(&find(thread)?.description());
            let block = ndw_LocalAlloc(0, (text.len() + 1) * size_of::<Wchar>()).cast::<Wchar>();
            // SAFETY: NULL, or a new block with room for the text and a NUL.
            if !unsafe { store(&text, block, text.len() + 1) } {
                return Err(hresult(ERROR_OUTOFMEMORY));
            }
            place.put(block);
            Ok(DONE)
        };
        get().unwrap_or_else(|failure| failure)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::handle::{CURRENT_THREAD, close_handle};
    use crate::api::thread::ndw_OpenThread;
    use crate::io::sys::thread_id;
    use crate::memory::heap::local::ndw_LocalFree;
    use crate::text::{string_from_wide, w};
    use std::ptr::null_mut;

    fn described(thread: RawHandle) -> String {
        let mut text: *mut Wchar = null_mut();
        assert!(ndw_GetThreadDescription(thread, (&mut text).into()) >= 0);
        // SAFETY: what the function has allocated.
        let read = unsafe { string_from_wide(text) }.unwrap();
        // SAFETY: allocated by `GetThreadDescription` for the caller to free, and not used any more.
        assert!(unsafe { ndw_LocalFree(text.cast()) }.is_null());
        read
    }

    #[test]
    fn a_description_is_kept_whole_and_shown_by_linux_as_far_as_it_goes() {
        std::thread::spawn(|| {
            assert_eq!(described(CURRENT_THREAD), "");
            let name = "Vollständigkeits-Fäden";
            assert!(ndw_SetThreadDescription(CURRENT_THREAD, Text::terminated(&w(name))) >= 0);
            let thread = ndw_OpenThread(0, 0, thread_id());
            assert_eq!(described(thread), name, "by another handle");
            let path = format!("/proc/self/task/{}/comm", thread_id());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "Vollständigkei\n");
            assert!(ndw_SetThreadDescription(thread, Text::NULL) >= 0);
            assert_eq!((described(thread), close_handle(thread)), (String::new(), 1));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_is_no_thread_has_no_description() {
        let wrong = hresult(ERROR_INVALID_HANDLE);
        assert_eq!(ndw_SetThreadDescription(RawHandle::NULL, Text::terminated(&w("x"))), wrong);
        let mut text: *mut Wchar = null_mut();
        assert_eq!(ndw_GetThreadDescription(RawHandle::INVALID, (&mut text).into()), wrong);
        assert_eq!(ndw_GetThreadDescription(CURRENT_THREAD, Out::NULL), hresult(ERROR_INVALID_PARAMETER));
        assert!(text.is_null());
    }
}
