//! The provider catalogue of Winsock: which NetworkDirect providers there are, and their libraries.
//!
//! The library that holds this runtime is always its first entry. Others are described by files (`description`), one
//! provider each, in a folder of the system and one of the user's (`folder`), where packages put them, and
//! `WSCInstallProvider` too. A file that makes no sense is left out; [`faults`] tells why.

mod description;
mod folder;
mod protocol;
#[cfg(test)]
mod tests;

pub use description::Provider;
pub use protocol::{Guid, ProtocolInfo, Spi};

use super::outcome;
use crate::error::*;
use crate::library::runtime_path;
use crate::text::{self, Wchar};
use std::ffi::{c_char, c_void};
use std::io;
use std::path::PathBuf;

/// The identifier, and class id, of the provider in the library that holds this runtime.
pub const BUILT_IN: Guid =
    Guid(0x6E64_636F, 0x6D70, 0x6174, [0x80, 0x00, 0x6C, 0x69, 0x6E, 0x75, 0x78, 0x01]);
const BUILT_IN_NAME: &str = "ndcompat NetworkDirect provider";
/// `dwCatalogEntryId` of the first entry.
const FIRST_ENTRY: u32 = 1001;

const SIZE: usize = size_of::<ProtocolInfo>();

fn built_in() -> Provider {
    let mut protocol = ProtocolInfo::network_direct(BUILT_IN_NAME);
    protocol.provider_id = BUILT_IN;
    Provider { id: BUILT_IN, library: runtime_path().unwrap_or_default(), protocols: vec![protocol] }
}

/// The providers that files describe.
fn described() -> (Vec<folder::Described>, Vec<folder::Fault>) {
    let (mut described, faults) = folder::read(&folder::folders());
    // A file may say again what is there already.
    described.retain(|described| described.provider.id != BUILT_IN);
    (described, faults)
}

/// All providers, the built-in one first.
pub fn providers() -> Vec<Provider> {
    let (described, _) = described();
    std::iter::once(built_in()).chain(described.into_iter().map(|described| described.provider)).collect()
}

/// The descriptions that are left out, and why: `path:line: reason`.
pub fn faults() -> Vec<String> {
    let line = |fault: folder::Fault| {
        let (path, mistake) = (fault.path.display(), fault.mistake);
        match mistake.line {
            0 => format!("{path}: {}", mistake.reason),
            line => format!("{path}:{line}: {}", mistake.reason),
        }
    };
    described().1.into_iter().map(line).collect()
}

/// All entries of the catalogue.
fn entries() -> Vec<ProtocolInfo> {
    let mut entries: Vec<_> = providers().into_iter().flat_map(|provider| provider.protocols).collect();
    for (entry, id) in entries.iter_mut().zip(FIRST_ENTRY..) {
        entry.catalog_entry_id = id;
    }
    entries
}

/// The file that describes the provider `id`.
fn file_of(id: Guid) -> Result<PathBuf, u32> {
    if id == BUILT_IN {
        return Err(WSANO_RECOVERY);
    }
    let (described, _) = described();
    described.into_iter().find(|one| one.provider.id == id).map(|one| one.file).ok_or(WSAEINVAL)
}

/// A registration, as the arguments of `WSCInstallProvider` say.
///
/// # Safety
/// The pointers are NULL or valid, `infos` with `count` entries.
unsafe fn registration(
    id: *const Guid,
    path: *const Wchar,
    infos: *const ProtocolInfo,
    count: u32,
) -> Result<(Guid, String), u32> {
    // SAFETY: passed on to the caller.
    let (id, library) = unsafe { (id.as_ref(), text::string_from_wide(path)) };
    let (&id, library) = id.zip(library).ok_or(WSAEFAULT)?;
    if infos.is_null() {
        return Err(WSAEFAULT);
    }
    let protocol = |index| {
        // SAFETY: an entry of the list by the contract.
        let info = unsafe { infos.add(index).read_unaligned() };
        // Only base providers are known here; 0 is what who leaves the chain out says.
        matches!(info.chain_length, 0 | 1)
            .then_some(ProtocolInfo { provider_id: id, ..info })
            .ok_or(WSAEINVAL)
    };
    let protocols = (0..count as usize).map(protocol).collect::<Result<Vec<_>, _>>()?;
    if protocols.is_empty() {
        return Err(WSAEINVAL);
    }
    let text = Provider { id, library, protocols }.describe().ok_or(WSAEINVAL)?;
    Ok((id, text))
}

/// Why the catalogue could not be changed.
fn failure(error: io::Error) -> u32 {
    match error.kind() {
        // Another process was faster.
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => WSAEINVAL,
        io::ErrorKind::OutOfMemory => ERROR_NOT_ENOUGH_MEMORY,
        _ => WSANO_RECOVERY,
    }
}

/// Reports the outcome the way of the catalogue functions: through a pointer.
///
/// # Safety
/// `error` is NULL or writable.
unsafe fn report(result: Result<i32, u32>, error: *mut i32) -> i32 {
    result.unwrap_or_else(|code| {
        if !error.is_null() {
            // SAFETY: writable by the contract.
            unsafe { error.write(code as i32) };
        }
        super::SOCKET_ERROR
    })
}

/// Whether a zero-terminated list of protocols, NULL for all, has `protocol`.
///
/// # Safety
/// `protocols` is NULL or a list that ends with 0.
unsafe fn is_asked_for(mut protocols: *const i32, protocol: i32) -> bool {
    if protocols.is_null() {
        return true;
    }
    loop {
        // SAFETY: the list is not read beyond its end.
        match unsafe { protocols.read() } {
            0 => return false,
            asked if asked == protocol => return true,
            // SAFETY: as above.
            _ => protocols = unsafe { protocols.add(1) },
        }
    }
}

/// `WSCEnumProtocols`: the number of entries; `WSAENOBUFS` and the size when the buffer is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCEnumProtocols(
    protocols: *const i32,
    buffer: *mut ProtocolInfo,
    size: *mut u32,
    error: *mut i32,
) -> i32 {
    // SAFETY: the function's contract.
    let result = match unsafe { size.as_mut() } {
        None => Err(WSAEFAULT),
        Some(size) => {
            let mut entries = entries();
            // SAFETY: the function's contract.
            entries.retain(|entry| unsafe { is_asked_for(protocols, entry.protocol) });
            let needed = entries.len() * SIZE;
            if (*size as usize) < needed || (buffer.is_null() && needed != 0) {
                *size = needed as u32;
                Err(WSAENOBUFS)
            } else {
                for (index, entry) in entries.iter().enumerate() {
                    // SAFETY: the buffer is long enough.
                    unsafe { buffer.add(index).write_unaligned(*entry) };
                }
                Ok(entries.len() as i32)
            }
        }
    };
    // SAFETY: the function's contract.
    unsafe { report(result, error) }
}

/// `WSCGetProviderPath`: the library; the length counts the NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCGetProviderPath(
    provider: *const Guid,
    path: *mut Wchar,
    length: *mut i32,
    error: *mut i32,
) -> i32 {
    // SAFETY: NULL or valid by the function's contract.
    let result = match unsafe { (provider.as_ref(), length.as_mut()) } {
        (Some(id), Some(length)) => {
            let known = providers().into_iter().find(|known| known.id == *id && !known.library.is_empty());
            known.ok_or(WSAEINVAL).and_then(|known| {
                let name = text::to_wide(&known.library);
                let room = usize::try_from(*length).unwrap_or(0);
                *length = name.len() as i32 + 1;
                // SAFETY: the room is promised by the function's contract.
                if unsafe { text::store(&name, path, room) } { Ok(0) } else { Err(WSAEFAULT) }
            })
        }
        _ => Err(WSAEFAULT),
    };
    // SAFETY: the function's contract.
    unsafe { report(result, error) }
}

/// `WSCInstallProvider`: for all users when root asks, else for this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCInstallProvider(
    provider: *const Guid,
    path: *const Wchar,
    infos: *const ProtocolInfo,
    count: u32,
    error: *mut i32,
) -> i32 {
    // SAFETY: the function's contract.
    let result = unsafe { registration(provider, path, infos, count) }.and_then(|(id, text)| {
        if providers().iter().any(|known| known.id == id) {
            return Err(WSAEINVAL);
        }
        let folder = folder::home().ok_or(WSANO_RECOVERY)?;
        std::fs::create_dir_all(&folder).map_err(|_| WSANO_RECOVERY)?;
        folder::add(&folder, &folder::file_name(id), &text).map_err(failure).map(|()| 0)
    });
    // SAFETY: the function's contract.
    unsafe { report(result, error) }
}

/// `WSCUpdateProvider`: another registration in the place of the one there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCUpdateProvider(
    provider: *const Guid,
    path: *const Wchar,
    infos: *const ProtocolInfo,
    count: u32,
    error: *mut i32,
) -> i32 {
    // SAFETY: the function's contract.
    let result = unsafe { registration(provider, path, infos, count) }
        .and_then(|(id, text)| folder::replace(&file_of(id)?, &text).map_err(failure).map(|()| 0));
    // SAFETY: the function's contract.
    unsafe { report(result, error) }
}

/// `WSCDeinstallProvider`: the built-in provider stays (`WSANO_RECOVERY`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCDeinstallProvider(provider: *const Guid, error: *mut i32) -> i32 {
    // SAFETY: NULL or valid by the function's contract.
    let id = unsafe { provider.as_ref() }.copied();
    let result =
        id.ok_or(WSAEFAULT).and_then(|id| std::fs::remove_file(file_of(id)?).map_err(failure).map(|()| 0));
    // SAFETY: the function's contract.
    unsafe { report(result, error) }
}

/// `WSAProviderConfigChange`: whoever asks the catalogue gets it as it is at that moment, so nothing needs telling, and
/// a request that never ends would only keep the program's port busy: this is `WSAEOPNOTSUPP`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAProviderConfigChange(
    _handle: *mut usize,
    _overlapped: *mut c_void,
    _routine: *const c_void,
) -> i32 {
    outcome(Err(WSAEOPNOTSUPP))
}

/// `ndcompat_catalogue_faults` (`ndcompat.h`): which descriptions are left out and why, a line each, as `snprintf` would
/// write it.
///
/// # Safety
/// `buffer` has room for `size` bytes, or `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndcompat_catalogue_faults(buffer: *mut c_char, size: usize) -> usize {
    let text: String = faults().into_iter().map(|fault| fault + "\n").collect();
    if let Some(room) = size.checked_sub(1) {
        let kept = text.len().min(room);
        // SAFETY: one byte more than is kept fits.
        unsafe { text::store(&text.as_bytes()[..kept], buffer.cast::<u8>(), size) };
    }
    text.len()
}
