//! The process: its rights, its id, its debugger.

use crate::arguments::Text;
use crate::error::ERROR_INVALID_HANDLE;
use crate::handle::RawHandle;
use crate::text::Wchar;
use std::fs;
use std::io::Write;

/// Whether the program is privileged (set-user-ID, set-group-ID, file capabilities), so that its environment is not to be
/// trusted.
pub fn is_privileged() -> bool {
    // SAFETY: takes no pointer.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Refuses handles other than that of this process: others cannot be opened.
pub(crate) fn own(process: RawHandle) -> Result<(), u32> {
    if process == RawHandle::INVALID { Ok(()) } else { Err(ERROR_INVALID_HANDLE) }
}

/// Whether a debugger is attached.
pub fn is_debugger_present() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))
        .is_some_and(|pid| !matches!(pid.trim(), "" | "0"))
}

/// Writes a message to standard error, if a debugger is attached.
fn debug_output(message: &[u8]) {
    if is_debugger_present() {
        // Standard error may be closed.
        let _ = std::io::stderr().write_all(message);
    }
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
pub extern "C" fn ndw_OutputDebugStringA(message: Text<'_, u8>) {
    debug_output(message.units().unwrap_or_default());
}

/// `OutputDebugStringW`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_OutputDebugStringW(message: Text<'_, Wchar>) {
    debug_output(message.read().unwrap_or_default().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_id() {
        assert_eq!(ndw_GetCurrentProcessId(), std::process::id());
    }
}
