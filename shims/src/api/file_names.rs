//! Files by name: `DeleteFile`, `MoveFile`, `CopyFile`, `CreateDirectory`, `GetFileAttributes` and related functions.

use crate::arguments::{Out, Text};
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::files::{attributes, error_at, error_of, folder_of, is_device, path_of, times};
use crate::text::{Unit, narrow_and_wide};
use crate::time::FileTime;
use std::ffi::{CString, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const INVALID_FILE_ATTRIBUTES: u32 = u32::MAX;
pub(super) const MAX_PATH: usize = 260;

/// `WIN32_FILE_ATTRIBUTE_DATA`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct FileData {
    pub attributes: u32,
    pub creation: FileTime,
    pub last_access: FileTime,
    pub last_write: FileTime,
    pub size_high: u32,
    pub size_low: u32,
}

const _: () = assert!(size_of::<FileData>() == 36);

impl From<&std::fs::Metadata> for FileData {
    fn from(file: &std::fs::Metadata) -> FileData {
        let [creation, last_access, last_write] = times(file);
        FileData {
            attributes: attributes(file),
            creation,
            last_access,
            last_write,
            size_high: (file.len() >> 32) as u32,
            size_low: file.len() as u32,
        }
    }
}

pub(super) fn path<T: Unit>(name: Text<'_, T>) -> Result<std::path::PathBuf, u32> {
    path_of(name.read())
}

fn look(path: &Path) -> Result<std::fs::Metadata, u32> {
    std::fs::metadata(path).map_err(|error| error_at(&error, path))
}

fn get_attributes<T: Unit>(name: Text<'_, T>) -> u32 {
    guard(INVALID_FILE_ATTRIBUTES, || {
        let found = path(name).and_then(|path| look(&path));
        found.map(|file| attributes(&file)).unwrap_or_else(|code| {
            set_last_error(code);
            INVALID_FILE_ATTRIBUTES
        })
    })
}

fn get_attributes_ex<T: Unit>(name: Text<'_, T>, level: u32, data: Out<'_, FileData>) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        if level != 0 || data.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        data.put((&look(&path)?).into());
        Ok(())
    })
}

/// Of the attributes only `FILE_ATTRIBUTE_READONLY` has a counterpart on Linux.
fn set_attributes<T: Unit>(name: Text<'_, T>, wanted: u32) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        let found = look(&path)?;
        let mode = found.permissions().mode();
        let new = match (wanted & crate::files::ATTRIBUTE_READONLY != 0, mode & 0o222) {
            (true, _) => mode & !0o222,
            (false, 0) => mode | 0o200,
            (false, _) => return Ok(()),
        };
        if is_device(&found) {
            return Err(ERROR_ACCESS_DENIED);
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(new))
            .map_err(|error| error_at(&error, &path))
    })
}

fn delete<T: Unit>(name: Text<'_, T>) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        let found = std::fs::symlink_metadata(&path).map_err(|error| error_at(&error, &path))?;
        // As on Windows, a read-only file cannot be deleted.
        let is_read_only = !found.is_symlink() && attributes(&found) & crate::files::ATTRIBUTE_READONLY != 0;
        if found.is_dir() || is_read_only || is_device(&found) {
            return Err(ERROR_ACCESS_DENIED);
        }
        std::fs::remove_file(&path).map_err(|error| error_at(&error, &path))
    })
}

pub(super) const MOVE_REPLACES: u32 = 1;
const MOVE_COPIES: u32 = 2;
const MOVE_WRITES_THROUGH: u32 = 8;

fn c_path(path: &Path) -> Result<CString, u32> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| ERROR_INVALID_NAME)
}

/// Renames a file. An existing file of that name is an error unless `replaces`.
fn rename(from: &Path, to: &Path, replaces: bool) -> io::Result<()> {
    if replaces {
        return std::fs::rename(from, to);
    }
    let names = [from, to].map(c_path);
    let [Ok(c_from), Ok(c_to)] = &names else { return Err(io::ErrorKind::InvalidInput.into()) };
    let here = libc::AT_FDCWD;
    // SAFETY: terminated names.
    if unsafe { libc::renameat2(here, c_from.as_ptr(), here, c_to.as_ptr(), libc::RENAME_NOREPLACE) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // The file system does not support RENAME_NOREPLACE.
        error if error.raw_os_error() == Some(libc::EINVAL) && !to.exists() => std::fs::rename(from, to),
        error => Err(error),
    }
}

/// Whether both are one name in one folder, however the folder is spelled. Two links to one file are two names.
fn is_same_name(from: &Path, to: &Path) -> bool {
    let place = |path: &Path| {
        let folder = std::fs::metadata(folder_of(path)).ok()?;
        Some((folder.dev(), folder.ino(), path.file_name()?.to_owned()))
    };
    from == to || place(from).is_some_and(|from| place(to) == Some(from))
}

pub(super) fn move_file(from: &Path, to: &Path, flags: u32) -> Result<(), u32> {
    if flags & !(MOVE_REPLACES | MOVE_COPIES | MOVE_WRITES_THROUGH) != 0 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let found = std::fs::symlink_metadata(from).map_err(|error| error_at(&error, from))?;
    let replaces = flags & MOVE_REPLACES != 0;
    // A link to a device may go: it is the link that is replaced.
    let is_kept = || {
        std::fs::metadata(to).is_ok_and(|there| there.is_dir())
            || std::fs::symlink_metadata(to).is_ok_and(|there| is_device(&there))
    };
    if is_device(&found) || replaces && is_kept() {
        return Err(ERROR_ACCESS_DENIED);
    }
    // Of a file that is there already under that very name nothing is left to do.
    if is_same_name(from, to) {
        return Ok(());
    }
    match rename(from, to, replaces) {
        Ok(()) => Ok(()),
        Err(error)
            if error.raw_os_error() == Some(libc::EXDEV) && flags & MOVE_COPIES != 0 && found.is_file() =>
        {
            copy_file(from, to, !replaces)?;
            std::fs::remove_file(from).map_err(|error| error_at(&error, from))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ERROR_ALREADY_EXISTS),
        Err(error) => match error_at(&error, to) {
            // The file exists, so the target folder does not.
            ERROR_FILE_NOT_FOUND => Err(ERROR_PATH_NOT_FOUND),
            code => Err(code),
        },
    }
}

fn copy_file(from: &Path, to: &Path, must_be_new: bool) -> Result<(), u32> {
    let found = look(from)?;
    if found.is_dir() || std::fs::metadata(to).is_ok_and(|there| there.is_dir()) {
        return Err(ERROR_ACCESS_DENIED);
    }
    let at_target = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => ERROR_FILE_EXISTS,
        _ => error_at(&error, to),
    };
    let failed = |error: io::Error| error_of(&error);
    let mut source = std::fs::File::open(from).map_err(|error| error_at(&error, from))?;
    let found = source.metadata().map_err(failed)?;
    let mut options = std::fs::OpenOptions::new();
    // Not truncated yet: it may be the source under another name.
    options.write(true).create(true).truncate(false).create_new(must_be_new).mode(found.permissions().mode());
    let mut target = options.open(to).map_err(at_target)?;
    let there = target.metadata().map_err(failed)?;
    if is_device(&there) {
        io::copy(&mut source, &mut target).map_err(failed)?;
        return Ok(());
    }
    if (found.dev(), found.ino()) == (there.dev(), there.ino()) {
        return Err(ERROR_SHARING_VIOLATION);
    }
    if there.is_file() {
        target.set_len(0).map_err(failed)?;
    }
    io::copy(&mut source, &mut target).map_err(failed)?;
    target.set_permissions(found.permissions()).map_err(failed)?;
    // The copy was last written to when the source was, unless the file system has its own idea.
    let _ = found.modified().and_then(|last_write| target.set_modified(last_write));
    Ok(())
}

fn move_ex<T: Unit>(from: Text<'_, T>, to: Text<'_, T>, flags: u32) -> i32 {
    guard_bool(|| {
        let from = path(from)?;
        move_file(&from, &path(to)?, flags)
    })
}

fn move_simply<T: Unit>(from: Text<'_, T>, to: Text<'_, T>) -> i32 {
    move_ex(from, to, MOVE_COPIES)
}

fn copy<T: Unit>(from: Text<'_, T>, to: Text<'_, T>, must_be_new: i32) -> i32 {
    guard_bool(|| {
        let from = path(from)?;
        copy_file(&from, &path(to)?, must_be_new != 0)
    })
}

fn create_directory<T: Unit>(name: Text<'_, T>, _security: *const c_void) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        std::fs::create_dir(&path).map_err(|error| match error_at(&error, &path) {
            ERROR_FILE_NOT_FOUND => ERROR_PATH_NOT_FOUND,
            code => code,
        })
    })
}

fn remove_directory<T: Unit>(name: Text<'_, T>) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        std::fs::remove_dir(&path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOTDIR) if path.exists() => ERROR_DIRECTORY,
            _ => error_at(&error, &path),
        })
    })
}

narrow_and_wide! {
    "`GetFileAttributes`."
    ndw_GetFileAttributesA ndw_GetFileAttributesW = get_attributes(name: Text<'_, T>) -> u32;
    "`GetFileAttributesEx`."
    ndw_GetFileAttributesExA ndw_GetFileAttributesExW
        = get_attributes_ex(name: Text<'_, T>, level: u32, data: Out<'_, FileData>) -> i32;
    "`SetFileAttributes`."
    ndw_SetFileAttributesA ndw_SetFileAttributesW = set_attributes(name: Text<'_, T>, attributes: u32) -> i32;
    "`DeleteFile`: a file that is open lives on until it is closed."
    ndw_DeleteFileA ndw_DeleteFileW = delete(name: Text<'_, T>) -> i32;
    "`MoveFile`."
    ndw_MoveFileA ndw_MoveFileW = move_simply(from: Text<'_, T>, to: Text<'_, T>) -> i32;
    "`MoveFileEx`: without `MOVEFILE_DELAY_UNTIL_REBOOT`."
    ndw_MoveFileExA ndw_MoveFileExW = move_ex(from: Text<'_, T>, to: Text<'_, T>, flags: u32) -> i32;
    "`CopyFile`."
    ndw_CopyFileA ndw_CopyFileW = copy(from: Text<'_, T>, to: Text<'_, T>, must_be_new: i32) -> i32;
    "`CreateDirectory`."
    ndw_CreateDirectoryA ndw_CreateDirectoryW = create_directory(name: Text<'_, T>, security: *const c_void) -> i32;
    "`RemoveDirectory`."
    ndw_RemoveDirectoryA ndw_RemoveDirectoryW = remove_directory(name: Text<'_, T>) -> i32;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder of a test's own.
    pub(in crate::api) struct Folder(pub(in crate::api) String);

    impl Folder {
        pub(in crate::api) fn new() -> Folder {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("ndcompat-files-{}-{number}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Folder(path.to_str().unwrap().to_owned())
        }

        pub(in crate::api) fn name(&self, name: &str) -> String {
            format!("{}/{name}", self.0)
        }

        pub(in crate::api) fn file(&self, name: &str, text: &[u8]) -> String {
            let name = self.name(name);
            std::fs::write(&name, text).unwrap();
            name
        }
    }

    impl Folder {
        /// Another `/dev/null`; `None` where none can be made, as by anyone but the superuser, who alone could do harm to the machine's.
        pub(in crate::api) fn device(&self, name: &str) -> Option<String> {
            let name = self.name(name);
            let c_name = CString::new(name.as_str()).unwrap();
            // SAFETY: a terminated name.
            let made = unsafe { libc::mknod(c_name.as_ptr(), libc::S_IFCHR | 0o666, libc::makedev(1, 3)) };
            (made == 0 && std::fs::File::open(&name).is_ok()).then_some(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn result(done: i32) -> u32 {
        if done == 1 { 0 } else { last_error() }
    }

    #[test]
    fn attributes_by_name() {
        let folder = Folder::new();
        let name = folder.file("x", b"12345");
        let of = |name: &str| get_attributes(Text::terminated(&w(name)));
        assert_eq!((of(&name), of(&folder.0)), (0x80, 0x10));
        assert_eq!(of("\\dev\\null"), 0x80);
        assert_eq!((of(&folder.name("gone")), last_error()), (INVALID_FILE_ATTRIBUTES, ERROR_FILE_NOT_FOUND));
        assert_eq!(
            (of(&folder.name("gone/x")), last_error()),
            (INVALID_FILE_ATTRIBUTES, ERROR_PATH_NOT_FOUND)
        );
        assert_eq!(
            (of(&(name.clone() + "/x")), last_error()),
            (INVALID_FILE_ATTRIBUTES, ERROR_PATH_NOT_FOUND)
        );
        assert_eq!((of(""), last_error()), (INVALID_FILE_ATTRIBUTES, ERROR_PATH_NOT_FOUND));
        assert_eq!(result(set_attributes(Text::terminated(&w(&name)), 1)), 0);
        assert_eq!(of(&name), 1);
        assert_eq!(result(delete(Text::terminated(&w(&name)))), ERROR_ACCESS_DENIED, "it is read-only");
        assert_eq!(result(set_attributes(Text::terminated(&w(&name)), 0x80)), 0);
        assert_eq!(of(&name), 0x80);
        let mut data = FileData::default();
        assert_eq!(result(get_attributes_ex(Text::terminated(&w(&name)), 0, (&mut data).into())), 0);
        assert_eq!((data.attributes, data.size_low, data.size_high), (0x80, 5, 0));
        assert_eq!(
            result(get_attributes_ex(Text::terminated(&w(&name)), 1, (&mut data).into())),
            ERROR_INVALID_PARAMETER
        );
        assert_eq!(
            result(get_attributes_ex(Text::terminated(&w(&name)), 0, Out::NULL)),
            ERROR_INVALID_PARAMETER
        );
    }

    #[test]
    fn files_are_deleted_moved_and_copied() {
        let folder = Folder::new();
        let (a, b, deep) = (folder.file("a", b"a"), folder.file("b", b"b"), folder.name("none/c"));
        let content = |name: &str| std::fs::read_to_string(name).unwrap();
        let (delete, move_simply, move_ex, copy) = {
            (
                |name: &str| result(delete(Text::terminated(&w(name)))),
                |from: &str, to: &str| {
                    result(move_simply(Text::terminated(&w(from)), Text::terminated(&w(to))))
                },
                |from: &str, to: &str, flags| {
                    result(move_ex(Text::terminated(&w(from)), Text::terminated(&w(to)), flags))
                },
                |from: &str, to: &str, new| {
                    result(copy(Text::terminated(&w(from)), Text::terminated(&w(to)), new))
                },
            )
        };
        assert_eq!(move_simply(&a, &b), ERROR_ALREADY_EXISTS);
        assert_eq!((content(&a).as_str(), content(&b).as_str()), ("a", "b"));
        assert_eq!(move_simply(&a, &deep), ERROR_PATH_NOT_FOUND);
        assert_eq!(move_simply(&folder.name("gone"), &deep), ERROR_FILE_NOT_FOUND);
        assert_eq!(move_ex(&a, &b, 4), ERROR_NOT_SUPPORTED);
        assert_eq!(move_ex(&a, &folder.0, 1), ERROR_ACCESS_DENIED);
        assert_eq!((move_ex(&a, &b, MOVE_REPLACES), content(&b).as_str()), (0, "a"));
        assert_eq!(copy(&b, &a, 1), 0);
        assert_eq!(copy(&b, &a, 1), ERROR_FILE_EXISTS);
        std::fs::write(&b, "longer").unwrap();
        assert_eq!((copy(&b, &a, 0), content(&a).as_str()), (0, "longer"));
        assert_eq!(copy(&folder.name("gone"), &a, 0), ERROR_FILE_NOT_FOUND);
        assert_eq!(copy(&b, &deep, 0), ERROR_PATH_NOT_FOUND);
        assert_eq!((delete(&a), delete(&a), delete(&deep)), (0, ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND));
        assert_eq!((delete(&folder.0), delete("")), (ERROR_ACCESS_DENIED, ERROR_PATH_NOT_FOUND));
    }

    #[test]
    fn a_file_is_not_copied_onto_itself() {
        let folder = Folder::new();
        let (file, link, alias) = (folder.file("a", b"text"), folder.name("hard"), folder.name("soft"));
        std::fs::hard_link(&file, &link).unwrap();
        std::os::unix::fs::symlink(&file, &alias).unwrap();
        let copy = |from: &str, to: &str, new| {
            result(copy(Text::terminated(&w(from)), Text::terminated(&w(to)), new))
        };
        for (from, to) in [(&file, &file), (&file, &link), (&file, &alias), (&alias, &file)] {
            assert_eq!(copy(from, to, 0), ERROR_SHARING_VIOLATION, "{from} {to}");
            assert_eq!(copy(from, to, 1), ERROR_FILE_EXISTS, "{from} {to}");
        }
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
    }

    #[test]
    fn a_copy_has_the_time_of_the_last_write() {
        let folder = Folder::new();
        let (from, to) = (folder.file("a", b"text"), folder.name("b"));
        let then = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 100);
        let written = |name: &str| std::fs::metadata(name).unwrap().modified().unwrap();
        std::fs::File::options().write(true).open(&from).unwrap().set_modified(then).unwrap();
        for new in [1, 0] {
            let done = copy(Text::terminated(&w(&from)), Text::terminated(&w(&to)), new);
            assert_eq!((result(done), written(&to)), (0, then));
        }
    }

    #[test]
    fn a_file_may_be_moved_to_its_own_name_alone() {
        let folder = Folder::new();
        let (file, link) = (folder.file("a", b"text"), folder.name("b"));
        std::fs::hard_link(&file, &link).unwrap();
        for flags in [0, MOVE_COPIES, MOVE_REPLACES] {
            for to in [&file, &folder.name("./a"), &folder.name("/a")] {
                let moved = move_ex(Text::terminated(&w(&file)), Text::terminated(&w(to)), flags);
                assert_eq!(result(moved), 0, "{to} {flags}");
            }
        }
        let moved = move_simply(Text::terminated(&w(&file)), Text::terminated(&w(&link)));
        assert_eq!(result(moved), ERROR_ALREADY_EXISTS, "another link is another file");
        assert_eq!(
            (std::fs::read(&file).unwrap(), std::fs::read(&link).unwrap()),
            (b"text".to_vec(), b"text".to_vec())
        );
    }

    #[test]
    fn a_device_is_neither_deleted_nor_replaced_nor_restricted() {
        let folder = Folder::new();
        let Some(device) = folder.device("null") else { return };
        let file = folder.file("file", b"x");
        let mode = || std::fs::symlink_metadata(&device).map(|found| found.permissions().mode() & 0o777).ok();
        let made = mode();
        let (from, to) = (w(&device), w(&file));
        let [device_name, file_name] = [&from, &to].map(|name| move || Text::terminated(name));
        assert_eq!(result(delete(device_name())), ERROR_ACCESS_DENIED);
        assert_eq!(result(set_attributes(device_name(), 1)), ERROR_ACCESS_DENIED);
        for flags in [0, MOVE_REPLACES] {
            assert_eq!(result(move_ex(device_name(), file_name(), flags)), ERROR_ACCESS_DENIED);
        }
        assert_eq!(result(move_ex(file_name(), device_name(), MOVE_REPLACES)), ERROR_ACCESS_DENIED);
        assert_eq!(result(move_simply(file_name(), device_name())), ERROR_ALREADY_EXISTS);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(result(copy(file_name(), device_name(), 0)), 0, "what is written is gone");
        assert_eq!((mode(), std::fs::read(&device).unwrap().len()), (made, 0));
        assert_eq!(std::fs::read(&file).unwrap(), b"x");
    }

    #[test]
    fn folders_are_made_and_removed() {
        let folder = Folder::new();
        let (sub, file) = (folder.name("sub"), folder.file("file", b""));
        let (make, remove) = {
            (
                |name: &str| result(create_directory(Text::terminated(&w(name)), null())),
                |name: &str| result(remove_directory(Text::terminated(&w(name)))),
            )
        };
        assert_eq!((make(&sub), make(&sub), make(&file)), (0, ERROR_ALREADY_EXISTS, ERROR_ALREADY_EXISTS));
        assert_eq!(make(&folder.name("none/sub")), ERROR_PATH_NOT_FOUND);
        let inner = folder.file("sub/x", b"");
        assert_eq!((remove(&sub), remove(&file)), (ERROR_DIR_NOT_EMPTY, ERROR_DIRECTORY));
        std::fs::remove_file(inner).unwrap();
        assert_eq!((remove(&sub), remove(&sub), remove("")), (0, ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND));
    }
}
