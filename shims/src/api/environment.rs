//! `GetEnvironmentVariable`, `SetEnvironmentVariable`, `GetEnvironmentStrings`, `ExpandEnvironmentStrings`.

use crate::arguments::Text;
use crate::boundary::{guard, guard_bool};
use crate::environment::{expand, set_variable, strings, variable};
use crate::error::*;
use crate::text::{self, Unit, narrow_and_wide};

/// The length without the NUL; or, if the buffer is too small, the size needed with it, and the buffer is left alone.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` units.
unsafe fn get<T: Unit>(name: Text<'_, T>, buffer: *mut T, capacity: u32) -> u32 {
    guard(0, || {
        let Some(value) = name.read().and_then(|name| variable(&name)) else {
            set_last_error(ERROR_ENVVAR_NOT_FOUND);
            return 0;
        };
        let value = T::spell(&value);
        // SAFETY: `capacity` is the buffer's, as this function asks.
        let stored = unsafe { text::store(&value, buffer, capacity as usize) };
        value.len() as u32 + u32::from(!stored)
    })
}

/// # Safety
/// The rule of [`set_variable`].
unsafe fn set<T: Unit>(name: Text<'_, T>, value: Text<'_, T>) -> i32 {
    guard_bool(|| {
        let name = name.read().ok_or(ERROR_INVALID_PARAMETER)?;
        let value = value.read();
        // SAFETY: that no other thread reads the environment meanwhile is the program's care.
        unsafe { set_variable(&name, value.as_deref()) }
    })
}

/// A block of NUL-terminated strings with one more NUL at the end.
fn get_strings<T: Unit>() -> *mut T {
    guard(std::ptr::null_mut(), || {
        let mut block: Vec<T> =
            strings().flat_map(|string| [T::spell(&string), vec![T::default()]].concat()).collect();
        block.push(T::default());
        // SAFETY: takes a number.
        let copy = unsafe { libc::malloc(size_of_val(&block[..])) }.cast::<T>();
        if copy.is_null() {
            set_last_error(ERROR_NOT_ENOUGH_MEMORY);
        } else {
            // SAFETY: a new block of that many units.
            unsafe { copy.copy_from_nonoverlapping(block.as_ptr(), block.len()) };
        }
        copy
    })
}

/// # Safety
/// A block of [`get_strings`], or NULL.
unsafe fn free_strings<T: Unit>(block: *mut T) -> i32 {
    // SAFETY: from `malloc`.
    unsafe { libc::free(block.cast()) };
    1
}

/// The length with the NUL. Nothing is written if it does not fit.
///
/// # Safety
/// `target` is NULL or has room for `capacity` units.
unsafe fn expand_strings<T: Unit>(source: Text<'_, T>, target: *mut T, capacity: u32) -> u32 {
    guard(0, || {
        let Some(source) = source.read() else {
            set_last_error(ERROR_INVALID_PARAMETER);
            return 0;
        };
        let expanded = T::spell(&expand(&source));
        // SAFETY: `capacity` is the target's, as this function asks.
        unsafe { text::store(&expanded, target, capacity as usize) };
        expanded.len() as u32 + 1
    })
}

narrow_and_wide! {
    "`GetEnvironmentVariable`."
    ndw_GetEnvironmentVariableA ndw_GetEnvironmentVariableW = unsafe get(name: Text<'_, T>, buffer: *mut T, capacity: u32) -> u32;
    "`SetEnvironmentVariable`: NULL removes."
    ndw_SetEnvironmentVariableA ndw_SetEnvironmentVariableW = unsafe set(name: Text<'_, T>, value: Text<'_, T>) -> i32;
    "`GetEnvironmentStrings`: to be freed by `FreeEnvironmentStrings`."
    ndw_GetEnvironmentStringsA ndw_GetEnvironmentStringsW = get_strings() -> *mut T;
    "`FreeEnvironmentStrings`."
    ndw_FreeEnvironmentStringsA ndw_FreeEnvironmentStringsW = unsafe free_strings(block: *mut T) -> i32;
    "`ExpandEnvironmentStrings`."
    ndw_ExpandEnvironmentStringsA ndw_ExpandEnvironmentStringsW
        = unsafe expand_strings(source: Text<'_, T>, target: *mut T, capacity: u32) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null_mut;

    // Set by cargo for every test run. What is changed below is looked at by one test alone.
    const NAME: &str = "CARGO_PKG_NAME";
    const VALUE: &str = "ndcompat-win32";

    #[test]
    fn variables_are_found_in_any_case() {
        assert_eq!(variable(NAME).as_deref(), Some(VALUE));
        assert_eq!(variable("Cargo_Pkg_Name").as_deref(), Some(VALUE));
        assert_eq!(variable("NDCOMPAT_NO_SUCH_VARIABLE"), None);
        assert_eq!(variable(""), None);
    }

    #[test]
    fn a_short_buffer_gets_the_room_needed() {
        let mut buffer = [7; 32];
        let needed = VALUE.len() as u32 + 1;
        // SAFETY: `buffer` has 32 units, more than any call is told of, and NULL comes with no room.
        unsafe {
            set_last_error(5);
            assert_eq!(get(Text::terminated(&w(NAME)), null_mut(), 0), needed);
            let short = get(Text::terminated(&w(NAME)), buffer.as_mut_ptr(), needed - 1);
            assert_eq!((short, buffer[0]), (needed, 7));
            let exact = get(Text::terminated(&w(NAME)), buffer.as_mut_ptr(), needed);
            assert_eq!((exact, &buffer[..needed as usize]), (needed - 1, &w(VALUE)[..]));
            assert_eq!(last_error(), 5, "none of this is an error");
            for name in [c"NDCOMPAT_NOT_SET".into(), c"".into(), Text::<u8>::NULL] {
                set_last_error(0);
                assert_eq!((get(name, null_mut(), 0), last_error()), (0, ERROR_ENVVAR_NOT_FOUND));
            }
        }
    }

    #[test]
    fn a_variable_is_set_changed_emptied_and_removed_in_any_case() {
        let name = w("NDCOMPAT_SetByTest");
        let mut buffer = [7; 8];
        // SAFETY: only tests of this module change variables, each its own; the block is walked up to its empty string, and
        // freed once.
        unsafe {
            assert_eq!(set(Text::terminated(&name), Text::terminated(&w("one"))), 1);
            assert_eq!(set(Text::terminated(&w("ndcompat_setbytest")), Text::terminated(&w("two"))), 1);
            assert_eq!(std::env::var("NDCOMPAT_SetByTest").as_deref(), Ok("two"), "it is the same one");
            assert!(std::env::var_os("ndcompat_setbytest").is_none());
            let block = get_strings::<u8>();
            let (mut next, mut found) = (block, false);
            while let Some(line) = <u8 as Unit>::units(next).filter(|line| !line.is_empty()) {
                found |= line == b"NDCOMPAT_SetByTest=two";
                next = next.add(line.len() + 1);
            }
            assert!(found);
            assert_eq!(free_strings(block), 1);

            set_last_error(5);
            assert_eq!(set(Text::terminated(&name), Text::terminated(&w(""))), 1);
            assert_eq!(get(Text::terminated(&name), null_mut(), 0), 1);
            assert_eq!(
                (get(Text::terminated(&name), buffer.as_mut_ptr(), 8), buffer[0], last_error()),
                (0, 0, 5)
            );
            assert_eq!(set(Text::terminated(&name), Text::NULL), 1);
            assert_eq!((set(Text::terminated(&name), Text::NULL), last_error()), (0, ERROR_ENVVAR_NOT_FOUND));
            for name in [Text::terminated(&w("")), Text::terminated(&w("a=b")), Text::NULL] {
                set_last_error(0);
                assert_eq!(
                    (set(name, Text::terminated(&w("x"))), last_error()),
                    (0, ERROR_INVALID_PARAMETER)
                );
            }
            assert_eq!(free_strings::<u8>(null_mut()), 1);
        }
    }

    #[test]
    fn expansion_leaves_unknown_names_alone() {
        for (source, expanded) in [
            ("plain", "plain"),
            ("<%CARGO_PKG_NAME%>", "<ndcompat-win32>"),
            ("%CARGO_PKG_NAME%%cargo_pkg_name%", "ndcompat-win32ndcompat-win32"),
            ("%NDCOMPAT_NOT_SET%", "%NDCOMPAT_NOT_SET%"),
            ("%nope%CARGO_PKG_NAME%", "%nopendcompat-win32"),
            ("100%", "100%"),
            ("%%", "%%"),
            ("", ""),
        ] {
            assert_eq!(expand(source), expanded, "{source}");
        }
    }

    #[test]
    fn expansion_counts_the_nul() {
        let mut buffer = [7; 4];
        // SAFETY: `buffer` has the 4 units that the calls are told of, and NULL comes with no room.
        unsafe {
            assert_eq!(expand_strings(Text::terminated(&w("abc")), buffer.as_mut_ptr(), 4), 4);
            assert_eq!(buffer, [97, 98, 99, 0]);
            assert_eq!(expand_strings(Text::terminated(&w("wxyz")), buffer.as_mut_ptr(), 4), 5);
            assert_eq!(buffer, [97, 98, 99, 0]);
            assert_eq!(expand_strings::<u8>(Text::NULL, null_mut(), 0), 0);
        }
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
}
