//! Unusual uses of requests and memory, on the double.

#[path = "../../../shared/surprises.rs"]
mod surprises;
