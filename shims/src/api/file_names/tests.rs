//! Files by name, through their entry points.

use super::*;
use crate::api::copy_file::copy;
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
    assert_eq!((of(&folder.name("gone/x")), last_error()), (INVALID_FILE_ATTRIBUTES, ERROR_PATH_NOT_FOUND));
    assert_eq!((of(&(name.clone() + "/x")), last_error()), (INVALID_FILE_ATTRIBUTES, ERROR_PATH_NOT_FOUND));
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
    assert_eq!(result(get_attributes_ex(Text::terminated(&w(&name)), 0, Out::NULL)), ERROR_INVALID_PARAMETER);
}

#[test]
fn files_are_deleted_moved_and_copied() {
    let folder = Folder::new();
    let (a, b, deep) = (folder.file("a", b"a"), folder.file("b", b"b"), folder.name("none/c"));
    let content = |name: &str| std::fs::read_to_string(name).unwrap();
    let (delete, move_simply, move_ex, copy) = {
        (
            |name: &str| result(delete(Text::terminated(&w(name)))),
            |from: &str, to: &str| result(move_simply(Text::terminated(&w(from)), Text::terminated(&w(to)))),
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
    let copy =
        |from: &str, to: &str, new| result(copy(Text::terminated(&w(from)), Text::terminated(&w(to)), new));
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
fn a_file_that_is_read_only_is_not_replaced() {
    let folder = Folder::new();
    let (file, there) = (folder.file("a", b"new"), folder.file("b", b"old"));
    std::fs::set_permissions(&there, PermissionsExt::from_mode(0o444)).unwrap();
    let moved = || move_ex(Text::terminated(&w(&file)), Text::terminated(&w(&there)), MOVE_REPLACES);
    assert_eq!((result(moved()), std::fs::read(&there).unwrap()), (ERROR_ACCESS_DENIED, b"old".to_vec()));
    std::fs::set_permissions(&there, PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!((result(moved()), std::fs::read(&there).unwrap()), (0, b"new".to_vec()));
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
