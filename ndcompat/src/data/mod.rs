//! The data path: queues, requests and results.

pub mod backlog;
pub mod completion;
pub mod completion_queue;
pub mod notification;
pub mod posting;
pub mod queue_owner;
pub mod queue_pair;
pub mod receiver_not_ready;
pub mod request_queue;
pub mod scatter_gather;
pub mod shared_receive_queue;
pub mod work_request;
