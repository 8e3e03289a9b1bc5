//! What Microsoft's C library has between its descriptors and handles (`_get_osfhandle`, `_open_osfhandle`), its searches
//! (`_findfirst64`), and how it opens, deletes and renames files, where Linux does so by other rules.

use super::file_names::{MOVE_COPIES, delete_file, move_file, path};
use super::standard_handles::ndw_GetStdHandle;
use crate::arguments::{Out, Text};
use crate::boundary::guard;
use crate::error::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_DISK_FULL, ERROR_FILE_EXISTS, ERROR_FILE_NOT_FOUND,
    ERROR_NOT_ENOUGH_MEMORY, ERROR_NOT_SAME_DEVICE, ERROR_PATH_NOT_FOUND, ERROR_SHARING_VIOLATION, set_errno,
    set_last_error,
};
use crate::files::disk::DiskFile;
use crate::files::search::{Found, Search};
use crate::files::{ATTRIBUTE_NORMAL, attributes};
use crate::io::threads::ForkLock;
use crate::object::{Object, RawHandle, callbacks, handle};
use crate::text::{Unit, Wchar, narrow_and_wide};
use libc::c_int;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// `errno`, and the result that goes with it.
fn refused<R>(errno: c_int, result: R) -> R {
    set_errno(errno);
    result
}

/// The handles of descriptors, each with the file that it was given for: the handle's number may be another object's by now.
/// A forked child has the descriptors, but not the handles, whose locks are the parent's.
static HANDLES: ForkLock<BTreeMap<c_int, (RawHandle, Weak<DiskFile>)>> =
    ForkLock::new(BTreeMap::new(), std::mem::take);

/// The file of a handle that was given for a descriptor, if it is open still.
fn given((handle, file): &(RawHandle, Weak<DiskFile>)) -> Option<Arc<DiskFile>> {
    match handle::get(*handle)? {
        Object::Disk(found) if std::ptr::eq(Arc::as_ptr(&found), file.as_ptr()) => Some(found),
        _ => None,
    }
}

/// Closes the handle of a descriptor that has another file by now.
fn close_stale(known: &(RawHandle, Weak<DiskFile>)) {
    if let Some(file) = given(known) {
        file.disown();
        drop(handle::close(known.0));
    }
}

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
        // Dropped after the lock, should it be the last reference.
        let known;
        let mut handles = HANDLES.lock();
        known = handles.get(&fd).and_then(|known| Some((known.0, given(known)?)));
        if let Some((handle, _)) = known.as_ref().filter(|(_, file)| !file.is_stale()) {
            return *handle;
        }
        let file = Arc::new(file);
        let Ok(handle) = crate::object::open(Object::Disk(file.clone())) else {
            return refused(libc::EMFILE, RawHandle::INVALID);
        };
        let former = handles.insert(fd, (handle, Arc::downgrade(&file)));
        drop(handles);
        // The descriptor was closed, by something that is not told here, and has another file now.
        former.iter().for_each(close_stale);
        handle
    })
}

/// `_open_osfhandle`: the descriptor of a handle's file, which it belongs to from then on: closing it closes the file. The flags say
/// nothing here.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__open_osfhandle(file: RawHandle, _flags: c_int) -> c_int {
    guard(-1, || {
        let Some(Object::Disk(disk)) = handle::get(file) else { return refused(libc::EBADF, -1) };
        let fd = disk.lend();
        let former = HANDLES.lock().insert(fd, (file, Arc::downgrade(&disk)));
        // A handle of the descriptor's earlier life, unless this very one.
        former.iter().filter(|(handle, _)| *handle != file).for_each(close_stale);
        fd
    })
}

/// `_close`: the handle of the descriptor goes with it, and its locks.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__close(fd: c_int) -> c_int {
    guard(-1, || {
        let known = HANDLES.lock().remove(&fd);
        if let Some((known, file)) = known.as_ref().and_then(|known| Some((known, given(known)?))) {
            if file.is_stale() {
                file.disown();
            }
            drop(file);
            drop(handle::close(known.0));
        }
        // SAFETY: takes no pointer; whose descriptor it is, is the program's care.
        unsafe { libc::close(fd) }
    })
}

/// `errno` for an error of Windows.
fn errno_of(code: u32) -> c_int {
    match code {
        ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND => libc::ENOENT,
        // What is there already, and a folder that would go to another file system, are EACCES in `rename`.
        ERROR_ACCESS_DENIED
        | ERROR_SHARING_VIOLATION
        | ERROR_ALREADY_EXISTS
        | ERROR_FILE_EXISTS
        | ERROR_NOT_SAME_DEVICE => libc::EACCES,
        ERROR_DISK_FULL => libc::ENOSPC,
        ERROR_NOT_ENOUGH_MEMORY => libc::ENOMEM,
        _ => libc::EINVAL,
    }
}

/// A path; `EINVAL` for NULL. A narrow one is not converted, as `fopen` does not convert it either.
fn narrow_path(name: Text<'_, u8>) -> Result<PathBuf, c_int> {
    name.units().map(|name| OsStr::from_bytes(name).into()).ok_or(libc::EINVAL)
}

/// The same for a wide one, which is converted.
fn wide_path(name: Text<'_, Wchar>) -> Result<PathBuf, c_int> {
    if name.as_ptr().is_null() { Err(libc::EINVAL) } else { path(name).map_err(errno_of) }
}

/// 0, or -1 and `errno`.
fn answer(work: impl FnOnce() -> Result<(), c_int>) -> c_int {
    guard(-1, || work().map_or_else(|errno| refused(errno, -1), |()| 0))
}

/// `_unlink`, `remove`: as `DeleteFile`, which deletes no folder and no file that nobody may write.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__unlink(name: Text<'_, u8>) -> c_int {
    answer(|| delete_file(&narrow_path(name)?).map_err(errno_of))
}

/// `_wunlink`, `_wremove`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wunlink(name: Text<'_, Wchar>) -> c_int {
    answer(|| delete_file(&wide_path(name)?).map_err(errno_of))
}

/// `rename`: as `MoveFile`, which replaces nothing.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_rename(from: Text<'_, u8>, to: Text<'_, u8>) -> c_int {
    answer(|| move_file(&narrow_path(from)?, &narrow_path(to)?, MOVE_COPIES).map_err(errno_of))
}

/// `_wrename`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wrename(from: Text<'_, Wchar>, to: Text<'_, Wchar>) -> c_int {
    answer(|| move_file(&wide_path(from)?, &wide_path(to)?, MOVE_COPIES).map_err(errno_of))
}

/// Opens a file: no folder, unless flags of Linux's ask for one. Of the mode Windows knows only whether the file may be written to:
/// it can always be read.
fn open_file(path: &Path, flags: c_int, mode: c_int) -> Result<c_int, c_int> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| libc::EINVAL)?;
    // SAFETY: a terminated name.
    let fd = unsafe { libc::open(name.as_ptr(), flags, mode as libc::mode_t | libc::S_IRUSR) };
    if fd < 0 {
        return Err(match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EISDIR) | None => libc::EACCES,
            Some(errno) => errno,
        });
    }
    if flags & (libc::O_DIRECTORY | libc::O_PATH) == 0 && crate::crt::kind(fd) == libc::S_IFDIR {
        // SAFETY: opened here.
        unsafe { libc::close(fd) };
        return Err(libc::EACCES);
    }
    Ok(fd)
}

fn open(path: Result<PathBuf, c_int>, flags: c_int, mode: c_int) -> c_int {
    guard(-1, || {
        path.and_then(|path| open_file(&path, flags, mode)).unwrap_or_else(|errno| refused(errno, -1))
    })
}

/// `_open` and its kin. The mode is looked at where a file may be created.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__open(name: Text<'_, u8>, flags: c_int, mode: c_int) -> c_int {
    open(narrow_path(name), flags, mode)
}

/// `_wopen` and its kin.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wopen(name: Text<'_, Wchar>, flags: c_int, mode: c_int) -> c_int {
    open(wide_path(name), flags, mode)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_locks::{ndw_LockFile, ndw_UnlockFile};
    use crate::api::file_names::tests::Folder;
    use crate::files::disk::Wanted;
    use std::ffi::CString;

    fn open(name: &str, flags: c_int) -> c_int {
        let name = CString::new(name).unwrap();
        // SAFETY: a terminated name.
        let fd = unsafe { libc::open(name.as_ptr(), flags | libc::O_CREAT, 0o600) };
        assert!(fd > 2);
        fd
    }

    fn close(fd: c_int) {
        // SAFETY: a descriptor of the test's.
        assert_eq!(unsafe { libc::close(fd) }, 0);
    }

    fn same_descriptor(fd: c_int, name: &str, flags: c_int) {
        let again = open(name, flags);
        if again != fd {
            // SAFETY: descriptors of the test's.
            assert_eq!(unsafe { libc::dup2(again, fd) }, fd);
            close(again);
        }
    }

    fn errno() -> Option<c_int> {
        std::io::Error::last_os_error().raw_os_error()
    }

    #[test]
    fn nothing_is_replaced_and_no_folder_and_nothing_read_only_deleted() {
        let folder = Folder::new();
        let [a, b, c] = ["a", "b", "c"].map(|name| CString::new(folder.file(name, name.as_bytes())).unwrap());
        let here = CString::new(folder.name("")).unwrap();
        let text = |name: &CString| std::fs::read_to_string(name.to_str().unwrap()).unwrap();
        assert_eq!((ndw_rename((&*a).into(), (&*b).into()), errno()), (-1, Some(libc::EACCES)));
        assert_eq!((text(&a), text(&b)), ("a".into(), "b".into()));
        let [wide_a, wide_b] = [&a, &b].map(|name| crate::text::w(name.to_str().unwrap()));
        let [wide_a, wide_b] = [&wide_a, &wide_b].map(|name| Text::terminated(name));
        assert_eq!((ndw__wrename(wide_a, wide_b), errno()), (-1, Some(libc::EACCES)));
        assert_eq!((ndw__unlink((&*here).into()), errno()), (-1, Some(libc::EACCES)));
        std::fs::set_permissions(b.to_str().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o444))
            .unwrap();
        assert_eq!((ndw__unlink((&*b).into()), errno()), (-1, Some(libc::EACCES)));
        assert_eq!((ndw__wunlink(wide_b), errno()), (-1, Some(libc::EACCES)));
        assert_eq!(text(&b), "b");
        // Otherwise they do what they are to.
        assert_eq!(
            (ndw__unlink((&*c).into()), ndw_rename((&*a).into(), (&*c).into()), text(&c)),
            (0, 0, "a".into())
        );
        assert_eq!((ndw_rename((&*a).into(), (&*c).into()), errno()), (-1, Some(libc::ENOENT)));
        assert_eq!((ndw__wunlink(wide_a), errno()), (-1, Some(libc::ENOENT)));
        assert_eq!((ndw__unlink(Text::NULL), errno()), (-1, Some(libc::EINVAL)));
        assert_eq!((ndw__wrename(Text::NULL, wide_a), errno()), (-1, Some(libc::EINVAL)));
    }

    #[test]
    fn what_goes_to_another_file_system_replaces_nothing() {
        let (folder, other) = (Folder::new(), std::path::Path::new("/dev/shm"));
        let here = std::path::PathBuf::from(folder.name(""));
        let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
        if device(other).is_none() || device(other) == device(&here) {
            return crate::alone::skipped("there is no second file system");
        }
        let there = other.join(format!("ndcompat-rename-{}", std::process::id()));
        std::fs::write(&there, b"there").unwrap();
        let [a, b] =
            [folder.file("a", b"a"), there.to_str().unwrap().into()].map(|name| CString::new(name).unwrap());
        assert_eq!((ndw_rename((&*a).into(), (&*b).into()), errno()), (-1, Some(libc::EACCES)));
        assert_eq!(std::fs::read(&there).unwrap(), b"there");
        std::fs::remove_file(&there).unwrap();
        std::fs::create_dir(folder.name("folder")).unwrap();
        let a = CString::new(folder.name("folder")).unwrap();
        assert_eq!((ndw_rename((&*a).into(), (&*b).into()), errno()), (-1, Some(libc::EACCES)));
        assert!(!there.exists());
    }

    #[test]
    fn what_may_be_written_may_be_read_and_a_folder_is_no_file() {
        let folder = Folder::new();
        let name = CString::new(folder.name("new")).unwrap();
        let fd = ndw__open((&*name).into(), libc::O_CREAT | libc::O_WRONLY, 0o200);
        assert!(fd >= 0);
        close(fd);
        let mode = std::fs::metadata(name.to_str().unwrap()).unwrap().mode();
        assert_eq!(mode & 0o700, 0o600);
        let here = CString::new(folder.name("")).unwrap();
        for flags in [libc::O_RDONLY, libc::O_RDWR] {
            assert_eq!((ndw__open((&*here).into(), flags, 0), errno()), (-1, Some(libc::EACCES)));
        }
        let wide = crate::text::w(here.to_str().unwrap());
        assert_eq!((ndw__wopen(Text::terminated(&wide), 0, 0), errno()), (-1, Some(libc::EACCES)));
        let asked_for = ndw__open((&*here).into(), libc::O_DIRECTORY, 0);
        assert!(asked_for >= 0, "by code of Linux's");
        close(asked_for);
        assert_eq!((ndw__open(Text::NULL, 0, 0), errno()), (-1, Some(libc::EINVAL)));
    }

    // Descriptors are the process's: another test would take the number in between.
    #[test]
    fn a_descriptor_that_was_closed_otherwise_gives_the_new_files_handle() {
        crate::alone::run("api::c_files::tests::what_was_closed_otherwise");
    }

    #[test]
    #[ignore = "the test above runs it"]
    fn what_was_closed_otherwise() {
        let folder = Folder::new();
        let name = folder.file("a", b"text");
        let read = |handle| match handle::get(handle) {
            Some(Object::Disk(file)) => file.read(&mut [0; 4], Some(0)),
            _ => panic!("no file"),
        };
        // What was locked is not, once the descriptor is closed.
        let fd = open(&name, libc::O_RDWR);
        let first = ndw__get_osfhandle(fd);
        assert_eq!(ndw_LockFile(first, 0, 0, 1, 0), 1);
        assert_eq!(ndw__get_osfhandle(fd), first, "it holds the lock");
        close(fd);
        same_descriptor(fd, &name, libc::O_RDWR);
        let second = ndw__get_osfhandle(fd);
        assert_eq!(ndw_LockFile(second, 0, 0, 1, 0), 1, "nobody has it");
        assert_eq!(ndw_UnlockFile(second, 0, 0, 1, 0), 1);
        assert!(handle::get(first).is_none());
        assert_eq!(ndw__get_osfhandle(fd), second, "nothing has changed");
        // Nor has it the rights that the one before had.
        close(fd);
        same_descriptor(fd, &name, libc::O_WRONLY);
        assert_eq!(read(ndw__get_osfhandle(fd)), Err(crate::error::ERROR_ACCESS_DENIED));
        close(fd);
        same_descriptor(fd, &name, libc::O_RDONLY);
        assert_eq!(read(ndw__get_osfhandle(fd)), Ok(4));
        close(fd);
    }

    fn create(name: &str, flags: u32) -> RawHandle {
        let wanted = Wanted { access: 0xC000_0000, disposition: 2, flags };
        crate::object::open(Object::Disk(Arc::new(DiskFile::open(name.as_ref(), wanted).unwrap().0))).unwrap()
    }

    #[test]
    fn what_goes_when_it_is_closed_goes_with_its_descriptor_and_nothing_else_does() {
        crate::alone::run("api::c_files::tests::only_the_file_itself_goes");
    }

    #[test]
    #[ignore = "the test above runs it"]
    fn only_the_file_itself_goes() {
        const DELETE_ON_CLOSE: u32 = 0x0400_0000;
        let folder = Folder::new();
        let (name, other) = (folder.name("goes"), folder.file("stays", b"x"));
        let handle = create(&name, DELETE_ON_CLOSE);
        let fd = ndw__open_osfhandle(handle, 0);
        close(fd);
        assert!(!std::fs::exists(&name).unwrap());
        // Another file has the number now.
        same_descriptor(fd, &other, libc::O_RDWR);
        assert!(handle::close(handle).is_some());
        assert!(std::fs::exists(&other).unwrap());
        // Nor does a handle that was told to delete later.
        let given = ndw__get_osfhandle(fd);
        let Some(Object::Disk(file)) = handle::get(given) else { panic!("no file") };
        file.go(true).unwrap();
        drop(file);
        close(fd);
        same_descriptor(fd, &folder.file("third", b"x"), libc::O_RDWR);
        assert!(handle::close(given).is_some());
        assert!(["stays", "third"].iter().all(|name| std::fs::exists(folder.name(name)).unwrap()));
    }

    #[test]
    fn a_descriptors_new_file_replaces_the_handle_of_the_former() {
        crate::alone::run("api::c_files::tests::the_former_handle_is_closed");
    }

    #[test]
    #[ignore = "the test above runs it"]
    fn the_former_handle_is_closed() {
        let folder = Folder::new();
        let fd = open(&folder.name("a"), libc::O_RDWR);
        let former = ndw__get_osfhandle(fd);
        close(fd);
        let handle = create(&folder.name("b"), 0);
        assert_eq!(ndw__open_osfhandle(handle, 0), fd, "the lowest number is free");
        assert!(handle::get(former).is_none());
        assert_eq!((ndw__open_osfhandle(handle, 0), ndw__get_osfhandle(fd)), (fd, handle));
        assert_eq!(ndw__close(fd), 0);
    }

    #[test]
    fn closing_a_descriptor_closes_its_handle_and_releases_its_locks() {
        let folder = Folder::new();
        let name = folder.file("a", b"text");
        let fd = open(&name, libc::O_RDWR);
        let handle = ndw__get_osfhandle(fd);
        assert_eq!(ndw_LockFile(handle, 0, 0, 1, 0), 1);
        assert_eq!(ndw__close(fd), 0);
        assert!(handle::get(handle).is_none());
        let other = open(&name, libc::O_RDWR);
        assert_eq!(ndw_LockFile(ndw__get_osfhandle(other), 0, 0, 1, 0), 1);
        assert_eq!(ndw__close(other), 0);
        assert_eq!(ndw__close(-1), -1);
    }

    #[test]
    fn a_forked_child_closes_descriptors_whatever_another_thread_does() {
        crate::alone::run("api::c_files::tests::a_childs_descriptor");
    }

    #[test]
    #[ignore = "it forks; the test above runs it"]
    fn a_childs_descriptor() {
        let folder = Folder::new();
        let fd = open(&folder.name("a"), libc::O_RDWR);
        let handle = ndw__get_osfhandle(fd);
        assert_eq!(ndw_LockFile(handle, 0, 0, 1, 0), 1);
        crate::alone::children_beside(|| assert_eq!(ndw__get_osfhandle(fd), handle), || ndw__close(fd));
        let other = ndw__get_osfhandle(open(&folder.name("a"), libc::O_RDWR));
        assert_eq!(ndw_LockFile(other, 0, 0, 1, 0), 0, "the lock is the parent's");
        assert_eq!(ndw__close(fd), 0);
    }
}
