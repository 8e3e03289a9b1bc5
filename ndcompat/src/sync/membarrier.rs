//! A memory barrier on all threads of the process (`membarrier(2)`), which saves the fast path a barrier.

use std::sync::OnceLock;
use std::time::Duration;

/// Whether the kernel supports it; unset until [`prepare`].
static AVAILABLE: OnceLock<bool> = OnceLock::new();

/// Registers the process, once. With many threads, this takes milliseconds.
pub(crate) fn prepare() {
    AVAILABLE.get_or_init(|| command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
}

/// Whether [`barrier`] works.
pub(crate) fn is_available() -> bool {
    AVAILABLE.get() == Some(&true)
}

/// Executes a full barrier on this thread and all other running threads of the process.
pub(crate) fn barrier() {
    let barrier = || command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    // A forked child has to register again.
    if barrier() || command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && barrier() {
        return;
    }
    // The process has since denied itself the system call (seccomp). No processor delays a store for so long.
    std::thread::sleep(Duration::from_millis(20));
}

fn command(command: libc::c_int) -> bool {
    // SAFETY: the arguments are numbers; the kernel accesses no memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
