//! Lists of `addrinfo`, allocated and freed by the C library.

use super::system::Plain;
use libc::{EAI_MEMORY, addrinfo, c_char, c_int};
use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::slice;

/// A list of the C library's, which may be empty.
pub(super) struct List(*mut addrinfo);

impl List {
    pub(super) const EMPTY: List = List(null_mut());

    /// `getaddrinfo`; an error is an EAI_* code.
    ///
    /// # Safety
    /// `service` is NULL or terminated.
    pub(super) unsafe fn look_up(
        node: Option<&CStr>,
        service: *const c_char,
        hints: Option<&addrinfo>,
    ) -> Result<List, c_int> {
        let (node, hints) = (node.map_or(null(), CStr::as_ptr), hints.map_or(null(), std::ptr::from_ref));
        let mut list = null_mut();
        // SAFETY: texts that are NULL or terminated, hints that are NULL or live, and room for a pointer.
        match unsafe { libc::getaddrinfo(node, service, hints, &mut list) } {
            0 => Ok(List(list)),
            code => Err(code),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &addrinfo> {
        // SAFETY: NULL, or an entry of this list, which lives as long.
        let entry = |entry: *mut addrinfo| unsafe { entry.as_ref() };
        std::iter::successors(entry(self.0), move |former| entry(former.ai_next))
    }

    /// Appends another list. The C library frees each entry by itself, so that it can free the whole.
    pub(super) fn append(&mut self, other: List) {
        let mut end = &raw mut self.0;
        loop {
            // SAFETY: the place of the list itself, or within an entry of it.
            let entry = unsafe { end.read() };
            if entry.is_null() {
                break;
            }
            // SAFETY: an entry of the list, which is this one's alone.
            end = unsafe { &raw mut (*entry).ai_next };
        }
        // SAFETY: the place of the list itself, or within its last entry.
        unsafe { end.write(other.into_raw()) };
    }

    /// Leaves each address once, with the type and protocol that were asked for. The C library lists it for each type of socket.
    pub(super) fn unify(&mut self, kind: c_int, protocol: c_int) {
        let mut seen = Vec::new();
        let mut place = &raw mut self.0;
        loop {
            // SAFETY: the place of the list itself, or within an entry of it.
            let entry = unsafe { place.read() };
            // SAFETY: NULL, or an entry of the list, which is this one's alone.
            let Some(found) = (unsafe { entry.as_mut() }) else { return };
            // SAFETY: an address has its length.
            let address = unsafe { slice::from_raw_parts(found.ai_addr.cast(), found.ai_addrlen as usize) };
            let address: Vec<u8> = address.to_vec();
            if seen.contains(&address) {
                let next = std::mem::replace(&mut found.ai_next, null_mut());
                // SAFETY: the place of the list itself, or within an entry of it.
                unsafe { place.write(next) };
                drop(List(entry));
            } else {
                seen.push(address);
                (found.ai_socktype, found.ai_protocol) = (kind, protocol);
                place = &raw mut found.ai_next;
            }
        }
    }

    /// Sets the canonical name, which the first entry has.
    pub(super) fn set_name(&mut self, name: &CStr) -> Result<(), c_int> {
        // SAFETY: NULL, or an entry that is this list's alone.
        let Some(first) = (unsafe { self.0.as_mut() }) else { return Ok(()) };
        // SAFETY: a terminated text. The C library frees the name with `free`.
        let copy = unsafe { libc::strdup(name.as_ptr()) };
        first.ai_canonname = copy;
        if copy.is_null() { Err(EAI_MEMORY) } else { Ok(()) }
    }

    /// Passes the list to the program, which frees it.
    pub(super) fn into_raw(self) -> *mut addrinfo {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.is_empty() {
            // SAFETY: of the C library's, and nobody else's.
            unsafe { libc::freeaddrinfo(self.0) };
        }
    }
}

/// Empty hints.
pub(super) fn no_hints() -> addrinfo {
    addrinfo::zeroed()
}
