//! `setlocale`, with the names of locales that Windows has.

use crate::arguments::Text;
use crate::text;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null;

/// Whether this is the name of a character set that is UTF-8 here, as all are that a code page names: `ACP`, `OCP`.
fn is_utf8(name: &str) -> bool {
    ["utf8", "utf-8", "65001", "ACP", "OCP"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Linux's name for a locale of Windows'; `None` for one that needs no other name, or has none. What is not said is the user's choice: "".
fn linux_name(name: &str) -> Option<String> {
    let (language, set) = name.split_once('.').map_or((name, None), |(language, set)| (language, Some(set)));
    if set.is_some_and(|set| !is_utf8(set)) {
        return None;
    }
    if language.is_empty() {
        return set.map(|_| String::new());
    }
    let parts: Vec<&str> = language.split(['-', '_']).collect();
    // The script between them has no part in Linux's names.
    let [code, .., region] = parts[..] else { return None };
    let is_code = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|c| c.is_ascii_alphanumeric())
    };
    let known = is_code(code, &[2, 3]) && is_code(region, &[2, 3]);
    known.then(|| format!("{}_{}.UTF-8", code.to_ascii_lowercase(), region.to_ascii_uppercase()))
}

fn set(category: c_int, name: &CStr) -> *mut c_char {
    // SAFETY: a terminated name.
    unsafe { libc::setlocale(category, name.as_ptr()) }
}

/// `setlocale`: a name that Linux does not know, and Windows does, is taken for Linux's name of that locale.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_setlocale(category: c_int, name: Text<'_, u8>) -> *mut c_char {
    // SAFETY: NULL, which asks only, or terminated.
    let known = unsafe { libc::setlocale(category, name.as_ptr().cast()) };
    let other = name.read().filter(|_| known.is_null()).and_then(|name| linux_name(&name));
    let Some(other) = other.and_then(|other| CString::new(other).ok()) else { return known };
    // SAFETY: NULL asks only.
    let former = unsafe { libc::setlocale(category, null()) };
    // SAFETY: NULL, or a text that stays until the locale is set again.
    let former = unsafe { text::narrow(former) }.and_then(|former| CString::new(former).ok());
    let found = set(category, &other);
    let has_set = !matches!(category, libc::LC_ALL | libc::LC_CTYPE) || character_set() == c"UTF-8";
    if !other.is_empty() || !found.is_null() && has_set {
        return found;
    }
    // The user's choice has another character set.
    let plain = set(category, c"C.UTF-8");
    if let Some(former) = former.filter(|_| plain.is_null()) {
        set(category, &former);
    }
    plain
}

/// The character set that is in force.
fn character_set() -> &'static CStr {
    // SAFETY: takes a number.
    let name = unsafe { libc::nl_langinfo(libc::CODESET) };
    // SAFETY: a terminated text in memory that stays.
    unsafe { CStr::from_ptr(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_of_windows_have_a_name_on_linux() {
        for (name, linux) in [
            (".UTF8", ""),
            (".utf-8", ""),
            (".65001", ""),
            ("en-US", "en_US.UTF-8"),
            ("de_AT.utf8", "de_AT.UTF-8"),
            ("zh-Hans-CN", "zh_CN.UTF-8"),
        ] {
            assert_eq!(linux_name(name).as_deref(), Some(linux), "{name}");
        }
        for none in ["", ".1252", "English", "en-US.1252", "English_United States.65001", "C"] {
            assert_eq!(linux_name(none), None, "{none}");
        }
    }

    #[test]
    fn utf8_can_be_asked_for_as_on_windows() {
        crate::alone::run("crt::locale::tests::the_locale_of_a_process");
    }

    #[test]
    #[ignore = "sets the locale; the test above runs it"]
    fn the_locale_of_a_process() {
        let set = |name: &CStr| {
            let found = ndw_setlocale(libc::LC_ALL, name.into());
            // SAFETY: NULL, or a text that stays until the locale is set again.
            unsafe { text::string_from_narrow(found) }
        };
        assert!(set(c".UTF8").is_some());
        assert_eq!(character_set(), c"UTF-8");
        assert_eq!((set(c"C").as_deref(), set(c".1252"), set(c"xx-ZZ")), (Some("C"), None, None));
        assert!(!ndw_setlocale(libc::LC_ALL, Text::NULL).is_null());
        // A user whose choice is UTF-8 for all but the character set.
        for (name, value) in [("LC_ALL", ""), ("LANG", "C.UTF-8"), ("LC_CTYPE", "C")] {
            // SAFETY: nothing else runs here.
            unsafe { std::env::set_var(name, value) };
        }
        assert!(set(c".UTF8").is_some());
        assert_eq!(character_set(), c"UTF-8");
        assert_eq!(set(c"C").as_deref(), Some("C"));
        // Other categories have no character set that matters.
        assert!(!ndw_setlocale(libc::LC_NUMERIC, c".UTF8".into()).is_null());
        assert_eq!(character_set(), c"ANSI_X3.4-1968");
    }
}
