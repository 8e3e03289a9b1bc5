//! What an operator must know: a limit of the system is reached, which is reported once; or a connection has ended by a fault that the
//! status of the program's requests does not tell.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::wire::Violation;

/// What may be done about a message without a receive.
const HINT: &str = "; NDCOMPAT_EMULATOR_RNR_TIMEOUT=MILLISECONDS, at the end that receives, lets it wait";

static REPORT: OnceLock<fn(&str)> = OnceLock::new();

/// Has `report` called once for each limit of the system that the device meets, and for each connection that ends by a violation of the
/// protocol, on any thread, with a line that names it. It must not use the device. The first call counts.
pub fn set(report: fn(&str)) {
    let _ = REPORT.set(report);
}

/// Whether the error is a limit of the system. If so, it is reported.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    static SAID: [AtomicBool; 4] = [const { AtomicBool::new(false) }; 4];
    let (number, text) = match error.raw_os_error() {
        Some(libc::EMFILE) => (0, "the process has no file descriptor left for the emulator (ulimit -n)"),
        Some(libc::ENFILE) => (1, "the machine has no file descriptor left for the emulator (fs.file-max)"),
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            (2, "the machine has no memory left for the emulator's sockets (net.ipv4.tcp_mem)")
        }
        Some(libc::ENOSPC) => {
            (3, "the user has no epoll watch left for the emulator (fs.epoll.max_user_watches)")
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

/// Reports that a connection has ended by what one of its ends has sent: the peer (and this side has noticed), or this one.
pub(crate) fn violation(by_peer: bool, violation: Violation) {
    let Some(report) = REPORT.get() else { return };
    let text = violation.text().unwrap_or("An unknown fault.");
    let end =
        if by_peer { "by what its peer has sent" } else { "by its peer, as what was sent there is refused" };
    let hint = if violation == Violation::NO_BUFFER { HINT } else { "" };
    report(&format!("a connection was ended {end}: {text} ({violation}){hint}"));
}
