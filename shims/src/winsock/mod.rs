//! The subset of Winsock that NetworkDirect programs use: start-up, addresses as text, routing
//! queries, the provider catalogue.
//!
//! A `SOCKET` is a file descriptor. `AF_INET6` keeps its Linux value (10, not 23), so that addresses pass between
//! Windows code, the C library and rdma-core as they are.

pub mod adapters;
pub mod adapters_ipv4;
pub mod address;
pub mod address_change;
pub mod address_info;
mod addrinfo;
mod calls;
pub mod catalogue;
mod changes;
mod completion_routine;
pub mod condition;
pub mod connect_by_name;
mod errors;
pub mod event;
pub mod extension;
mod interface;
pub mod interface_change;
pub mod interface_name;
pub mod interface_table;
pub mod ioctl;
pub mod option;
mod own_name;
pub mod presentation;
pub mod protocols;
pub mod readiness;
pub mod resolve;
pub mod routing;
pub mod socket;
pub mod startup;
mod system;
mod table;
pub mod transfer;
pub mod transmit_file;
mod wire;

pub use address::{read_sockaddr, write_sockaddr};
pub use routing::local_address_for;
pub(crate) use socket::close;
pub(crate) use table::file_of;

use crate::error::{ERROR_SUCCESS, WSAENETDOWN, errno_to_wsa, set_last_error};
use std::io;

/// `SOCKET`: a file descriptor, or all ones.
pub type Socket = usize;

/// `INVALID_SOCKET`.
pub const INVALID_SOCKET: Socket = Socket::MAX;

/// `SOCKET_ERROR`.
pub const SOCKET_ERROR: i32 = -1;

/// The result of a Winsock function: 0, or `SOCKET_ERROR` and the thread's last error.
fn outcome(result: Result<(), u32>) -> i32 {
    match result {
        Ok(()) => ERROR_SUCCESS as i32,
        Err(code) => {
            set_last_error(code);
            SOCKET_ERROR
        }
    }
}

/// For functions that return a `BOOL`.
fn told(result: Result<(), u32>) -> i32 {
    match result {
        Ok(()) => 1,
        Err(code) => {
            failed(0, code);
            0
        }
    }
}

/// Reports a failure to Linux code by `errno`, which 0 leaves unchanged, and to Windows code by the last error.
fn failed(errno: i32, code: u32) {
    if errno != 0 {
        crate::error::set_errno(errno);
    }
    set_last_error(code);
}

fn wsa_error(error: &io::Error) -> u32 {
    error.raw_os_error().map_or(WSAENETDOWN, errno_to_wsa)
}
