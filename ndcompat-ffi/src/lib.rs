//! `libndcompat`: the COM interfaces and C entry points over the engine, and the Win32 runtime.
//!
//! `interfaces` lists the interfaces, `com` makes their virtual tables, `object` counts references. Each interface has a
//! module with its methods: a method checks its pointers, calls the engine's method of the same name and returns its status
//! as an `HRESULT`. Nothing here decides anything about RDMA.

#![deny(clippy::multiple_unsafe_ops_per_block)]
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
mod interfaces;
mod listener;
mod memory_region;
mod memory_window;
mod object;
mod other_providers;
mod overlapped;
pub mod provider;
mod queue_pair;
mod shared_endpoint;
mod shared_receive_queue;
