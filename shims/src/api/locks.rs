//! `CRITICAL_SECTION`, `SRWLOCK`, `CONDITION_VARIABLE`, `INIT_ONCE`, `SYNCHRONIZATION_BARRIER`, `WaitOnAddress`.

use crate::arguments::{InOut, Out};
use crate::boundary::guard_bool_quick;
use crate::error::*;
use crate::futex::Deadline;
use crate::sync::address;
use crate::sync::barrier::Barrier;
use crate::sync::condition::ConditionVariable;
use crate::sync::critical::{CriticalSection, DEFAULT_SPINS, DYNAMIC_SPIN, MAX_SPINS};
use crate::sync::once::{InitOnce, Refused, Task};
use crate::sync::srw::SrwLock;
use std::ffi::c_void;

const _: () = {
    assert!(size_of::<CriticalSection>() == 40 && align_of::<CriticalSection>() == 8);
    assert!(size_of::<SrwLock>() == 8 && align_of::<SrwLock>() == 8);
    assert!(size_of::<ConditionVariable>() == 8 && align_of::<ConditionVariable>() == 8);
    assert!(size_of::<InitOnce>() == 8 && align_of::<InitOnce>() == 8);
    assert!(size_of::<Barrier>() == 32 && align_of::<Barrier>() == 8);
};

/// The valid flags of `InitializeCriticalSectionEx`. They have no effect, as sections have no debug information here.
const SECTION_FLAGS: u32 = 0x1F00_0000;

/// The spin count for a program's. 0 selects the default.
fn spins(count: u32) -> usize {
    match count as usize & MAX_SPINS {
        0 => DYNAMIC_SPIN | DEFAULT_SPINS,
        count => count,
    }
}

/// `InitializeCriticalSection`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitializeCriticalSection(section: Out<'_, CriticalSection>) {
    section.put(CriticalSection::new(spins(0)));
}

/// `InitializeCriticalSectionAndSpinCount`: only the low 24 bits of the count matter.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitializeCriticalSectionAndSpinCount(
    section: Out<'_, CriticalSection>,
    count: u32,
) -> i32 {
    ndw_InitializeCriticalSectionEx(section, count & MAX_SPINS as u32, 0)
}

/// `InitializeCriticalSectionEx`: refuses reserved flags, and counts of more than 24 bits.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitializeCriticalSectionEx(
    section: Out<'_, CriticalSection>,
    count: u32,
    flags: u32,
) -> i32 {
    if section.is_null() || flags & !SECTION_FLAGS != 0 || count as usize > MAX_SPINS {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    }
    section.put(CriticalSection::new(spins(count)));
    1
}

/// `SetCriticalSectionSpinCount`: returns the count before.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetCriticalSectionSpinCount(section: Option<&CriticalSection>, count: u32) -> u32 {
    let count = count as usize & MAX_SPINS;
    section.map_or(0, |section| (section.set_spins(count) & MAX_SPINS) as u32)
}

/// `DeleteCriticalSection`: there are no resources to release.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_DeleteCriticalSection(section: Option<&CriticalSection>) {
    if let Some(section) = section {
        section.delete();
    }
}

/// `EnterCriticalSection`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_EnterCriticalSection(section: Option<&CriticalSection>) {
    if let Some(section) = section {
        section.enter();
    }
}

/// `TryEnterCriticalSection`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TryEnterCriticalSection(section: Option<&CriticalSection>) -> i32 {
    section.is_some_and(CriticalSection::try_enter).into()
}

/// `LeaveCriticalSection`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_LeaveCriticalSection(section: Option<&CriticalSection>) {
    if let Some(section) = section {
        section.leave();
    }
}

/// Declares entry points that call one method of the lock they are given; NULL is ignored.
macro_rules! srw_locks {
    ($($name:ident => $method:ident, $doc:literal;)+) => {
        $(#[doc = $doc]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(lock: Option<&SrwLock>) {
            if let Some(lock) = lock {
                lock.$method();
            }
        })+
    };
}

srw_locks! {
    ndw_AcquireSRWLockExclusive => write, "`AcquireSRWLockExclusive`.";
    ndw_AcquireSRWLockShared => read, "`AcquireSRWLockShared`.";
    ndw_ReleaseSRWLockExclusive => unlock_write, "`ReleaseSRWLockExclusive`.";
    ndw_ReleaseSRWLockShared => unlock_read, "`ReleaseSRWLockShared`.";
}

/// `InitializeSRWLock`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitializeSRWLock(lock: Out<'_, SrwLock>) {
    lock.put(SrwLock::default());
}

/// `TryAcquireSRWLockExclusive`: a BOOLEAN.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TryAcquireSRWLockExclusive(lock: Option<&SrwLock>) -> u8 {
    lock.is_some_and(SrwLock::try_write).into()
}

/// `TryAcquireSRWLockShared`: a BOOLEAN.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TryAcquireSRWLockShared(lock: Option<&SrwLock>) -> u8 {
    lock.is_some_and(SrwLock::try_read).into()
}

/// `CONDITION_VARIABLE_LOCKMODE_SHARED`.
pub const LOCKMODE_SHARED: u32 = 1;

/// `InitializeConditionVariable`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitializeConditionVariable(condition: Out<'_, ConditionVariable>) {
    condition.put(ConditionVariable::default());
}

fn in_time(woken: bool) -> Result<(), u32> {
    if woken { Ok(()) } else { Err(ERROR_TIMEOUT) }
}

/// `SleepConditionVariableCS`: leaves the section once, so it must not have been entered recursively.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SleepConditionVariableCS(
    condition: Option<&ConditionVariable>,
    section: Option<&CriticalSection>,
    milliseconds: u32,
) -> i32 {
    guard_bool_quick(|| {
        let (condition, section) = condition.zip(section).ok_or(ERROR_INVALID_PARAMETER)?;
        let deadline = Deadline::after_millis(milliseconds);
        in_time(condition.sleep(deadline, || section.leave(), || section.enter()))
    })
}

/// `SleepConditionVariableSRW`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SleepConditionVariableSRW(
    condition: Option<&ConditionVariable>,
    lock: Option<&SrwLock>,
    milliseconds: u32,
    flags: u32,
) -> i32 {
    guard_bool_quick(|| {
        let (condition, lock) = condition.zip(lock).ok_or(ERROR_INVALID_PARAMETER)?;
        let deadline = Deadline::after_millis(milliseconds);
        in_time(match flags {
            0 => condition.sleep(deadline, || lock.unlock_write(), || lock.write()),
            LOCKMODE_SHARED => condition.sleep(deadline, || lock.unlock_read(), || lock.read()),
            _ => return Err(ERROR_INVALID_PARAMETER),
        })
    })
}

/// `WakeConditionVariable`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WakeConditionVariable(condition: Option<&ConditionVariable>) {
    if let Some(condition) = condition {
        condition.wake(1);
    }
}

/// `WakeAllConditionVariable`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WakeAllConditionVariable(condition: Option<&ConditionVariable>) {
    if let Some(condition) = condition {
        condition.wake(usize::MAX);
    }
}

const INIT_ONCE_CHECK_ONLY: u32 = 1;
const INIT_ONCE_ASYNC: u32 = 2;
const INIT_ONCE_INIT_FAILED: u32 = 4;

/// `PINIT_ONCE_FN`.
pub type InitOnceFn = unsafe extern "C" fn(*const InitOnce, *mut c_void, *mut *mut c_void) -> i32;

fn from_refusal(refused: Refused) -> u32 {
    match refused {
        Refused::Invalid => ERROR_INVALID_PARAMETER,
        Refused::NotBegun => ERROR_GEN_FAILURE,
    }
}
/// The context as a pointer.
fn pointer(context: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(context)
}

/// `InitOnceInitialize`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitOnceInitialize(once: Out<'_, InitOnce>) {
    once.put(InitOnce::default());
}

/// `InitOnceExecuteOnce`: FALSE when the callback fails; the next caller then tries again. The callback gets the caller's pointer
/// for the context, even if it is NULL.
///
/// # Safety
/// The callback may be called with `once`, `parameter` and `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitOnceExecuteOnce(
    once: Option<&InitOnce>,
    callback: Option<InitOnceFn>,
    parameter: *mut c_void,
    context: InOut<'_, *mut c_void>,
) -> i32 {
    let (Some(object), Some(callback)) = (once, callback) else {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    };
    match object.begin(false) {
        Ok(Task::Use(made)) => {
            context.put(pointer(made));
            1
        }
        Ok(Task::Initialise) => {
            // SAFETY: a function of this type, which the program gave for these arguments of its own.
            let done = unsafe { callback(object, parameter, context.as_ptr()) } != 0;
            let made = context.read().map_or(0, |context| context.expose_provenance());
            let result = object.complete(false, done.then_some(made)).map_err(|refused| {
                // Otherwise other threads would wait for ever.
                let _ = object.complete(false, None);
                set_last_error(from_refusal(refused));
            });
            (done && result.is_ok()).into()
        }
        Err(refused) => {
            set_last_error(from_refusal(refused));
            0
        }
    }
}

/// `InitOnceBeginInitialize`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitOnceBeginInitialize(
    once: Option<&InitOnce>,
    flags: u32,
    pending: Out<'_, i32>,
    context: InOut<'_, *mut c_void>,
) -> i32 {
    guard_bool_quick(|| {
        let object = once.filter(|_| !pending.is_null()).ok_or(ERROR_INVALID_PARAMETER)?;
        let task = match flags {
            0 => object.begin(false),
            INIT_ONCE_ASYNC => object.begin(true),
            INIT_ONCE_CHECK_ONLY => object.context().map(Task::Use).ok_or(Refused::NotBegun),
            _ => Err(Refused::Invalid),
        };
        let task = task.map_err(from_refusal)?;
        pending.put((task == Task::Initialise).into());
        if let Task::Use(made) = task {
            context.put(pointer(made));
        }
        Ok(())
    })
}

/// `InitOnceComplete`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_InitOnceComplete(once: Option<&InitOnce>, flags: u32, context: *mut c_void) -> i32 {
    guard_bool_quick(|| {
        let object = once.ok_or(ERROR_INVALID_PARAMETER)?;
        let shared = flags & INIT_ONCE_ASYNC != 0;
        let failed = flags & INIT_ONCE_INIT_FAILED != 0;
        if flags & !(INIT_ONCE_ASYNC | INIT_ONCE_INIT_FAILED) != 0 || (failed && !context.is_null()) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let context = (!failed).then(|| context.expose_provenance());
        object.complete(shared, context).map_err(from_refusal)
    })
}

/// `InitializeSynchronizationBarrier`: for one thread or more. The spin count is ignored.
///
/// # Safety
/// `barrier` is NULL or has room for a barrier that nobody uses yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitializeSynchronizationBarrier(
    barrier: *mut Barrier,
    threads: i32,
    spins: i32,
) -> i32 {
    guard_bool_quick(|| {
        if barrier.is_null() || threads < 1 || spins < -1 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: C's caller has room for a barrier that nobody uses yet.
        unsafe { barrier.write(Barrier::new(threads as u32)) };
        Ok(())
    })
}

/// `EnterSynchronizationBarrier`: TRUE for the last thread. The flags are ignored.
///
/// # Safety
/// `barrier` is NULL, or a barrier that stays valid until all threads have left it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_EnterSynchronizationBarrier(barrier: *const Barrier, _flags: u32) -> i32 {
    // SAFETY: C's caller has a barrier that lives until all have left it, or NULL.
    match unsafe { barrier.as_ref() } {
        Some(barrier) => barrier.enter().into(),
        None => {
            set_last_error(ERROR_INVALID_PARAMETER);
            0
        }
    }
}

/// `DeleteSynchronizationBarrier`: waits until all threads have left it; always TRUE.
///
/// # Safety
/// `barrier` is NULL, or a barrier that nobody enters any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_DeleteSynchronizationBarrier(barrier: *const Barrier) -> i32 {
    // SAFETY: C's caller has a barrier that is not deleted yet, or NULL.
    if let Some(barrier) = unsafe { barrier.as_ref() } {
        barrier.wait_until_left();
    }
    1
}

/// `WaitOnAddress`: TRUE when the value differs or after a wake-up, FALSE and `ERROR_TIMEOUT` at the time-out.
///
/// # Safety
/// `address` is NULL, or `size` bytes that stay readable, and are changed by atomic stores only; `compare` is NULL or `size`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WaitOnAddress(
    address: *const c_void,
    compare: *const c_void,
    size: usize,
    milliseconds: u32,
) -> i32 {
    guard_bool_quick(|| {
        // SAFETY: the program says that both have `size` bytes; NULL is refused.
        let woken = unsafe { address::wait(address, compare, size, Deadline::after_millis(milliseconds)) };
        in_time(woken.ok_or(ERROR_INVALID_PARAMETER)?)
    })
}

/// `WakeByAddressSingle`: the thread that has waited longest.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WakeByAddressSingle(address: *const c_void) {
    address::wake(address, 1);
}

/// `WakeByAddressAll`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WakeByAddressAll(address: *const c_void) {
    address::wake(address, usize::MAX);
}
