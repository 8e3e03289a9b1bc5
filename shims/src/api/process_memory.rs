//! The memory of the process: working sets, `GetProcessMemoryInfo`, and a barrier for all its threads.

use crate::arguments::Out;
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::memory::page_size;
use crate::object::RawHandle;
use crate::process;
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::read_to_string;

/// `QUOTA_LIMITS_HARDWS_MIN_DISABLE | QUOTA_LIMITS_HARDWS_MAX_DISABLE`.
const NO_HARD_LIMITS: u32 = 0x2 | 0x8;
/// All flags of `SetProcessWorkingSetSizeEx`.
const FLAGS: u32 = 0xF;
/// The smallest working set sizes, in pages.
const LEAST: [usize; 2] = [20, 13];

/// The minimum and maximum sizes that the program has set. Windows' defaults are 50 and 345 pages of 4 KiB.
static SIZES: Mutex<([usize; 2], u32)> = Mutex::new(([204_800, 1_413_120], NO_HARD_LIMITS));

/// Raises the limit on locked memory to the minimum size, as on Windows.
fn allow_to_lock(bytes: usize) -> Result<(), u32> {
    let Rlimit { current, maximum } = getrlimit(Resource::Memlock);
    let wanted = bytes as u64;
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Memlock, Rlimit { current: Some(wanted), maximum })
        .map_err(|_| ERROR_PRIVILEGE_NOT_HELD)
}

/// `SetProcessWorkingSetSizeEx`: stores the sizes, and lets as many bytes as the minimum be locked. With all bits set in both it
/// would empty the working set, which Linux does by itself when memory is short.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetProcessWorkingSetSizeEx(
    process: RawHandle,
    least: usize,
    most: usize,
    flags: u32,
) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        if least == usize::MAX && most == usize::MAX {
            return Ok(());
        }
        let contradicts = |pair: u32| flags & pair == pair;
        if least == 0 || least > most || flags & !FLAGS != 0 || contradicts(0x3) || contradicts(0xC) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let page = page_size();
        let sizes = [least.max(LEAST[0] * page), most.max(LEAST[1] * page)];
        allow_to_lock(sizes[0])?;
        *SIZES.lock() = ([sizes[0], sizes[1].max(sizes[0])], if flags == 0 { NO_HARD_LIMITS } else { flags });
        Ok(())
    })
}

/// `SetProcessWorkingSetSize`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetProcessWorkingSetSize(process: RawHandle, least: usize, most: usize) -> i32 {
    ndw_SetProcessWorkingSetSizeEx(process, least, most, 0)
}

/// `GetProcessWorkingSetSizeEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessWorkingSetSizeEx(
    process: RawHandle,
    least: Out<'_, usize>,
    most: Out<'_, usize>,
    flags: Out<'_, u32>,
) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        let (least, most) = (least.required(ERROR_NOACCESS)?, most.required(ERROR_NOACCESS)?);
        let (sizes, kept) = *SIZES.lock();
        least.put(sizes[0]);
        most.put(sizes[1]);
        flags.put(kept);
        Ok(())
    })
}

/// `GetProcessWorkingSetSize`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessWorkingSetSize(
    process: RawHandle,
    least: Out<'_, usize>,
    most: Out<'_, usize>,
) -> i32 {
    ndw_GetProcessWorkingSetSizeEx(process, least, most, Out::NULL)
}

/// `PROCESS_MEMORY_COUNTERS_EX`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // the fields are Windows'
pub struct MemoryCounters {
    pub size: u32,
    pub page_faults: u32,
    pub peak_working_set: usize,
    pub working_set: usize,
    pub peak_paged_pool: usize,
    pub paged_pool: usize,
    pub peak_nonpaged_pool: usize,
    pub nonpaged_pool: usize,
    pub page_file: usize,
    pub peak_page_file: usize,
    pub private: usize,
}

/// The size without `PrivateUsage`.
const SHORT: u32 = 72;

/// A field of `/proc/self/status`, in bytes.
fn status(text: &str, name: &str) -> usize {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// `GetProcessMemoryInfo`, of this process: resident memory is the working set, private memory, swapped out or not, the page file
/// usage. Linux has no pools per process.
///
/// # Safety
/// `counters` must be NULL or have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_K32GetProcessMemoryInfo(
    process: RawHandle,
    counters: *mut MemoryCounters,
    size: u32,
) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        if counters.is_null() {
            return Err(ERROR_NOACCESS);
        }
        if size < SHORT {
            return Err(ERROR_INSUFFICIENT_BUFFER);
        }
        let text = read_to_string("/proc/self/status").map_err(|_| ERROR_ACCESS_DENIED)?;
        let stat = read_to_string("/proc/self/stat").map_err(|_| ERROR_ACCESS_DENIED)?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let faults =
            |field: usize| fields.get(field - 3).and_then(|field| field.parse().ok()).unwrap_or(0u64);
        let own = status(&text, "RssAnon") + status(&text, "VmSwap");
        let found = MemoryCounters {
            size: if size as usize >= size_of::<MemoryCounters>() {
                size_of::<MemoryCounters>() as u32
            } else {
                SHORT
            },
            page_faults: (faults(10) + faults(12)) as u32,
            peak_working_set: status(&text, "VmHWM"),
            working_set: status(&text, "VmRSS"),
            page_file: own,
            peak_page_file: own,
            private: own,
            ..Default::default()
        };
        // SAFETY: the caller's buffer has `size` bytes, and `found.size` is no more than that.
        unsafe {
            std::ptr::from_ref(&found)
                .cast::<u8>()
                .copy_to_nonoverlapping(counters.cast(), found.size as usize)
        };
        Ok(())
    })
}

/// `GetProcessId`, of this process.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessId(process: RawHandle) -> u32 {
    match process::own(process) {
        Ok(()) => std::process::id(),
        Err(code) => {
            set_last_error(code);
            0
        }
    }
}

/// `FlushProcessWriteBuffers`: a memory barrier on all threads of the process.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlushProcessWriteBuffers() {
    guard((), || {
        // SAFETY: the call takes no pointers.
        let command = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
        let barrier = || command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        let register = || command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        // The global command is slow, and for kernels without the private one.
        if !(barrier() || register() && barrier() || command(libc::MEMBARRIER_CMD_GLOBAL)) {
            // Stores do not stay in a store buffer for so long.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::Ordering::{Relaxed, SeqCst};
    use std::sync::atomic::{AtomicU32, compiler_fence};

    const ME: RawHandle = RawHandle::INVALID;

    fn sizes() -> (usize, usize, u32) {
        let (mut least, mut most, mut flags) = (0, 0, 0);
        let read =
            ndw_GetProcessWorkingSetSizeEx(ME, (&mut least).into(), (&mut most).into(), (&mut flags).into());
        assert_eq!(read, 1);
        (least, most, flags)
    }

    #[test]
    fn a_working_set_is_as_large_as_was_set_and_lets_as_much_be_locked() {
        assert_eq!(sizes(), (204_800, 1_413_120, 10));
        assert_eq!(ndw_SetProcessWorkingSetSize(ME, 1, 1), 1);
        let page = page_size();
        assert_eq!(sizes(), (20 * page, 20 * page, 10), "never less than some pages");
        for (least, most, flags) in
            [(0, 4096, 0), (8192, 4096, 0), (usize::MAX, 4096, 0), (1, 2, 0x10), (1, 2, 3), (1, 2, 12)]
        {
            assert_eq!(ndw_SetProcessWorkingSetSizeEx(ME, least, most, flags), 0, "{least} {most} {flags}");
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        let before = getrlimit(Resource::Memlock);
        let wanted = before.current.unwrap_or(1 << 20) as usize;
        assert_eq!(ndw_SetProcessWorkingSetSizeEx(ME, wanted, usize::MAX, 5), 1);
        assert_eq!(sizes(), (wanted, usize::MAX, 5));
        assert_eq!(ndw_SetProcessWorkingSetSize(ME, usize::MAX, usize::MAX), 1, "emptied");
        assert_eq!(sizes(), (wanted, usize::MAX, 5), "which changes no size");
        let larger = before.maximum.unwrap_or(0);
        if larger != 0 && before.current < before.maximum {
            assert_eq!(ndw_SetProcessWorkingSetSize(ME, larger as usize, usize::MAX), 1);
            assert_eq!(getrlimit(Resource::Memlock).current, Some(larger));
        }
        let mut size = 0;
        assert_eq!(ndw_GetProcessWorkingSetSize(ME, (&mut size).into(), Out::NULL), 0);
        assert_eq!((last_error(), size), (ERROR_NOACCESS, 0));
    }

    #[test]
    fn the_memory_of_a_process_is_counted() {
        let mut counters = [MemoryCounters { private: 77, ..Default::default() }; 2];
        let ask = |size: u32, counters: &mut [MemoryCounters; 2]| {
            // SAFETY: there is room for two.
            unsafe { ndw_K32GetProcessMemoryInfo(ME, counters.as_mut_ptr(), size) }
        };
        assert_eq!((ask(71, &mut counters), last_error()), (0, ERROR_INSUFFICIENT_BUFFER));
        assert_eq!((ask(72, &mut counters), counters[0].size, counters[0].private), (1, 72, 77));
        let before = counters[0];
        assert!(
            before.working_set > 0 && before.peak_working_set >= before.working_set && before.page_faults > 0
        );
        let block = std::hint::black_box(vec![1u8; 32 << 20]);
        assert_eq!((ask(160, &mut counters), counters[0].size), (1, 80));
        assert!(counters[0].private >= block.len() && counters[0].peak_working_set >= block.len());
        assert!(counters[0].page_faults > before.page_faults);
        // SAFETY: NULL, which is refused.
        assert_eq!(unsafe { ndw_K32GetProcessMemoryInfo(ME, std::ptr::null_mut(), 80) }, 0);
        assert_eq!(last_error(), ERROR_NOACCESS);
    }

    #[test]
    fn other_processes_are_no_handles_here() {
        assert_eq!((ndw_GetProcessId(ME), ndw_GetProcessId(RawHandle::NULL)), (std::process::id(), 0));
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        assert_eq!(ndw_SetProcessWorkingSetSize(RawHandle::NULL, 1, 2), 0);
        let mut size = 0;
        assert_eq!(ndw_GetProcessWorkingSetSize(RawHandle(8), (&mut size).into(), Out::NULL), 0);
        // SAFETY: NULL is not looked at.
        assert_eq!(unsafe { ndw_K32GetProcessMemoryInfo(RawHandle::NULL, std::ptr::null_mut(), 80) }, 0);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
    }

    /// The usual test of such a barrier: the other thread has none among its instructions.
    #[test]
    fn of_two_threads_that_write_and_then_look_one_sees_the_other() {
        let (mine, others) = (AtomicU32::new(0), AtomicU32::new(0));
        let round_begins = Barrier::new(2);
        let other = || {
            let look = |round| {
                round_begins.wait();
                others.store(round, Relaxed);
                compiler_fence(SeqCst);
                let saw = mine.load(Relaxed) >= round;
                round_begins.wait();
                saw
            };
            (1..=500).map(look).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(other);
            let look = |round| {
                round_begins.wait();
                mine.store(round, Relaxed);
                ndw_FlushProcessWriteBuffers();
                let saw = others.load(Relaxed) >= round;
                round_begins.wait();
                saw
            };
            let mine: Vec<bool> = (1..=500).map(look).collect();
            let others = other.join().unwrap();
            assert!(mine.iter().zip(&others).all(|(mine, other)| *mine || *other));
        });
    }
}
