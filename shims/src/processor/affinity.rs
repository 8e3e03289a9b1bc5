//! Affinity masks: `sched_setaffinity`.
//!
//! Windows has masks for the process and for each thread, Linux only for threads. The process's is stored here; its initial value
//! is that at the start of the program.

use super::Set;
use super::topology::topology;
use crate::error::*;
use std::io;
use std::mem::size_of_val;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The size of the kernel's masks here, in processors.
const ROOM: usize = 8192;

fn kernel_error() -> u32 {
    match io::Error::last_os_error().raw_os_error() {
        // The thread has ended.
        Some(libc::ESRCH) => ERROR_ACCESS_DENIED,
        code => errno_to_win32(code.unwrap_or(libc::EINVAL)),
    }
}

/// The affinity mask of a thread; 0 for the calling one.
///
/// # Errors
/// `ERROR_ACCESS_DENIED` for a thread that has ended.
pub fn get(thread: u32) -> Result<Set, u32> {
    let mut mask = [0u64; ROOM / 64];
    // SAFETY: a mask of that size.
    let result =
        unsafe { libc::sched_getaffinity(thread as i32, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if result != 0 {
        return Err(kernel_error());
    }
    Ok((0..ROOM).filter(|processor| mask[processor / 64] >> (processor % 64) & 1 != 0).collect())
}

/// Sets the affinity mask of a thread; 0 for the calling one.
///
/// # Errors
/// `ERROR_ACCESS_DENIED` for a thread that has ended; `ERROR_INVALID_PARAMETER` if it could run nowhere.
pub fn set(thread: u32, processors: &Set) -> Result<(), u32> {
    // The process's is that of the start, before any thread has another.
    of_process();
    IS_SET.store(true, Ordering::Relaxed);
    apply(thread, processors)
}

/// The calling thread begins: it has the process's mask, not that of its creator. As long as no mask was set, these are the same.
pub fn begin_thread() {
    if IS_SET.load(Ordering::Relaxed) {
        // With the lock: nobody may set another one meanwhile.
        let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(processors) = process.as_ref() {
            // It keeps its creator's if there is no such processor any more.
            let _ = apply(0, processors);
        }
    }
}

fn apply(thread: u32, processors: &Set) -> Result<(), u32> {
    let mut mask = [0u64; ROOM / 64];
    for processor in processors.iter().filter(|processor| **processor < ROOM) {
        mask[processor / 64] |= 1 << (processor % 64);
    }
    // SAFETY: a mask of that size.
    let result = unsafe { libc::sched_setaffinity(thread as i32, size_of_val(&mask), mask.as_ptr().cast()) };
    if result == 0 { Ok(()) } else { Err(kernel_error()) }
}

static PROCESS: Mutex<Option<Set>> = Mutex::new(None);
/// Whether the program has set the mask of any thread.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// The process's affinity mask.
pub fn of_process() -> Set {
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let start = || {
        let first = get(std::process::id()).unwrap_or_default();
        let allowed: Set = first.intersection(&topology().online).copied().collect();
        if allowed.is_empty() { topology().online.clone() } else { allowed }
    };
    process.get_or_insert_with(start).clone()
}

/// The ids of the process's threads.
pub fn threads() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Sets the mask of all threads of the process. A thread of other origin than this library's that is created meanwhile inherits its creator's.
///
/// # Errors
/// `ERROR_INVALID_PARAMETER` if the threads could run nowhere; some may have been moved then.
pub fn set_process(processors: Set) -> Result<(), u32> {
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut moved = Vec::new();
    loop {
        let new: Vec<u32> = threads().into_iter().filter(|thread| !moved.contains(thread)).collect();
        if new.is_empty() {
            break;
        }
        for thread in new {
            match apply(thread, &processors) {
                // It has ended meanwhile.
                Ok(()) | Err(ERROR_ACCESS_DENIED) => moved.push(thread),
                Err(code) => return Err(code),
            }
        }
    }
    *process = Some(processors);
    IS_SET.store(true, Ordering::Relaxed);
    Ok(())
}
