//! The subset of Winsock that NetworkDirect programs use: start-up, addresses as text, routing
//! queries, the provider catalogue.
//!
//! A `SOCKET` is a file descriptor. `AF_INET6` keeps its Linux value (10, not 23), so that addresses pass between
//! Windows code, the C library and rdma-core as they are.

pub mod address;
pub mod catalogue;
pub mod presentation;
pub mod routing;
pub mod socket;
pub mod startup;

pub use address::{read_sockaddr, write_sockaddr};
pub use routing::local_address_for;

use crate::error::{ERROR_SUCCESS, set_last_error};

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
