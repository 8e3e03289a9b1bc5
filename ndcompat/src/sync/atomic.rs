//! The atomics of the lock. The [model](super::model) replaces them.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};
