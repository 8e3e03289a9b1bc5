//! `WSAEventSelect`: events that are set when a socket becomes ready.

pub use super::table::selection::NetworkEvents;

use super::system;
use super::table;
use super::{SOCKET_ERROR, Socket, outcome};
use crate::arguments::Out;
use crate::boundary::guard;
use crate::error::*;
use crate::io::signal::Signal;
use crate::object::{Object, RawHandle, handle};
use std::sync::Arc;

fn event(handle: RawHandle) -> Result<Arc<Signal>, u32> {
    match handle::get(handle) {
        Some(Object::Event(signal)) => Ok(signal),
        _ => Err(WSA_INVALID_HANDLE),
    }
}

/// `WSAEventSelect`: makes the socket non-blocking.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAEventSelect(socket: Socket, handle: RawHandle, mask: i32) -> i32 {
    let select = || {
        let socket = table::get(table::descriptor(socket)?)?;
        let driver = socket.driver()?;
        if mask == 0 {
            driver.selected.clear(driver.file());
            return Ok(());
        }
        if handle == RawHandle::NULL {
            return Err(WSAEINVAL);
        }
        let signal = event(handle).map_err(|_| WSAEINVAL)?;
        system::set_blocking(socket.fd, false).map_err(errno_to_wsa)?;
        socket.unmark(table::OURS_NOT_TO_WAIT);
        driver.watch(true)?;
        driver.selected.select(driver.file(), &socket, signal, mask);
        Ok(())
    };
    guard(SOCKET_ERROR, || outcome(select()))
}

/// `WSAEnumNetworkEvents`: the events since the last call; resets the event, if one is given.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAEnumNetworkEvents(
    socket: Socket,
    handle: RawHandle,
    events: Out<'_, NetworkEvents>,
) -> i32 {
    let take = || {
        let socket = table::get(table::descriptor(socket)?)?;
        let events = events.required(WSAEFAULT)?;
        let signal = if handle == RawHandle::NULL { None } else { Some(event(handle)?) };
        let record = socket.existing_driver().and_then(|driver| driver.selected.take(signal.as_deref()));
        let record = record.unwrap_or_default();
        events.put(record);
        Ok(())
    };
    guard(SOCKET_ERROR, || outcome(take()))
}
