//! The process: its environment, its id, its debugger.

use crate::error::*;
use crate::text::{self, Wchar};
use std::ffi::c_char;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

/// The value of an environment variable.
///
/// Windows ignores the case of names. Linux does not, so an exact match comes first and one that differs in
/// case second.
pub fn variable(name: &str) -> Option<String> {
    let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var_os(name)
        .or_else(|| {
            std::env::vars_os().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        })
        .map(|value| lossy(value.into_vec()))
}

/// Replaces each `%NAME%` of a variable that is set; everything else stays as it is.
pub fn expand(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('%') {
        result.push_str(&rest[..open]);
        let tail = &rest[open + 1..];
        let Some(close) = tail.find('%') else {
            rest = &rest[open..];
            break;
        };
        match variable(&tail[..close]) {
            Some(value) => {
                result.push_str(&value);
                rest = &tail[close + 1..];
            }
            // The closing sign may open the next name.
            None => {
                result.push_str(&rest[open..open + 1 + close]);
                rest = &tail[close..];
            }
        }
    }
    result.push_str(rest);
    result
}

/// Whether a debugger is attached.
pub fn is_debugger_present() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))
        .is_some_and(|pid| !matches!(pid.trim(), "" | "0"))
}

/// Gives a message to the debugger: on standard error, and only when there is a debugger.
fn debug_output(message: &[u8]) {
    if is_debugger_present() {
        // Nobody to tell when standard error is closed.
        let _ = std::io::stderr().write_all(message);
    }
}

/// The result of the environment functions: units written without the NUL, or the room needed with it.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` units.
unsafe fn answer<T: Copy + Default>(value: &[T], buffer: *mut T, capacity: u32) -> u32 {
    // SAFETY: passed on.
    let stored = unsafe { text::store(value, buffer, capacity as usize) };
    value.len() as u32 + u32::from(!stored)
}

/// `GetEnvironmentVariableW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetEnvironmentVariableW(
    name: *const Wchar,
    buffer: *mut Wchar,
    capacity: u32,
) -> u32 {
    // SAFETY: a terminated name by the function's contract.
    let Some(value) = unsafe { text::string_from_wide(name) }.and_then(|name| variable(&name)) else {
        set_last_error(ERROR_ENVVAR_NOT_FOUND);
        return 0;
    };
    // SAFETY: the room is promised by the function's contract.
    unsafe { answer(&text::to_wide(&value), buffer, capacity) }
}

/// `GetEnvironmentVariableA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetEnvironmentVariableA(
    name: *const c_char,
    buffer: *mut c_char,
    capacity: u32,
) -> u32 {
    // SAFETY: a terminated name by the function's contract.
    let Some(value) = unsafe { text::string_from_narrow(name) }.and_then(|name| variable(&name)) else {
        set_last_error(ERROR_ENVVAR_NOT_FOUND);
        return 0;
    };
    // SAFETY: the room is promised by the function's contract.
    unsafe { answer(value.as_bytes(), buffer.cast(), capacity) }
}

/// `ExpandEnvironmentStringsW`: the length with the NUL; nothing is written when that does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ExpandEnvironmentStringsW(
    source: *const Wchar,
    target: *mut Wchar,
    capacity: u32,
) -> u32 {
    // SAFETY: a terminated string by the function's contract.
    let Some(source) = (unsafe { text::string_from_wide(source) }) else {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    };
    let expanded = text::to_wide(&expand(&source));
    // SAFETY: the room is promised by the function's contract.
    unsafe { text::store(&expanded, target, capacity as usize) };
    expanded.len() as u32 + 1
}

/// `ExpandEnvironmentStringsA`: the length with the NUL; nothing is written when that does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ExpandEnvironmentStringsA(
    source: *const c_char,
    target: *mut c_char,
    capacity: u32,
) -> u32 {
    // SAFETY: a terminated string by the function's contract.
    let Some(source) = (unsafe { text::string_from_narrow(source) }) else {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    };
    let expanded = expand(&source);
    // SAFETY: the room is promised by the function's contract.
    unsafe { text::store(expanded.as_bytes(), target.cast(), capacity as usize) };
    expanded.len() as u32 + 1
}

/// `GetCurrentProcessId`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentProcessId() -> u32 {
    std::process::id()
}

/// `IsDebuggerPresent`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_IsDebuggerPresent() -> i32 {
    is_debugger_present().into()
}

/// `OutputDebugStringA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_OutputDebugStringA(message: *const c_char) {
    // SAFETY: NULL or a terminated string by the function's contract.
    debug_output(unsafe { text::narrow(message) }.unwrap_or_default());
}

/// `OutputDebugStringW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_OutputDebugStringW(message: *const Wchar) {
    // SAFETY: NULL or a terminated string by the function's contract.
    debug_output(unsafe { text::string_from_wide(message) }.unwrap_or_default().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null_mut;

    // Set by cargo for every test run, so that no test has to change the environment.
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
        // SAFETY: terminated names, and the room given is there.
        unsafe {
            assert_eq!(ndw_GetEnvironmentVariableW(w(NAME).as_ptr(), null_mut(), 0), needed);
            let short = ndw_GetEnvironmentVariableW(w(NAME).as_ptr(), buffer.as_mut_ptr(), needed - 1);
            assert_eq!((short, buffer[0]), (needed, 7));
            let exact = ndw_GetEnvironmentVariableW(w(NAME).as_ptr(), buffer.as_mut_ptr(), needed);
            assert_eq!((exact, &buffer[..needed as usize]), (needed - 1, &w(VALUE)[..]));
            assert_eq!(ndw_GetEnvironmentVariableA(c"NDCOMPAT_NOT_SET".as_ptr(), null_mut(), 0), 0);
        }
        assert_eq!(last_error(), ERROR_ENVVAR_NOT_FOUND);
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
        // SAFETY: terminated sources, and the room given is there.
        unsafe {
            assert_eq!(ndw_ExpandEnvironmentStringsW(w("abc").as_ptr(), buffer.as_mut_ptr(), 4), 4);
            assert_eq!(buffer, [97, 98, 99, 0]);
            assert_eq!(ndw_ExpandEnvironmentStringsW(w("wxyz").as_ptr(), buffer.as_mut_ptr(), 4), 5);
            assert_eq!(buffer, [97, 98, 99, 0]);
            assert_eq!(ndw_ExpandEnvironmentStringsA(std::ptr::null(), null_mut(), 0), 0);
        }
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }

    #[test]
    fn process_id() {
        assert_eq!(ndw_GetCurrentProcessId(), std::process::id());
    }
}
