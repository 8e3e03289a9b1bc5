//! `libndcompat`: the COM interfaces and C entry points over the engine, and with them the Win32 runtime.
//!
//! One module per interface; `com` has what they share. A method checks its pointers, calls the engine's method of the
//! same name and turns the answer into an `HRESULT`. Nothing here decides anything about RDMA.

// The names are Windows'.
#![allow(non_snake_case)]

#[cfg(test)]
mod abi;
mod adapter;
mod address;
mod com;
mod completion_queue;
mod connector;
pub mod guid;
pub mod helper;
mod listener;
mod memory_region;
mod memory_window;
mod others;
mod overlapped;
pub mod provider;
mod queue_pair;
mod shared_endpoint;
mod shared_receive_queue;
