//! The provider catalogue of Winsock: the NetworkDirect providers and their libraries.
//!
//! The library that holds this runtime is always its first entry. Others are described by files (`description`), one provider
//! each, in a folder of the system and one of the user's (`folder`), where packages and `WSCInstallProvider` put them. Invalid
//! files are left out; [`faults`] returns the reasons.

mod description;
mod folder;
mod protocol;
#[cfg(test)]
mod tests;

pub use description::Provider;
pub(super) use folder::folders;
pub use protocol::{Guid, ProtocolInfo, ProtocolInfoA, Spi};

use crate::arguments::{In, InOut, Out, Text};
use crate::error::*;
use crate::library::runtime_path;
use crate::logging;
use crate::text::{self, Wchar};
use std::ffi::c_char;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

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

/// The providers described by files.
fn described() -> (Vec<folder::Described>, Vec<folder::Fault>) {
    let (mut described, mut faults) = folder::read(&folder::folders());
    faults.extend(folder::relative());
    // A file may describe the built-in provider again.
    described.retain(|described| described.provider.id != BUILT_IN);
    (described, faults)
}

/// All providers, the built-in one first.
pub fn providers() -> Vec<Provider> {
    let (described, faults) = described();
    report(faults);
    std::iter::once(built_in()).chain(described.into_iter().map(|described| described.provider)).collect()
}

/// The catalogue as a whole: where it was looked for, what it has, what was refused.
#[derive(Debug)]
pub struct Catalogue {
    /// The folders of descriptions, in order of precedence.
    pub folders: Vec<PathBuf>,
    /// The providers, the built-in one first, each with the file that describes it.
    pub providers: Vec<(Provider, Option<PathBuf>)>,
    /// The refused descriptions and the reasons: `path:line: reason`.
    pub faults: Vec<String>,
}

/// Reads the whole catalogue. Refused descriptions are returned, not logged.
pub fn read() -> Catalogue {
    let (described, faults) = described();
    let files = described.into_iter().map(|described| (described.provider, Some(described.file)));
    Catalogue {
        folders: folder::folders(),
        providers: std::iter::once((built_in(), None)).chain(files).collect(),
        faults: faults.iter().map(line).collect(),
    }
}

/// The refused descriptions and the reasons: `path:line: reason`.
pub fn faults() -> Vec<String> {
    described().1.iter().map(line).collect()
}

fn line(fault: &folder::Fault) -> String {
    let (path, mistake) = (fault.path.display(), &fault.mistake);
    match mistake.line {
        0 => format!("{path}: {}", mistake.reason),
        line => format!("{path}:{line}: {}", mistake.reason),
    }
}

/// Logs refused descriptions, each fault once.
fn report(faults: Vec<folder::Fault>) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let new: Vec<_> = faults.iter().map(line).filter(|line| !told.contains(line)).collect();
    told.extend_from_slice(&new);
    drop(told);
    for line in new {
        logging::start();
        tracing::warn!(target: "ndcompat::providers", "a provider's description is left out: {line}");
    }
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

/// A registration from the arguments of `WSCInstallProvider`.
///
/// # Safety
/// `infos` is NULL or has `count` entries.
unsafe fn registration(
    id: In<'_, Guid>,
    path: Text<'_, Wchar>,
    infos: *const ProtocolInfo,
    count: u32,
) -> Result<(Guid, String), u32> {
    let (id, library) = id.read().zip(path.units()).ok_or(WSAEFAULT)?;
    let library = text::exact(library).ok_or(WSAEINVAL)?;
    if infos.is_null() {
        return Err(WSAEFAULT);
    }
    let protocol = |index| {
        let info = infos.wrapping_add(index);
        // SAFETY: an entry of the list, as the caller promises.
        let info = unsafe { info.read_unaligned() };
        // Only base providers are supported; 0 if the caller has left the chain out.
        (matches!(info.chain_length, 0 | 1) && text::exact(info.name_units()).is_some())
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
        // Another process has changed it.
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => WSAEINVAL,
        io::ErrorKind::OutOfMemory => ERROR_NOT_ENOUGH_MEMORY,
        _ => WSANO_RECOVERY,
    }
}

/// Reports the outcome through a pointer, as catalogue functions do.
fn answer(result: Result<i32, u32>, error: Out<'_, i32>) -> i32 {
    result.unwrap_or_else(|code| {
        error.put(code as i32);
        super::SOCKET_ERROR
    })
}

/// Whether `protocol` is in a zero-terminated list; NULL is all protocols.
///
/// # Safety
/// `protocols` is NULL or a list that ends with 0.
pub(super) unsafe fn is_asked_for(protocols: *const i32, protocol: i32) -> bool {
    // SAFETY: the list is not read beyond its end.
    let mut asked =
        (0..).map(|at| unsafe { protocols.wrapping_add(at).read() }).take_while(|asked| *asked != 0);
    protocols.is_null() || asked.any(|asked| asked == protocol)
}

/// `WSCEnumProtocols`: the number of entries; `WSAENOBUFS` and the size when the buffer is too small.
///
/// # Safety
/// `protocols` is NULL or a list that ends with 0; `buffer` is NULL or has room for `*size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCEnumProtocols(
    protocols: *const i32,
    buffer: *mut ProtocolInfo,
    size: InOut<'_, u32>,
    error: Out<'_, i32>,
) -> i32 {
    let list = || {
        let room = size.read().ok_or(WSAEFAULT)? as usize;
        let mut entries = entries();
        // SAFETY: C's caller has a list that ends with 0, or NULL.
        entries.retain(|entry| unsafe { is_asked_for(protocols, entry.protocol) });
        let needed = entries.len() * SIZE;
        if room < needed || (buffer.is_null() && needed != 0) {
            size.put(needed as u32);
            return Err(WSAENOBUFS);
        }
        // SAFETY: as many bytes as the buffer is told to have; a program's buffer may have any alignment.
        unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(entries.as_ptr().cast(), needed) };
        Ok(entries.len() as i32)
    };
    answer(list(), error)
}

/// `WSCGetProviderPath`: the library; the length counts the NUL.
///
/// # Safety
/// `path` is NULL or has room for `*length` characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCGetProviderPath(
    provider: In<'_, Guid>,
    path: *mut Wchar,
    length: InOut<'_, i32>,
    error: Out<'_, i32>,
) -> i32 {
    let find = || {
        let (id, room) = provider.read().zip(length.read()).ok_or(WSAEFAULT)?;
        let known = providers().into_iter().find(|known| known.id == id && !known.library.is_empty());
        let name = text::to_wide(&known.ok_or(WSAEINVAL)?.library);
        length.put(name.len() as i32 + 1);
        // SAFETY: C's caller has room for so many characters, or NULL.
        let stored = unsafe { text::store(&name, path, usize::try_from(room).unwrap_or(0)) };
        if stored { Ok(0) } else { Err(WSAEFAULT) }
    };
    answer(find(), error)
}

/// `WSCInstallProvider`: for all users when root asks, else for this one.
///
/// # Safety
/// `infos` is NULL or has `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCInstallProvider(
    provider: In<'_, Guid>,
    path: Text<'_, Wchar>,
    infos: *const ProtocolInfo,
    count: u32,
    error: Out<'_, i32>,
) -> i32 {
    // SAFETY: C's caller has `count` entries, or NULL.
    let result = unsafe { registration(provider, path, infos, count) }.and_then(|(id, text)| {
        if providers().iter().any(|known| known.id == id) {
            return Err(WSAEINVAL);
        }
        let folder = folder::home().ok_or(WSANO_RECOVERY)?;
        folder::make(&folder).map_err(|_| WSANO_RECOVERY)?;
        folder::add(&folder, &folder::file_name(id), &text).map_err(failure).map(|()| 0)
    });
    answer(result, error)
}

/// `WSCUpdateProvider`: replaces the registration.
///
/// # Safety
/// `infos` is NULL or has `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCUpdateProvider(
    provider: In<'_, Guid>,
    path: Text<'_, Wchar>,
    infos: *const ProtocolInfo,
    count: u32,
    error: Out<'_, i32>,
) -> i32 {
    // SAFETY: C's caller has `count` entries, or NULL.
    let result = unsafe { registration(provider, path, infos, count) }
        .and_then(|(id, text)| folder::replace(&file_of(id)?, &text).map_err(failure).map(|()| 0));
    answer(result, error)
}

/// `WSCDeinstallProvider`: the built-in provider cannot be removed (`WSANO_RECOVERY`).
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSCDeinstallProvider(provider: In<'_, Guid>, error: Out<'_, i32>) -> i32 {
    let remove = |id| std::fs::remove_file(file_of(id)?).map_err(failure);
    let result = provider.read().ok_or(WSAEFAULT).and_then(remove).map(|()| 0);
    answer(result, error)
}

/// `ndcompat_catalogue_faults` (`ndcompat.h`): the refused descriptions and the reasons, one a line, written as by `snprintf`.
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
