//! Affinity masks, ideal processors, and the current processor.

use super::{GroupAffinity, ProcessorNumber, group_of, input, number, output};
use crate::api::thread::thread_number;
use crate::arguments::{In, InOut, Out};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::object::RawHandle;
use crate::process;
use crate::processor::topology::topology;
use crate::processor::{GROUP, Set, affinity, current, mask_of, masks, number_of, priority, set_of};

/// `MAXIMUM_PROCESSORS`, which asks for the ideal processor without setting one.
pub(super) const MAXIMUM_PROCESSORS: u32 = GROUP as u32;

/// The processors in a group's mask, which must not be empty and must all be `allowed`.
fn chosen(mask: u64, group: u16, allowed: &Set) -> Result<Set, u32> {
    if mask == 0 || mask & !mask_of(allowed, group) != 0 {
        return Err(ERROR_INVALID_PARAMETER);
    }
    Ok(set_of(mask, group))
}

/// `SetThreadAffinityMask`: returns the previous mask; 0 on errors.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadAffinityMask(thread: RawHandle, mask: u64) -> u64 {
    number(0, || {
        let thread = thread_number(thread)?;
        let before = affinity::get(thread)?;
        let process = affinity::of_process();
        let group = group_of(&before);
        affinity::set(thread, &chosen(mask, group, &process)?)?;
        Ok(mask_of(&before, group))
    })
}

/// `GetProcessAffinityMask`: in the group of the process's first processor.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessAffinityMask(
    process: RawHandle,
    mask: Out<'_, u64>,
    system: Out<'_, u64>,
) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        if mask.is_null() || system.is_null() {
            return Err(ERROR_NOACCESS);
        }
        let processors = affinity::of_process();
        let group = group_of(&processors);
        output(mask, mask_of(&processors, group))?;
        output(system, mask_of(&topology().online, group))
    })
}

/// `SetProcessAffinityMask`: moves all threads of the process.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetProcessAffinityMask(process: RawHandle, mask: u64) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        let group = group_of(&affinity::of_process());
        affinity::set_process(chosen(mask, group, &topology().online)?)
    })
}

/// `SetThreadGroupAffinity`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadGroupAffinity(
    thread: RawHandle,
    new: In<'_, GroupAffinity>,
    previous: Out<'_, GroupAffinity>,
) -> i32 {
    guard_bool(|| {
        let thread = thread_number(thread)?;
        let new = input(new).map_err(|_| ERROR_NOACCESS)?;
        if new.reserved != [0; 3] {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let processors = chosen(new.mask, new.group, &topology().online)?;
        let before = affinity::get(thread)?;
        affinity::set(thread, &processors)?;
        if !previous.is_null() {
            let group = group_of(&before);
            output(previous, GroupAffinity { mask: mask_of(&before, group), group, reserved: [0; 3] })?;
        }
        Ok(())
    })
}

/// `GetThreadGroupAffinity`: the first group where the thread may run.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadGroupAffinity(thread: RawHandle, found: Out<'_, GroupAffinity>) -> i32 {
    guard_bool(|| {
        let processors = affinity::get(thread_number(thread)?)?;
        let group = group_of(&processors);
        let affinity = GroupAffinity { mask: mask_of(&processors, group), group, reserved: [0; 3] };
        output(found, affinity).map_err(|_| ERROR_NOACCESS)
    })
}

/// `GetProcessGroupAffinity`: the groups where threads may run; `ERROR_INSUFFICIENT_BUFFER` and their number.
///
/// # Safety
/// `groups` is NULL or has room for as many numbers as `count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetProcessGroupAffinity(
    process: RawHandle,
    count: InOut<'_, u16>,
    groups: *mut u16,
) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        let room = count.read().ok_or(ERROR_NOACCESS)?;
        let found = masks(&affinity::of_process());
        count.put(found.len() as u16);
        if usize::from(room) < found.len() || groups.is_null() {
            return Err(ERROR_INSUFFICIENT_BUFFER);
        }
        for (index, (group, _)) in found.into_iter().enumerate() {
            // SAFETY: within the room that C's caller tells.
            unsafe { groups.wrapping_add(index).write_unaligned(group) };
        }
        Ok(())
    })
}

/// `SetThreadIdealProcessor`: returns the previous one; `MAXIMUM_PROCESSORS` only queries it.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadIdealProcessor(thread: RawHandle, ideal: u32) -> u32 {
    number(u32::MAX, || {
        let thread = thread_number(thread)?;
        let group = group_of(&affinity::get(thread)?);
        let new = match ideal {
            MAXIMUM_PROCESSORS => None,
            ideal => {
                let number = ideal.try_into().map_err(|_| ERROR_INVALID_PARAMETER)?;
                Some(ProcessorNumber { group, number, reserved: 0 }.processor()?)
            }
        };
        Ok(number_of(priority::ideal(thread, new)?).1.into())
    })
}

/// `SetThreadIdealProcessorEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadIdealProcessorEx(
    thread: RawHandle,
    ideal: In<'_, ProcessorNumber>,
    previous: Out<'_, ProcessorNumber>,
) -> i32 {
    guard_bool(|| {
        let thread = thread_number(thread)?;
        let new = input(ideal).map_err(|_| ERROR_NOACCESS)?.processor()?;
        let before = priority::ideal(thread, Some(new))?;
        if !previous.is_null() {
            output(previous, before.into())?;
        }
        Ok(())
    })
}

/// `GetThreadIdealProcessorEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadIdealProcessorEx(thread: RawHandle, ideal: Out<'_, ProcessorNumber>) -> i32 {
    guard_bool(|| {
        let found = priority::ideal(thread_number(thread)?, None)?;
        output(ideal, found.into()).map_err(|_| ERROR_NOACCESS)
    })
}

/// `GetCurrentProcessorNumber`: within its group.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentProcessorNumber() -> u32 {
    number_of(current()).1.into()
}

/// `GetCurrentProcessorNumberEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentProcessorNumberEx(found: Out<'_, ProcessorNumber>) {
    let _ = output(found, current().into());
}
