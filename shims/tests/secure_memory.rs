//! Callbacks of secured memory, with a cache on top that lets go of what it is told about, as that of a program with registrations.

use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, Once};
use win32::api::file_mapping::{ndw_MapViewOfFile, ndw_UnmapViewOfFile};
use win32::api::secure_memory::{ndw_AddSecureMemoryCacheCallback, ndw_RemoveSecureMemoryCacheCallback};
use win32::error::{ERROR_INVALID_PARAMETER, last_error, set_last_error};
use win32::handle::RawHandle;
use win32::memory::secured::Secured;
use win32::memory::virtual_memory::*;

unsafe extern "C" {
    fn ndw_CreateFileMappingA(
        file: RawHandle,
        security: *mut c_void,
        protect: u32,
        size_high: u32,
        size_low: u32,
        name: *const c_char,
    ) -> RawHandle;
}

const PAGE: usize = 4096;
/// More than `malloc` ever takes from its heaps.
const LARGE: usize = 40 << 20;

static CACHE: Mutex<Vec<(Range<usize>, Secured)>> = Mutex::new(Vec::new());
static TOLD: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// Forgets what overlaps. It may allocate and free.
unsafe extern "C" fn flush(address: *mut c_void, size: usize) -> u8 {
    let told = address as usize..address as usize + size;
    let mut cache = CACHE.lock().unwrap();
    let before = cache.len();
    cache.retain(|(range, _)| range.end <= told.start || told.end <= range.start);
    let any = cache.len() < before;
    TOLD.lock().unwrap().push(told);
    // SAFETY: the thread's own number, which the freeing function keeps.
    unsafe { *libc::__errno_location() = libc::EXDEV };
    any.into()
}

/// Has the callback there. One test at a time: what is freed may be mapped again by another.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static ONCE: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    // SAFETY: the function stays.
    ONCE.call_once(|| assert_eq!(unsafe { ndw_AddSecureMemoryCacheCallback(Some(flush)) }, 1));
    turn
}

fn secure(address: usize, length: usize) {
    let range = address..address + length;
    CACHE.lock().unwrap().push((range.clone(), Secured::new(range)));
}

/// Whether the cache still has it.
fn is_cached(address: usize) -> bool {
    CACHE.lock().unwrap().iter().any(|(range, _)| range.contains(&address))
}

fn forget(address: usize) {
    CACHE.lock().unwrap().retain(|(range, _)| !range.contains(&address));
}

/// Secures a page, and expects the cache to be told by the change, and not to have been before.
fn tells(way: &str, page: usize, change: impl FnOnce()) {
    secure(page, PAGE);
    TOLD.lock().unwrap().clear();
    change();
    assert!(!is_cached(page), "{way}: stale");
    let told = TOLD.lock().unwrap();
    assert!(told.len() == 1 && told[0].contains(&page), "{way}: {told:x?} of {page:x}");
}

fn map(pages: usize) -> usize {
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping that replaces none.
    let memory = unsafe { libc::mmap(null_mut(), pages * PAGE, protection, FLAGS, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    memory as usize
}

#[test]
fn whoever_takes_memory_away_tells_first() {
    let _turn = turn();
    // SAFETY: pages that the test has mapped itself, and does not use but for taking them away.
    unsafe {
        let at = map(4);
        tells("munmap", at + PAGE, || assert_eq!(libc::munmap((at + PAGE) as _, PAGE), 0));
        tells("madvise", at, || assert_eq!(libc::madvise(at as _, PAGE, libc::MADV_DONTNEED), 0));
        tells("mprotect", at + 2 * PAGE, || {
            assert_eq!(libc::mprotect((at + 2 * PAGE) as _, 1, libc::PROT_READ), 0);
        });
        tells("mmap", at, || {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            assert_eq!(libc::mmap(at as _, PAGE, libc::PROT_READ, flags, -1, 0), at as _);
        });
        tells("munmap of more", at + 2 * PAGE, || assert_eq!(libc::munmap(at as _, 4 * PAGE), 0));

        let at = map(4);
        tells("mremap that cuts off", at + 3 * PAGE, || {
            assert_eq!(libc::mremap(at as _, 4 * PAGE, 3 * PAGE, 0), at as _);
        });
        let elsewhere = map(3);
        tells("mremap onto", elsewhere, || {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            assert_eq!(libc::mremap(at as _, 3 * PAGE, 3 * PAGE, flags, elsewhere), elsewhere as _);
        });
        tells("mremap that may move", elsewhere, || {
            let moved = libc::mremap(elsewhere as _, 3 * PAGE, 300 * PAGE, libc::MREMAP_MAYMOVE);
            assert_eq!(libc::munmap(moved, 300 * PAGE), 0);
        });

        let segment = libc::shmget(libc::IPC_PRIVATE, 4 * PAGE, 0o600);
        let at = libc::shmat(segment, null_mut(), 0) as usize;
        libc::shmctl(segment, libc::IPC_RMID, null_mut());
        tells("shmdt", at + 2 * PAGE, || assert_eq!(libc::shmdt(at as _), 0));
    }
}

#[test]
fn windows_functions_tell_once() {
    let _turn = turn();
    let commit = || ndw_VirtualAlloc(0, 4 * PAGE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) as usize;
    let mut old = 0;
    // SAFETY: pages that the test has allocated itself, and does not use but for taking them away.
    unsafe {
        let at = commit();
        tells("VirtualProtect", at + PAGE, || {
            assert_eq!(ndw_VirtualProtect(at, 2 * PAGE, PAGE_READONLY, &mut old), 1);
        });
        tells("MEM_RESET", at, || {
            assert_eq!(ndw_VirtualAlloc(at, PAGE, MEM_RESET, PAGE_READWRITE), at as _);
        });
        tells("MEM_COMMIT", at, || {
            assert_eq!(ndw_VirtualAlloc(at, PAGE, MEM_COMMIT, PAGE_READONLY), at as _);
        });
        tells("MEM_DECOMMIT", at, || assert_eq!(ndw_VirtualFree(at, PAGE, MEM_DECOMMIT), 1));
        tells("MEM_RELEASE", at + 3 * PAGE, || assert_eq!(ndw_VirtualFree(at, 0, MEM_RELEASE), 1));

        let section =
            ndw_CreateFileMappingA(RawHandle::INVALID, null_mut(), PAGE_READWRITE, 0, 65536, null_mut());
        let view = ndw_MapViewOfFile(section, 6, 0, 0, 0) as usize;
        tells("UnmapViewOfFile", view + PAGE, || assert_eq!(ndw_UnmapViewOfFile(view as _), 1));
    }
}

#[test]
fn blocks_of_the_heap_tell_when_their_pages_go() {
    let _turn = turn();
    // SAFETY: blocks of the test's own, each freed once and not used afterwards; of their pages only addresses are kept.
    unsafe {
        let block = libc::malloc(LARGE);
        let page = (block as usize + PAGE) & !(PAGE - 1);
        tells("free", page, || {
            *libc::__errno_location() = 0;
            libc::free(block);
            assert_eq!(*libc::__errno_location(), 0, "free keeps it, whatever callbacks do");
        });
        let block = libc::malloc(LARGE);
        let page = (block as usize + LARGE / 2) & !(PAGE - 1);
        let mut smaller = null_mut();
        tells("realloc", page, || smaller = libc::realloc(block, LARGE / 4));
        libc::free(smaller);
        let vector = vec![1u8; LARGE];
        let page = (vector.as_ptr() as usize + PAGE) & !(PAGE - 1);
        tells("Vec", page, || drop(vector));
    }
}

#[test]
fn the_heap_keeps_pages_that_are_secured() {
    const BLOCK: usize = 64 << 10;
    const BLOCKS: usize = 64;
    const MARK: u32 = 0x1234_5678;
    let _turn = turn();
    // Not what other tests have made of it by freeing large blocks.
    // SAFETY: sets a number.
    unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, BLOCK as c_int) };
    // SAFETY: blocks of the test's own. What it reads after freeing stays mapped, if not filled.
    unsafe {
        let grow = || [(); BLOCKS].map(|()| libc::malloc(BLOCK));
        let shrink = |blocks: [*mut c_void; BLOCKS]| {
            for block in blocks {
                libc::free(block);
            }
            libc::malloc_trim(0);
        };
        let blocks = grow();
        // Not among the last, which `malloc` keeps for what comes.
        let page = (blocks[BLOCKS / 2] as usize + PAGE) & !(PAGE - 1);
        let content = page as *mut u32;
        content.write_volatile(MARK);
        secure(page, PAGE);
        shrink(blocks);
        assert_eq!(content.read_volatile(), MARK);
        assert!(is_cached(page));
        forget(page);
        shrink(grow());
        assert_eq!(content.read_volatile(), 0, "given back as soon as it is not secured");
    }
}

#[test]
fn the_end_of_the_heap_stays_behind_what_is_secured() {
    let _turn = turn();
    // SAFETY: the child has one thread, and allocates nothing meanwhile.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: pages that the child has just made.
        unsafe {
            let passes = ndw_AddSecureMemoryCacheCallback(Some(flush)) == 1 && {
                drop(Secured::new(0..1));
                let start = libc::sbrk(4 * PAGE as isize) as usize;
                let secured = Secured::new(start + PAGE..start + 2 * PAGE);
                let refused = libc::sbrk(-3 * PAGE as isize) as isize == -1
                    && *libc::__errno_location() == libc::ENOMEM
                    && libc::sbrk(0) as usize == start + 4 * PAGE;
                let behind = libc::sbrk(-2 * PAGE as isize) as isize != -1;
                drop(secured);
                refused && behind && libc::sbrk(-2 * PAGE as isize) as usize == start + 2 * PAGE
            };
            libc::_exit(if passes { 7 } else { 1 });
        }
    }
    assert_eq!(exit_code(child), 7);
}

fn exit_code(child: c_int) -> c_int {
    let mut status = 0;
    // SAFETY: a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WEXITSTATUS(status)
}

#[test]
fn what_is_not_secured_tells_nobody() {
    let _turn = turn();
    let at = map(3);
    let both = at..at + PAGE;
    let (first, second) = (Secured::new(both.clone()), Secured::new(both));
    secure(at + 2 * PAGE, PAGE);
    TOLD.lock().unwrap().clear();
    // SAFETY: pages that the test has mapped itself, and never uses.
    unsafe {
        assert_eq!(libc::madvise(at as _, 3 * PAGE, libc::MADV_NORMAL), 0);
        assert_eq!(libc::munmap((at + PAGE) as _, PAGE), 0);
        assert!(TOLD.lock().unwrap().is_empty());
        drop(first);
        assert_eq!(libc::madvise(at as _, PAGE, libc::MADV_DONTNEED), 0);
        assert_eq!(TOLD.lock().unwrap().len(), 1, "secured twice, unsecured once");
        drop(second);
        assert_eq!(libc::munmap(at as _, PAGE), 0);
        assert_eq!(TOLD.lock().unwrap().len(), 1);
        assert_eq!(libc::munmap((at + 2 * PAGE) as _, PAGE), 0);
        assert!(!is_cached(at + 2 * PAGE));
    }
}

#[test]
fn callbacks_come_and_go() {
    static COUNT: Mutex<u32> = Mutex::new(0);
    unsafe extern "C" fn count(_: *mut c_void, _: usize) -> u8 {
        *COUNT.lock().unwrap() += 1;
        0
    }
    let _turn = turn();
    let at = map(1);
    let secured = Secured::new(at..at + PAGE);
    let change = || {
        // SAFETY: a page that the test has mapped itself, and never uses.
        assert_eq!(unsafe { libc::madvise(at as _, PAGE, libc::MADV_DONTNEED) }, 0);
        std::mem::take(&mut *COUNT.lock().unwrap())
    };
    // SAFETY: functions that stay.
    unsafe {
        set_last_error(0);
        assert_eq!((ndw_AddSecureMemoryCacheCallback(None), last_error()), (0, ERROR_INVALID_PARAMETER));
        assert_eq!((ndw_RemoveSecureMemoryCacheCallback(None), last_error()), (0, ERROR_INVALID_PARAMETER));
        assert_eq!(
            (ndw_RemoveSecureMemoryCacheCallback(Some(count)), last_error()),
            (0, ERROR_INVALID_PARAMETER)
        );
        assert_eq!(change(), 0);
        assert_eq!(ndw_AddSecureMemoryCacheCallback(Some(count)), 1);
        assert_eq!(ndw_AddSecureMemoryCacheCallback(Some(count)), 1);
        assert_eq!(change(), 2, "as often as it was added");
        assert_eq!(ndw_RemoveSecureMemoryCacheCallback(Some(count)), 1);
        assert_eq!(change(), 1);
        assert_eq!(ndw_RemoveSecureMemoryCacheCallback(Some(count)), 1);
        assert_eq!(change(), 0);
        assert_eq!(ndw_RemoveSecureMemoryCacheCallback(Some(count)), 0);
        drop(secured);
        libc::munmap(at as _, PAGE);
    }
}

#[test]
fn a_child_tells_nobody_and_begins_anew() {
    let _turn = turn();
    let at = map(2);
    secure(at, PAGE);
    // SAFETY: the child does nothing but what follows, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe extern "C" fn leave(_: *mut c_void, _: usize) -> u8 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(7) }
        }
        // SAFETY: memory of the child's own.
        unsafe {
            libc::munmap(at as _, PAGE);
            ndw_AddSecureMemoryCacheCallback(Some(leave));
            std::mem::forget(Secured::new(at + PAGE..at + 2 * PAGE));
            libc::munmap((at + PAGE) as _, PAGE);
            libc::_exit(1);
        }
    }
    assert_eq!(exit_code(child), 7);
    assert!(is_cached(at), "the parent's");
    // SAFETY: pages that the test has mapped itself, and never uses.
    unsafe { libc::munmap(at as _, 2 * PAGE) };
}

#[test]
fn threads_take_memory_away_while_others_secure_some() {
    let _turn = turn();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let at = map(2);
                for _ in 0..300 {
                    secure(at, PAGE);
                    // SAFETY: pages that the thread has mapped itself, and never uses.
                    assert_eq!(unsafe { libc::madvise(at as _, 2 * PAGE, libc::MADV_DONTNEED) }, 0);
                    assert!(!is_cached(at));
                    drop(Secured::new(at + PAGE..at + 2 * PAGE));
                }
            });
        }
    });
    assert!(CACHE.lock().unwrap().is_empty());
}
