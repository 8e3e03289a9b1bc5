//! Memory that the device may access: regions, and windows on them.

pub mod hardware_window;
pub mod memory_region;
pub mod memory_window;
