//! NetworkDirect SPI v2 over rdma-core: the engine behind the C interfaces.
pub mod verbs;
