//! `_dupenv_s`, `getenv_s`, `_putenv_s`, in both widths, and `_wgetenv`.

use super::failed;
use super::string::duplicate;
use crate::arguments::{Out, Text};
use crate::environment::{self, key};
use crate::text::{self, Unit, Wchar, narrow_and_wide};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// The value of a variable with its NUL; `None` when it is not set.
fn value<T: Unit>(name: &str) -> Option<Vec<T>> {
    let mut value = T::spell(&environment::variable(name)?);
    value.push(T::default());
    Some(value)
}

fn copy<T: Unit>(buffer: Out<'_, *mut T>, size: Out<'_, usize>, name: Text<'_, T>) -> c_int {
    if buffer.is_null() {
        return failed(libc::EINVAL);
    }
    buffer.put(null_mut());
    size.put(0);
    let Some(name) = name.read() else { return failed(libc::EINVAL) };
    let Some(value) = value::<T>(&name) else { return 0 };
    // SAFETY: `value` ends with its NUL.
    let copy = unsafe { duplicate(value.as_ptr()) };
    if copy.is_null() {
        return failed(libc::ENOMEM);
    }
    buffer.put(copy);
    size.put(value.len());
    0
}

/// # Safety
/// `buffer` is NULL or has room for `size` units.
unsafe fn get<T: Unit>(needed: Out<'_, usize>, buffer: *mut T, size: usize, name: Text<'_, T>) -> c_int {
    if needed.is_null() || (buffer.is_null() && size != 0) {
        return failed(libc::EINVAL);
    }
    needed.put(0);
    // SAFETY: NULL, or room for so many units, as the caller promises.
    unsafe { text::store(&[], buffer, size) };
    let Some(name) = name.read() else { return failed(libc::EINVAL) };
    let Some(value) = value::<T>(&name) else { return 0 };
    needed.put(value.len());
    // Only the size was asked for.
    if size == 0 {
        return 0;
    }
    // SAFETY: the buffer has room for `size` units.
    if unsafe { text::store(&value[..value.len() - 1], buffer, size) } { 0 } else { failed(libc::ERANGE) }
}

narrow_and_wide! {
    "`_dupenv_s`: a copy from `malloc`, and its size with the NUL. A variable that is not set is no error: NULL and 0."
    ndw__dupenv_s ndw__wdupenv_s =
        copy(buffer: Out<'_, *mut T>, size: Out<'_, usize>, name: Text<'_, T>) -> c_int;
    "`getenv_s`: the value, and the size it needs with its NUL; 0 for a variable that is not set."
    ndw_getenv_s ndw__wgetenv_s =
        unsafe get(needed: Out<'_, usize>, buffer: *mut T, size: usize, name: Text<'_, T>) -> c_int;
}

/// `_wgetenv`: the value, which stays as it is for the life of the process; NULL for a variable that is not set.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wgetenv(name: Text<'_, Wchar>) -> *mut Wchar {
    /// The addresses of the copies. A program may write to its copy, as with `wcstok`, and finds it so when it asks again.
    static COPIES: Mutex<BTreeMap<Vec<Wchar>, usize>> = Mutex::new(BTreeMap::new());
    let Some(name) = name.read() else {
        failed(libc::EINVAL);
        return null_mut();
    };
    let Some(value) = value::<Wchar>(&name) else { return null_mut() };
    // One copy of each value: who asks often does not use up memory.
    let copy = *COPIES
        .lock()
        .entry(value)
        .or_insert_with_key(|value| value.clone().leak().as_mut_ptr().expose_provenance());
    with_exposed_provenance_mut(copy)
}

/// `_putenv_s`: an empty value removes the variable. One whose name differs in case only is meant, if there is none of this very name.
///
/// # Safety
/// Both are NULL or terminated, and no other thread uses the C library's `environ` or `getenv` at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__putenv_s(name: *const c_char, value: *const c_char) -> c_int {
    if name.is_null() || value.is_null() {
        return failed(libc::EINVAL);
    }
    // SAFETY: terminated.
    let known =
        unsafe { text::string_from_narrow(name) }.filter(|name| !name.is_empty()).and_then(|name| key(&name));
    let known = known.and_then(|known| CString::new(known.into_encoded_bytes()).ok());
    let name = known.as_ref().map_or(name, |known| known.as_ptr());
    // SAFETY: not empty, hence one byte at least.
    let removes = unsafe { value.read() } == 0;
    let result = if removes {
        // SAFETY: terminated. That no other thread reads the environment meanwhile is the program's care, as with unsetenv.
        unsafe { libc::unsetenv(name) }
    } else {
        // SAFETY: both are terminated. Of other threads the same holds.
        unsafe { libc::setenv(name, value, 1) }
    };
    if result == 0 { 0 } else { failed(libc::EINVAL) }
}

/// `_wputenv_s`.
///
/// # Safety
/// As for [`ndw__putenv_s`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wputenv_s(name: Text<'_, Wchar>, value: Text<'_, Wchar>) -> c_int {
    let narrow = |text: Text<'_, Wchar>| CString::new(text.read()?).ok();
    let Some((name, value)) = narrow(name).zip(narrow(value)) else { return failed(libc::EINVAL) };
    // SAFETY: both are terminated; of other threads this function asks the same.
    unsafe { ndw__putenv_s(name.as_ptr(), value.as_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null;

    // Set by cargo for every test run, so that no test has to change the environment.
    const NAME: &std::ffi::CStr = c"CARGO_PKG_NAME";
    const VALUE: &[u8] = b"ndcompat-win32\0";

    #[test]
    fn a_wide_value_stays_where_it_is() {
        let get = |name: &str| ndw__wgetenv(Text::terminated(&w(name)));
        let value = get("CARGO_PKG_NAME");
        // SAFETY: terminated, for the life of the process.
        assert_eq!(unsafe { text::string_from_wide(value) }.as_deref(), Some("ndcompat-win32"));
        assert!(get("CARGO_PKG_VERSION") != value && get("CARGO_PKG_NAME") == value);
        assert!(get("no-such-variable").is_null() && ndw__wgetenv(Text::NULL).is_null());
    }

    #[test]
    fn a_variable_is_copied_or_put_in_a_buffer() {
        let (mut copy, mut size) = (null_mut(), 99);
        let mut buffer = [1; 15];
        assert_eq!(ndw__dupenv_s(Out::from(&mut copy), Out::from(&mut size), NAME.into()), 0);
        // SAFETY: so long is the copy, and the buffer.
        unsafe {
            assert_eq!(std::slice::from_raw_parts(copy, size), VALUE);
            libc::free(copy.cast());
            assert_eq!(ndw_getenv_s(Out::from(&mut size), buffer.as_mut_ptr(), 15, NAME.into()), 0);
        }
        assert_eq!((size, &buffer[..]), (15, VALUE));
        assert_eq!(ndw__dupenv_s(Out::from(&mut copy), Out::NULL, NAME.into()), 0);
        // SAFETY: the copy is the program's.
        unsafe { libc::free(copy.cast()) };
        // The wide forms count characters.
        let (name, mut copy, mut buffer) = (w(NAME.to_str().unwrap()), null_mut(), [1 as Wchar; 15]);
        let name = Text::terminated(&name);
        assert_eq!(ndw__wdupenv_s(Out::from(&mut copy), Out::from(&mut size), name), 0);
        // SAFETY: the copy is terminated, and the program's; the buffer is as long as it is said to be.
        unsafe {
            assert_eq!((size, text::string_from_wide(copy).as_deref()), (15, Some("ndcompat-win32")));
            libc::free(copy.cast());
            assert_eq!(ndw__wgetenv_s(Out::from(&mut size), buffer.as_mut_ptr(), 15, name), 0);
            assert_eq!((size, &buffer[..]), (15, &w("ndcompat-win32")[..]));
            assert_eq!(ndw__wgetenv_s(Out::from(&mut size), buffer.as_mut_ptr(), 14, name), libc::ERANGE);
        }
        assert_eq!((size, buffer[0]), (15, 0));
    }

    #[test]
    fn a_variable_is_set_whatever_the_case_of_its_name() {
        crate::alone::run("crt::environment::tests::names_of_any_case");
    }

    #[test]
    #[ignore = "the test above runs it"]
    fn names_of_any_case() {
        // SAFETY: the process is this test's alone, and the names are terminated.
        unsafe {
            std::env::set_var("LETTERS_OF_A_NAME", "old");
            assert_eq!(ndw__putenv_s(c"letters_of_A_name".as_ptr(), c"new".as_ptr()), 0);
            assert_eq!(std::env::var("LETTERS_OF_A_NAME").as_deref(), Ok("new"));
            assert!(std::env::var("letters_of_A_name").is_err());
            assert_eq!(ndw__putenv_s(c"Letters_of_a_name".as_ptr(), c"".as_ptr()), 0);
            assert!(std::env::var("LETTERS_OF_A_NAME").is_err());
        }
    }

    #[test]
    fn no_variable_is_no_error_and_no_room_is() {
        let (mut copy, mut size) = (null_mut::<u8>().wrapping_add(1), 99);
        let mut buffer = [1; 15];
        let unset = Text::from(c"NDCOMPAT_NOT_SET");
        assert_eq!(ndw__dupenv_s(Out::from(&mut copy), Out::from(&mut size), unset), 0);
        assert_eq!((copy, size), (null_mut(), 0));
        assert_eq!(ndw__dupenv_s(Out::NULL, Out::from(&mut size), NAME.into()), libc::EINVAL);
        assert_eq!(ndw__dupenv_s(Out::from(&mut copy), Out::from(&mut size), Text::NULL), libc::EINVAL);
        // SAFETY: the buffer has the size told, the names are terminated or NULL.
        unsafe {
            let mut get = |buffer: *mut u8, room, name| {
                let result = ndw_getenv_s(Out::from(&mut size), buffer, room, name);
                (result, size)
            };
            assert_eq!((get(buffer.as_mut_ptr(), 15, unset), buffer[0]), ((0, 0), 0));
            assert_eq!(get(null_mut(), 0, NAME.into()), (0, 15));
            buffer[0] = 1;
            assert_eq!((get(buffer.as_mut_ptr(), 14, NAME.into()), buffer[0]), ((libc::ERANGE, 15), 0));
            assert_eq!(get(null_mut(), 1, NAME.into()).0, libc::EINVAL);
            buffer[0] = 1;
            assert_eq!((get(buffer.as_mut_ptr(), 15, Text::NULL).0, buffer[0]), (libc::EINVAL, 0));
            assert_eq!(ndw_getenv_s(Out::NULL, buffer.as_mut_ptr(), 15, NAME.into()), libc::EINVAL);
            assert_eq!(ndw__putenv_s(null(), c"x".as_ptr()), libc::EINVAL);
            assert_eq!(ndw__putenv_s(c"NDCOMPAT_NOT_SET".as_ptr(), null()), libc::EINVAL);
            assert_eq!(ndw__putenv_s(c"a=b".as_ptr(), c"x".as_ptr()), libc::EINVAL);
            assert_eq!(ndw__wputenv_s(Text::NULL, Text::terminated(&w("x"))), libc::EINVAL);
            assert_eq!(ndw__wputenv_s(Text::terminated(&w("a=b")), Text::terminated(&w("x"))), libc::EINVAL);
        }
    }
}
