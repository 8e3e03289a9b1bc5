//! Shared pieces of the device tests.
