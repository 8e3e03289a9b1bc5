//! Completion ports as programs see them, and the results of overlapped operations.

use super::pool;
use super::queue::{NoPacket, Packet, Queue};
use super::request::result_before;
use super::runner::Runner;
use super::sync::{Arc, Lock};
use super::sys::{Deadline, Epoll};
use super::{File, Overlapped, STATUS_PENDING};
use crate::error::*;
use crate::object::handle::{self, Opening};
use crate::object::{Object, RawHandle, guard, guard_bool};
use std::cell::RefCell;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

/// A completion port. Handles own the port; files own only its queue. With the last handle the port is closed.
pub(crate) struct Port {
    queue: Arc<Queue>,
    /// What [`ndcompat_port_fd`] gave out: readable when there are packets or a source is ready.
    exported: Lock<Option<Epoll>>,
}

impl Port {
    /// A port on which `threads` may run at a time, or as many as there are processors.
    fn new(threads: u32) -> io::Result<Arc<Port>> {
        let limit = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            _ => threads as usize,
        };
        Ok(Arc::new(Port { queue: Queue::new(limit)?, exported: Lock::default() }))
    }

    fn fd(&self) -> io::Result<RawFd> {
        let mut exported = self.exported.lock();
        if exported.is_none() {
            let outer = Epoll::new()?;
            outer.watch(self.queue.fd()?, 1, false)?;
            outer.watch(self.queue.poller.fd(), 2, false)?;
            *exported = Some(outer);
        }
        Ok(exported.as_ref().map_or(-1, Epoll::fd))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn port(handle: RawHandle) -> Result<Arc<Port>, u32> {
    match handle::get(handle) {
        Some(Object::Port(port)) => Ok(port),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

/// The queue of the port that a handle names.
type Known = (Opening, Arc<Queue>);

thread_local! {
    /// Ports that this thread used last. Threads that share a port would otherwise contend for its reference count.
    static LAST: [RefCell<Option<Known>>; 4] = const { [const { RefCell::new(None) }; 4] };
}

/// Runs `body` with the queue of the port.
#[inline]
pub(super) fn with_queue<R>(handle: RawHandle, body: impl FnOnce(&Arc<Queue>) -> R) -> Result<R, u32> {
    let mut body = Some(body);
    let known = LAST.try_with(|last| {
        let last = last[(handle.0 >> 2) % 4].try_borrow().ok()?;
        let (known, queue) = last.as_ref()?;
        let body = if known.is(handle) { body.take() } else { None }?;
        Some(body(queue))
    });
    match (known, body) {
        (Ok(Some(result)), _) => Ok(result),
        (_, Some(body)) => {
            let queue = find_queue(handle)?;
            Ok(body(&queue))
        }
        (_, None) => Err(ERROR_INVALID_HANDLE),
    }
}

/// Looks the port up, and remembers it.
#[cold]
#[inline(never)]
fn find_queue(handle: RawHandle) -> Result<Arc<Queue>, u32> {
    let opening = Opening::of(handle).ok_or(ERROR_INVALID_HANDLE)?;
    let queue = port(handle)?.queue.clone();
    // Not while a call further out uses the place, nor in a thread that is ending.
    let former = LAST.try_with(|last| {
        let mut place = last[(handle.0 >> 2) % 4].try_borrow_mut().ok()?;
        place.replace((opening, queue.clone()))
    });
    drop(former);
    Ok(queue)
}

fn from_io(error: io::Error) -> u32 {
    errno_to_win32(error.raw_os_error().unwrap_or(libc::ENOMEM))
}

fn fail<R>(code: u32, value: R) -> R {
    set_last_error(code);
    value
}

/// `CreateIoCompletionPort`: makes a port, binds a file to one, or both.
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
            return open(Port::new(threads).map_err(from_io)?);
        }
        let file = File::from_handle(file).ok_or(ERROR_INVALID_HANDLE)?;
        if existing != RawHandle::NULL {
            return with_queue(existing, |queue| file.bind(queue, key))?.map(|()| existing);
        }
        let port = Port::new(threads).map_err(from_io)?;
        file.bind(&port.queue, key)?;
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
    guard_bool(|| {
        let packet = Packet { key, overlapped: overlapped.addr(), bytes, status: 0 };
        with_queue(port, |queue| queue.post(packet))
    })
}

/// Runs `body` with the next packet, and with the queue alone: a thread that waits must not keep the port from being closed.
#[inline(always)]
fn with_next<R>(handle: RawHandle, millis: u32, body: impl FnOnce(&Queue, Packet) -> R) -> Result<R, u32> {
    Runner::with(|me| {
        if let Some(queue) = me.bound_by(handle) {
            return Ok(body(&queue, next(&queue, me, millis)?));
        }
        let opening = Opening::of(handle);
        with_queue(handle, |queue| {
            me.bind(queue, opening);
            Ok(body(queue, next(queue, me, millis)?))
        })?
    })
}

#[inline(always)]
fn next(queue: &Queue, me: &Runner, millis: u32) -> Result<Packet, u32> {
    // Where there are sources the thread will mostly have to wait, and then sees for itself.
    if !queue.poller.has_sources()
        && let Some(packet) = queue.next_of_runner(me)
    {
        return Ok(packet);
    }
    match queue.next_for(me, Deadline::after_millis(millis)) {
        Ok(packet) => Ok(packet),
        Err(NoPacket::TimedOut) => Err(WAIT_TIMEOUT),
        Err(NoPacket::Closed) => Err(ERROR_ABANDONED_WAIT_0),
    }
}

/// `GetQueuedCompletionStatus`.
///
/// # Safety
/// The three out pointers must be valid for writes, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetQueuedCompletionStatus(
    port: RawHandle,
    bytes: *mut u32,
    key: *mut usize,
    overlapped: *mut *mut Overlapped,
    millis: u32,
) -> i32 {
    guard(0, || {
        let packet = match with_next(port, millis, |_, packet| packet) {
            Ok(packet) => packet,
            Err(code) => {
                // SAFETY: the caller vouches for the pointer.
                unsafe { put(overlapped, std::ptr::null_mut()) };
                return fail(code, 0);
            }
        };
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            put(bytes, packet.bytes);
            put(key, packet.key);
            put(overlapped, std::ptr::with_exposed_provenance_mut(packet.overlapped));
        }
        if packet.status < 0 { fail(failure(packet.status), 0) } else { 1 }
    })
}

/// The last error for a failed operation, which must not look like a time-out.
fn failure(status: i32) -> u32 {
    match nt_to_win32(status) {
        WAIT_TIMEOUT | ERROR_SUCCESS => ERROR_GEN_FAILURE,
        code => code,
    }
}

/// # Safety
/// `target` must be null or valid for a write.
unsafe fn put<T>(target: *mut T, value: T) {
    if !target.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { target.write(value) };
    }
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

/// `GetQueuedCompletionStatusEx`: waits for one packet, and takes as many as there are then. It succeeds
/// whatever became of the operations. There are no asynchronous procedure calls, so it never ends for one.
///
/// # Safety
/// `entries` must have room for `count` entries; `removed` must be null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetQueuedCompletionStatusEx(
    port: RawHandle,
    entries: *mut OverlappedEntry,
    count: u32,
    removed: *mut u32,
    millis: u32,
    _alertable: i32,
) -> i32 {
    guard_bool(|| {
        if entries.is_null() || count == 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: the caller vouches for the pointer.
        unsafe { put(removed, 0) };
        with_next(port, millis, |queue, first| {
            let mut taken = 0;
            let more = std::iter::from_fn(|| queue.another());
            for packet in std::iter::once(first).chain(more.take(count as usize - 1)) {
                // SAFETY: the caller vouches for `count` entries.
                unsafe { entries.add(taken).write(OverlappedEntry::from_packet(packet)) };
                taken += 1;
            }
            // SAFETY: the caller vouches for the pointer.
            unsafe { put(removed, taken as u32) };
        })
    })
}

/// # Safety
/// `overlapped` must be valid; `bytes` null or valid for a write.
unsafe fn overlapped_result(
    file: RawHandle,
    overlapped: *const Overlapped,
    bytes: *mut u32,
    millis: u32,
    unfinished: u32,
) -> i32 {
    guard_bool(|| {
        if overlapped.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: the caller vouches for `overlapped`.
        let now = unsafe { (*overlapped).internal.load(Ordering::Acquire) } as i32;
        let status = if now == STATUS_PENDING {
            let file = File::from_handle(file).ok_or(ERROR_INVALID_HANDLE)?;
            // SAFETY: as above.
            unsafe { result_before(&file, overlapped, Deadline::after_millis(millis)) }
        } else {
            now
        };
        if status == STATUS_PENDING {
            return Err(unfinished);
        }
        // SAFETY: as above.
        unsafe { put(bytes, (*overlapped).internal_high.load(Ordering::Relaxed) as u32) };
        if status < 0 { Err(failure(status)) } else { Ok(()) }
    })
}

/// `GetOverlappedResult`.
///
/// # Safety
/// `overlapped` must be that of a started operation; `bytes` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetOverlappedResult(
    file: RawHandle,
    overlapped: *const Overlapped,
    bytes: *mut u32,
    wait: i32,
) -> i32 {
    let millis = if wait != 0 { u32::MAX } else { 0 };
    // SAFETY: the caller vouches for the arguments.
    unsafe { overlapped_result(file, overlapped, bytes, millis, ERROR_IO_INCOMPLETE) }
}

/// `GetOverlappedResultEx`. There are no asynchronous procedure calls, so it never ends for one.
///
/// # Safety
/// As for [`ndw_GetOverlappedResult`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetOverlappedResultEx(
    file: RawHandle,
    overlapped: *const Overlapped,
    bytes: *mut u32,
    millis: u32,
    _alertable: i32,
) -> i32 {
    let unfinished = if millis == 0 { ERROR_IO_INCOMPLETE } else { WAIT_TIMEOUT };
    // SAFETY: the caller vouches for the arguments.
    unsafe { overlapped_result(file, overlapped, bytes, millis, unfinished) }
}

/// `BindIoCompletionCallback`: completions of the file run `callback` on a thread of the library.
///
/// # Safety
/// `callback` must be safe to call on any thread for as long as the file has requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_BindIoCompletionCallback(
    file: RawHandle,
    callback: Option<pool::Callback>,
    _flags: u32,
) -> i32 {
    guard_bool(|| {
        let file = File::from_handle(file).ok_or(ERROR_INVALID_HANDLE)?;
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        file.bind(&pool::queue().map_err(from_io)?, callback as usize)
    })
}

/// Linux addition: a descriptor that is readable when `GetQueuedCompletionStatus` with time-out 0 may have
/// something to do, for poll loops.
///
/// It belongs to the port: do not read or close it. It may be readable for nothing; call
/// `GetQueuedCompletionStatus` until it times out. Gives -1 and sets the last error when `port` is no port or
/// descriptors have run out.
#[unsafe(no_mangle)]
pub extern "C" fn ndcompat_port_fd(handle: RawHandle) -> i32 {
    guard(-1, || {
        let fd = port(handle).and_then(|port| port.fd().map_err(from_io));
        fd.unwrap_or_else(|code| fail(code, -1))
    })
}
