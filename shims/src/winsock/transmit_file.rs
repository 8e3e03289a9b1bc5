//! `TransmitFile`.

use super::system::has_peer;
use super::table::overlapped::{Direction, Operation, Part, Transmit};
use super::table::{self, descriptor};
use super::transfer::sending::in_turn;
use super::wire::Piece;
use super::{Socket, told};
use crate::arguments::In;
use crate::boundary::guard;
use crate::error::*;
use crate::io::Overlapped;
use crate::io::sys::Deadline;
use crate::object::{Object, RawHandle, handle};

/// `TRANSMIT_FILE_BUFFERS`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Windows'
pub struct Buffers {
    pub head: *const u8,
    pub head_length: u32,
    pub tail: *const u8,
    pub tail_length: u32,
}

/// `TF_DISCONNECT`.
const TF_DISCONNECT: u32 = 1;
/// Flags that say how Windows does it: `TF_WRITE_BEHIND`, `TF_USE_SYSTEM_THREAD`, `TF_USE_KERNEL_APC`.
const HOW: u32 = 0x4 | 0x10 | 0x20;
/// One byte more than can be asked for.
const TOO_MANY: u32 = i32::MAX as u32;

/// # Safety
/// `data` has `length` bytes until the transfer has ended.
unsafe fn piece(data: *const u8, length: u32) -> Result<Option<Piece>, u32> {
    match (length, data.is_null()) {
        (0, _) => Ok(None),
        (_, true) => Err(WSAEFAULT),
        // SAFETY: so many bytes, as the caller promises.
        _ => Ok(Some(unsafe { Piece::new(data, length as usize) })),
    }
}

/// `TransmitFile`: with an `OVERLAPPED` from the place in the file that it tells, otherwise from the file's position, and the call
/// waits. A socket is not made ready for another connection (`TF_REUSE_SOCKET`).
///
/// # Safety
/// The buffers have the sizes told. They and `overlapped` stay until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_TransmitFile(
    socket: Socket,
    file: RawHandle,
    count: u32,
    _count_at_a_time: u32,
    overlapped: *mut Overlapped,
    buffers: In<'_, Buffers>,
    flags: u32,
) -> i32 {
    let transmit = || {
        let socket = table::get(descriptor(socket)?)?;
        if flags & !(TF_DISCONNECT | HOW) != 0 {
            return Err(WSAEOPNOTSUPP);
        }
        if count >= TOO_MANY {
            return Err(WSAEINVAL);
        }
        if !socket.stream || !has_peer(socket.fd) {
            return Err(WSAENOTCONN);
        }
        let (mut head, mut tail) = (None, None);
        if let Some(buffers) = buffers.read() {
            // SAFETY: so many bytes until the transfer has ended, as C's caller promises.
            head = unsafe { piece(buffers.head, buffers.head_length) }?;
            // SAFETY: so many bytes until the transfer has ended, as C's caller promises.
            tail = unsafe { piece(buffers.tail, buffers.tail_length) }?;
        }
        let part = match file {
            RawHandle::NULL => None,
            _ => match handle::get(file) {
                Some(Object::Disk(file)) if file.reads() => {
                    // SAFETY: not NULL, hence an OVERLAPPED of the program's, which has set the offset.
                    let at = (!overlapped.is_null()).then(|| unsafe { (*overlapped).offset });
                    Some(Part { file, at, left: if count == 0 { u64::MAX } else { count.into() } })
                }
                Some(Object::Disk(_)) => return Err(ERROR_ACCESS_DENIED),
                _ => return Err(WSA_INVALID_HANDLE),
            },
        };
        let transmit = Operation::Transmit(Transmit::new(head, part, tail, flags & TF_DISCONNECT != 0));
        let driver = socket.driver()?;
        if overlapped.is_null() {
            // SAFETY: C's caller keeps the buffers until the call ends.
            let (_, end) = unsafe { in_turn(driver, transmit, Deadline::Never) };
            return end.map_err(|(_, code)| code);
        }
        // SAFETY: C's caller keeps the OVERLAPPED and the buffers until the request has completed.
        unsafe { driver.start(Direction::Out, overlapped, transmit, None) }.map(drop)
    };
    guard(0, || told(transmit()))
}
