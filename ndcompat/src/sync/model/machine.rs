//! Loom's threads.

use super::atomic::{AtomicU32, Ordering};
use super::bias::Bias;
use std::cell::Cell;

loom::thread_local! {
    static OWN: Box<u8> = Box::new(0);
}

pub(crate) fn enter(bias: &Bias) -> bool {
    bias.enter(this_thread())
}

/// Sets the flag; returns whether it was clear. Loom's `fetch_or` is not atomic in the modification order: finding the flag
/// set, it could hide a later store that clears it. So this writes only if it sets the flag.
pub(crate) fn set(flag: &AtomicU32) -> bool {
    flag.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

pub(crate) fn this_thread() -> usize {
    OWN.with(|own| std::ptr::from_ref(&**own).addr())
}

/// The panic payload of a thread that has given up waiting.
pub(crate) struct GaveUp;

thread_local! {
    static LOOKS: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Makes threads give up waiting after `looks` polls, in all models that this thread runs from now on.
///
/// Of several threads that have yielded, loom always runs the first: three that wait for each other would never end. The
/// interleavings that giving up cuts off are explored in runs where the thread polls later.
pub(crate) fn give_up_after(looks: u32) {
    LOOKS.set(looks);
}

pub(crate) fn wait_until(mut ask: impl FnMut() -> bool) {
    for _ in 0..LOOKS.get() {
        if ask() {
            return;
        }
        loom::thread::yield_now();
    }
    std::panic::resume_unwind(Box::new(GaveUp));
}
