//! `CRITICAL_SECTION`.

use super::{dawdle, in_another_thread};
use crate::api::locks::*;
use crate::api::thread::ndw_GetCurrentThreadId;
use crate::arguments::Out;
use crate::error::{ERROR_INVALID_PARAMETER, last_error};
use crate::sync::critical::CriticalSection;
use std::cell::UnsafeCell;
use std::thread;
use std::time::Duration;

struct Guarded(CriticalSection, UnsafeCell<u64>);
// SAFETY: the cell is used inside the section only.
unsafe impl Sync for Guarded {}

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
    assert_eq!(ndw_TryEnterCriticalSection(Some(&section)), 1);
    ndw_LeaveCriticalSection(Some(&section));
    assert_eq!(ndw_SetCriticalSectionSpinCount(Some(&section), 0x0100_0040), 0);
    assert_eq!(ndw_SetCriticalSectionSpinCount(Some(&section), 0), 0x40);
    assert_eq!(ndw_TryEnterCriticalSection(None), 0);
}

/// The fields, in their order, as a program sees them.
#[derive(Debug, PartialEq, Eq)]
#[repr(C)]
struct Fields {
    debug_info: usize,
    lock_count: i32,
    recursion_count: i32,
    owning_thread: usize,
    lock_semaphore: usize,
    spin_count: usize,
}

fn fields(section: &CriticalSection) -> Fields {
    // SAFETY: of the same layout, and nobody else changes it now.
    unsafe { std::ptr::from_ref(section).cast::<Fields>().read() }
}

/// The one of the fields that other threads may change.
fn lock_count(section: &CriticalSection) -> i32 {
    let place =
        std::ptr::from_ref(section).cast::<u8>().wrapping_add(std::mem::offset_of!(Fields, lock_count));
    // SAFETY: the field is there, and others change it atomically.
    unsafe { &*place.cast::<std::sync::atomic::AtomicI32>() }.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn the_fields_are_those_of_windows() {
    let mut section = CriticalSection::new(0);
    ndw_InitializeCriticalSection((&mut section).into());
    let free = || Fields {
        debug_info: usize::MAX,
        lock_count: -1,
        recursion_count: 0,
        owning_thread: 0,
        lock_semaphore: 0,
        spin_count: 0x0200_07D0,
    };
    assert_eq!(fields(&section), free());
    let me = ndw_GetCurrentThreadId() as usize;
    let held = |recursion_count| Fields { lock_count: -2, recursion_count, owning_thread: me, ..free() };
    section.enter();
    assert_eq!(fields(&section), held(1));
    assert!(section.try_enter());
    assert_eq!(fields(&section), held(2));
    section.leave();
    assert_eq!(fields(&section), held(1));
    let section = &section;
    thread::scope(|scope| {
        for waiters in 1..=2 {
            scope.spawn(|| {
                section.enter();
                section.leave();
            });
            // Each that waits takes four off.
            while lock_count(section) != -2 - 4 * waiters {
                thread::yield_now();
            }
        }
        section.leave();
    });
    assert_eq!(fields(section), free());
    ndw_DeleteCriticalSection(Some(section));
    assert_eq!(fields(section).debug_info, 0);
}

#[test]
fn reserved_flags_and_counts_too_large_are_refused() {
    let mut section = CriticalSection::new(0);
    for flag in [0x0100_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000] {
        assert_eq!(ndw_InitializeCriticalSectionEx((&mut section).into(), 4000, flag), 1);
        assert_eq!(fields(&section).spin_count, 4000);
    }
    for (count, flags) in [(0, 0x2000_0000), (0, 1), (0x0100_0000, 0)] {
        crate::error::set_last_error(0);
        assert_eq!(ndw_InitializeCriticalSectionEx((&mut section).into(), count, flags), 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
    assert_eq!(ndw_InitializeCriticalSectionAndSpinCount((&mut section).into(), 0x8000_0FA0), 1);
    assert_eq!(fields(&section).spin_count, 4000);
    assert_eq!(ndw_InitializeCriticalSectionEx(Out::NULL, 0, 0), 0);
}

/// As in an object whose reference count its own section guards.
#[test]
fn the_last_to_leave_may_free_the_section() {
    for _ in 0..300 {
        let section = Box::into_raw(Box::new(Guarded(CriticalSection::new(0), UnsafeCell::new(3))));
        // SAFETY: who brings the count to zero is the last to use it.
        let release = |section: *mut Guarded| unsafe {
            (*section).0.enter();
            *(*section).1.get() -= 1;
            let last = *(*section).1.get() == 0;
            (*section).0.leave();
            if last {
                drop(Box::from_raw(section));
            }
        };
        let section = section.expose_provenance();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| release(std::ptr::with_exposed_provenance_mut(section)));
            }
        });
    }
}

#[test]
fn who_is_late_to_its_sleep_still_enters() {
    let section = CriticalSection::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                dawdle(Duration::from_millis(5));
                for _ in 0..100 {
                    section.enter();
                    thread::yield_now();
                    section.leave();
                }
            });
        }
    });
}
