//! `WSAEventSelect`: events that are set when a socket becomes ready.

pub use super::table::selection::NetworkEvents;

use super::system;
use super::table::{self, Known, OURS_NOT_TO_WAIT, selection};
use super::{SOCKET_ERROR, Socket, outcome};
use crate::arguments::InOut;
use crate::boundary::guard;
use crate::error::*;
use crate::io::signal::Signal;
use crate::object::{Object, RawHandle, handle};
use std::os::fd::RawFd;
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
        selected(&socket, event(handle).map_err(|_| WSAEINVAL)?, mask)
    };
    guard(SOCKET_ERROR, || outcome(select()))
}

/// Selects events on a socket, and makes it non-blocking.
fn selected(socket: &Known, signal: Arc<Signal>, mask: i32) -> Result<(), u32> {
    let driver = socket.driver()?;
    // First, so that a `ConnectEx` that ends meanwhile leaves it so.
    socket.unmark(OURS_NOT_TO_WAIT);
    system::set_blocking(socket.fd, false).map_err(errno_to_wsa)?;
    driver.watch(true)?;
    driver.selected.select(driver.file(), socket, signal, mask);
    Ok(())
}

/// Gives a connection what `accept` passes on from its listener: that it is non-blocking, and the events selected.
pub(super) fn inherit(listener: RawFd, connection: RawFd) -> Result<(), u32> {
    match selection::of(listener) {
        Some((signal, mask)) => selected(&*table::get(connection)?, signal, mask),
        None if system::is_blocking(listener) || table::is_marked(listener, OURS_NOT_TO_WAIT) => Ok(()),
        None => system::set_blocking(connection, false).map_err(errno_to_wsa),
    }
}

/// `WSAEnumNetworkEvents`: the events since the last call; resets the event, if one is given. Errors of events that have not occurred
/// are left alone.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAEnumNetworkEvents(
    socket: Socket,
    handle: RawHandle,
    events: InOut<'_, NetworkEvents>,
) -> i32 {
    let take = || {
        let socket = table::get(table::descriptor(socket)?)?;
        let mut told = events.read().ok_or(WSAEFAULT)?;
        let signal = if handle == RawHandle::NULL { None } else { Some(event(handle)?) };
        let record = match (socket.existing_driver(), signal) {
            (Some(driver), signal) => driver.selected.take(signal.as_deref()),
            (None, Some(signal)) => {
                signal.reset();
                NetworkEvents::default()
            }
            (None, None) => NetworkEvents::default(),
        };
        told.events = record.events;
        record.kinds().for_each(|(kind, error)| told.errors[kind] = error);
        events.put(told);
        Ok(())
    };
    guard(SOCKET_ERROR, || outcome(take()))
}
