//! I/O completion objects of thread pools.

use super::{Base, Environment, Instance, Member, close, create, with_member};
use crate::arguments::In;
use crate::error::*;
use crate::io::queue::Packet;
use crate::io::{File, Overlapped, pool};
use crate::object::RawHandle;
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

/// `PTP_WIN32_IO_CALLBACK`: instance, context, `OVERLAPPED`, Win32 error, bytes, object.
type IoCallback = unsafe extern "C" fn(*mut Instance, *mut c_void, *mut Overlapped, u32, usize, RawHandle);

struct PoolIo {
    base: Arc<Base>,
    key: usize,
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
        let receive = move |packet: Packet| {
            let error = if packet.status < 0 { nt_to_win32(packet.status) } else { ERROR_SUCCESS };
            caller.submit(move |instance, context, io| {
                let overlapped = with_exposed_provenance_mut(packet.overlapped);
                // SAFETY: the program's callback, of this type, with the context that it gave for it and its own OVERLAPPED.
                unsafe { callback(instance, context, overlapped, error, packet.bytes as usize, io) };
            });
        };
        let key = pool::key_of(Arc::new(receive));
        let queue = pool::queue().map_err(|_| ERROR_NO_SYSTEM_RESOURCES)?;
        if let Err(code) = file.bind(&queue, key) {
            pool::unbind(key);
            return Err(code);
        }
        Ok(PoolIo { base, key })
    })
}

/// `StartThreadpoolIo`: has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_StartThreadpoolIo(_io: RawHandle) {}

/// `CancelThreadpoolIo`: has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CancelThreadpoolIo(_io: RawHandle) {}

/// `WaitForThreadpoolIoCallbacks`: waits for callbacks of completed requests. With `cancel` those that have not started are
/// dropped.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForThreadpoolIoCallbacks(io: RawHandle, cancel: i32) {
    with_member::<PoolIo>(io, |io| io.base.wait(cancel));
}

/// `CloseThreadpoolIo`: requests that complete later cause no callback.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseThreadpoolIo(io: RawHandle) {
    close::<PoolIo>(io);
}
