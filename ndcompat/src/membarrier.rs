//! A barrier in all threads of the process at once (`membarrier(2)`): so that one side of an agreement between threads, the
//! frequent one, needs none.

use std::sync::OnceLock;
use std::time::Duration;

/// Whether the kernel lets the process have such barriers; unknown until [`prepare`].
static AVAILABLE: OnceLock<bool> = OnceLock::new();

/// Asks the kernel for leave, once for the process. With many threads that takes milliseconds.
pub(crate) fn prepare() {
    AVAILABLE.get_or_init(|| command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
}

/// Whether [`barrier`] may be relied on.
pub(crate) fn is_available() -> bool {
    AVAILABLE.get() == Some(&true)
}

/// All that other threads of the process have stored before this call is seen after it, and what this thread has stored
/// before it is seen by whatever they do after it.
pub(crate) fn barrier() {
    let barrier = || command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    // The child of a fork has to ask for leave again.
    if barrier() || command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && barrier() {
        return;
    }
    // A process that has given up the call since: processors keep no store to themselves for so long.
    std::thread::sleep(Duration::from_millis(20));
}

fn command(command: libc::c_int) -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
