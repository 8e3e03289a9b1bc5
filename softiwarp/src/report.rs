//! What an operator must know: a limit of the system is reached. Each is reported once.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REPORT: OnceLock<fn(&str)> = OnceLock::new();

/// Has `report` called once for each limit of the system that the device meets, on any thread, with a line that names it. The first
/// call counts.
pub fn set(report: fn(&str)) {
    let _ = REPORT.set(report);
}

/// Whether the error is a limit of the system. If so, it is reported.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    static SAID: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    let (number, text) = match error.raw_os_error() {
        Some(libc::EMFILE) => (0, "the process has no file descriptor left for the emulator (ulimit -n)"),
        Some(libc::ENFILE) => (1, "the machine has no file descriptor left for the emulator (fs.file-max)"),
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            (2, "the machine has no memory left for the emulator's sockets (net.ipv4.tcp_mem)")
        }
        _ => return false,
    };
    if let Some(report) = REPORT.get()
        && !SAID[number].swap(true, Ordering::Relaxed)
    {
        report(text);
    }
    true
}
