//! Priorities of threads: nice values.
//!
//! Linux has one number for a thread, Windows a class of the process and a level of the thread: together they make a nice value.
//! What the program has set is stored, because lowering a nice value needs a privilege on Linux: without it the kernel's limit
//! applies, and the stored level is returned. (Windows does so with the real-time class.)

use super::affinity::threads;
use crate::error::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `THREAD_PRIORITY_...`, and the nice value that it adds.
const LEVELS: &[(i32, i32)] = &[(-15, 19), (-2, 10), (-1, 5), (0, 0), (1, -5), (2, -10), (15, -20)];
/// `THREAD_MODE_BACKGROUND_BEGIN` and `..._END`.
const BACKGROUND_BEGIN: i32 = 0x1_0000;
const BACKGROUND_END: i32 = 0x2_0000;
/// `..._PRIORITY_CLASS`, and the nice value that it adds.
const CLASSES: &[(u32, i32)] =
    &[(0x40, 15), (0x4000, 7), (NORMAL_CLASS, 0), (0x8000, -5), (0x80, -10), (0x100, -20)];
const NORMAL_CLASS: u32 = 0x20;

/// The settings of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    /// The start time of the thread, which distinguishes it from another one of the same id.
    started: u64,
    level: i32,
    background: bool,
    ideal: Option<usize>,
}

struct Wishes {
    class: u32,
    threads: HashMap<u32, Wish>,
    /// Ended threads are removed when there are more than this.
    limit: usize,
}

/// Whether the program has set a level or a class.
static IS_SET: AtomicBool = AtomicBool::new(false);

fn wishes() -> MutexGuard<'static, Option<Wishes>> {
    static WISHES: Mutex<Option<Wishes>> = Mutex::new(None);
    let mut wishes = WISHES.lock().unwrap_or_else(PoisonError::into_inner);
    wishes.get_or_insert_with(|| Wishes { class: NORMAL_CLASS, threads: HashMap::new(), limit: 64 });
    wishes
}

/// The start time of a thread in clock ticks; `None` if it has ended.
fn started(thread: u32) -> Option<u64> {
    Some(crate::time::thread_stat(Some(thread))?.started)
}

impl Wishes {
    fn of(&self, thread: u32, started: u64) -> Wish {
        let known = self.threads.get(&thread).copied().filter(|wish| wish.started == started);
        known.unwrap_or(Wish { started, level: 0, background: false, ideal: None })
    }

    fn set(&mut self, thread: u32, wish: Wish) {
        self.threads.insert(thread, wish);
        if self.threads.len() > self.limit {
            let live = threads();
            self.threads.retain(|thread, _| live.contains(thread));
            self.limit = (2 * self.threads.len()).max(64);
        }
    }

    /// Sets the nice value of a thread, or the nearest one that the kernel allows.
    fn apply(&self, thread: u32, wish: Wish) {
        let find = |level: i32| LEVELS.iter().find(|(known, _)| *known == level).map_or(0, |(_, nice)| *nice);
        let class = CLASSES.iter().find(|(known, _)| *known == self.class).map_or(0, |(_, nice)| *nice);
        let wanted = if wish.background { 19 } else { (find(wish.level) + class).clamp(-20, 19) };
        // SAFETY: takes no pointer; the thread is one of this process, or gone.
        let set = |nice| unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, nice) == 0 };
        // SAFETY: takes no pointer; a thread that is gone gives an error.
        let now = unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) };
        let _ = set(wanted) || (wanted + 1..now).any(set);
    }
}

/// The level of a thread.
///
/// # Errors
/// `ERROR_ACCESS_DENIED` for a thread that has ended.
pub fn level(thread: u32) -> Result<i32, u32> {
    let started = started(thread).ok_or(ERROR_ACCESS_DENIED)?;
    Ok(wishes().as_ref().map_or(0, |wishes| wishes.of(thread, started).level))
}

/// Sets the level of a thread, or begins or ends its background mode.
///
/// # Errors
/// `ERROR_ACCESS_DENIED` for a thread that has ended; `ERROR_INVALID_PARAMETER` for an unknown level;
/// `ERROR_THREAD_MODE_ALREADY_BACKGROUND` and `ERROR_THREAD_MODE_NOT_BACKGROUND` for a change that is none.
pub fn set_level(thread: u32, level: i32) -> Result<(), u32> {
    let started = started(thread).ok_or(ERROR_ACCESS_DENIED)?;
    let mut wishes = wishes();
    let Some(wishes) = wishes.as_mut() else { return Ok(()) };
    let mut wish = wishes.of(thread, started);
    match level {
        BACKGROUND_BEGIN if wish.background => return Err(ERROR_THREAD_MODE_ALREADY_BACKGROUND),
        BACKGROUND_END if !wish.background => return Err(ERROR_THREAD_MODE_NOT_BACKGROUND),
        BACKGROUND_BEGIN => wish.background = true,
        BACKGROUND_END => wish.background = false,
        level if LEVELS.iter().any(|(known, _)| *known == level) => wish.level = level,
        _ => return Err(ERROR_INVALID_PARAMETER),
    }
    IS_SET.store(true, Ordering::Relaxed);
    wishes.set(thread, wish);
    wishes.apply(thread, wish);
    Ok(())
}

/// The calling thread begins: it has the process's mask and the normal level of its class, not what its creator has. Where no thread
/// was given any, that is the same, and nothing is done. It touches no thread-local.
pub fn begin_thread() {
    super::affinity::begin_thread();
    if !IS_SET.load(Ordering::Relaxed) {
        return;
    }
    if let Some(wishes) = wishes().as_ref() {
        // 0 is the calling thread.
        wishes.apply(0, Wish { started: 0, level: 0, background: false, ideal: None });
    }
}

/// The class of the process.
pub fn class() -> u32 {
    wishes().as_ref().map_or(NORMAL_CLASS, |wishes| wishes.class)
}

/// Sets the class of the process, and with it the nice values of all its threads.
///
/// # Errors
/// `ERROR_INVALID_PARAMETER` for an unknown class.
pub fn set_class(class: u32) -> Result<(), u32> {
    if !CLASSES.iter().any(|(known, _)| *known == class) {
        return Err(ERROR_INVALID_PARAMETER);
    }
    if let Some(wishes) = wishes().as_mut() {
        IS_SET.store(true, Ordering::Relaxed);
        wishes.class = class;
        for thread in threads() {
            if let Some(started) = started(thread) {
                wishes.apply(thread, wishes.of(thread, started));
            }
        }
    }
    Ok(())
}

/// The ideal processor of a thread: Linux takes no such hint, so it is only stored. Sets it if given, and returns the previous
/// one.
///
/// # Errors
/// `ERROR_ACCESS_DENIED` for a thread that has ended.
pub fn ideal(thread: u32, new: Option<usize>) -> Result<usize, u32> {
    let started = started(thread).ok_or(ERROR_ACCESS_DENIED)?;
    let mut wishes = wishes();
    let Some(wishes) = wishes.as_mut() else { return Ok(0) };
    let mut wish = wishes.of(thread, started);
    let allowed = super::affinity::get(thread)?;
    // Initially threads are spread over the processors.
    let spread = || allowed.iter().nth(thread as usize % allowed.len().max(1)).copied().unwrap_or(0);
    let before = wish.ideal.unwrap_or_else(spread);
    if new.is_some() {
        wish.ideal = new;
        wishes.set(thread, wish);
    }
    Ok(before)
}

/// The nice value of a thread.
#[cfg(test)]
pub(crate) fn nice(thread: u32) -> i32 {
    // SAFETY: takes no pointer.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) }
}
