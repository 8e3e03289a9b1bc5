//! The device: finding and opening an adapter, its limits, its events, its removal.

pub mod adapter;
pub mod async_events;
pub mod clock;
pub mod connection_channel;
pub mod limits;
pub mod provider;
pub mod removal;
pub mod routes;
mod siw_mapping;
