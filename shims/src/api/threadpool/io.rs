//! I/O completion objects of thread pools.

use super::{Base, Environment, Instance, Member, close, create, with_member};
use crate::arguments::In;
use crate::error::*;
use crate::io::queue::Packet;
use crate::io::{File, Idle, Overlapped, pool};
use crate::object::RawHandle;
use parking_lot::{Condvar, Mutex};
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

/// `PTP_WIN32_IO_CALLBACK`: instance, context, `OVERLAPPED`, Win32 error, bytes, object.
type IoCallback = unsafe extern "C" fn(*mut Instance, *mut c_void, *mut Overlapped, u32, usize, RawHandle);

struct PoolIo {
    base: Arc<Base>,
    key: usize,
    operations: Arc<Operations>,
}

/// The operations of an object, from `StartThreadpoolIo` to the packet.
#[derive(Default)]
struct Operations {
    counts: Mutex<Counts>,
    none_is_left: Condvar,
}

#[derive(Default)]
struct Counts {
    /// Those that a callback is to come of.
    started: usize,
    /// Those whose callback was cancelled before their packet came.
    skipped: usize,
}

impl Operations {
    fn start(&self) {
        self.counts.lock().started += 1;
    }

    /// One has not begun, or will have no packet.
    fn take_back(&self) {
        let mut counts = self.counts.lock();
        if counts.started == 0 {
            // Its callback was cancelled before.
            counts.skipped = counts.skipped.saturating_sub(1);
            return;
        }
        drop(counts);
        self.end();
    }

    /// One is over: its callback is queued, or it has not begun.
    fn end(&self) {
        let mut counts = self.counts.lock();
        // Not every program says what it starts.
        counts.started = counts.started.saturating_sub(1);
        if counts.started == 0 {
            self.none_is_left.notify_all();
        }
    }

    /// Whether the packet that has come is to be skipped. Which request it is of does not matter: `StartThreadpoolIo` names none.
    fn skips(&self) -> bool {
        let mut counts = self.counts.lock();
        let skips = counts.skipped != 0;
        counts.skipped -= usize::from(skips);
        skips
    }

    /// No callback comes of those that have started.
    fn cancel(&self) {
        let mut counts = self.counts.lock();
        counts.skipped += std::mem::take(&mut counts.started);
        self.none_is_left.notify_all();
    }

    /// Waits until all have ended.
    fn wait(&self) {
        let _idle = Idle::enter();
        let mut counts = self.counts.lock();
        while counts.started != 0 {
            self.none_is_left.wait(&mut counts);
        }
    }
}

impl Member for PoolIo {
    fn base(&self) -> &Base {
        &self.base
    }

    fn stop(&self) {
        pool::unbind(self.key);
    }
}

/// `CreateThreadpoolIo`: binds the file permanently, as to a port.
///
/// # Safety
/// As for [`super::work::ndw_CreateThreadpoolWork`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateThreadpoolIo(
    file: RawHandle,
    callback: Option<IoCallback>,
    context: *mut c_void,
    environment: In<'_, Environment>,
) -> RawHandle {
    create(environment, context, |base, caller| {
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        let file = File::from_handle(file).ok_or(ERROR_INVALID_HANDLE)?;
        let operations = Arc::<Operations>::default();
        let of_packets = operations.clone();
        let receive = move |packet: Packet| {
            if of_packets.skips() {
                return;
            }
            let error = if packet.status < 0 { nt_to_win32(packet.status) } else { ERROR_SUCCESS };
            caller.submit(move |instance, context, io| {
                let overlapped = with_exposed_provenance_mut(packet.overlapped);
                // SAFETY: the program's callback, of this type, with the context that it gave for it and its own OVERLAPPED.
                unsafe { callback(instance, context, overlapped, error, packet.bytes as usize, io) };
            });
            // The callback counts by now.
            of_packets.end();
        };
        let key = pool::key_of(Arc::new(receive));
        let queue = pool::queue().map_err(|_| ERROR_NO_SYSTEM_RESOURCES)?;
        if let Err(code) = file.bind(&queue, key) {
            pool::unbind(key);
            return Err(code);
        }
        Ok(PoolIo { base, key, operations })
    })
}

/// `StartThreadpoolIo`: a request is about to begin. Only `WaitForThreadpoolIoCallbacks` wants to know.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_StartThreadpoolIo(io: RawHandle) {
    with_member::<PoolIo>(io, |io| io.operations.start());
}

/// `CancelThreadpoolIo`: the request has not begun, or there will be no packet.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CancelThreadpoolIo(io: RawHandle) {
    with_member::<PoolIo>(io, |io| io.operations.take_back());
}

/// `WaitForThreadpoolIoCallbacks`: waits until all requests that were started have had their callback. With `cancel`, those whose
/// callback has not begun have none.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForThreadpoolIoCallbacks(io: RawHandle, cancel: i32) {
    with_member::<PoolIo>(io, |io| {
        if cancel != 0 {
            io.operations.cancel();
        }
        io.operations.wait();
        io.base.wait(cancel);
    });
}

/// How many packets are still to be skipped.
#[cfg(test)]
pub(crate) fn packets_to_skip(io: RawHandle) -> usize {
    let mut skipped = 0;
    with_member::<PoolIo>(io, |io| skipped = io.operations.counts.lock().skipped);
    skipped
}

/// `CloseThreadpoolIo`: requests that complete later cause no callback.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseThreadpoolIo(io: RawHandle) {
    close::<PoolIo>(io);
}
