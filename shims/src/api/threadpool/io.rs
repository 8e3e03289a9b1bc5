//! I/O completion objects of thread pools.

use super::{Base, Environment, Instance, Member, close, create, with, with_member};
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
    /// Those whose packet has come, and whose callback is being queued.
    arriving: usize,
    /// No callback comes of any packet.
    closed: bool,
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
        counts.started -= 1;
        self.none_is_left.notify_all();
    }

    /// A packet has come: `submit` queues its callback, unless that was cancelled. Which request it is of does not matter:
    /// `StartThreadpoolIo` names none. Who cancels finds it before or behind, and who waits does so until it is queued.
    fn arrive(&self, submit: impl FnOnce()) {
        {
            let mut counts = self.counts.lock();
            if counts.closed {
                return;
            }
            if counts.skipped != 0 {
                counts.skipped -= 1;
                return;
            }
            // Not every program says what it starts.
            counts.started = counts.started.saturating_sub(1);
            counts.arriving += 1;
        }
        submit();
        self.counts.lock().arriving -= 1;
        self.none_is_left.notify_all();
    }

    /// No callback comes of those that have started.
    fn cancel(&self) {
        let mut counts = self.counts.lock();
        counts.skipped += std::mem::take(&mut counts.started);
        self.none_is_left.notify_all();
    }

    /// Waits until all have ended: their callbacks are queued.
    fn wait(&self) {
        let _idle = Idle::enter();
        let mut counts = self.counts.lock();
        while counts.started + counts.arriving != 0 {
            self.none_is_left.wait(&mut counts);
        }
    }

    /// No more callbacks are queued when this returns.
    fn close(&self) {
        let mut counts = self.counts.lock();
        counts.closed = true;
        while counts.arriving != 0 {
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
        self.operations.close();
    }

    fn finish(&self, cancel: bool) {
        if cancel {
            self.operations.cancel();
        }
        self.operations.wait();
        self.stop();
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
            let error = if packet.status < 0 { nt_to_win32(packet.status) } else { ERROR_SUCCESS };
            let call = move |instance: *mut Instance, context: *mut c_void, io: RawHandle| {
                let overlapped = with_exposed_provenance_mut(packet.overlapped);
                // SAFETY: the program's callback, of this type, with the context that it gave for it and its own OVERLAPPED.
                unsafe { callback(instance, context, overlapped, error, packet.bytes as usize, io) };
            };
            of_packets.arrive(|| caller.submit(call));
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
    with::<PoolIo>(io, |io| io.operations.start());
}

/// `CancelThreadpoolIo`: the request has not begun, or there will be no packet.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CancelThreadpoolIo(io: RawHandle) {
    with::<PoolIo>(io, |io| io.operations.take_back());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::held_call::HeldCall;
    use std::thread;

    /// Who cancels may free what the callback uses: it is queued by then, where the next step finds it, or never will be.
    #[test]
    fn cancelling_and_closing_wait_for_a_callback_that_is_being_queued() {
        let waits: [fn(&Operations); 2] = [
            |operations| {
                operations.cancel();
                operations.wait();
            },
            Operations::close,
        ];
        for ends in waits {
            let (held, queue) = HeldCall::new();
            let operations = Operations::default();
            operations.start();
            thread::scope(|scope| {
                scope.spawn(|| operations.arrive(queue));
                held.ends_before(|| {
                    ends(&operations);
                    true
                });
            });
            // It was neither cancelled nor left behind.
            let counts = operations.counts.lock();
            assert_eq!((counts.started, counts.skipped, counts.arriving), (0, 0, 0));
        }
    }

    #[test]
    fn no_callback_comes_of_a_packet_after_the_close() {
        let operations = Operations::default();
        operations.close();
        operations.arrive(|| panic!("it is closed"));
    }
}
