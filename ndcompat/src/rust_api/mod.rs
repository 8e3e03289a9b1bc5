//! The Rust API beyond the C interfaces: memory that registers itself, requests that own their memory, results as futures.

pub mod abandoned;
pub mod catalogue;
pub mod connection;
pub mod dispatcher;
pub mod machine;
pub mod memory;
pub mod operation;
pub mod pair;
pub mod port;
pub mod request_table;
pub mod session;
pub mod transfer;
pub mod waiting;
pub mod window;
