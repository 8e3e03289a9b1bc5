//! Documented statuses, on the double, by the suites that run on real devices, too.

#[path = "../../../shared/adapter.rs"]
mod adapter;
#[path = "../../../shared/connections.rs"]
mod connections;
#[path = "../../../shared/requests.rs"]
mod requests;
