//! The owner-biased lock, checked by loom for all interleavings and weak memory orders.
//!
//! The lock's files are compiled here once more with loom's atomics ([`atomic`]) and threads ([`machine`]), and with a
//! model of the kernel's barrier ([`membarrier`]). The x86 assembly is not in the model; `Bias::enter`, which does the
//! same, is.
//!
//! # The barrier
//! `membarrier(2)` guarantees that every other thread executes a full barrier at some point during the call. The thread
//! that revokes the bias makes the call between its store to `owner` and its load of `inside`. The owner stores `inside`
//! and loads `owner`, with a compiler fence between them. Its barrier may be anywhere:
//!
//! - before the load: then that load sees the revoker's store;
//! - after the load, hence after the store: then the revoker sees `inside`.
//!
//! The model has sequentially consistent fences in the two places, the compiler fence and the call, which guarantee the
//! same. They would also order two owners against each other, which compiler fences do not; but a lock has at most one
//! owner in its life. A barrier elsewhere in the owner's code would order that, too; without it, the model guarantees less
//! than the kernel does.

#![allow(clippy::duplicate_mod, reason = "compiling the same files again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

mod atomic;
mod machine;
mod membarrier;
mod tests;

#[path = "../bias.rs"]
mod bias;
#[path = "../lock.rs"]
mod lock;
