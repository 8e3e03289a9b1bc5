//! What threads may read of handles and slots without a lock, under loom: the very same files, on top of its primitives.

#![allow(clippy::duplicate_mod, reason = "compiling the same files again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

mod sync;
mod tests;

#[path = "../table.rs"]
mod table;
#[path = "../tls_indices.rs"]
mod tls_indices;
