//! Threads and synchronisation: the lock of the data path, barriers, workers.

mod atomic;
mod bias;
pub mod cache_aligned;
pub mod lock;
#[cfg(test)]
mod lock_tests;
mod machine;
pub mod membarrier;
#[cfg(test)]
mod model;
pub mod mutex;
pub mod timer;
pub mod worker;
