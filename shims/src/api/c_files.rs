//! What Microsoft's C library has between its descriptors and handles (`_get_osfhandle`, `_open_osfhandle`), and its searches
//! (`_findfirst64`).

use super::file_names::path;
use super::standard_handles::ndw_GetStdHandle;
use crate::arguments::{Out, Text};
use crate::boundary::guard;
use crate::error::{set_errno, set_last_error};
use crate::files::disk::DiskFile;
use crate::files::search::{Found, Search};
use crate::files::{ATTRIBUTE_NORMAL, attributes};
use crate::object::{Object, RawHandle, callbacks, handle};
use crate::text::{Unit, narrow_and_wide};
use libc::c_int;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// `errno`, and the result that goes with it.
fn refused<R>(errno: c_int, result: R) -> R {
    set_errno(errno);
    result
}

/// The handles of descriptors, each with the file that it was given for.
static HANDLES: Mutex<BTreeMap<c_int, (RawHandle, Identity)>> = Mutex::new(BTreeMap::new());

/// Device and inode.
type Identity = (u64, u64);

/// `_get_osfhandle`: a handle of the same file, which lives as long as the descriptor; `INVALID_HANDLE_VALUE` and `EBADF`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__get_osfhandle(fd: c_int) -> RawHandle {
    guard(RawHandle::INVALID, || {
        if let 0..=2 = fd {
            // STD_INPUT_HANDLE and so on
            return match ndw_GetStdHandle((-10 - fd) as u32) {
                RawHandle::NULL => refused(libc::EBADF, RawHandle::INVALID),
                handle => handle,
            };
        }
        let Some(file) = DiskFile::borrowed(fd) else { return refused(libc::EBADF, RawHandle::INVALID) };
        let Ok(identity) = file.metadata().map(|known| (known.dev(), known.ino())) else {
            return refused(libc::EBADF, RawHandle::INVALID);
        };
        let mut handles = HANDLES.lock();
        if let Some((known, of)) = handles.get(&fd) {
            let (known, is_open) = (*known, handle::get(*known).is_some());
            if *of == identity && is_open {
                return known;
            }
            if is_open {
                // The descriptor was closed, and has another file now.
                drop(handle::close(known));
            }
        }
        let Ok(handle) = crate::object::open(Object::Disk(Arc::new(file))) else {
            return refused(libc::EMFILE, RawHandle::INVALID);
        };
        handles.insert(fd, (handle, identity));
        handle
    })
}

/// `_open_osfhandle`: the descriptor of a handle's file, which it belongs to from then on: closing it closes the file. The flags say
/// nothing here.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__open_osfhandle(file: RawHandle, _flags: c_int) -> c_int {
    guard(-1, || {
        let Some(Object::Disk(disk)) = handle::get(file) else { return refused(libc::EBADF, -1) };
        let Ok(identity) = disk.metadata().map(|known| (known.dev(), known.ino())) else {
            return refused(libc::EBADF, -1);
        };
        let fd = disk.lend();
        HANDLES.lock().insert(fd, (file, identity));
        fd
    })
}

/// `__finddata64_t` and `_wfinddata64_t`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Microsoft's
pub struct FindData64<T> {
    pub attributes: u32,
    pub creation: i64,
    pub last_access: i64,
    pub last_write: i64,
    pub size: i64,
    pub name: [T; 260],
}

fn deliver<T: Unit>(found: &Found, data: Out<'_, FindData64<T>>) {
    let mut name = [T::default(); 260];
    for (unit, c) in name[..259].iter_mut().zip(T::spell(&found.name.to_string_lossy())) {
        *unit = c;
    }
    let file = &found.metadata;
    data.put(FindData64 {
        attributes: attributes(file) & !ATTRIBUTE_NORMAL,
        creation: file.ctime(),
        last_access: file.atime(),
        last_write: file.mtime(),
        size: file.len() as i64,
        name,
    });
}

fn first<T: Unit>(name: Text<'_, T>, data: Out<'_, FindData64<T>>) -> RawHandle {
    guard(RawHandle::INVALID, || {
        if name.as_ptr().is_null() || data.is_null() {
            return refused(libc::EINVAL, RawHandle::INVALID);
        }
        let search = path(name).and_then(|path| Search::begin(&path));
        let Ok((search, found)) = search.and_then(|search| search.next().map(|found| (search, found))) else {
            return refused(libc::ENOENT, RawHandle::INVALID);
        };
        let Ok(handle) = callbacks::open(Arc::new(search)) else {
            return refused(libc::ENOMEM, RawHandle::INVALID);
        };
        deliver(&found, data);
        handle
    })
}

fn next<T: Unit>(search: RawHandle, data: Out<'_, FindData64<T>>) -> c_int {
    guard(-1, || {
        let Ok(search) = callbacks::get::<Search>(search) else { return refused(libc::EINVAL, -1) };
        if data.is_null() {
            return refused(libc::EINVAL, -1);
        }
        match search.next() {
            Ok(found) => {
                deliver(&found, data);
                0
            }
            Err(code) => {
                set_last_error(code);
                refused(libc::ENOENT, -1)
            }
        }
    })
}

/// `_findclose`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__findclose(search: RawHandle) -> c_int {
    guard(-1, || match callbacks::take::<Search>(search) {
        Ok(_) => 0,
        Err(_) => refused(libc::EINVAL, -1),
    })
}

narrow_and_wide! {
    "`_findfirst64`: in the order of names; `ENOENT` if nothing matches."
    ndw__findfirst64 ndw__wfindfirst64 = first(name: Text<'_, T>, data: Out<'_, FindData64<T>>) -> RawHandle;
    "`_findnext64`: `ENOENT` after the last."
    ndw__findnext64 ndw__wfindnext64 = next(search: RawHandle, data: Out<'_, FindData64<T>>) -> c_int;
}
