//! The Win32 runtime for ported NetworkDirect code.
//!
//! One subject per module. A module's C entry points (`ndw_*`, mapped from the Windows names by the headers in `shims/include`)
//! are at the end of the file that implements them; those that take handles are in [`api`], the top layer. `ci/lib/floors` lists
//! what may import what.

#![cfg_attr(not(test), deny(clippy::multiple_unsafe_ops_per_block))]

#[cfg(test)]
mod alone;
pub mod api;
pub mod arguments;
mod boundary;
mod broken_pipe;
pub mod calendar;
pub mod cancellation;
pub mod crt;
pub mod environment;
pub mod error;
pub mod files;
mod futex;
pub mod handle;
pub mod io;
pub mod library;
pub mod logging;
pub mod memory;
#[cfg(test)]
mod model;
pub mod object;
pub mod process;
pub mod processor;
pub mod sync;
pub mod text;
pub mod time;
pub mod winsock;
