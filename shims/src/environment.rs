//! Environment variables by Windows' rules: names ignore case.

use crate::error::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Whether this is a valid name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// The name under which a variable is set: `name` itself, or one that differs in case only.
pub fn key(name: &str) -> Option<OsString> {
    if std::env::var_os(name).is_some() {
        return Some(name.into());
    }
    std::env::vars_os().map(|(key, _)| key).find(|key| key.eq_ignore_ascii_case(name))
}

fn text(value: OsString) -> String {
    String::from_utf8_lossy(&value.into_vec()).into_owned()
}

/// The value of an environment variable.
///
/// Windows ignores the case of names. Linux does not, so an exact match comes first and one that differs in
/// case second.
pub fn variable(name: &str) -> Option<String> {
    if !is_name(name) {
        return None;
    }
    std::env::var_os(key(name)?).map(text)
}

/// Sets or removes a variable. If there is none of exactly this name, one whose name differs in case only is used.
///
/// # Errors
/// `ERROR_INVALID_PARAMETER` for what is no name; `ERROR_ENVVAR_NOT_FOUND` if there is nothing to remove.
///
/// # Safety
/// No thread uses the C library's `environ` or `getenv` at the same time. Windows has no such rule, Linux has.
pub unsafe fn set_variable(name: &str, value: Option<&str>) -> Result<(), u32> {
    if !is_name(name) {
        return Err(ERROR_INVALID_PARAMETER);
    }
    match (key(name), value) {
        (key, Some(value)) if !value.contains('\0') => {
            // SAFETY: no thread uses the C library's `environ` or `getenv` meanwhile, as the caller promises.
            unsafe { std::env::set_var(key.unwrap_or_else(|| name.into()), value) };
            Ok(())
        }
        (_, Some(_)) => Err(ERROR_INVALID_PARAMETER),
        (Some(key), None) => {
            // SAFETY: no thread uses the C library's `environ` or `getenv` meanwhile, as the caller promises.
            unsafe { std::env::remove_var(key) };
            Ok(())
        }
        (None, None) => Err(ERROR_ENVVAR_NOT_FOUND),
    }
}

/// All variables, as `NAME=value`.
pub fn strings() -> impl Iterator<Item = String> {
    std::env::vars_os().map(|(key, value)| text(key) + "=" + &text(value))
}

/// Replaces each `%NAME%` whose variable is set; everything else stays.
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
            // The second percent sign may begin the next name.
            None => {
                result.push_str(&rest[open..open + 1 + close]);
                rest = &tail[close..];
            }
        }
    }
    result.push_str(rest);
    result
}
