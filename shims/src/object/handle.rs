//! The handle table.
//!
//! A handle is a number below 2^31 and a multiple of four, as on Windows, where programs keep handles in 32 bits
//! and tag the two low bits. It is made of a slot's index and of the slot's generation, so that a handle that was
//! closed, or never opened, is found out.

use super::{Object, RawHandle, guard_bool, thread};
use crate::error::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

/// Shards keep threads that look up different handles off each other's cache lines.
const SHARDS: u32 = 16;
const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = 9;
/// A slot is used again only after this many others were freed, so that generations last.
const RESTING: usize = 64;

#[derive(Default)]
struct Shard {
    slots: Vec<Slot>,
    free: VecDeque<u32>,
}

struct Slot {
    /// Another one for each use of the slot.
    serial: u32,
    object: Option<Object>,
}

/// What part of a serial is in the handle.
fn generation_of(serial: u32) -> u32 {
    serial % (1 << GENERATION_BITS)
}

/// Generation 0 is left out, so that no handle is a small number, let alone NULL.
fn next(serial: u32) -> u32 {
    let next = serial.wrapping_add(1);
    if generation_of(next) == 0 { next + 1 } else { next }
}

#[repr(align(128))]
struct Aligned(RwLock<Shard>);

static TABLE: [Aligned; SHARDS as usize] =
    [const { Aligned(RwLock::new(Shard { slots: Vec::new(), free: VecDeque::new() })) }; SHARDS as usize];

/// The serial of each slot that is in use, 0 for others, so that whoever remembers what a handle named can see
/// without a lock whether it still does. Pages that no slot needs are never touched.
static LIVE: [AtomicU32; 1 << INDEX_BITS] = [const { AtomicU32::new(0) }; 1 << INDEX_BITS];

fn live(number: u32, position: usize) -> &'static AtomicU32 {
    &LIVE[position * SHARDS as usize + number as usize]
}

fn write(shard: u32) -> RwLockWriteGuard<'static, Shard> {
    TABLE[shard as usize].0.write().unwrap_or_else(PoisonError::into_inner)
}

/// Where a handle points: shard, position in the shard, generation.
fn decode(handle: RawHandle) -> Option<(u32, usize, u32)> {
    let value = u32::try_from(handle.0).ok()? >> 2;
    let index = value & ((1 << INDEX_BITS) - 1);
    Some((index % SHARDS, (index / SHARDS) as usize, value >> INDEX_BITS))
}

impl Shard {
    fn slot(&mut self, position: usize, generation: u32) -> Option<&mut Slot> {
        self.slots
            .get_mut(position)
            .filter(|slot| generation_of(slot.serial) == generation && slot.object.is_some())
    }
}

/// Opens a handle to `object`; `NULL` when the table is full.
pub(crate) fn open(object: Object) -> RawHandle {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let number = TURN.fetch_add(1, Ordering::Relaxed) % SHARDS;
    let mut shard = write(number);
    let position = match shard.free.front() {
        Some(&position) if shard.free.len() > RESTING => {
            shard.free.pop_front();
            position
        }
        _ if shard.slots.len() < (1 << INDEX_BITS) / SHARDS as usize => {
            shard.slots.push(Slot { serial: 0, object: None });
            shard.slots.len() as u32 - 1
        }
        _ => match shard.free.pop_front() {
            Some(position) => position,
            None => return RawHandle::NULL,
        },
    };
    let slot = &mut shard.slots[position as usize];
    slot.serial = next(slot.serial);
    slot.object = Some(object);
    live(number, position as usize).store(slot.serial, Ordering::Release);
    let index = position * SHARDS + number;
    RawHandle((((generation_of(slot.serial) << INDEX_BITS) | index) << 2) as usize)
}

/// What `handle` names. Pseudo handles are not looked at.
#[inline]
pub(crate) fn get(handle: RawHandle) -> Option<Object> {
    // Mostly NULL, as an event that is not there.
    if handle == RawHandle::NULL { None } else { find(handle) }
}

fn find(handle: RawHandle) -> Option<Object> {
    let (shard, position, generation) = decode(handle)?;
    let shard = TABLE[shard as usize].0.read().unwrap_or_else(PoisonError::into_inner);
    let slot = shard.slots.get(position)?;
    if generation_of(slot.serial) == generation { slot.object.clone() } else { None }
}

/// One use of a slot, for those who remember what a handle names. The handle alone would not do: after many uses of its slot
/// it comes again, and names something else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    handle: RawHandle,
    serial: u32,
}

impl Opening {
    /// That of a handle, which may be closed at any time.
    pub(crate) fn of(handle: RawHandle) -> Option<Opening> {
        let (shard, position, generation) = decode(handle)?;
        let serial = live(shard, position).load(Ordering::Acquire);
        (serial != 0 && generation_of(serial) == generation).then_some(Opening { handle, serial })
    }

    /// Whether it is `handle` that was opened then, and is open still.
    #[inline]
    pub(crate) fn is(self, handle: RawHandle) -> bool {
        let lives = || {
            let (shard, position, _) = decode(handle)?;
            Some(live(shard, position).load(Ordering::Acquire))
        };
        self.handle == handle && lives() == Some(self.serial)
    }
}

/// Takes `handle` out of the table.
fn close(handle: RawHandle) -> Option<Object> {
    let (number, position, generation) = decode(handle)?;
    let mut shard = write(number);
    let object = shard.slot(position, generation)?.object.take();
    live(number, position).store(0, Ordering::Release);
    shard.free.push_back(position as u32);
    object
}

/// `GetCurrentThread()`.
pub(super) const CURRENT_THREAD: RawHandle = RawHandle(usize::MAX - 1);

/// Like [`get`], and knows the pseudo handle of the current thread.
pub(super) fn resolve(handle: RawHandle) -> Option<Object> {
    if handle == CURRENT_THREAD { Some(Object::Thread(thread::current())) } else { get(handle) }
}

/// `CloseHandle`: closing a pseudo handle does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseHandle(handle: RawHandle) -> i32 {
    guard_bool(|| {
        if handle == RawHandle::INVALID || handle == CURRENT_THREAD {
            return Ok(());
        }
        // The object may end here: after the table's lock is released.
        close(handle).map(drop).ok_or(ERROR_INVALID_HANDLE)
    })
}

/// `DUPLICATE_CLOSE_SOURCE`.
const DUPLICATE_CLOSE_SOURCE: u32 = 1;

/// `DuplicateHandle`, within this process. Access rights and inheritance mean nothing here. Without a target process
/// the source can only be closed; it is closed even when it cannot be duplicated.
///
/// # Safety
/// `target` must be null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_DuplicateHandle(
    source_process: RawHandle,
    source: RawHandle,
    target_process: RawHandle,
    target: *mut RawHandle,
    _access: u32,
    _inherit: i32,
    options: u32,
) -> i32 {
    guard_bool(|| {
        let here = |process| process == RawHandle::INVALID;
        let closes = options & DUPLICATE_CLOSE_SOURCE != 0;
        let nowhere = target_process == RawHandle::NULL && closes;
        if !here(source_process) || !(here(target_process) || nowhere) {
            return Err(ERROR_INVALID_HANDLE);
        }
        let object = resolve(source).ok_or(ERROR_INVALID_HANDLE)?;
        let duplicate = if target.is_null() || nowhere { None } else { Some(open(object)) };
        if closes {
            drop(close(source));
        }
        match duplicate {
            Some(RawHandle::NULL) => Err(ERROR_TOO_MANY_OPEN_FILES),
            Some(duplicate) => {
                // SAFETY: the caller vouches for `target`.
                unsafe { target.write(duplicate) };
                Ok(())
            }
            None => Ok(()),
        }
    })
}

/// `GetCurrentProcess`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentProcess() -> RawHandle {
    RawHandle::INVALID
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::signal::Signal;

    fn event() -> RawHandle {
        open(Object::Event(Signal::new(false, false)))
    }

    #[test]
    fn handles_look_like_windows_handles() {
        let handle = event();
        assert!(handle.0 != 0 && handle.0 < 1 << 31 && handle.0.is_multiple_of(4));
        assert!(get(handle).is_some());
        assert_eq!(ndw_CloseHandle(handle), 1);
    }

    #[test]
    fn the_two_low_bits_do_not_matter() {
        let handle = event();
        assert!(get(RawHandle(handle.0 | 3)).is_some());
        assert_eq!(ndw_CloseHandle(RawHandle(handle.0 | 1)), 1);
        assert!(get(handle).is_none());
    }

    #[test]
    fn stale_and_foreign_handles_are_found_out() {
        let stale = event();
        assert_eq!(ndw_CloseHandle(stale), 1);
        // Enough to bring the slot into use again several times.
        for _ in 0..20_000 {
            let other = event();
            assert_ne!(other, stale);
            assert!(get(stale).is_none());
            assert_eq!(ndw_CloseHandle(other), 1);
        }
        for foreign in [0, 4, 0x7fff_fffc, 0xffff_fffc, usize::MAX - 7, 0x7fff_1234_5678] {
            set_last_error(0);
            assert_eq!(ndw_CloseHandle(RawHandle(foreign)), 0, "{foreign:#x}");
            assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        }
        assert_eq!(ndw_CloseHandle(stale), 0);
    }

    #[test]
    fn a_duplicate_outlives_its_source() {
        let source = event();
        let mut target = RawHandle::NULL;
        let me = ndw_GetCurrentProcess();
        // SAFETY: the target is a local variable.
        let duplicate =
            |options, target| unsafe { ndw_DuplicateHandle(me, source, me, target, 0, 0, options) };
        assert_eq!(duplicate(DUPLICATE_CLOSE_SOURCE | 2, &mut target), 1);
        assert!(get(source).is_none());
        assert!(get(target).is_some());
        assert_eq!(duplicate(2, &mut target), 0);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        assert_eq!(ndw_CloseHandle(target), 1);
    }

    #[test]
    fn duplicates_of_one_object_are_equal_and_each_is_closed_by_itself() {
        let (source, mut target) = (event(), RawHandle::NULL);
        let me = ndw_GetCurrentProcess();
        // SAFETY: the target is a local variable.
        unsafe {
            // The low bits of the source do not matter, and those of the duplicate are clear.
            let tagged = RawHandle(source.0 | 1);
            assert_eq!(ndw_DuplicateHandle(me, tagged, me, &mut target, 0, 0, 2), 1);
            assert!(target != source && target.0.is_multiple_of(4));
            let (Some(Object::Event(a)), Some(Object::Event(b))) = (get(source), get(target)) else {
                panic!("no events")
            };
            assert!(std::sync::Arc::ptr_eq(&a, &b));
            // Handles of other processes there are not.
            assert_eq!(ndw_DuplicateHandle(source, source, me, &mut target, 0, 0, 2), 0);
            assert_eq!(ndw_DuplicateHandle(me, source, RawHandle::NULL, &mut target, 0, 0, 2), 0);
            assert_eq!(last_error(), ERROR_INVALID_HANDLE);
            // To nowhere: a way of closing.
            let none = std::ptr::null_mut();
            assert_eq!(ndw_DuplicateHandle(me, source, RawHandle::NULL, none, 0, 0, 1), 1);
        }
        assert!(get(source).is_none() && get(target).is_some());
        assert_eq!((ndw_CloseHandle(source), ndw_CloseHandle(target)), (0, 1));
    }
}
