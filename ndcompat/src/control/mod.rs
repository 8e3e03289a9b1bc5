//! Connections: listeners, connectors, and endpoints.

pub mod connection;
pub mod connector;
pub mod endpoint;
pub mod listener;
pub mod phase;
pub mod shared_endpoint;
