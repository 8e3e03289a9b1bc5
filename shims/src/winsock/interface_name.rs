//! The indices, LUIDs, names and aliases of interfaces, and masks of prefixes. Names are Linux's, and so are aliases.

use super::interface_table::{find, mask_of, result};
use crate::arguments::{In, Out, Text};
use crate::error::*;
use crate::text::{Unit, Wchar, narrow_and_wide};

/// `ConvertInterfaceIndexToLuid`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ConvertInterfaceIndexToLuid(index: u32, luid: Out<'_, u64>) -> u32 {
    result(|| {
        let luid = luid.required(ERROR_INVALID_PARAMETER)?;
        luid.put(find(|interface| interface.index == index, ERROR_FILE_NOT_FOUND)?.luid());
        Ok(())
    })
}

/// `ConvertInterfaceLuidToIndex`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ConvertInterfaceLuidToIndex(luid: In<'_, u64>, index: Out<'_, u32>) -> u32 {
    result(|| {
        let luid = luid.read().ok_or(ERROR_INVALID_PARAMETER)?;
        let index = index.required(ERROR_INVALID_PARAMETER)?;
        index.put(find(|interface| interface.luid() == luid, ERROR_INVALID_PARAMETER)?.index);
        Ok(())
    })
}

/// # Safety
/// `name` is NULL or has room for as many units.
unsafe fn name_of_luid<T: Unit>(luid: In<'_, u64>, name: *mut T, room: usize) -> u32 {
    result(|| {
        let luid = luid.read().ok_or(ERROR_INVALID_PARAMETER)?;
        if name.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let interface = find(|interface| interface.luid() == luid, ERROR_INVALID_PARAMETER)?;
        // SAFETY: not NULL, hence room for as many characters, as the caller promises.
        let fits = unsafe { crate::text::store(&T::spell(&interface.name), name, room) };
        if fits { Ok(()) } else { Err(ERROR_NOT_ENOUGH_MEMORY) }
    })
}

fn luid_of_name<T: Unit>(name: Text<'_, T>, luid: Out<'_, u64>) -> u32 {
    result(|| {
        let name = name.read().ok_or(ERROR_INVALID_NAME)?;
        let luid = luid.required(ERROR_INVALID_PARAMETER)?;
        luid.put(find(|interface| interface.name == name, ERROR_INVALID_NAME)?.luid());
        Ok(())
    })
}

narrow_and_wide! {
    "`ConvertInterfaceLuidToName`."
    ndw_ConvertInterfaceLuidToNameA ndw_ConvertInterfaceLuidToNameW = unsafe name_of_luid(luid: In<'_, u64>, name: *mut T, room: usize) -> u32;
    "`ConvertInterfaceNameToLuid`."
    ndw_ConvertInterfaceNameToLuidA ndw_ConvertInterfaceNameToLuidW = luid_of_name(name: Text<'_, T>, luid: Out<'_, u64>) -> u32;
}

/// `ConvertInterfaceLuidToAlias`: the name.
///
/// # Safety
/// `alias` must be NULL or have room for as many characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ConvertInterfaceLuidToAlias(
    luid: In<'_, u64>,
    alias: *mut Wchar,
    room: usize,
) -> u32 {
    // SAFETY: the alias is NULL or has room for as many characters, as this function asks.
    unsafe { name_of_luid(luid, alias, room) }
}

/// `ConvertInterfaceAliasToLuid`: of the name.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ConvertInterfaceAliasToLuid(alias: Text<'_, Wchar>, luid: Out<'_, u64>) -> u32 {
    match luid_of_name(alias, luid) {
        ERROR_INVALID_NAME => ERROR_INVALID_PARAMETER,
        code => code,
    }
}

/// `ConvertLengthToIpv4Mask`: `INADDR_NONE` for more than 32 bits.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ConvertLengthToIpv4Mask(length: u32, mask: Out<'_, u32>) -> u32 {
    let found = mask_of(length);
    mask.put(found.unwrap_or(u32::MAX));
    if found.is_some() { ERROR_SUCCESS } else { ERROR_INVALID_PARAMETER }
}

/// `ConvertIpv4MaskToLength`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ConvertIpv4MaskToLength(mask: u32, length: Out<'_, u8>) -> u32 {
    let mask = u32::from_be(mask);
    if mask.leading_ones() + mask.trailing_zeros() < 32 || length.is_null() {
        return ERROR_INVALID_PARAMETER;
    }
    length.put(mask.leading_ones() as u8);
    ERROR_SUCCESS
}
