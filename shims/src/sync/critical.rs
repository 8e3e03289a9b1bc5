//! `CRITICAL_SECTION`: a recursive lock.

use super::raw::RawLock;
use crate::error::{ERROR_INVALID_PARAMETER, set_last_error};
use crate::io::sys::thread_id;
use std::ptr::write;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// How often a section looks again before it sleeps, when the program does not say.
const DEFAULT_SPINS: usize = 100;

/// `CRITICAL_SECTION`, with the fields where Windows has them. Zeroes are a free section, initialised or not.
#[repr(C)]
pub struct CriticalSection {
    debug_info: usize,
    lock: RawLock,
    recursion: AtomicU32,
    owner: AtomicUsize,
    semaphore: usize,
    spins: AtomicUsize,
}

const _: () = assert!(size_of::<CriticalSection>() == 40 && align_of::<CriticalSection>() == 8);

impl CriticalSection {
    /// A free section.
    pub const fn new(spins: usize) -> CriticalSection {
        CriticalSection {
            debug_info: 0,
            lock: RawLock::new(),
            recursion: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            semaphore: 0,
            spins: AtomicUsize::new(spins),
        }
    }

    /// Only the thread itself writes its id here, so what it reads tells whether it is the owner.
    fn is_mine(&self) -> bool {
        self.owner.load(Relaxed) == thread_id() as usize
    }

    fn take(&self, locked: bool) -> bool {
        if locked {
            self.owner.store(thread_id() as usize, Relaxed);
            self.recursion.store(1, Relaxed);
        }
        locked
    }

    /// Enters, once more when the thread is inside already.
    pub fn enter(&self) {
        if self.is_mine() {
            self.recursion.fetch_add(1, Relaxed);
            return;
        }
        self.lock.lock(self.spins.load(Relaxed));
        self.take(true);
    }

    /// Enters if nobody else is inside.
    pub fn try_enter(&self) -> bool {
        if self.is_mine() {
            self.recursion.fetch_add(1, Relaxed);
            return true;
        }
        self.take(self.lock.try_lock())
    }

    /// Leaves once. A thread that is not inside changes nothing.
    pub fn leave(&self) {
        if self.is_mine() && self.recursion.fetch_sub(1, Relaxed) == 1 {
            self.owner.store(0, Relaxed);
            self.lock.unlock();
        }
    }
}

/// The low 24 bits are the count, as on Windows; the others are flags of `InitializeCriticalSectionEx`.
fn spin_count(count: u32) -> usize {
    (count & 0x00FF_FFFF) as usize
}

/// `InitializeCriticalSection`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitializeCriticalSection(section: *mut CriticalSection) {
    if !section.is_null() {
        // SAFETY: room for a section that nobody uses yet, by the function's contract.
        unsafe { write(section, CriticalSection::new(DEFAULT_SPINS)) };
    }
}

/// `InitializeCriticalSectionAndSpinCount`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitializeCriticalSectionAndSpinCount(
    section: *mut CriticalSection,
    spins: u32,
) -> i32 {
    // SAFETY: the function's contract.
    unsafe { ndw_InitializeCriticalSectionEx(section, spins, 0) }
}

/// `InitializeCriticalSectionEx`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitializeCriticalSectionEx(
    section: *mut CriticalSection,
    spins: u32,
    _flags: u32,
) -> i32 {
    if section.is_null() {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    }
    // SAFETY: room for a section that nobody uses yet, by the function's contract.
    unsafe { write(section, CriticalSection::new(spin_count(spins))) };
    1
}

/// `SetCriticalSectionSpinCount`: returns the count before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_SetCriticalSectionSpinCount(section: *const CriticalSection, spins: u32) -> u32 {
    // SAFETY: NULL or a section by the function's contract.
    unsafe { section.as_ref() }.map_or(0, |section| section.spins.swap(spin_count(spins), Relaxed) as u32)
}

/// `DeleteCriticalSection`: nothing is held that had to be given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_DeleteCriticalSection(_section: *mut CriticalSection) {}

/// `EnterCriticalSection`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_EnterCriticalSection(section: *const CriticalSection) {
    // SAFETY: NULL or a section by the function's contract.
    if let Some(section) = unsafe { section.as_ref() } {
        section.enter();
    }
}

/// `TryEnterCriticalSection`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_TryEnterCriticalSection(section: *const CriticalSection) -> i32 {
    // SAFETY: NULL or a section by the function's contract.
    unsafe { section.as_ref() }.is_some_and(CriticalSection::try_enter).into()
}

/// `LeaveCriticalSection`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LeaveCriticalSection(section: *const CriticalSection) {
    // SAFETY: NULL or a section by the function's contract.
    if let Some(section) = unsafe { section.as_ref() } {
        section.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;
    use std::thread;

    struct Guarded(CriticalSection, UnsafeCell<u64>);
    // SAFETY: the cell is used inside the section only.
    unsafe impl Sync for Guarded {}

    fn in_another_thread<T: Send>(f: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(f).join().unwrap())
    }

    #[test]
    fn one_thread_at_a_time() {
        for spins in [0, 100] {
            let guarded = Guarded(CriticalSection::new(spins), UnsafeCell::new(0));
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let guarded = &guarded;
                        for _ in 0..20_000 {
                            guarded.0.enter();
                            // SAFETY: inside the section.
                            unsafe { *guarded.1.get() += 1 };
                            guarded.0.leave();
                        }
                    });
                }
            });
            assert_eq!(guarded.1.into_inner(), 80_000);
        }
    }

    #[test]
    fn the_owner_enters_again_and_leaves_as_often() {
        let section = CriticalSection::new(0);
        section.enter();
        assert!(section.try_enter());
        section.leave();
        assert!(!in_another_thread(|| section.try_enter()));
        section.leave();
        assert!(in_another_thread(|| {
            let entered = section.try_enter();
            section.leave();
            entered
        }));
    }

    #[test]
    fn a_stranger_cannot_leave() {
        let section = CriticalSection::new(0);
        section.enter();
        in_another_thread(|| section.leave());
        assert!(!in_another_thread(|| section.try_enter()));
    }

    #[test]
    fn zeroes_are_a_free_section() {
        // SAFETY: all fields are integers.
        let section: CriticalSection = unsafe { std::mem::zeroed() };
        // SAFETY: a section of ours.
        unsafe {
            assert_eq!(ndw_TryEnterCriticalSection(&section), 1);
            ndw_LeaveCriticalSection(&section);
            assert_eq!(ndw_SetCriticalSectionSpinCount(&section, 0x0100_0040), 0);
            assert_eq!(ndw_SetCriticalSectionSpinCount(&section, 0), 0x40);
            assert_eq!(ndw_TryEnterCriticalSection(std::ptr::null()), 0);
        }
    }
}
