//! An RDMA device in user space: iWARP on the kernel's TCP sockets.
//!
//! MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP (RFC 5040) for one process, without root, a kernel module or a
//! device file. It interoperates with iWARP adapters and with Linux's siw. The design is in `docs/softiwarp.md` of the
//! repository: the modules, and which thread drives the sockets.

#![cfg_attr(not(test), deny(clippy::multiple_unsafe_ops_per_block))]

pub mod completion;
pub mod memory;
pub mod queue_pair;
pub mod report;
pub mod socket;
pub mod startup;
pub mod verbs;
pub mod wire;
