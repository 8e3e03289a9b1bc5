//! Per-thread buffers, lent to the connection being served, so that an idle connection owns none.

use std::cell::RefCell;
use std::thread::LocalKey;

/// How many buffers of a kind a thread keeps: one in use, and some for frames half there.
const KEPT: usize = 4;
/// Longer buffers are freed: a frame with CRC, or one gathering write, fits.
const LENGTH_MAX: usize = 512 << 10;

pub(super) type Pool = RefCell<Vec<Vec<u8>>>;

thread_local! {
    /// Buffers that are read into. They keep their length, as it would take time to write zeros into them again.
    pub(super) static READ: Pool = const { RefCell::new(Vec::new()) };
    /// Buffers that are written from.
    pub(super) static WRITTEN: Pool = const { RefCell::new(Vec::new()) };
}

/// A buffer of any length, with any content.
pub(super) fn take(from: &'static LocalKey<Pool>) -> Vec<u8> {
    from.try_with(|buffers| buffers.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

/// Gives a buffer back.
pub(super) fn give(to: &'static LocalKey<Pool>, buffer: Vec<u8>) {
    if buffer.capacity() != 0 && buffer.capacity() <= LENGTH_MAX {
        // At the end of a thread it is freed instead.
        let _ = to.try_with(|buffers| {
            let mut buffers = buffers.borrow_mut();
            if buffers.len() < KEPT {
                buffers.push(buffer);
            }
        });
    }
}
