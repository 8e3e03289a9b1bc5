//! `CreateFileMapping`, `MapViewOfFile`, `VirtualLock` and related functions.

use crate::arguments::Text;
use crate::boundary::{guard, guard_bool, guard_handle};
use crate::error::*;
use crate::memory::section::{Section, flush, is_protection, map, needs_writing, unmap};
use crate::object::{Object, RawHandle, handle, names, open, open_created};
use crate::text::{Unit, narrow_and_wide};
use std::ffi::c_void;
use std::io;
use std::sync::Arc;

const SEC_COMMIT: u32 = 0x0800_0000;
const SEC_RESERVE: u32 = 0x0400_0000;
const SEC_NOCACHE: u32 = 0x1000_0000;
/// The bits that are not a protection.
const SECTION_FLAGS: u32 = 0xFFFF_FF00;

fn create<T: Unit>(
    file: RawHandle,
    _security: *const c_void,
    protect: u32,
    size_high: u32,
    size_low: u32,
    name: Text<'_, T>,
) -> RawHandle {
    guard_handle(|| {
        let size = u64::from(size_high) << 32 | u64::from(size_low);
        // Linux commits memory when it is touched, so SEC_RESERVE and SEC_COMMIT are the same.
        let (flags, protect) = (protect & SECTION_FLAGS, protect & !SECTION_FLAGS);
        if flags & !(SEC_COMMIT | SEC_RESERVE | SEC_NOCACHE) != 0 {
            return Err(ERROR_NOT_SUPPORTED);
        }
        if !is_protection(protect) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let name = name.read().filter(|name| !name.is_empty());
        if file == RawHandle::INVALID {
            let (section, existed) = Section::of_memory(size, protect, name.as_deref())?;
            let section = Arc::new(section);
            if let Some(name) = &name {
                names::enter_section(name, &section)?;
            }
            return open_created(Object::Section(section), existed);
        }
        let Some(Object::Disk(disk)) = handle::get(file) else { return Err(ERROR_INVALID_HANDLE) };
        if name.is_some() {
            // A named mapping of a file: programs can share the file by its own name.
            return Err(ERROR_NOT_SUPPORTED);
        }
        if !disk.is_regular() {
            return Err(ERROR_INVALID_HANDLE);
        }
        if !disk.reads() || needs_writing(protect) && !disk.writes() {
            return Err(ERROR_ACCESS_DENIED);
        }
        let copy = disk.file().try_clone().map_err(|error| crate::files::error_of(&error))?;
        open_created(Object::Section(Arc::new(Section::of_file(copy, size, protect)?)), false)
    })
}

fn open_named<T: Unit>(_access: u32, _inherit: i32, name: Text<'_, T>) -> RawHandle {
    guard_handle(|| {
        let name = name.read().filter(|name| !name.is_empty()).ok_or(ERROR_INVALID_PARAMETER)?;
        let section = Arc::new(Section::named(&name)?);
        names::enter_section(&name, &section)?;
        open(Object::Section(section))
    })
}

narrow_and_wide! {
    "`CreateFileMapping`: names are for memory of no file, and known to all processes of the user."
    ndw_CreateFileMappingA ndw_CreateFileMappingW = create(
        file: RawHandle,
        security: *const c_void,
        protect: u32,
        size_high: u32,
        size_low: u32,
        name: Text<'_, T>,
    ) -> RawHandle;
    "`OpenFileMapping`."
    ndw_OpenFileMappingA ndw_OpenFileMappingW = open_named(access: u32, inherit: i32, name: Text<'_, T>) -> RawHandle;
}

/// `MapViewOfFileEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_MapViewOfFileEx(
    section: RawHandle,
    access: u32,
    offset_high: u32,
    offset_low: u32,
    bytes: usize,
    address: usize,
) -> *mut c_void {
    guard(std::ptr::null_mut(), || {
        let result = match handle::get(section) {
            Some(Object::Section(section)) => {
                map(&section, access, u64::from(offset_high) << 32 | u64::from(offset_low), bytes, address)
            }
            _ => Err(ERROR_INVALID_HANDLE),
        };
        result.map(|start| start as *mut c_void).unwrap_or_else(|code| {
            set_last_error(code);
            std::ptr::null_mut()
        })
    })
}

/// `MapViewOfFile`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_MapViewOfFile(
    section: RawHandle,
    access: u32,
    offset_high: u32,
    offset_low: u32,
    bytes: usize,
) -> *mut c_void {
    ndw_MapViewOfFileEx(section, access, offset_high, offset_low, bytes, 0)
}

/// `UnmapViewOfFile`. The section exists until its handle is closed and all views are unmapped.
///
/// # Safety
/// Nothing of the program's may use the view any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_UnmapViewOfFile(address: usize) -> i32 {
    // SAFETY: nothing of the program's points into the view any more, as this function asks.
    guard_bool(|| unsafe { unmap(address) })
}

/// `FlushViewOfFile`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlushViewOfFile(address: usize, bytes: usize) -> i32 {
    guard_bool(|| flush(address, bytes))
}

/// Locks or unlocks pages.
fn lock(address: usize, bytes: usize, call: impl FnOnce(*const c_void, usize) -> i32) -> i32 {
    guard_bool(|| {
        let page = crate::memory::page_size() - 1;
        let end = address.checked_add(bytes).filter(|_| bytes != 0).ok_or(ERROR_INVALID_PARAMETER)?;
        let start = address & !page;
        if call(start as *const c_void, end - start) == 0 {
            return Ok(());
        }
        Err(match io::Error::last_os_error().raw_os_error() {
            // ENOMEM means above the limit, or not mapped: whether the first page is mapped tells which.
            Some(libc::ENOMEM) if is_mapped(start) => ERROR_WORKING_SET_QUOTA,
            Some(libc::EPERM | libc::EAGAIN) => ERROR_WORKING_SET_QUOTA,
            _ => ERROR_NOACCESS,
        })
    })
}

fn is_mapped(address: usize) -> bool {
    let mut state = 0u8;
    // SAFETY: asks about one page, and has room for one answer.
    unsafe { libc::mincore(address as *mut c_void, 1, &mut state) == 0 }
}

/// `VirtualLock`: `ERROR_WORKING_SET_QUOTA` above `RLIMIT_MEMLOCK`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_VirtualLock(address: usize, bytes: usize) -> i32 {
    // The call itself, as AddressSanitizer puts a function in its place that locks nothing.
    // SAFETY: locking changes nothing that a program sees.
    lock(address, bytes, |start, length| unsafe { libc::syscall(libc::SYS_mlock, start, length) } as i32)
}

/// `VirtualUnlock`: of pages that were not locked, too.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_VirtualUnlock(address: usize, bytes: usize) -> i32 {
    // SAFETY: unlocking pages changes nothing that a program sees, and the kernel refuses an address that is not mapped.
    lock(address, bytes, |start, length| unsafe { libc::syscall(libc::SYS_munlock, start, length) } as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_names::tests::Folder;
    use crate::api::files;
    use crate::api::handle::close_handle;
    use crate::memory::virtual_memory::{MemoryInformation, ndw_VirtualQuery};
    use crate::text::w;
    use std::ptr::null;

    const READONLY: u32 = 2;
    const READWRITE: u32 = 4;
    const MAP_WRITE: u32 = 2;
    const MAP_READ: u32 = 4;
    const MAP_COPY: u32 = 1;

    fn memory(size: u32, protect: u32, name: Option<&str>) -> (RawHandle, u32) {
        let name = name.map(w);
        let name = name.as_ref().map_or(Text::NULL, |name| Text::terminated(name));
        set_last_error(99);
        let section = create(RawHandle::INVALID, null(), protect, 0, size, name);
        (section, last_error())
    }

    fn view(section: RawHandle, access: u32, offset: u32, bytes: usize) -> Result<*mut u8, u32> {
        let view = ndw_MapViewOfFile(section, access, 0, offset, bytes).cast::<u8>();
        if view.is_null() { Err(last_error()) } else { Ok(view) }
    }

    fn unmap(view: *mut u8) {
        // SAFETY: each test unmaps a view of its own once, after its last use.
        assert_eq!(unsafe { ndw_UnmapViewOfFile(view as usize) }, 1);
    }

    fn close(handle: RawHandle) {
        assert_eq!(close_handle(handle), 1);
    }

    /// What is unmapped can be anybody's at once.
    #[test]
    fn views_are_gone_afterwards() {
        crate::alone::run("api::file_mapping::tests::views_show_the_same_memory");
        crate::alone::run("api::file_mapping::tests::a_view_needs_rights_room_and_alignment");
    }

    #[test]
    #[ignore = "uses what is unmapped; the test above runs it"]
    fn views_show_the_same_memory() {
        let (section, code) = memory(0x2_0000, READWRITE, None);
        assert_eq!(code, ERROR_SUCCESS);
        let (a, b) = (view(section, MAP_WRITE, 0, 0).unwrap(), view(section, MAP_READ, 0x1_0000, 0).unwrap());
        assert!((a as usize).is_multiple_of(0x1_0000) && (b as usize).is_multiple_of(0x1_0000));
        // The views keep the memory.
        close(section);
        // SAFETY: the first view has 0x2_0000 bytes and the second 0x1_0000, both mapped; the query has its 48 bytes.
        unsafe {
            a.add(0x1_0005).write(7);
            assert_eq!((b.add(5).read(), b.read()), (7, 0));
            let mut found = MemoryInformation::default();
            assert_eq!(ndw_VirtualQuery(a as usize + 4096, &mut found, 48), 48);
            assert_eq!((found.kind, found.state, found.protect), (0x4_0000, 0x1000, 4));
            assert_eq!((found.allocation_base, found.base_address), (a as usize, a as usize + 4096));
        }
        assert_eq!((ndw_VirtualLock(a as usize, 100), ndw_VirtualUnlock(a as usize, 100)), (1, 1));
        unmap(a);
        // SAFETY: nothing is there any more.
        assert_eq!((unsafe { ndw_UnmapViewOfFile(a as usize) }, last_error()), (0, ERROR_INVALID_ADDRESS));
        assert_eq!((ndw_VirtualLock(a as usize, 100), last_error()), (0, ERROR_NOACCESS));
        assert_eq!((ndw_FlushViewOfFile(a as usize, 0), last_error()), (0, ERROR_INVALID_ADDRESS));
        // Any address in a view will do.
        // SAFETY: the view has 0x1_0000 bytes and is still mapped.
        unmap(unsafe { b.add(4097) });
    }

    #[test]
    #[ignore = "uses what is unmapped; the test above runs it"]
    fn a_view_needs_rights_room_and_alignment() {
        let (section, _) = memory(0x1_8000, READONLY, None);
        for (access, offset, bytes, error) in [
            (MAP_WRITE, 0, 0, ERROR_ACCESS_DENIED),
            (0, 0, 0, ERROR_ACCESS_DENIED),
            (MAP_READ | 0x20, 0, 0, ERROR_ACCESS_DENIED),
            (MAP_READ, 0x1000, 0, ERROR_MAPPED_ALIGNMENT),
            (MAP_READ, 0x2_0000, 0, ERROR_ACCESS_DENIED),
            (MAP_READ, 0x1_0000, 0x8001, ERROR_ACCESS_DENIED),
            (MAP_READ, 0, usize::MAX, ERROR_ACCESS_DENIED),
        ] {
            assert_eq!(view(section, access, offset, bytes), Err(error), "{access} {offset:#x} {bytes:#x}");
        }
        unmap(view(section, MAP_READ, 0x1_0000, 0x8000).unwrap());
        close(section);
        assert_eq!(view(section, MAP_READ, 0, 0), Err(ERROR_INVALID_HANDLE));
        let (section, _) = memory(0x1_0000, READWRITE, None);
        let first = view(section, MAP_WRITE, 0, 0).unwrap();
        assert!(ndw_MapViewOfFileEx(section, MAP_READ, 0, 0, 0, first as usize).is_null());
        assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
        assert!(ndw_MapViewOfFileEx(section, MAP_READ, 0, 0, 0, first as usize + 4096).is_null());
        assert_eq!(last_error(), ERROR_MAPPED_ALIGNMENT);
        unmap(first);
        assert_eq!(ndw_MapViewOfFileEx(section, MAP_READ, 0, 0, 0, first as usize).cast(), first);
        unmap(first);
        close(section);
        for (size, protect, error) in [
            (0, READWRITE, ERROR_INVALID_PARAMETER),
            (1, 1, ERROR_INVALID_PARAMETER),
            (1, 0, ERROR_INVALID_PARAMETER),
            (1, READWRITE | READONLY, ERROR_INVALID_PARAMETER),
            (1, READWRITE | 0x0100_0000, ERROR_NOT_SUPPORTED),
        ] {
            assert_eq!(memory(size, protect, None), (RawHandle::NULL, error), "{size} {protect:#x}");
        }
    }

    #[test]
    fn a_view_of_a_file_writes_it_and_a_copy_does_not() {
        let folder = Folder::new();
        let name = folder.file("x", b"0123");
        let open_file = |access: u32| {
            files::create(Text::terminated(&w(&name)), access, 0, null(), 3, 0, RawHandle::NULL)
        };
        let section_of = |file: RawHandle, protect: u32, size: u32| {
            set_last_error(0);
            let section = create::<u8>(file, null(), protect, 0, size, Text::NULL);
            (section, last_error())
        };
        let (reader, both) = (open_file(0x8000_0000), open_file(0xC000_0000));
        assert_eq!(section_of(reader, READWRITE, 0), (RawHandle::NULL, ERROR_ACCESS_DENIED));
        assert_eq!(section_of(reader, READONLY, 5), (RawHandle::NULL, ERROR_NOT_ENOUGH_MEMORY));
        let (section, _) = section_of(both, READWRITE, 6);
        close(both);
        let (shared, copied) =
            (view(section, MAP_WRITE, 0, 0).unwrap(), view(section, MAP_COPY, 0, 0).unwrap());
        // SAFETY: both views are mapped, writable, and a page long at least.
        unsafe {
            shared.write(b'a');
            copied.add(1).write(b'X');
            assert_eq!((copied.read(), shared.add(1).read()), (b'a', b'1'));
        }
        assert_eq!(ndw_FlushViewOfFile(shared as usize, 0), 1);
        assert_eq!(std::fs::read(&name).unwrap(), b"a123\0\0", "it has grown");
        [shared, copied].into_iter().for_each(unmap);
        close(section);
        std::fs::write(&name, b"").unwrap();
        assert_eq!(section_of(reader, READONLY, 0), (RawHandle::NULL, ERROR_FILE_INVALID));
        close(reader);
        assert_eq!(section_of(reader, READONLY, 1), (RawHandle::NULL, ERROR_INVALID_HANDLE));
    }

    fn open_by(name: &str) -> (RawHandle, u32) {
        set_last_error(0);
        let section = open_named(4, 0, Text::terminated(&w(name)));
        (section, last_error())
    }

    #[test]
    fn a_name_lasts_as_long_as_somebody_has_it() {
        let name = format!("Local\\ndcompat/test {}", std::process::id());
        assert_eq!(open_by(&name), (RawHandle::NULL, ERROR_FILE_NOT_FOUND));
        let (first, code) = memory(100, READWRITE, Some(&name));
        assert_eq!(code, ERROR_SUCCESS);
        let (second, code) = memory(5000, READWRITE, Some(&name.replace("Local", "Global")));
        assert_eq!(code, ERROR_ALREADY_EXISTS);
        let (third, _) = open_by(&name);
        let [a, b] = [first, third].map(|section| view(section, MAP_WRITE, 0, 0).unwrap());
        assert_eq!(view(second, MAP_READ, 0, 101), Err(ERROR_ACCESS_DENIED), "the size is the first one's");
        // SAFETY: both views are mapped for writing, and have 100 bytes.
        unsafe {
            a.write(7);
            assert_eq!(b.read(), 7);
        }
        [first, second, third].into_iter().for_each(close);
        unmap(a);
        let (again, code) = memory(100, READWRITE, Some(&name));
        assert_eq!(code, ERROR_ALREADY_EXISTS, "a view has it");
        unmap(b);
        close(again);
        assert_eq!(open_by(&name), (RawHandle::NULL, ERROR_FILE_NOT_FOUND));
        assert_eq!(memory(1, READWRITE, Some("a\\b")), (RawHandle::NULL, ERROR_PATH_NOT_FOUND));
        assert_eq!(
            memory(1, READWRITE, Some(&"x".repeat(201))),
            (RawHandle::NULL, ERROR_FILENAME_EXCED_RANGE)
        );
        assert_eq!(open_by(""), (RawHandle::NULL, ERROR_INVALID_PARAMETER));
    }

    #[test]
    fn a_forked_child_is_no_user_of_a_name() {
        crate::alone::run("api::file_mapping::tests::a_name_and_forked_children");
    }

    #[test]
    #[ignore = "run by the test above: it forks"]
    fn a_name_and_forked_children() {
        let name = format!("ndcompat-forked-{}", std::process::id());
        let ((first, _), (second, _)) = (memory(100, READWRITE, Some(&name)), open_by(&name));
        let mut status = 0;
        let closed = crate::alone::child(|| {
            close(first);
            close(second);
            0
        });
        // SAFETY: a child of this test's; `status` is ours.
        unsafe { libc::waitpid(closed, &mut status, 0) };
        assert_eq!(status, 0);
        let (third, _) = open_by(&name);
        assert_ne!(third, RawHandle::NULL, "the parent has it");
        close(third);
        let waits = crate::alone::child(|| {
            loop {
                // SAFETY: takes no pointer.
                unsafe { libc::pause() };
            }
        });
        [first, second].into_iter().for_each(close);
        assert_eq!(open_by(&name), (RawHandle::NULL, ERROR_FILE_NOT_FOUND));
        // SAFETY: a child of this test's.
        unsafe { libc::kill(waits, libc::SIGKILL) };
    }

    /// The name for the test of two processes.
    const SHARED: &str = "NDCOMPAT_TEST_SECTION";

    #[test]
    fn another_process_sees_what_is_written_and_leaves_nothing_when_it_is_killed() {
        let name = format!("ndcompat-two-{}", std::process::id());
        let (section, _) = memory(4096, READWRITE, Some(&name));
        let here = view(section, MAP_WRITE, 0, 0).unwrap();
        // SAFETY: a view of 4096 bytes, aligned to a page, that is mapped for writing.
        unsafe { here.cast::<u32>().write(1) };
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "--ignored", "api::file_mapping::tests::the_other_process"])
            .env(SHARED, &name);
        let status = child.stdout(std::process::Stdio::null()).status().unwrap();
        assert!(!status.success(), "it was killed");
        // SAFETY: still mapped; the other process, which also writes to it, has ended.
        assert_eq!(unsafe { here.cast::<u32>().read_volatile() }, 2);
        unmap(here);
        close(section);
        assert_eq!(open_by(&name), (RawHandle::NULL, ERROR_FILE_NOT_FOUND));
        // What a killed process was the last to have is made anew.
        let (section, code) = memory(4096, READWRITE, Some(&(name.clone() + "-left")));
        assert_eq!(code, ERROR_SUCCESS);
        let here = view(section, MAP_READ, 0, 0).unwrap();
        // SAFETY: a view of 4096 bytes, just mapped.
        assert_eq!(unsafe { here.read() }, 0);
        unmap(here);
        close(section);
    }

    #[test]
    #[ignore = "the other process of the test above"]
    fn the_other_process() {
        let Ok(name) = std::env::var(SHARED) else { return };
        let (section, _) = open_by(&name);
        let here = view(section, MAP_WRITE, 0, 0).unwrap().cast::<u32>();
        let (left, _) = memory(4096, READWRITE, Some(&(name + "-left")));
        let there = view(left, MAP_WRITE, 0, 0).unwrap();
        // SAFETY: both views are mapped for writing, and hold a `u32` each; the signal ends this process, which runs this test
        // alone.
        unsafe {
            assert_eq!(here.read_volatile(), 1);
            here.write_volatile(2);
            there.write(9);
            libc::kill(libc::getpid(), libc::SIGKILL);
        }
    }
}
