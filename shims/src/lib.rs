//! The Win32 runtime that ported NetworkDirect code stands on.
//!
//! One subject per module; a module's C entry points (`ndw_*`, mapped from the Windows names by the headers in
//! `shims/include`) stand at the end of the file that implements them.

// The contract of an entry point is that of the Windows function it stands for; it is not repeated at each.
#![allow(clippy::missing_safety_doc)]

pub mod crt;
pub mod error;
pub mod filesystem;
mod futex;
pub mod io;
pub mod library;
pub mod memory;
pub mod object;
pub mod process;
pub mod sync;
pub mod text;
pub mod time;
pub mod winsock;
