//! Completion ports.

use super::wait::WAIT_IO_COMPLETION;
use crate::arguments::Out;
use crate::boundary::{fail, guard, guard_bool_quick, guard_quick};
use crate::error::*;
use crate::io::apc::Apcs;
use crate::io::queue::{NoPacket, Packet, Queue};
use crate::io::sys::Deadline;
use crate::io::{File, Overlapped, Port};
use crate::object::handle::{self, Opening};
use crate::object::{Object, RawHandle};
use std::cell::RefCell;
use std::sync::{Arc, Weak};

fn port(handle: RawHandle) -> Result<Arc<Port>, u32> {
    match handle::get(handle) {
        Some(Object::Port(port)) => Ok(port),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

/// The queue of a handle's port. Weak, so that closing the port closes its descriptors.
type Known = (Opening, Weak<Queue>);

thread_local! {
    /// The ports that this thread has used last, which saves the lock of the handle table.
    static LAST: [RefCell<Option<Known>>; 4] = const { [const { RefCell::new(None) }; 4] };
}

/// Runs `body` with the queue of the port.
#[inline]
pub(crate) fn with_queue<R>(handle: RawHandle, body: impl FnOnce(&Arc<Queue>) -> R) -> Result<R, u32> {
    let known = LAST.try_with(|last| {
        let last = last[(handle.0 >> 2) % 4].borrow();
        let (known, queue) = last.as_ref()?;
        if known.is(handle) { queue.upgrade() } else { None }
    });
    match known {
        Ok(Some(queue)) => Ok(body(&queue)),
        _ => Ok(body(&find_queue(handle)?)),
    }
}

/// Looks the port up in the handle table, and caches it.
#[cold]
#[inline(never)]
fn find_queue(handle: RawHandle) -> Result<Arc<Queue>, u32> {
    let opening = Opening::of(handle).ok_or(ERROR_INVALID_HANDLE)?;
    let queue = port(handle)?.queue().clone();
    // Fails in a thread that is ending.
    let _ = LAST.try_with(|last| last[(handle.0 >> 2) % 4].replace(Some((opening, Arc::downgrade(&queue)))));
    Ok(queue)
}

/// `CreateIoCompletionPort`: creates a port, binds a file to one, or both.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreateIoCompletionPort(
    file: RawHandle,
    existing: RawHandle,
    key: usize,
    threads: u32,
) -> RawHandle {
    let create = || {
        if file == RawHandle::INVALID {
            if existing != RawHandle::NULL {
                return Err(ERROR_INVALID_PARAMETER);
            }
            return open(Port::new(threads).map_err(|error| io_to_win32(&error))?);
        }
        let file = File::from_handle(file).ok_or(ERROR_INVALID_HANDLE)?;
        if existing != RawHandle::NULL {
            return with_queue(existing, |queue| file.bind(queue, key))?.map(|()| existing);
        }
        let port = Port::new(threads).map_err(|error| io_to_win32(&error))?;
        file.bind(port.queue(), key)?;
        open(port)
    };
    guard(RawHandle::NULL, || create().unwrap_or_else(|code| fail(code, RawHandle::NULL)))
}

fn open(port: Arc<Port>) -> Result<RawHandle, u32> {
    match handle::open(Object::Port(port)) {
        RawHandle::NULL => Err(ERROR_NO_SYSTEM_RESOURCES),
        handle => Ok(handle),
    }
}

/// `PostQueuedCompletionStatus`: the three values are passed on as they are.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_PostQueuedCompletionStatus(
    port: RawHandle,
    bytes: u32,
    key: usize,
    overlapped: *mut Overlapped,
) -> i32 {
    guard_bool_quick(|| {
        let packet = Packet { key, overlapped: overlapped.addr(), bytes, status: 0 };
        with_queue(port, |queue| queue.post(packet))
    })
}

/// Runs `body` with the queue, without a reference to the port: a waiting thread must not keep the port open.
#[inline(always)]
fn with_next<R>(
    handle: RawHandle,
    next: impl FnOnce(&Arc<Queue>) -> Result<Packet, NoPacket>,
    body: impl FnOnce(&Queue, Packet) -> R,
) -> Result<R, u32> {
    with_queue(handle, |queue| match next(queue) {
        Ok(packet) => Ok(body(queue, packet)),
        Err(NoPacket::TimedOut) => Err(WAIT_TIMEOUT),
        Err(NoPacket::Closed) => Err(ERROR_ABANDONED_WAIT_0),
        Err(NoPacket::Apc) => Err(WAIT_IO_COMPLETION),
    })?
}

/// `GetQueuedCompletionStatus`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetQueuedCompletionStatus(
    port: RawHandle,
    bytes: Out<'_, u32>,
    key: Out<'_, usize>,
    overlapped: Out<'_, *mut Overlapped>,
    millis: u32,
) -> i32 {
    guard_quick(0, || {
        let packet = match with_next(
            port,
            |queue| queue.next_by(|| Deadline::after_millis(millis)),
            |_, packet| packet,
        ) {
            Ok(packet) => packet,
            Err(code) => {
                overlapped.put(std::ptr::null_mut());
                return fail(code, 0);
            }
        };
        bytes.put(packet.bytes);
        key.put(packet.key);
        overlapped.put(std::ptr::with_exposed_provenance_mut(packet.overlapped));
        if packet.status < 0 { fail(failed_status_to_win32(packet.status), 0) } else { 1 }
    })
}

/// `OVERLAPPED_ENTRY`.
#[repr(C)]
pub struct OverlappedEntry {
    /// `lpCompletionKey`.
    pub key: usize,
    /// `lpOverlapped`.
    pub overlapped: *mut Overlapped,
    /// `Internal`: the NTSTATUS of the operation.
    pub internal: usize,
    /// `dwNumberOfBytesTransferred`.
    pub bytes: u32,
}

const _: () = assert!(size_of::<OverlappedEntry>() == 32);

impl OverlappedEntry {
    fn from_packet(packet: Packet) -> OverlappedEntry {
        OverlappedEntry {
            key: packet.key,
            overlapped: std::ptr::with_exposed_provenance_mut(packet.overlapped),
            internal: packet.status as u32 as usize,
            bytes: packet.bytes,
        }
    }
}

/// `GetQueuedCompletionStatusEx`: waits for a packet, and takes all that are queued then. It succeeds whatever the statuses of
/// the operations. When it fails, the count is 1, as on Windows. If there is no packet, an alertable wait runs asynchronous
/// procedure calls and fails with `WAIT_IO_COMPLETION`.
///
/// # Safety
/// `entries` must have room for `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetQueuedCompletionStatusEx(
    port: RawHandle,
    entries: *mut OverlappedEntry,
    count: u32,
    removed: Out<'_, u32>,
    millis: u32,
    alertable: i32,
) -> i32 {
    guard_bool_quick(|| {
        if entries.is_null() || count == 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let apcs = (alertable != 0).then(Apcs::current);
        let deadline = || Deadline::after_millis(millis);
        let next = |queue: &Arc<Queue>| match &apcs {
            Some(apcs) => queue.next_alertably(deadline(), apcs),
            None => queue.next_by(deadline),
        };
        let took = with_next(port, next, |queue, first| {
            let mut taken = 0;
            let more = std::iter::from_fn(|| queue.another());
            for packet in std::iter::once(first).chain(more.take(count as usize - 1)) {
                // SAFETY: one of the caller's `count` entries.
                unsafe { entries.wrapping_add(taken).write(OverlappedEntry::from_packet(packet)) };
                taken += 1;
            }
            removed.put(taken as u32);
        });
        if took.is_err() {
            // As on Windows when there is no packet.
            removed.put(1);
        }
        if let (Err(WAIT_IO_COMPLETION), Some(apcs)) = (took, apcs) {
            apcs.run();
        }
        took
    })
}

/// Linux addition: a descriptor for poll loops, readable when `GetQueuedCompletionStatus` with time-out 0 may return a packet.
///
/// It belongs to the port: do not read or close it. It may be readable spuriously; call `GetQueuedCompletionStatus` until it
/// times out. Returns -1 and sets the last error if `port` is not a port or descriptors have run out.
#[unsafe(no_mangle)]
pub extern "C" fn ndcompat_port_fd(handle: RawHandle) -> i32 {
    guard(-1, || {
        let fd = port(handle).and_then(|port| port.fd().map_err(|error| io_to_win32(&error)));
        fd.unwrap_or_else(|code| fail(code, -1))
    })
}
