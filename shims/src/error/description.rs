//! Messages for codes of any kind: Win32 and Winsock errors, NTSTATUS and ND statuses, HRESULTs, errnos.

use super::{WIN32_TEXTS, status, texts};
use std::ffi::CStr;

fn win32_text(code: u32) -> Option<&'static str> {
    WIN32_TEXTS.iter().find(|(number, _)| *number == code).map(|(_, text)| *text)
}

/// The C library's message for an errno.
fn errno_text(errno: u32) -> Option<String> {
    let mut buffer = [0; 128];
    let errno = i32::try_from(errno).ok()?;
    // SAFETY: the POSIX form, which writes a terminated string into the buffer when it knows the number.
    let known = unsafe { libc::strerror_r(errno, buffer.as_mut_ptr(), buffer.len()) } == 0;
    // SAFETY: terminated by the call.
    known.then(|| unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy().into_owned())
}

/// The message for a code: a Win32 or Winsock error, an HRESULT, also one that wraps such an error, an NTSTATUS or ND status, or
/// else an errno. Where numbers overlap, Windows' codes come first.
pub fn describe(code: u32) -> Option<String> {
    let wrapped = (code >> 16 == 0x8007).then_some(code & 0xFFFF);
    let win32 = wrapped.unwrap_or(code);
    win32_text(win32)
        .or_else(|| texts::win32(win32))
        .or_else(|| status::text(code))
        .or_else(|| texts::nt(code))
        .or_else(|| texts::hresult(code))
        .map(str::to_owned)
        .or_else(|| errno_text(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_number_has_its_text() {
        assert_eq!(describe(87).as_deref(), Some("A parameter is wrong"));
        assert_eq!(describe(0x8007_0057), describe(87));
        assert_eq!(describe(10022).as_deref(), Some("An argument is not valid"));
        assert_eq!(describe(0xC000_0120).as_deref(), Some("The request was cancelled"));
        assert_eq!(describe(libc::ENOTCONN as u32).as_deref(), Some("Transport endpoint is not connected"));
        assert_eq!(describe(0xDEAD_BEEF), None);
        for (status, _) in status::STATUSES {
            assert!(describe(*status).is_some());
        }
        for hresult in [
            0x8000_4005_u32,
            0x8000_4001,
            0x8000_4002,
            0x8000_4003,
            0x8000_FFFF,
            0x8004_0111,
            0x8004_0154,
            0x8004_01F0,
        ] {
            assert!(describe(hresult).is_some(), "{hresult:#x}");
        }
        for error in [536, 582, 665, 1053, 1130, 1739, 4317, 0x8001_011F, 0xC000_00FD, 0xC000_0135] {
            assert!(describe(error).is_some(), "{error}");
        }
    }
}
