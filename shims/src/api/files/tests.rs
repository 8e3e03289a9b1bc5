use super::*;
use crate::api::completion_port::{ndw_CreateIoCompletionPort, ndw_GetQueuedCompletionStatus};
use crate::api::event::{ndw_CreateEventW, ndw_ResetEvent};
use crate::api::file_names::tests::Folder;
use crate::api::handle::close_handle;
use crate::api::overlapped::{ndw_GetOverlappedResult, ndw_SetFileCompletionNotificationModes};
use crate::api::standard_handles::{ndw_GetStdHandle, ndw_SetStdHandle};
use crate::api::wait::ndw_WaitForSingleObject;
use crate::arguments::Text;
use crate::text::w;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};

const READ: u32 = 0x8000_0000;
const WRITE: u32 = 0x4000_0000;
const ATTRIBUTES: u32 = 0x80;
const ALLOWED: u32 = 0x0200_0000;
const OVERLAPPED: u32 = 0x4000_0000;
const UNBUFFERED: u32 = 0x2000_0000;
const BACKUP: u32 = 0x0200_0000;

fn open(name: &str, access: u32, disposition: u32, flags: u32) -> (RawHandle, u32) {
    set_last_error(99);
    let file = create(Text::terminated(&w(name)), access, 7, null(), disposition, flags, RawHandle::NULL);
    (file, last_error())
}

fn read(file: RawHandle, length: usize) -> (i32, Vec<u8>) {
    let (mut buffer, mut count) = (vec![0; length], 99);
    // SAFETY: the buffer has `length` bytes, and a file that is not overlapped has done with it on return.
    let done = unsafe {
        ndw_ReadFile(file, buffer.as_mut_ptr().cast(), length as u32, Out::from(&mut count), null_mut())
    };
    buffer.truncate(count as usize);
    (done, buffer)
}

fn write(file: RawHandle, bytes: &[u8]) -> (i32, u32) {
    let mut count = 99;
    // SAFETY: the slice has as many bytes as are told, and a file that is not overlapped has done with it on return.
    (
        unsafe {
            ndw_WriteFile(file, bytes.as_ptr().cast(), bytes.len() as u32, Out::from(&mut count), null_mut())
        },
        count,
    )
}

fn at(offset: u64, event: RawHandle) -> Overlapped {
    Overlapped { offset, event, ..Overlapped::default() }
}

fn close(file: RawHandle) {
    assert_eq!(close_handle(file), 1);
}

#[test]
fn dispositions_say_what_becomes_of_what_is_there() {
    let folder = Folder::new();
    let (there, gone) = (folder.file("there", b"text"), folder.name("gone"));
    for (name, disposition, access, error, length) in [
        (&there, 1, WRITE, ERROR_FILE_EXISTS, 4),
        (&there, 1, READ, ERROR_FILE_EXISTS, 4),
        (&there, 1, 0, ERROR_FILE_EXISTS, 4),
        (&there, 3, READ, ERROR_SUCCESS, 4),
        (&there, 4, READ, ERROR_ALREADY_EXISTS, 4),
        (&there, 4, READ | WRITE, ERROR_ALREADY_EXISTS, 4),
        (&there, 5, WRITE, ERROR_SUCCESS, 0),
        (&there, 2, WRITE, ERROR_ALREADY_EXISTS, 0),
        (&there, 2, 0, ERROR_ALREADY_EXISTS, 0),
        (&there, 5, READ, ERROR_INVALID_PARAMETER, 4),
        (&there, 0, READ, ERROR_INVALID_PARAMETER, 4),
        (&there, 6, READ, ERROR_INVALID_PARAMETER, 4),
        (&gone, 3, READ, ERROR_FILE_NOT_FOUND, 0),
        (&gone, 5, WRITE, ERROR_FILE_NOT_FOUND, 0),
        (&gone, 1, WRITE, ERROR_SUCCESS, 0),
        (&gone, 2, READ, ERROR_SUCCESS, 0),
        (&gone, 4, ATTRIBUTES, ERROR_SUCCESS, 0),
    ] {
        std::fs::write(&there, b"text").unwrap();
        let _ = std::fs::remove_file(&gone);
        let (file, code) = open(name, access, disposition, 0);
        assert_eq!(code, error, "{name} {disposition} {access:#x}");
        let succeeds = matches!(error, ERROR_SUCCESS | ERROR_ALREADY_EXISTS);
        assert_eq!(file != RawHandle::INVALID, succeeds);
        if succeeds {
            assert_eq!(std::fs::metadata(name).unwrap().len(), length, "{disposition}");
            close(file);
        }
    }
    assert_eq!(open(&folder.name("none/such"), READ, 3, 0).1, ERROR_PATH_NOT_FOUND);
    assert_eq!(open("", READ, 3, 0).1, ERROR_PATH_NOT_FOUND);
    let nameless = create::<u8>(Text::NULL, READ, 0, null(), 3, 0, RawHandle::NULL);
    assert_eq!(nameless, RawHandle::INVALID);
    assert_eq!(open(&folder.name(""), READ, 3, 0).1, ERROR_ACCESS_DENIED);
    assert_eq!(open(&folder.name(""), READ, 1, BACKUP).1, ERROR_FILE_EXISTS);
    let (opened, _) = open(&folder.name(""), 0, 3, BACKUP);
    assert_eq!((read(opened, 1).0, last_error()), (0, ERROR_INVALID_FUNCTION));
    close(opened);
}

#[test]
fn reading_and_writing_move_the_position() {
    let folder = Folder::new();
    let (file, _) = open(&folder.name("x"), READ | WRITE, 2, 0);
    assert_eq!(write(file, b"0123456789"), (1, 10));
    assert_eq!(read(file, 4), (1, vec![]), "the end is no error");
    let mut position = 7;
    assert_eq!((ndw_SetFilePointerEx(file, -4, (&mut position).into(), 2), position), (1, 6));
    assert_eq!(read(file, 2), (1, b"67".to_vec()));
    assert_eq!(ndw_SetFilePointer(file, -3, InOut::NULL, 1), 5);
    assert_eq!(read(file, 100), (1, b"56789".to_vec()));
    assert_eq!((ndw_SetFilePointer(file, -1, InOut::NULL, 0), last_error()), (u32::MAX, ERROR_NEGATIVE_SEEK));
    assert_eq!(
        (ndw_SetFilePointer(file, 0, InOut::NULL, 3), last_error()),
        (u32::MAX, ERROR_INVALID_PARAMETER)
    );
    let mut high = 1;
    assert_eq!((ndw_SetFilePointer(file, 5, (&mut high).into(), 0), high), (5, 1));
    assert_eq!(ndw_SetFilePointerEx(file, 3, Out::NULL, 0), 1);
    assert_eq!(ndw_SetEndOfFile(file), 1);
    let (mut size, mut high) = (0, 7);
    assert_eq!((ndw_GetFileSizeEx(file, (&mut size).into()), size), (1, 3));
    assert_eq!((ndw_GetFileSize(file, (&mut high).into()), high), (3, 0));
    assert_eq!((ndw_GetFileSizeEx(file, Out::NULL), last_error()), (0, ERROR_NOACCESS));
    assert_eq!((ndw_FlushFileBuffers(file), ndw_GetFileType(file)), (1, 1));
    assert_eq!(ndw_WaitForSingleObject(file, 0), 0);
    close(file);
    assert_eq!(std::fs::read(folder.name("x")).unwrap(), b"012");
}

#[test]
fn a_large_position_needs_its_high_half() {
    let folder = Folder::new();
    let (file, _) = open(&folder.name("x"), WRITE, 1, 0);
    let mut high = 0;
    // All bits set in the low half: the last error tells that it is no failure.
    set_last_error(9);
    assert_eq!(
        (ndw_SetFilePointer(file, -1, (&mut high).into(), 0), last_error()),
        (u32::MAX, ERROR_SUCCESS)
    );
    assert_eq!(
        (ndw_SetFilePointer(file, 1, InOut::NULL, 1), last_error()),
        (u32::MAX, ERROR_INVALID_PARAMETER)
    );
    let mut position = 0;
    assert_eq!((ndw_SetFilePointerEx(file, 0, (&mut position).into(), 1), position), (1, 0xFFFF_FFFF));
    close(file);
}

#[test]
fn rights_are_kept() {
    let folder = Folder::new();
    let name = folder.file("x", b"text");
    for (access, reads, writes) in [
        (READ, true, false),
        (WRITE, false, true),
        (4, false, true),
        (ATTRIBUTES, false, false),
        (ALLOWED, true, true),
    ] {
        let (file, _) = open(&name, access, 3, 0);
        assert_eq!(read(file, 1).0, i32::from(reads), "{access:#x}");
        assert!(reads || last_error() == ERROR_ACCESS_DENIED);
        assert_eq!(write(file, b"+").0, i32::from(writes), "{access:#x}");
        assert!(writes || last_error() == ERROR_ACCESS_DENIED);
        if !writes {
            assert_eq!((ndw_SetEndOfFile(file), last_error()), (0, ERROR_ACCESS_DENIED));
            assert_eq!((ndw_FlushFileBuffers(file), last_error()), (0, ERROR_ACCESS_DENIED));
        }
        close(file);
    }
    // FILE_APPEND_DATA alone writes behind what is there.
    assert_eq!(std::fs::read(&name).unwrap(), b"++xt+");
    let (file, _) = open(&name, 0x1_0000 | READ, 3, 0x0400_0000);
    close(file);
    assert!(!std::path::Path::new(&name).exists(), "FILE_FLAG_DELETE_ON_CLOSE");
    if let Some(device) = folder.device("null") {
        let (file, _) = open(&device, 0x1_0000 | READ, 3, 0x0400_0000);
        close(file);
        assert!(std::path::Path::new(&device).exists(), "a device stays");
    }
}

#[test]
fn an_overlapped_gives_the_place() {
    let folder = Folder::new();
    let event = ndw_CreateEventW(null(), 1, 0, Text::NULL);
    for flags in [0, OVERLAPPED] {
        let (file, _) = open(&folder.name("x"), READ | WRITE, 2, flags);
        let mut count = 9;
        // SAFETY: buffers have the sizes told, and each operation of a regular file is over when the call returns.
        unsafe {
            let mut ov = at(3, event);
            assert_eq!(ndw_WriteFile(file, b"abc".as_ptr().cast(), 3, Out::NULL, &mut ov), 1);
            assert_eq!((*ov.internal.get_mut(), *ov.internal_high.get_mut()), (0, 3));
            assert_eq!(ndw_WaitForSingleObject(event, 0), 0, "the event is set");
            let mut ov = at(u64::MAX, RawHandle::NULL);
            assert_eq!(ndw_WriteFile(file, b"d".as_ptr().cast(), 1, Out::from(&mut count), &mut ov), 1);
            let (mut buffer, mut ov) = ([0u8; 8], at(2, RawHandle::NULL));
            assert_eq!(
                (ndw_ReadFile(file, buffer.as_mut_ptr().cast(), 8, Out::from(&mut count), &mut ov), count),
                (1, 5)
            );
            assert_eq!(&buffer[..5], b"\0abcd");
            let mut ov = at(7, RawHandle::NULL);
            assert_eq!(
                (ndw_ReadFile(file, buffer.as_mut_ptr().cast(), 8, Out::from(&mut count), &mut ov), count),
                (0, 0)
            );
            assert_eq!(
                (last_error(), *ov.internal.get_mut()),
                (ERROR_HANDLE_EOF, STATUS_END_OF_FILE as usize)
            );
            if flags == 0 {
                let mut ov = at(1, RawHandle::NULL);
                assert_eq!(
                    ndw_ReadFile(file, buffer.as_mut_ptr().cast(), 2, Out::from(&mut count), &mut ov),
                    1
                );
                assert_eq!(ndw_SetFilePointer(file, 0, InOut::NULL, 1), 3, "the position moves along");
            } else {
                assert_eq!(
                    ndw_ReadFile(file, buffer.as_mut_ptr().cast(), 2, Out::from(&mut count), null_mut()),
                    0
                );
                assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            }
        }
        close(file);
    }
    close(event);
}

#[test]
fn operations_of_a_bound_file_become_packets() {
    let folder = Folder::new();
    let (file, _) = open(&folder.name("x"), READ | WRITE, 1, OVERLAPPED);
    let mut ov = at(0, RawHandle::NULL);
    let (mut bytes, mut key, mut which) = (0, 0, null_mut());
    // SAFETY: `ov` and the buffers live until the packets have been taken, at the end of this block.
    unsafe {
        let port = ndw_CreateIoCompletionPort(file, RawHandle::NULL, 42, 0);
        assert_ne!(port, RawHandle::NULL);
        assert_eq!(ndw_WriteFile(file, b"abc".as_ptr().cast(), 3, Out::NULL, &mut ov), 1);
        let place: *mut Overlapped = &mut ov;
        assert_eq!(
            ndw_GetQueuedCompletionStatus(
                port,
                Out::from(&mut bytes),
                Out::from(&mut key),
                Out::from(&mut which),
                0
            ),
            1
        );
        assert_eq!((bytes, key, which), (3, 42, place));
        close(file);
        close(port);
        // One that was opened without the flag has no packets.
        let (file, _) = open(&folder.name("x"), READ, 3, 0);
        assert_eq!(ndw_CreateIoCompletionPort(file, RawHandle::NULL, 1, 0), RawHandle::NULL);
        close(file);
    }
}

#[test]
fn operations_without_buffers_pend_and_are_done() {
    let folder = Folder::new();
    let (file, _) = open(&folder.name("x"), READ | WRITE, 1, OVERLAPPED | UNBUFFERED);
    let event = ndw_CreateEventW(null(), 1, 0, Text::NULL);
    let mut ov = at(0, event);
    let (mut bytes, mut key, mut which) = (0, 0, null_mut());
    let mut buffer = [0u8; 4];
    let port = ndw_CreateIoCompletionPort(file, RawHandle::NULL, 42, 0);
    // What succeeds at once has no packet: these do not.
    assert_eq!(ndw_SetFileCompletionNotificationModes(file, 1), 1);
    // SAFETY: `ov` and the buffers live until the packets have been taken, at the end of this block.
    unsafe {
        let place: *mut Overlapped = &mut ov;
        for writes in [true, false] {
            assert_eq!(ndw_ResetEvent(event), 1);
            let result = match writes {
                true => ndw_WriteFile(file, b"abc".as_ptr().cast(), 3, (&mut bytes).into(), place),
                false => ndw_ReadFile(file, buffer.as_mut_ptr().cast(), 4, (&mut bytes).into(), place),
            };
            assert_eq!((result, last_error(), bytes), (0, ERROR_IO_PENDING, 0));
            assert_eq!(ndw_WaitForSingleObject(event, 60_000), 0);
            let next = ndw_GetQueuedCompletionStatus(
                port,
                Out::from(&mut bytes),
                Out::from(&mut key),
                Out::from(&mut which),
                60_000,
            );
            assert_eq!((next, bytes, key, which), (1, 3, 42, place));
            bytes = 9;
            assert_eq!((ndw_GetOverlappedResult(file, place, &raw mut bytes, 0), bytes), (1, 3));
        }
        assert_eq!(&buffer, b"abc\0");
        // The end is told at once.
        ov.offset = 3;
        let result = ndw_ReadFile(file, buffer.as_mut_ptr().cast(), 4, Out::NULL, &mut ov);
        assert_eq!((result, last_error()), (0, ERROR_HANDLE_EOF));
    }
    close(file);
    close(event);
    // Without overlapped operations the flag changes nothing.
    let (file, _) = open(&folder.name("x"), READ, 3, UNBUFFERED);
    assert_eq!(read(file, 4), (1, b"abc".to_vec()));
    close(file);
    close(port);
}

#[test]
fn a_pipe_whose_other_end_is_gone() {
    let folder = Folder::new();
    let name = folder.name("pipe");
    let c_name = std::ffi::CString::new(&name[..]).unwrap();
    // SAFETY: a terminated name.
    assert_eq!(unsafe { libc::mkfifo(c_name.as_ptr(), 0o600) }, 0);
    // Both ends at once, so that nobody waits; then only one.
    let both = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let ((reader, _), (writer, _)) = (open(&name, READ, 3, 0), open(&name, WRITE, 3, 0));
    drop(both);
    assert_eq!((ndw_GetFileType(reader), write(writer, b"ab")), (3, (1, 2)));
    assert_eq!(read(reader, 9), (1, b"ab".to_vec()));
    assert_eq!(ndw_SetFilePointer(reader, 0, InOut::NULL, 0), u32::MAX);
    assert_eq!(last_error(), ERROR_INVALID_FUNCTION);
    close(writer);
    assert_eq!((read(reader, 9).0, last_error()), (0, ERROR_BROKEN_PIPE));
    let (writer, _) = open(&name, WRITE, 3, 0);
    close(reader);
    // Another test may have started a process, which has a copy of the reader until it becomes another program.
    let begin = std::time::Instant::now();
    let mut written = write(writer, b"x");
    while written.0 != 0 && begin.elapsed() < std::time::Duration::from_secs(60) {
        std::thread::yield_now();
        written = write(writer, b"x");
    }
    assert_eq!((written, last_error()), ((0, 0), ERROR_NO_DATA), "and no signal");
    close(writer);
}

#[test]
fn a_socket_is_a_pipe_by_its_type() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    // The lowest numbers are no sockets, and not what Winsock gives.
    // SAFETY: duplicates an open descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 8)) };
    assert_eq!(ndw_GetFileType(RawHandle(socket.as_raw_fd() as usize)), 3);
    let file = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: duplicates an open descriptor.
    let file = unsafe { OwnedFd::from_raw_fd(libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 8)) };
    let kind = ndw_GetFileType(RawHandle(file.as_raw_fd() as usize));
    assert_eq!((kind, last_error()), (0, ERROR_INVALID_HANDLE));
}

#[test]
fn wrong_arguments_of_files() {
    let folder = Folder::new();
    let (file, _) = open(&folder.name("x"), READ | WRITE, 1, 0);
    let (mut count, mut byte) = (9, 0u8);
    let event = ndw_CreateEventW(null(), 1, 0, Text::NULL);
    // SAFETY: NULL is refused or comes with no bytes, and `place` has the one byte that is told.
    unsafe {
        assert_eq!(ndw_ReadFile(file, null_mut(), 1, Out::from(&mut count), null_mut()), 0);
        assert_eq!((last_error(), count), (ERROR_NOACCESS, 0));
        assert_eq!(
            (ndw_WriteFile(file, null(), 1, Out::from(&mut count), null_mut()), last_error()),
            (0, ERROR_NOACCESS)
        );
        let place = (&raw mut byte).cast();
        assert_eq!(
            (ndw_ReadFile(file, place, 1, Out::NULL, null_mut()), last_error()),
            (0, ERROR_INVALID_PARAMETER)
        );
        assert_eq!(ndw_WriteFile(file, null(), 0, Out::from(&mut count), null_mut()), 1);
        assert_eq!(ndw_ReadFile(file, null_mut(), 0, Out::from(&mut count), null_mut()), 1);
        close(file);
        for handle in [file, event, RawHandle::NULL, RawHandle::INVALID] {
            for done in [
                ndw_ReadFile(handle, place, 1, Out::from(&mut count), null_mut()),
                ndw_WriteFile(handle, place, 1, Out::from(&mut count), null_mut()),
                ndw_GetFileSizeEx(handle, (&mut 0).into()),
                ndw_SetFilePointerEx(handle, 0, Out::NULL, 0),
                ndw_SetEndOfFile(handle),
                ndw_FlushFileBuffers(handle),
                ndw_GetFileType(handle) as i32,
                ndw_GetFileSize(handle, Out::NULL).wrapping_add(1) as i32,
                ndw_GetFileInformationByHandle(handle, (&mut FileInformation::default()).into()),
            ] {
                assert_eq!((done, last_error()), (0, ERROR_INVALID_HANDLE));
            }
        }
    }
    close(event);
}

#[test]
fn two_names_of_one_file_are_found_out() {
    let found = |name: &str| {
        let (file, _) = open(name, ATTRIBUTES, 3, 0);
        let mut found = FileInformation::default();
        assert_eq!(ndw_GetFileInformationByHandle(file, (&mut found).into()), 1);
        close(file);
        found
    };
    let [null, same, zero] = ["/dev/null", "/dev/../dev/null", "/dev/zero"].map(found);
    assert_eq!(null, same);
    assert_ne!((null.index_low, null.volume), (zero.index_low, zero.volume));
}

#[test]
fn standard_handles_are_those_of_the_process() {
    let output = ndw_GetStdHandle(-11i32 as u32);
    assert_eq!(ndw_GetStdHandle(-11i32 as u32), output, "always the same one");
    assert_eq!(write(output, b"").0, 1);
    assert_ne!(ndw_GetFileType(output), 0);
    for wrong in [0, -9i32 as u32, -13i32 as u32, 1, u32::MAX] {
        assert_eq!((ndw_GetStdHandle(wrong), last_error()), (RawHandle::INVALID, ERROR_INVALID_HANDLE));
        assert_eq!((ndw_SetStdHandle(wrong, output), last_error()), (0, ERROR_INVALID_HANDLE));
    }
    let (null, _) = open("NUL", READ, 3, 0);
    assert_eq!((ndw_SetStdHandle(-10i32 as u32, null), ndw_GetStdHandle(-10i32 as u32)), (1, null));
    assert_eq!((read(null, 1), ndw_GetFileType(null)), ((1, vec![]), 2));
}
