//! The only place that touches the C API of rdma-core.
