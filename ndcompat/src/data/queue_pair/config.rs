//! The parameters of a queue pair.

use crate::data::completion_queue::CompletionQueue;
use crate::data::shared_receive_queue::SharedReceiveQueue;
use std::sync::Arc;

/// The parameters of `IND2Adapter::CreateQueuePair` and `CreateQueuePairWithSrq`.
///
/// Depths count requests. The limits are those of [`AdapterInfo`](crate::types::AdapterInfo). [`new`](Self::new) sets the
/// defaults, and a method for each parameter changes it:
///
/// ```
#[doc = include_str!("../../rust_api/device.txt")]
/// use ndcompat::{Provider, QueuePairConfig, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let queue = session.adapter().create_completion_queue(session.file(), 64, (0, 0))?;
/// let config = QueuePairConfig::new(&queue).receive_queue_depth(48).context(7);
/// let pair = session.adapter().create_queue_pair(config)?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Debug)]
pub struct QueuePairConfig {
    /// The completion queue of receives.
    pub receive_completion_queue: Arc<CompletionQueue>,
    /// The completion queue of all other requests.
    pub initiator_completion_queue: Arc<CompletionQueue>,
    /// Returned with every result, as [`Completion::queue_pair_context`](crate::types::Completion::queue_pair_context).
    pub context: u64,
    /// The shared receive queue; `None` for a receive queue of its own.
    pub shared_receive_queue: Option<Arc<SharedReceiveQueue>>,
    /// The depth of the receive queue. With a shared receive queue, this and `max_receive_sge` are ignored.
    pub receive_queue_depth: u32,
    /// The depth of the initiator queue: sends, reads and writes together.
    pub initiator_queue_depth: u32,
    /// The limit of SGEs of a receive.
    pub max_receive_sge: u32,
    /// The limit of SGEs of any other request.
    pub max_initiator_sge: u32,
    /// The limit of inline data of a request, in bytes.
    pub inline_data_size: u32,
}

impl QueuePairConfig {
    /// One completion queue for all results; depths of 16; one SGE; no inline data, no shared receive queue; context 0.
    pub fn new(queue: &Arc<CompletionQueue>) -> QueuePairConfig {
        QueuePairConfig {
            receive_completion_queue: queue.clone(),
            initiator_completion_queue: queue.clone(),
            context: 0,
            shared_receive_queue: None,
            receive_queue_depth: 16,
            initiator_queue_depth: 16,
            max_receive_sge: 1,
            max_initiator_sge: 1,
            inline_data_size: 0,
        }
    }

    /// Receives complete in a separate queue.
    pub fn receive_completion_queue(self, queue: &Arc<CompletionQueue>) -> QueuePairConfig {
        QueuePairConfig { receive_completion_queue: queue.clone(), ..self }
    }

    /// The context that is returned with every result.
    pub fn context(self, context: u64) -> QueuePairConfig {
        QueuePairConfig { context, ..self }
    }

    /// Takes receives from this queue, which other queue pairs may share.
    pub fn shared_receive_queue(self, queue: &Arc<SharedReceiveQueue>) -> QueuePairConfig {
        QueuePairConfig { shared_receive_queue: Some(queue.clone()), ..self }
    }

    /// The depth of the receive queue.
    pub fn receive_queue_depth(self, requests: u32) -> QueuePairConfig {
        QueuePairConfig { receive_queue_depth: requests, ..self }
    }

    /// The depth of the initiator queue: sends, reads and writes together.
    pub fn initiator_queue_depth(self, requests: u32) -> QueuePairConfig {
        QueuePairConfig { initiator_queue_depth: requests, ..self }
    }

    /// The limit of SGEs of a receive.
    pub fn max_receive_sge(self, entries: u32) -> QueuePairConfig {
        QueuePairConfig { max_receive_sge: entries, ..self }
    }

    /// The limit of SGEs of any other request.
    pub fn max_initiator_sge(self, entries: u32) -> QueuePairConfig {
        QueuePairConfig { max_initiator_sge: entries, ..self }
    }

    /// The limit of inline data of a request, in bytes.
    pub fn inline_data_size(self, bytes: u32) -> QueuePairConfig {
        QueuePairConfig { inline_data_size: bytes, ..self }
    }
}
