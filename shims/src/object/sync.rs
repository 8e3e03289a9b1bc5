//! The synchronisation primitives of code with a model test, in one place so that the model can substitute its own.

pub(super) use parking_lot::Mutex;
pub(super) use std::sync::atomic::{AtomicU32, Ordering};
pub(super) use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
