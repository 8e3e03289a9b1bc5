use super::*;
use crate::api::file_names::tests::Folder;
use crate::api::files::ndw_CreateFileW;
use crate::api::handle::close_handle;
use crate::arguments::Text;
use crate::text::w;
use std::path::Path;
use std::ptr::{null, null_mut};

const READ: u32 = 0x8000_0000;
const BOTH: u32 = 0xC000_0000;
const BACKUP: u32 = 0x0200_0000;

fn open(name: &str, access: u32, flags: u32) -> RawHandle {
    let file = ndw_CreateFileW(Text::terminated(&w(name)), access, 7, null(), 3, flags, RawHandle::NULL);
    assert_ne!(file, RawHandle::INVALID);
    file
}

fn result(done: i32) -> u32 {
    if done == 1 { 0 } else { last_error() }
}

fn get<T: Default>(file: RawHandle, class: i32) -> (u32, T) {
    let mut it = T::default();
    let size = size_of::<T>() as u32;
    // SAFETY: `it` has its size.
    let done = unsafe { ndw_GetFileInformationByHandleEx(file, class, (&raw mut it).cast(), size) };
    (result(done), it)
}

fn set<T>(file: RawHandle, class: i32, it: T) -> u32 {
    let size = size_of::<T>() as u32;
    // SAFETY: `it` has its size, and tests give what the class asks for.
    result(unsafe { ndw_SetFileInformationByHandle(file, class, (&raw const it).cast(), size) })
}

fn rename(file: RawHandle, to: &str, flags: u32) -> u32 {
    let name = Wchar::spell(to);
    let mut it = [0u32; 300];
    it[0] = flags;
    it[4] = 4 * name.len() as u32;
    it[5..5 + name.len()].copy_from_slice(&name);
    set(file, class::RENAME, it)
}

fn close(file: RawHandle) {
    assert_eq!(close_handle(file), 1);
}

#[test]
fn a_file_tells_what_it_is() {
    let folder = Folder::new();
    let name = folder.file("x", b"text");
    let file = open(&name, READ, 0);
    let (code, it) = get::<StandardInformation>(file, class::STANDARD);
    assert_eq!((code, it.end_of_file, it.links, it.delete_pending, it.directory), (0, 4, 1, 0, 0));
    let (code, it) = get::<BasicInformation>(file, class::BASIC);
    assert_eq!((code, it.attributes), (0, 0x80));
    assert!(it.last_write != 0 && it.change != 0);
    let two = open(&name, READ, 0);
    assert_eq!(get::<IdInformation>(file, class::ID), get(two, class::ID));
    close(two);
    close(file);
    let here = open(&folder.0, 0, BACKUP);
    let it = get::<StandardInformation>(here, class::STANDARD).1;
    assert_eq!((it.directory, it.end_of_file), (1, 0));
    assert_eq!(get::<[u32; 2]>(here, class::ATTRIBUTE_TAG), (0, [0x10, 0]));
    close(here);
}

#[test]
fn a_file_tells_the_sectors_that_its_file_system_tells() {
    let folder = Folder::new();
    let file = open(&folder.file("x", b""), READ, 0);
    let (code, it) = get::<StorageInformation>(file, class::STORAGE);
    assert_eq!((code, it.logical, it.flags), (0, SECTOR, 3));
    assert!(it.fast.is_power_of_two() && it.logical <= it.fast, "{it:?}");
    assert_eq!(get::<u32>(file, class::ALIGNMENT), (0, 0));
    assert_eq!(get::<[u32; 6]>(file, class::STORAGE).0, ERROR_BAD_LENGTH);
    close(file);
}

#[test]
fn a_file_tells_its_name_as_far_as_there_is_room() {
    let folder = Folder::new();
    let name = std::fs::canonicalize(folder.file("x", b"")).unwrap();
    let spelt = Wchar::spell(name.to_str().unwrap());
    let file = open(name.to_str().unwrap(), READ, 0);
    let mut buffer = [9u32; 300];
    let mut ask = |size: usize| {
        // SAFETY: `buffer` has the size told.
        let done = unsafe {
            ndw_GetFileInformationByHandleEx(file, class::NAME, buffer.as_mut_ptr().cast(), size as u32)
        };
        (result(done), buffer)
    };
    let (code, cut) = ask(4 * spelt.len());
    assert_eq!((code, cut[0] as usize, cut[spelt.len()]), (ERROR_MORE_DATA, 4 * spelt.len(), 9));
    let (code, whole) = ask(4 * spelt.len() + 4);
    assert_eq!((code, &whole[1..=spelt.len()]), (0, &spelt[..]));
    assert_eq!(ask(3).0, ERROR_BAD_LENGTH);
    let mut path = [0u8; 300];
    // SAFETY: the buffer has the room told.
    let length = unsafe { ndw_GetFinalPathNameByHandleA(file, path.as_mut_ptr(), 300, 0) } as usize;
    assert_eq!(&path[..length], name.to_str().unwrap().as_bytes());
    // SAFETY: no buffer.
    let needed = unsafe { ndw_GetFinalPathNameByHandleW(file, null_mut(), 0, 0) } as usize;
    assert_eq!(needed, length + 1);
    // SAFETY: no buffer.
    assert_eq!(unsafe { ndw_GetFinalPathNameByHandleW(file, null_mut(), 0, 0x100) }, 0);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    close(file);
}

#[test]
fn lengths_are_set_by_handle() {
    let folder = Folder::new();
    let name = folder.file("x", b"text");
    let file = open(&name, BOTH, 0);
    let length = || std::fs::metadata(&name).unwrap().len();
    assert_eq!((set(file, class::END_OF_FILE, 100_i64), length()), (0, 100));
    assert_eq!((set(file, class::ALLOCATION, 10_000_i64), length()), (0, 100));
    assert_eq!((set(file, class::ALLOCATION, 10_i64), length()), (0, 10));
    assert_eq!((ndw_SetFileValidData(file, 10), length()), (1, 10));
    assert_eq!(result(ndw_SetFileValidData(file, 11)), ERROR_INVALID_PARAMETER);
    assert_eq!(set(file, class::END_OF_FILE, -1_i64), ERROR_INVALID_PARAMETER);
    assert_eq!(set(file, class::END_OF_FILE, 1_i32), ERROR_BAD_LENGTH);
    close(file);
    let file = open(&name, READ, 0);
    assert_eq!(set(file, class::END_OF_FILE, 1_i64), ERROR_ACCESS_DENIED);
    close(file);
}

#[test]
fn a_file_is_renamed_by_handle() {
    let folder = Folder::new();
    let (name, other, there) = (folder.file("x", b"text"), folder.name("y"), folder.file("z", b""));
    let file = open(&name, BOTH, 0);
    assert_eq!(rename(file, &there, 0), ERROR_ALREADY_EXISTS);
    assert_eq!(rename(file, &other, 0), 0);
    assert!(!Path::new(&name).exists() && Path::new(&other).exists());
    assert_eq!(rename(file, &there, 1), 0, "it is known by its new name, and may replace another");
    assert_eq!(std::fs::read(&there).unwrap(), b"text");
    // Longer than the structure, and not of whole characters.
    for length in [8, 3] {
        let odd = RenameInformation { length, ..Default::default() };
        assert_eq!(set(file, class::RENAME, odd), ERROR_INVALID_PARAMETER, "{length}");
    }
    assert_eq!(
        set(file, class::RENAME, RenameInformation { root: 8, ..Default::default() }),
        ERROR_NOT_SUPPORTED
    );
    close(file);
}

#[test]
fn a_file_whose_disposition_is_set_goes_when_it_is_closed() {
    let folder = Folder::new();
    let (name, other) = (folder.file("x", b"text"), folder.name("y"));
    let file = open(&name, BOTH, 0);
    assert_eq!((set(file, class::DISPOSITION, 1_u8), set(file, class::DISPOSITION, 0_u8)), (0, 0));
    close(file);
    assert!(Path::new(&name).exists(), "it was taken back");
    let file = open(&name, BOTH, 0);
    assert_eq!(set(file, class::DISPOSITION_EX, 3_u32), 0);
    assert_eq!(get::<StandardInformation>(file, class::STANDARD).1.delete_pending, 1);
    assert_eq!(rename(file, &other, 0), 0);
    close(file);
    assert!(!Path::new(&name).exists() && !Path::new(&other).exists());

    std::fs::create_dir(&other).unwrap();
    std::fs::write(folder.name("y/z"), b"").unwrap();
    let file = open(&other, BOTH, BACKUP);
    assert_eq!(set(file, class::DISPOSITION, 1_u8), ERROR_DIR_NOT_EMPTY);
    std::fs::remove_file(folder.name("y/z")).unwrap();
    assert_eq!(set(file, class::DISPOSITION, 1_u8), 0);
    close(file);
    assert!(!Path::new(&other).exists());
}

#[test]
fn times_and_attributes_are_set_by_handle() {
    let folder = Folder::new();
    let name = folder.file("x", b"text");
    let file = open(&name, BOTH, 0);
    let [access, write] = [130_000_000_000_000_000_u64, 131_000_000_000_000_007].map(FileTime::from);
    let read = || {
        let mut found = [FileTime::default(); 3];
        let [creation, access, write] = &mut found;
        assert_eq!(ndw_GetFileTime(file, creation.into(), access.into(), write.into()), 1);
        [found[1], found[2]]
    };
    assert_eq!(ndw_SetFileTime(file, In::NULL, (&access).into(), (&write).into()), 1);
    assert_eq!(read(), [access, write]);
    let as_it_is = FileTime::from(u64::MAX);
    assert_eq!(ndw_SetFileTime(file, In::NULL, In::NULL, (&as_it_is).into()), 1);
    assert_eq!(read(), [access, write]);
    let readonly = BasicInformation { last_write: units(access), attributes: 1, ..Default::default() };
    assert_eq!(set(file, class::BASIC, readonly), 0);
    assert_eq!(read(), [access, access]);
    assert_eq!(get::<BasicInformation>(file, class::BASIC).1.attributes, 1);
    assert_eq!(set(file, class::DISPOSITION, 1_u8), ERROR_ACCESS_DENIED, "read-only files stay");
    close(file);
    assert_eq!(ndw_GetFileTime(file, Out::NULL, Out::NULL, Out::NULL), 0);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
}

#[test]
fn wrong_arguments_of_file_information() {
    let folder = Folder::new();
    let file = open(&folder.file("x", b"text"), BOTH, 0);
    for class in [-1, class::END] {
        assert_eq!(get::<[u64; 9]>(file, class).0, ERROR_INVALID_PARAMETER);
        assert_eq!(set(file, class, [0u64; 9]), ERROR_INVALID_PARAMETER);
    }
    assert_eq!(get::<[u64; 9]>(file, class::RENAME).0, ERROR_NOT_SUPPORTED);
    assert_eq!(set(file, class::ID, [0u64; 9]), ERROR_NOT_SUPPORTED);
    assert_eq!(set(file, class::IO_PRIORITY, 3), ERROR_INVALID_PARAMETER);
    for class in [class::BASIC, class::STANDARD, class::ID] {
        assert_eq!(get::<u8>(file, class).0, ERROR_BAD_LENGTH);
    }
    // SAFETY: NULL.
    let done = unsafe { ndw_GetFileInformationByHandleEx(file, class::BASIC, null_mut(), 40) };
    assert_eq!(result(done), ERROR_INVALID_PARAMETER);
    // SAFETY: NULL.
    let done = unsafe { ndw_SetFileInformationByHandle(file, class::BASIC, null(), 40) };
    assert_eq!(result(done), ERROR_INVALID_PARAMETER);
    close(file);
    assert_eq!(get::<BasicInformation>(file, class::BASIC).0, ERROR_INVALID_HANDLE);
    assert_eq!(set(file, class::DISPOSITION, 1_u8), ERROR_INVALID_HANDLE);
}
