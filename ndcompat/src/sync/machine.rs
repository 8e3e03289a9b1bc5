//! The machine-dependent part of the lock: thread identity, waiting, and taking the lock as the owner. The
//! [model](super::model) replaces it.

use super::atomic::{AtomicU32, Ordering};
use super::bias::Bias;
use std::hint::spin_loop;
use std::time::Duration;

/// [`Bias::enter`] for this thread.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn enter(bias: &Bias) -> bool {
    bias.enter(this_thread())
}

/// [`Bias::enter`] for this thread, in assembly, as compilers do not merge an atomic load into a comparison.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) fn enter(bias: &Bias) -> bool {
    // SAFETY: accesses the atomics as `Bias::enter` does; the first word of a thread's control block is its own address.
    unsafe {
        std::arch::asm!(
            "mov {me}, fs:0",
            "cmp [{bias} + {owner}], {me}",
            "jne {other}",
            "mov dword ptr [{bias} + {inside}], 1",
            "cmp [{bias} + {owner}], {me}",
            "jne {late}",
            me = out(reg) _,
            bias = in(reg) bias,
            owner = const std::mem::offset_of!(Bias, owner),
            inside = const std::mem::offset_of!(Bias, inside),
            other = label { return false },
            late = label { bias.inside.store(0, Ordering::Relaxed); return false },
            options(nostack)
        );
    }
    true
}

/// Sets a flag; returns whether it was clear.
#[inline(always)]
pub(crate) fn set(flag: &AtomicU32) -> bool {
    // Testing a single bit makes it one instruction on x86 (`lock bts`).
    flag.fetch_or(1, Ordering::Acquire) & 1 == 0
}

/// This thread's identity: the address of its thread control block. Neither 0 nor 1.
#[inline(always)]
pub(crate) fn this_thread() -> usize {
    let thread: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of a thread's control block is its own address.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly, pure, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the thread pointer register, which is the address of the thread's control block.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) thread, options(nostack, nomem, pure, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        std::thread_local!(static OWN: u8 = const { 0 });
        thread = OWN.with(|own| std::ptr::from_ref(own).addr());
    }
    thread
}

/// Waits until `ask` returns true. It spins, then yields, then sleeps, as the holder of the lock may be preempted, and may
/// have a lower priority than this thread.
pub(crate) fn wait_until(mut ask: impl FnMut() -> bool) {
    const SPINS: u32 = 100;
    const YIELDS: u32 = SPINS + 100;
    let mut looks = 0_u32;
    while !ask() {
        match looks {
            0..SPINS => spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
        looks = looks.saturating_add(1);
    }
}
