//! `FindFirstFile` and `FindNextFile`.

use super::file_names::{FileData, MAX_PATH, path};
use crate::arguments::{Out, Text};
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::files::search::{Found, Search};
use crate::object::{Object, RawHandle, handle};
use crate::text::{Unit, narrow_and_wide};
use std::ffi::c_void;
use std::sync::Arc;

/// `WIN32_FIND_DATA`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Windows'
pub struct FindData<T> {
    pub data: FileData,
    pub reserved: [u32; 2],
    pub name: [T; MAX_PATH],
    pub alternate: [T; 14],
}

const _: () = assert!(size_of::<FindData<u8>>() == 320);

/// Writes the data of a found file. A name that does not fit is truncated.
fn deliver<T: Unit>(found: &Found, data: Out<'_, FindData<T>>) {
    let mut name = [T::default(); MAX_PATH];
    for (unit, c) in name[..MAX_PATH - 1].iter_mut().zip(T::spell(&found.name.to_string_lossy())) {
        *unit = c;
    }
    let found =
        FindData { data: (&found.metadata).into(), reserved: [0; 2], name, alternate: [T::default(); 14] };
    data.put(found);
}

fn find_first<T: Unit>(name: Text<'_, T>, data: Out<'_, FindData<T>>) -> RawHandle {
    guard(RawHandle::INVALID, || {
        let begin = || {
            if data.is_null() {
                return Err(ERROR_INVALID_PARAMETER);
            }
            let search = Search::begin(&path(name)?)?;
            let found = search.next()?;
            let handle = crate::object::open(Object::Search(Arc::new(search)))?;
            deliver(&found, data);
            Ok(handle)
        };
        begin().unwrap_or_else(|code| {
            set_last_error(code);
            RawHandle::INVALID
        })
    })
}

/// Levels 0 and 1 differ only in the alternate name, which does not exist here. Only FindExSearchNameMatch is supported.
fn find_first_ex<T: Unit>(
    name: Text<'_, T>,
    level: u32,
    data: Out<'_, FindData<T>>,
    operation: u32,
    _filter: *const c_void,
    _flags: u32,
) -> RawHandle {
    if level > 1 || operation > 2 {
        set_last_error(ERROR_INVALID_PARAMETER);
        return RawHandle::INVALID;
    }
    find_first(name, data)
}

fn find_next<T: Unit>(search: RawHandle, data: Out<'_, FindData<T>>) -> i32 {
    guard_bool(|| {
        let Some(Object::Search(search)) = handle::get(search) else { return Err(ERROR_INVALID_HANDLE) };
        if data.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        deliver(&search.next()?, data);
        Ok(())
    })
}

/// `FindClose`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FindClose(search: RawHandle) -> i32 {
    guard_bool(|| match handle::get(search) {
        Some(Object::Search(_)) => handle::close(search).map(drop).ok_or(ERROR_INVALID_HANDLE),
        _ => Err(ERROR_INVALID_HANDLE),
    })
}

narrow_and_wide! {
    "`FindFirstFile`: in the order of names."
    ndw_FindFirstFileA ndw_FindFirstFileW = find_first(name: Text<'_, T>, data: Out<'_, FindData<T>>) -> RawHandle;
    "`FindFirstFileEx`."
    ndw_FindFirstFileExA ndw_FindFirstFileExW = find_first_ex(
        name: Text<'_, T>,
        level: u32,
        data: Out<'_, FindData<T>>,
        operation: u32,
        filter: *const c_void,
        flags: u32,
    ) -> RawHandle;
    "`FindNextFile`."
    ndw_FindNextFileA ndw_FindNextFileW = find_next(search: RawHandle, data: Out<'_, FindData<T>>) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_names::tests::Folder;
    use crate::api::handle::close_handle;
    use crate::text::{self, w};
    use std::ptr::null;

    #[test]
    fn a_search_finds_what_matches() {
        let folder = Folder::new();
        ["b.txt", "A.TXT", "c.dat"].iter().for_each(|name| _ = folder.file(name, b"12"));
        let empty =
            FindData { data: FileData::default(), reserved: [0; 2], name: [0; MAX_PATH], alternate: [0; 14] };
        let find = |pattern: &str| {
            let mut data = empty;
            let mut names = Vec::new();
            let name = |data: &FindData<u32>| text::from_wide(&data.name).trim_end_matches('\0').to_owned();
            let search = find_first(Text::terminated(&w(&folder.name(pattern))), (&mut data).into());
            if search == RawHandle::INVALID {
                return Err(last_error());
            }
            loop {
                names.push(name(&data));
                if find_next(search, (&mut data).into()) == 0 {
                    break;
                }
            }
            assert_eq!(last_error(), ERROR_NO_MORE_FILES);
            assert_eq!((ndw_FindClose(search), ndw_FindClose(search)), (1, 0));
            assert_eq!((find_next(search, (&mut data).into()), last_error()), (0, ERROR_INVALID_HANDLE));
            Ok(names)
        };
        assert_eq!(find("*.txt").unwrap(), ["A.TXT", "b.txt"]);
        assert_eq!(find("*").unwrap(), [".", "..", "A.TXT", "b.txt", "c.dat"]);
        assert_eq!((find("*.*").unwrap().len(), find("?.dat").unwrap().len()), (5, 1));
        assert_eq!(find("c.dat").unwrap(), ["c.dat"]);
        assert_eq!((find("*.none"), find("none/*")), (Err(ERROR_FILE_NOT_FOUND), Err(ERROR_PATH_NOT_FOUND)));
        assert_eq!(find(""), Err(ERROR_FILE_NOT_FOUND), "a slash at the end");
        let mut data = empty;
        let search = find_first(Text::terminated(&w(&folder.name("c.dat"))), (&mut data).into());
        assert_eq!((data.data.attributes, data.data.size_low), (0x80, 2));
        assert_eq!((find_next::<u32>(search, Out::NULL), last_error()), (0, ERROR_INVALID_PARAMETER));
        assert_eq!(
            (close_handle(search), last_error()),
            (0, ERROR_INVALID_HANDLE),
            "it is not that kind of handle"
        );
        assert_eq!(ndw_FindClose(search), 1);
        let pattern = w(&folder.name("*"));
        assert_eq!(find_first::<u32>(Text::terminated(&pattern), Out::NULL), RawHandle::INVALID);
        let search = find_first_ex(Text::terminated(&pattern), 1, (&mut data).into(), 0, null(), 2);
        assert_eq!(ndw_FindClose(search), 1);
        assert_eq!(
            find_first_ex(Text::terminated(&pattern), 2, (&mut data).into(), 0, null(), 0),
            RawHandle::INVALID
        );
        assert_eq!((last_error(), ndw_FindClose(RawHandle::NULL)), (ERROR_INVALID_PARAMETER, 0));
    }
}
