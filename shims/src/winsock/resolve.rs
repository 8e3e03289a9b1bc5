//! Look-up of hosts and services: the C library's functions with Winsock's errors.

use super::addrinfo::{List, no_hints};
use super::startup::started;
use super::system::Plain;
use super::{SOCKET_ERROR, failed, own_name};
use crate::arguments::{In, Out, Text};
use crate::boundary::guard;
use crate::error::*;
use crate::text::{self, Unit, Wchar, w};
use libc::{addrinfo, c_char, c_int, sockaddr, sockaddr_storage, socklen_t};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// `hostent`, `servent`, `protoent`: the C library's.
#[repr(C)]
pub struct Entry([u8; 0]);

unsafe extern "C" {
    fn gethostbyname(name: *const c_char) -> *mut Entry;
    fn gethostbyaddr(address: *const c_void, length: socklen_t, family: c_int) -> *mut Entry;
    fn getservbyname(name: *const c_char, protocol: *const c_char) -> *mut Entry;
    fn getservbyport(port: c_int, protocol: *const c_char) -> *mut Entry;
    fn getprotobyname(name: *const c_char) -> *mut Entry;
    fn getprotobynumber(number: c_int) -> *mut Entry;
    fn __h_errno_location() -> *mut c_int;
}

/// The result of `getaddrinfo` and `getnameinfo`, which is also the last error.
pub(super) fn resolved(code: c_int) -> c_int {
    if code == 0 {
        return 0;
    }
    let code = winsock_code(code);
    set_last_error(code);
    code as c_int
}

/// Winsock's code of an error.
pub(super) fn winsock_code(code: c_int) -> u32 {
    match code {
        libc::EAI_AGAIN => WSATRY_AGAIN,
        libc::EAI_BADFLAGS => WSAEINVAL,
        libc::EAI_FAMILY => WSAEAFNOSUPPORT,
        libc::EAI_MEMORY => WSA_NOT_ENOUGH_MEMORY,
        libc::EAI_NONAME | libc::EAI_NODATA => WSAHOST_NOT_FOUND,
        // EAI_ADDRFAMILY
        -9 => WSAHOST_NOT_FOUND,
        libc::EAI_SERVICE => WSATYPE_NOT_FOUND,
        libc::EAI_SOCKTYPE => WSAESOCKTNOSUPPORT,
        libc::EAI_OVERFLOW => ERROR_INSUFFICIENT_BUFFER,
        _ => WSANO_RECOVERY,
    }
}

pub(super) fn not_started() -> c_int {
    set_last_error(WSANOTINITIALISED);
    WSANOTINITIALISED as c_int
}

/// `getaddrinfo`, or the error of it. As on Windows, each address is there once, with the type and protocol of the hints.
pub(super) fn addresses(
    node: Text<'_, u8>,
    service: Text<'_, u8>,
    hints: Option<addrinfo>,
) -> Result<List, c_int> {
    let number = hints.is_some_and(|hints| hints.ai_flags & libc::AI_NUMERICHOST != 0);
    let (kind, protocol) = hints.map_or((0, 0), |hints| (hints.ai_socktype, hints.ai_protocol));
    // The C library refuses a protocol that is none of the type's, Windows passes it on.
    let is_refused = kind != 0 || !matches!(protocol, libc::IPPROTO_TCP | libc::IPPROTO_UDP);
    let hints = hints.map(|hints| addrinfo { ai_protocol: if is_refused { 0 } else { protocol }, ..hints });
    let (node, service) = (node.c_str(), service.as_ptr().cast());
    let found = match node {
        // SAFETY: `service` is NULL or terminated, by the promise of its type.
        Some(node) if !number && own_name::is_own(node.to_bytes()) => unsafe {
            own_name::look_up(service, hints)
        },
        // SAFETY: `service` is NULL or terminated, by the promise of its type.
        _ => unsafe { List::look_up(node, service, hints.as_ref()) },
    };
    found.map(|mut list| {
        list.unify(kind, protocol);
        list
    })
}

/// `getaddrinfo`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_getaddrinfo(
    node: Text<'_, u8>,
    service: Text<'_, u8>,
    hints: In<'_, addrinfo>,
    result: Out<'_, *mut addrinfo>,
) -> c_int {
    guard(WSANO_RECOVERY as c_int, || {
        if !started() {
            return not_started();
        }
        if result.is_null() {
            return resolved(libc::EAI_FAIL);
        }
        result.put(null_mut());
        match addresses(node, service, hints.read()) {
            Ok(list) => {
                result.put(list.into_raw());
                0
            }
            Err(code) => resolved(code),
        }
    })
}

/// `getnameinfo`.
///
/// # Safety
/// `address` is NULL or has `length` bytes; `host` and `service` are NULL or have room for the sizes told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_getnameinfo(
    address: *const sockaddr,
    length: socklen_t,
    host: *mut c_char,
    host_size: socklen_t,
    service: *mut c_char,
    service_size: socklen_t,
    flags: c_int,
) -> c_int {
    guard(WSANO_RECOVERY as c_int, || {
        if !started() {
            return not_started();
        }
        if address.is_null() {
            set_last_error(WSAEFAULT);
            return WSAEFAULT as c_int;
        }
        let (no_host, no_service) =
            (host.is_null() || host_size == 0, service.is_null() || service_size == 0);
        // SAFETY: C's caller has an address of that length, and room of these sizes.
        resolved(unsafe {
            libc::getnameinfo(
                address,
                length,
                if no_host { null_mut() } else { host },
                if no_host { 0 } else { host_size },
                if no_service { null_mut() } else { service },
                if no_service { 0 } else { service_size },
                flags,
            )
        })
    })
}

/// `ADDRINFOW`, with the fields of Linux's `addrinfo` and a wide name.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are those of the C library
pub struct AddrInfoW {
    pub flags: c_int,
    pub family: c_int,
    pub kind: c_int,
    pub protocol: c_int,
    pub address_length: usize,
    pub name: *mut Wchar,
    pub address: *mut sockaddr,
    pub next: *mut AddrInfoW,
}

/// A text as a C string; `None` for NULL and invalid characters.
pub(super) fn narrow<T: Unit>(text: Text<'_, T>) -> Option<CString> {
    CString::new(text.read()?).ok()
}

pub(super) fn text_or_null(text: &Option<CString>) -> Text<'_, u8> {
    text.as_deref().map_or(Text::NULL, Text::from)
}

/// `GetAddrInfoW`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetAddrInfoW(
    node: Text<'_, Wchar>,
    service: Text<'_, Wchar>,
    hints: In<'_, AddrInfoW>,
    result: Out<'_, *mut AddrInfoW>,
) -> c_int {
    guard(WSANO_RECOVERY as c_int, || {
        if result.is_null() {
            return resolved(libc::EAI_FAIL);
        }
        result.put(null_mut());
        if !started() {
            return not_started();
        }
        let (node, service) = (narrow(node), narrow(service));
        let hints = hints.read().map(|hints| addrinfo {
            ai_flags: hints.flags,
            ai_family: hints.family,
            ai_socktype: hints.kind,
            ai_protocol: hints.protocol,
            ..no_hints()
        });
        let list = match addresses(text_or_null(&node), text_or_null(&service), hints) {
            Ok(list) => list,
            Err(code) => return resolved(code),
        };
        let entries: Vec<_> = list.entries().map(widened).collect();
        // From the last entry to the first, as each points to the next one.
        let first = entries
            .into_iter()
            .rev()
            .fold(null_mut(), |next, entry| Box::into_raw(Box::new(AddrInfoW { next, ..entry })));
        result.put(first);
        0
    })
}

/// The same entry with a wide name, and without a next one.
fn widened(found: &addrinfo) -> AddrInfoW {
    let mut address = Box::new(sockaddr_storage::zeroed());
    let length = (found.ai_addrlen as usize).min(size_of::<sockaddr_storage>());
    let target = (&raw mut *address).cast::<u8>();
    // SAFETY: an address has its length, and the storage has room for every one.
    unsafe { target.copy_from_nonoverlapping(found.ai_addr.cast(), length) };
    // SAFETY: the C library's names are NULL or terminated.
    let name = unsafe { text::narrow(found.ai_canonname) };
    let name = name.map_or(null_mut(), |name| {
        Box::into_raw(w(&String::from_utf8_lossy(name)).into_boxed_slice()).cast::<Wchar>()
    });
    AddrInfoW {
        flags: found.ai_flags,
        family: found.ai_family,
        kind: found.ai_socktype,
        protocol: found.ai_protocol,
        address_length: found.ai_addrlen as usize,
        name,
        address: Box::into_raw(address).cast(),
        next: null_mut(),
    }
}

/// `FreeAddrInfoW`.
///
/// # Safety
/// `list` is NULL or from `GetAddrInfoW`, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_FreeAddrInfoW(list: *mut AddrInfoW) {
    let mut next = list;
    while !next.is_null() {
        // SAFETY: an entry that `GetAddrInfoW` has boxed, and C's caller has done with.
        let entry = unsafe { Box::from_raw(next) };
        next = entry.next;
        // SAFETY: `widened` has boxed it.
        drop(unsafe { Box::from_raw(entry.address.cast::<sockaddr_storage>()) });
        // SAFETY: NULL or terminated, as `widened` has made it.
        if let Some(name) = unsafe { text::wide(entry.name) } {
            let whole = std::ptr::slice_from_raw_parts_mut(entry.name, name.len() + 1);
            // SAFETY: `widened` has boxed it: a text with its NUL.
            drop(unsafe { Box::from_raw(whole) });
        }
    }
}

/// `GetNameInfoW`.
///
/// # Safety
/// `address` is NULL or has `length` bytes; `host` and `service` are NULL or have room for the sizes told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetNameInfoW(
    address: *const sockaddr,
    length: socklen_t,
    host: *mut Wchar,
    host_size: u32,
    service: *mut Wchar,
    service_size: u32,
    flags: c_int,
) -> c_int {
    guard(WSANO_RECOVERY as c_int, || {
        // NI_MAXHOST and NI_MAXSERV.
        let (mut host_text, mut service_text) = ([0 as c_char; 1025], [0 as c_char; 32]);
        let room =
            |target: *mut Wchar, size: u32, most: usize| if target.is_null() || size == 0 { 0 } else { most };
        let (for_host, for_service) =
            (room(host, host_size, host_text.len()), room(service, service_size, service_text.len()));
        // SAFETY: C's caller has an address of that length; the room is told no larger than it is.
        let code = unsafe {
            ndw_getnameinfo(
                address,
                length,
                host_text.as_mut_ptr(),
                for_host as u32,
                service_text.as_mut_ptr(),
                for_service as u32,
                flags,
            )
        };
        if code != 0 {
            return code;
        }
        // SAFETY: a terminated text, and C's caller has room for `host_size` characters.
        let host_fits = for_host == 0 || unsafe { store(host_text.as_ptr(), host, host_size) };
        // SAFETY: a terminated text, and C's caller has room for `service_size` characters.
        let fits =
            host_fits && (for_service == 0 || unsafe { store(service_text.as_ptr(), service, service_size) });
        if fits { 0 } else { resolved(libc::EAI_OVERFLOW) }
    })
}

/// # Safety
/// `text` is terminated, and `target` has room for `size` characters.
unsafe fn store(text: *const c_char, target: *mut Wchar, size: u32) -> bool {
    // SAFETY: terminated, as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    // SAFETY: room for so many characters, as the caller promises.
    unsafe { text::store(&text::to_wide(&text.to_string_lossy()), target, size as usize) }
}

/// `gethostname`.
///
/// # Safety
/// `name` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_gethostname(name: *mut c_char, size: usize) -> c_int {
    guard(SOCKET_ERROR, || {
        let fail = |errno, code| {
            failed(errno, code);
            SOCKET_ERROR
        };
        if !started() {
            return fail(libc::ENETDOWN, WSANOTINITIALISED);
        }
        let system = rustix::system::uname();
        let own = system.nodename();
        let length = own.count_bytes() + 1;
        if name.is_null() || size > i32::MAX as usize || size < length {
            return fail(libc::ENAMETOOLONG, WSAEFAULT);
        }
        // SAFETY: it fits.
        unsafe { name.copy_from_nonoverlapping(own.as_ptr(), length) };
        0
    })
}

/// `GetHostNameW`.
///
/// # Safety
/// `name` is NULL or has room for `size` characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetHostNameW(name: *mut Wchar, size: c_int) -> c_int {
    guard(SOCKET_ERROR, || {
        if !started() {
            set_last_error(WSANOTINITIALISED);
            return SOCKET_ERROR;
        }
        let own = text::to_wide(&rustix::system::uname().nodename().to_string_lossy());
        // SAFETY: NULL, or room for so many characters.
        if unsafe { text::store(&own, name, usize::try_from(size).unwrap_or(0)) } {
            return 0;
        }
        set_last_error(WSAEFAULT);
        SOCKET_ERROR
    })
}

/// An entry, or the error for a missing one.
fn found(entry: *mut Entry, code: impl FnOnce() -> u32) -> *mut Entry {
    if entry.is_null() {
        set_last_error(code());
    }
    entry
}

fn host_error() -> u32 {
    // SAFETY: takes nothing.
    let place = unsafe { __h_errno_location() };
    // SAFETY: the calling thread's own.
    match unsafe { place.read() } {
        1 => WSAHOST_NOT_FOUND,
        2 => WSATRY_AGAIN,
        4 => WSANO_DATA,
        _ => WSANO_RECOVERY,
    }
}

/// Runs a look-up, if Winsock has been started.
fn look_up(find: impl FnOnce() -> *mut Entry, code: impl FnOnce() -> u32) -> *mut Entry {
    guard(null_mut(), || {
        if !started() {
            set_last_error(WSANOTINITIALISED);
            return null_mut();
        }
        found(find(), code)
    })
}

/// `gethostbyname`: without a name, of this host.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_gethostbyname(name: Text<'_, u8>) -> *mut Entry {
    let own = name.units().is_none_or(own_name::is_own);
    let find = || match own {
        true => own_name::host().map_or(null_mut(), <*mut _>::cast),
        // SAFETY: terminated, by the promise of its type.
        false => unsafe { gethostbyname(name.as_ptr().cast()) },
    };
    look_up(find, || if own { WSANO_DATA } else { host_error() })
}

/// `gethostbyaddr`.
///
/// # Safety
/// `address` is NULL or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_gethostbyaddr(
    address: *const c_void,
    length: socklen_t,
    family: c_int,
) -> *mut Entry {
    if address.is_null() {
        set_last_error(WSAEFAULT);
        return null_mut();
    }
    // SAFETY: C's caller has an address of that length.
    look_up(|| unsafe { gethostbyaddr(address, length, family) }, host_error)
}

/// `getservbyname`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_getservbyname(name: Text<'_, u8>, protocol: Text<'_, u8>) -> *mut Entry {
    let (name, protocol) = (name.as_ptr().cast::<c_char>(), protocol.as_ptr().cast());
    if name.is_null() {
        set_last_error(WSANO_DATA);
        return null_mut();
    }
    // SAFETY: terminated, or NULL for the second, by the promise of their type.
    look_up(|| unsafe { getservbyname(name, protocol) }, || WSANO_DATA)
}

/// `getservbyport`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_getservbyport(port: c_int, protocol: Text<'_, u8>) -> *mut Entry {
    // SAFETY: NULL or terminated, by the promise of its type.
    look_up(|| unsafe { getservbyport(port, protocol.as_ptr().cast()) }, || WSANO_DATA)
}

/// `getprotobyname`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_getprotobyname(name: Text<'_, u8>) -> *mut Entry {
    let name = name.as_ptr().cast::<c_char>();
    if name.is_null() {
        set_last_error(WSANO_DATA);
        return null_mut();
    }
    // SAFETY: terminated, by the promise of its type.
    look_up(|| unsafe { getprotobyname(name) }, || WSANO_DATA)
}

/// `getprotobynumber`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_getprotobynumber(number: c_int) -> *mut Entry {
    // SAFETY: takes no pointer.
    look_up(|| unsafe { getprotobynumber(number) }, || WSANO_DATA)
}

/// The text of an error, made by `make` once and never freed.
fn kept<T: 'static>(
    texts: &Mutex<BTreeMap<c_int, Vec<T>>>,
    code: c_int,
    make: impl FnOnce(&str) -> Vec<T>,
) -> *const T {
    let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
    let text = texts.entry(code).or_insert_with(|| {
        let known = crate::error::describe(code as u32);
        make(&known.unwrap_or_else(|| format!("Error {code}")))
    });
    text.as_ptr()
}

/// `gai_strerror`, for what `getaddrinfo` returns here.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_gai_strerror(code: c_int) -> *const c_char {
    static TEXTS: Mutex<BTreeMap<c_int, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let bytes = |text: &str| [text.as_bytes(), b"\0"].concat();
    guard(c"".as_ptr(), || kept(&TEXTS, code, bytes).cast())
}

/// `gai_strerrorW`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_gai_strerrorW(code: c_int) -> *const Wchar {
    static TEXTS: Mutex<BTreeMap<c_int, Vec<Wchar>>> = Mutex::new(BTreeMap::new());
    guard([0].as_ptr(), || kept(&TEXTS, code, w))
}
