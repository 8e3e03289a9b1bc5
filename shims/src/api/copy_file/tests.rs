//! Copies, through their entry points.

use super::*;
use crate::api::file_names::tests::Folder;
use crate::api::files::ndw_GetFileSizeEx;
use crate::text::w;
use std::cell::{Cell, RefCell};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::ptr::{null, null_mut};

/// What a routine has heard, and what it answers.
#[derive(Default)]
struct Heard {
    calls: RefCell<Vec<[i64; 6]>>,
    /// How long both files were at each call.
    sizes: RefCell<Vec<[i64; 2]>>,
    answers: Vec<u32>,
    /// When the flag is set.
    cancels_at: Option<usize>,
    cancel: Cell<i32>,
}

unsafe extern "C" fn hear(
    size: i64,
    done: i64,
    stream_size: i64,
    stream_done: i64,
    stream: u32,
    reason: u32,
    source: RawHandle,
    target: RawHandle,
    data: *mut c_void,
) -> u32 {
    // SAFETY: what `copy_to` has passed.
    let heard = unsafe { &*data.cast::<Heard>() };
    heard.calls.borrow_mut().push([size, done, stream_size, stream_done, stream.into(), reason.into()]);
    let length = |of| {
        let mut length = -1;
        assert_eq!(ndw_GetFileSizeEx(of, (&mut length).into()), 1);
        length
    };
    heard.sizes.borrow_mut().push([length(source), length(target)]);
    let calls = heard.calls.borrow().len();
    heard.cancel.set((heard.cancels_at == Some(calls)).into());
    heard.answers.get(calls - 1).copied().unwrap_or(0)
}

/// The last error of a `CopyFileEx` with that routine; 0 if it succeeds.
fn copy_to(from: &str, to: &str, heard: &Heard, flags: u32) -> u32 {
    let (data, cancel) = (std::ptr::from_ref(heard).cast_mut().cast(), heard.cancel.as_ptr());
    let (from, to) = (w(from), w(to));
    let (from, to) = (Text::terminated(&from), Text::terminated(&to));
    // SAFETY: the routine takes what it is given.
    match unsafe { ndw_CopyFileExW(from, to, Some(hear), data, cancel, flags) } {
        1 => 0,
        _ => last_error(),
    }
}

/// The same without a routine.
fn copy_with(from: &str, to: &str, flags: u32) -> u32 {
    let (from, to) = (w(from), w(to));
    let (from, to) = (Text::terminated(&from), Text::terminated(&to));
    // SAFETY: no routine.
    match unsafe { ndw_CopyFileExW(from, to, None, null_mut(), null(), flags) } {
        1 => 0,
        _ => last_error(),
    }
}

const PART: i64 = CHUNK as i64;

#[test]
fn a_routine_hears_of_each_part_of_a_copy() {
    let folder = Folder::new();
    let bytes: Vec<u8> = (0..2 * CHUNK + 5).map(|at| (at % 251) as u8).collect();
    let (from, to) = (folder.file("a", &bytes), folder.name("b"));
    let size = bytes.len() as i64;
    let heard = Heard::default();
    assert_eq!(copy_to(&from, &to, &heard, FAIL_IF_EXISTS), 0);
    let call = |done, reason| [size, done, size, done, 1, reason];
    assert_eq!(*heard.calls.borrow(), [call(0, 1), call(PART, 0), call(2 * PART, 0), call(size, 0)]);
    assert_eq!(*heard.sizes.borrow(), [0, PART, 2 * PART, size].map(|done| [size, done]));
    assert!(std::fs::read(&to).unwrap() == bytes);
    // Of an empty file there is one stream.
    let heard = Heard::default();
    assert_eq!(copy_to(&folder.file("empty", b""), &to, &heard, 0), 0);
    assert_eq!((heard.calls.into_inner(), std::fs::read(&to).unwrap().len()), (vec![[0, 0, 0, 0, 1, 1]], 0));
    // Who wants to hear no more does not.
    let heard = Heard { answers: vec![0, PROGRESS_QUIET], ..Heard::default() };
    assert_eq!(copy_to(&from, &to, &heard, 0), 0);
    assert_eq!((heard.calls.borrow().len(), std::fs::read(&to).unwrap().len() as i64), (2, size));
}

#[test]
fn a_copy_that_is_cancelled_goes_and_one_that_is_stopped_stays() {
    let folder = Folder::new();
    let (from, to) = (folder.file("a", &vec![b'x'; 3 * CHUNK as usize]), folder.name("b"));
    let there = || std::fs::metadata(&to).ok().map(|found| found.len() as i64);
    let answers = |answers: &[u32]| Heard { answers: answers.to_vec(), ..Heard::default() };
    for (heard, stays) in [
        (answers(&[PROGRESS_STOP]), Some(0)),
        (answers(&[0, PROGRESS_STOP]), Some(PART)),
        (answers(&[PROGRESS_CANCEL]), None),
        (answers(&[0, 0, PROGRESS_CANCEL]), None),
        (answers(&[0, 0, 0, PROGRESS_CANCEL]), None),
        (Heard { cancels_at: Some(2), ..Heard::default() }, None),
    ] {
        std::fs::write(&to, b"as it was").unwrap();
        assert_eq!(copy_to(&from, &to, &heard, 0), ERROR_REQUEST_ABORTED, "{:?}", heard.calls);
        assert_eq!(there(), stays, "{:?}", heard.calls);
    }
    // Without a routine the flag is looked at, too.
    let set = 1;
    let (wide_from, wide_to) = (w(&from), w(&to));
    let (text_from, text_to) = (Text::terminated(&wide_from), Text::terminated(&wide_to));
    // SAFETY: no routine, and a flag that outlives the call.
    let done = unsafe { ndw_CopyFileExW(text_from, text_to, None, null_mut(), &set, 0) };
    assert_eq!((done, last_error(), there()), (0, ERROR_REQUEST_ABORTED, None));
    // What a link leads to goes, not the link.
    let (link, target) = (folder.name("link"), folder.file("target", b""));
    symlink(&target, &link).unwrap();
    assert_eq!(copy_to(&from, &link, &answers(&[0, PROGRESS_CANCEL]), 0), ERROR_REQUEST_ABORTED);
    assert!(std::fs::symlink_metadata(&link).is_ok() && !Path::new(&target).exists());
    assert_eq!(std::fs::metadata(&from).unwrap().len(), 3 * CHUNK);
}

#[test]
fn flags_say_how_a_file_is_copied() {
    let folder = Folder::new();
    let (file, other, link) = (folder.file("a", b"text"), folder.file("other", b"x"), folder.name("link"));
    symlink("a", &link).unwrap();
    let leads_to = |name: &str| std::fs::read_link(name).unwrap();
    // The link itself, in place of another link or a file, but not of what must be new.
    let (copy, there) = (folder.name("copy"), folder.name("there"));
    symlink(&other, &there).unwrap();
    assert_eq!(copy_with(&link, &copy, COPY_SYMLINK), 0);
    assert_eq!((leads_to(&copy), std::fs::read(&copy).unwrap()), ("a".into(), b"text".to_vec()));
    assert_eq!(copy_with(&link, &there, COPY_SYMLINK | FAIL_IF_EXISTS), ERROR_FILE_EXISTS);
    assert_eq!(copy_with(&link, &there, COPY_SYMLINK), 0);
    assert_eq!((leads_to(&there), std::fs::read(&other).unwrap()), ("a".into(), b"x".to_vec()));
    assert_eq!(copy_with(&link, &other, COPY_SYMLINK), 0);
    assert_eq!(leads_to(&other), Path::new("a"));
    assert_eq!(copy_with(&link, &link, COPY_SYMLINK), ERROR_SHARING_VIOLATION);
    assert_eq!(copy_with(&link, &folder.0, COPY_SYMLINK), ERROR_ACCESS_DENIED);
    // What it leads to, and a file that is none.
    let plain = folder.name("plain");
    for (from, flags) in [(&link, 0), (&file, COPY_SYMLINK), (&file, OPEN_SOURCE_FOR_WRITE | RESTARTABLE)] {
        assert_eq!(copy_with(from, &plain, flags), 0);
        assert!(!std::fs::symlink_metadata(&plain).unwrap().is_symlink());
        assert_eq!(std::fs::read(&plain).unwrap(), b"text");
    }
    assert_eq!(copy_with(&file, &plain, FAIL_IF_EXISTS), ERROR_FILE_EXISTS);
    for unknown in [0x10, 0x8000_0000] {
        assert_eq!(copy_with(&file, &plain, unknown), ERROR_INVALID_PARAMETER);
    }
    assert_eq!(copy_with(&folder.name("gone"), &plain, 0), ERROR_FILE_NOT_FOUND);
}

#[test]
fn no_copy_replaces_a_file_that_is_read_only() {
    let folder = Folder::new();
    let (file, there) = (folder.file("a", b"new"), folder.file("b", b"old"));
    std::fs::set_permissions(&there, PermissionsExt::from_mode(0o444)).unwrap();
    for flags in [0, COPY_SYMLINK] {
        assert_eq!(copy_with(&file, &there, flags), ERROR_ACCESS_DENIED);
    }
    assert_eq!(copy_with(&file, &there, FAIL_IF_EXISTS), ERROR_FILE_EXISTS);
    assert_eq!(std::fs::read(&there).unwrap(), b"old");
}
