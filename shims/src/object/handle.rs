//! Handles.
//!
//! A handle is a number below 2^31 and a multiple of four, as on Windows, where programs store handles in 32 bits and tag the two
//! low bits. It consists of the index of a slot and part of the slot's serial, the generation, so that stale and invented handles
//! are detected.

use super::sync::{AtomicU32, Ordering, RwLock};
use super::table::{Slots, Table};
use super::{Object, RawHandle};

/// Tables by shards: threads that look up different handles touch different cache lines.
const SHARDS: u32 = 16;
const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = 9;
/// The number of free slots before one is reused.
const RESTING: usize = 64;
const SLOTS_OF_SHARD: usize = (1 << INDEX_BITS) / SHARDS as usize;

/// The part of a serial that is in the handle.
fn generation_of(serial: u32) -> u32 {
    serial % (1 << GENERATION_BITS)
}

/// Generation 0 is skipped, so that no handle is a small number or NULL.
fn next(serial: u32) -> u32 {
    let next = serial.wrapping_add(1);
    if generation_of(next) == 0 { next + 1 } else { next }
}

#[repr(align(128))]
struct Shard(RwLock<Slots<Object>>);

static SLOTS: [Shard; SHARDS as usize] = [const { Shard(RwLock::new(Slots::NONE)) }; SHARDS as usize];

/// Separate from the slots, and all zero, so that unused pages are never touched.
static SERIALS: [[AtomicU32; SLOTS_OF_SHARD]; SHARDS as usize] =
    [const { [const { AtomicU32::new(0) }; SLOTS_OF_SHARD] }; SHARDS as usize];

#[inline]
fn table(shard: u32) -> Table<Object> {
    let shard = shard as usize;
    Table { slots: &SLOTS[shard].0, serials: &SERIALS[shard], resting: RESTING }
}

/// What a handle consists of: shard, position in the shard, generation.
fn decode(handle: RawHandle) -> Option<(u32, usize, u32)> {
    let value = u32::try_from(handle.0).ok()? >> 2;
    let index = value & ((1 << INDEX_BITS) - 1);
    Some((index % SHARDS, (index / SHARDS) as usize, value >> INDEX_BITS))
}

/// The descriptor, if a socket was passed as a handle: as no generation is 0, descriptors are below all handles. The lowest
/// numbers are NULL with tag bits, not sockets.
pub(crate) fn as_descriptor(handle: RawHandle) -> Option<i32> {
    (4..1 << (INDEX_BITS + 2)).contains(&handle.0).then_some(handle.0 as i32)
}

/// Opens a handle to `object`; `NULL` when the table is full.
pub(crate) fn open(object: Object) -> RawHandle {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let shard = TURN.fetch_add(1, Ordering::Relaxed) % SHARDS;
    let Some((position, serial)) = table(shard).open(object, next) else { return RawHandle::NULL };
    let index = position as u32 * SHARDS + shard;
    RawHandle((((generation_of(serial) << INDEX_BITS) | index) << 2) as usize)
}

/// The object of `handle`. Pseudo handles are not resolved.
#[inline]
pub(crate) fn get(handle: RawHandle) -> Option<Object> {
    // The common case: no event.
    if handle == RawHandle::NULL { None } else { find(handle) }
}

fn find(handle: RawHandle) -> Option<Object> {
    let (shard, position, generation) = decode(handle)?;
    table(shard).find(position, |serial| generation_of(serial) == generation)
}

/// One use of a slot, for caches of a handle's object. The handle alone does not suffice: it recurs for another object after many
/// uses of its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    handle: RawHandle,
    serial: u32,
}

impl Opening {
    /// The present use of a handle, which may be closed at any time.
    pub(crate) fn of(handle: RawHandle) -> Option<Opening> {
        let (shard, position, generation) = decode(handle)?;
        let serial = table(shard).serial(position);
        (serial != 0 && generation_of(serial) == generation).then_some(Opening { handle, serial })
    }

    /// Whether `handle` is still open since then.
    #[inline]
    pub(crate) fn is(self, handle: RawHandle) -> bool {
        let serial = || {
            let (shard, position, _) = decode(handle)?;
            Some(table(shard).serial(position))
        };
        self.handle == handle && serial() == Some(self.serial)
    }
}

/// The flags of a handle.
pub(crate) fn flags(handle: RawHandle) -> Option<u8> {
    change_flags(handle, 0, 0)
}

/// Changes the flags of a handle that are in `mask`; returns the previous ones.
pub(crate) fn change_flags(handle: RawHandle, mask: u8, flags: u8) -> Option<u8> {
    let (shard, position, generation) = decode(handle)?;
    table(shard).change_flags(position, |serial| generation_of(serial) == generation, mask, flags)
}

/// How many handles are open.
pub(crate) fn count() -> usize {
    (0..SHARDS).map(|shard| table(shard).count()).sum()
}

/// Removes `handle` from the table.
pub(crate) fn close(handle: RawHandle) -> Option<Object> {
    let (shard, position, generation) = decode(handle)?;
    table(shard).close(position, |serial| generation_of(serial) == generation)
}
