//! Connected pairs of ends on the device under test.

use crate::Operation;
use ndcompat::SockAddr;
use ndcompat::connector::Offer;
use ndcompat::types::{Completion, NotifyType, RegionFlags, RequestFlags, RequestType, Sge};
use ndcompat::{
    Adapter, CompletionQueue, Connector, Listener, MemoryRegion, QueuePair, QueuePairConfig,
    SharedReceiveQueue, Status,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use win32::io::File;

/// How many requests each queue of an [`End`] takes.
pub const QUEUE_DEPTH: u32 = 16;

/// A registered buffer.
pub struct Memory {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their registration, with all access flags.
    pub region: Arc<MemoryRegion>,
}

impl Memory {
    /// Registers `length` bytes with `flags`.
    pub fn new(adapter: &Arc<Adapter>, file: &Arc<File>, length: usize, flags: RegionFlags) -> Memory {
        let region = adapter.create_memory_region(file).unwrap();
        let mut bytes = vec![0; length];
        let mut operation = Operation::on(file);
        // SAFETY: the bytes live as long as the region, and the test owns both.
        let status = unsafe { region.register(bytes.as_mut_ptr(), length, flags, operation.ov()) };
        assert_eq!(status, Status::PENDING);
        assert_eq!(operation.wait(), Status::SUCCESS);
        Memory { bytes, region }
    }

    /// A scatter/gather entry for part of the buffer.
    pub fn sge(&self, range: std::ops::Range<usize>) -> Sge {
        Sge {
            buffer: self.bytes[range.clone()].as_ptr() as u64,
            length: range.len() as u32,
            token: self.region.local_token(),
        }
    }

    /// The address of the byte at `offset`, for remote access.
    pub fn remote_address(&self, offset: usize) -> u64 {
        self.bytes[offset..].as_ptr() as u64
    }
}

/// One end: a queue pair, its completion queue, its connector and some memory, all on one file.
pub struct End {
    /// The adapter.
    pub adapter: Arc<Adapter>,
    /// The file of all requests.
    pub file: Arc<File>,
    /// For both queues of the queue pair.
    pub completion_queue: Arc<CompletionQueue>,
    /// The queue pair; its context is the number given to [`End::new`].
    pub queue_pair: QueuePair,
    /// The connector.
    pub connector: Arc<Connector>,
    /// 64 KiB, registered with all access flags.
    pub memory: Memory,
}

impl End {
    /// An unconnected end, whose requests have up to two SGEs.
    pub fn new(adapter: &Arc<Adapter>, context: u64) -> End {
        End::with_sge(adapter, context, 2)
    }

    /// An unconnected end, whose requests have up to `max_sge` SGEs.
    pub fn with_sge(adapter: &Arc<Adapter>, context: u64, max_sge: u32) -> End {
        let file = adapter.create_overlapped_file().unwrap();
        let completion_queue = adapter.create_completion_queue(&file, 2 * QUEUE_DEPTH, (0, 0)).unwrap();
        let queue_pair = adapter
            .create_queue_pair(QueuePairConfig {
                receive_completion_queue: completion_queue.clone(),
                initiator_completion_queue: completion_queue.clone(),
                context,
                shared_receive_queue: None,
                receive_queue_depth: QUEUE_DEPTH,
                initiator_queue_depth: QUEUE_DEPTH,
                max_receive_sge: max_sge,
                max_initiator_sge: max_sge,
                inline_data_size: adapter.info().unwrap().inline_request_threshold,
            })
            .unwrap();
        let connector = adapter.create_connector(&file).unwrap();
        let everything = RegionFlags::ALLOW_REMOTE_READ | RegionFlags::ALLOW_REMOTE_WRITE;
        let memory = Memory::new(adapter, &file, 65536, everything);
        End { adapter: adapter.clone(), file, completion_queue, queue_pair, connector, memory }
    }

    /// An end whose queue pair takes its receives from `shared`.
    pub fn sharing(adapter: &Arc<Adapter>, context: u64, shared: &Arc<SharedReceiveQueue>) -> End {
        let mut end = End::new(adapter, context);
        let config = QueuePairConfig {
            receive_completion_queue: end.completion_queue.clone(),
            initiator_completion_queue: end.completion_queue.clone(),
            context,
            shared_receive_queue: Some(shared.clone()),
            receive_queue_depth: 0,
            initiator_queue_depth: QUEUE_DEPTH,
            max_receive_sge: 0,
            max_initiator_sge: 2,
            inline_data_size: 0,
        };
        end.queue_pair = adapter.create_queue_pair(config).unwrap();
        end
    }

    /// An operation on this end's file.
    pub fn operation(&self) -> Operation {
        Operation::on(&self.file)
    }

    /// Posts a receive into part of the memory.
    ///
    /// # Errors
    /// Those of `QueuePair::receive`.
    pub fn receive(&self, context: u64, range: std::ops::Range<usize>) -> Result<(), Status> {
        // SAFETY: the memory lives as long as the end.
        unsafe { self.queue_pair.receive(context, &[self.memory.sge(range)]) }
    }

    /// Sends part of the memory.
    ///
    /// # Errors
    /// Those of `QueuePair::send`.
    pub fn send(
        &self,
        context: u64,
        range: std::ops::Range<usize>,
        flags: RequestFlags,
    ) -> Result<(), Status> {
        // SAFETY: the memory lives as long as the end.
        unsafe { self.queue_pair.send(context, &[self.memory.sge(range)], flags) }
    }

    /// Takes one completion, polling; fails the test when none comes.
    pub fn completion(&self) -> Completion {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(completion) = self.try_completion() {
                return completion;
            }
            assert!(Instant::now() < deadline, "no completion came");
            std::thread::yield_now();
        }
    }

    /// Takes one completion if there is one.
    pub fn try_completion(&self) -> Option<Completion> {
        let mut results = [Completion {
            status: Status::INTERNAL_ERROR,
            bytes_transferred: 0,
            queue_pair_context: 0,
            request_context: 0,
            request_type: RequestType::Receive,
        }];
        (self.completion_queue.results(&mut results) == 1).then(|| results[0])
    }

    /// Takes one completion, waiting for notifications; fails the test when the notification fails.
    pub fn notified_completion(&self) -> Completion {
        loop {
            if let Some(completion) = self.try_completion() {
                return completion;
            }
            let mut operation = self.operation();
            // SAFETY: waited for below.
            let status = unsafe { self.completion_queue.notify(NotifyType::Any, operation.ov()) };
            assert_eq!(status, Status::PENDING);
            assert_eq!(operation.wait(), Status::SUCCESS);
        }
    }

    /// Disconnects, and waits until that has completed.
    pub fn disconnect(&self) -> Status {
        let mut operation = self.operation();
        // SAFETY: waited for.
        match unsafe { self.connector.disconnect(operation.ov()) } {
            Ok(()) => operation.wait(),
            Err(status) => status,
        }
    }
}

/// A listener on a free port of `address`, and its address.
pub fn listen(adapter: &Arc<Adapter>, file: &Arc<File>, address: SockAddr) -> (Arc<Listener>, SockAddr) {
    let listener = adapter.create_listener(file).unwrap();
    listener.bind(address).unwrap();
    listener.listen(0).unwrap();
    let at = listener.local_address().unwrap();
    (listener, at)
}

/// Connects `active`, which is bound, with `passive`, by a listener and its address. `before_accept` is called when the connection request
/// has arrived.
pub fn establish(
    active: &End,
    passive: &End,
    (listener, at): (&Listener, SockAddr),
    [asked, answered]: [Offer<'_>; 2],
    before_accept: impl FnOnce(),
) {
    let (mut request, mut accept) = (passive.operation(), passive.operation());
    let (mut connect, mut complete) = (active.operation(), active.operation());
    // SAFETY: all four are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, asked, connect.ov()).unwrap();
        assert_eq!(request.wait_beside(&mut connect), Status::SUCCESS, "GetConnectionRequest");
        before_accept();
        passive.connector.accept(&passive.queue_pair, answered, accept.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS, "Connect");
        active.connector.complete_connect(complete.ov()).unwrap();
    }
    assert_eq!(complete.wait(), Status::SUCCESS, "CompleteConnect");
    assert_eq!(accept.wait(), Status::SUCCESS, "Accept");
}

/// Two connected ends.
pub struct Pair {
    /// The side that called `Connect`. Its queue pair's context is 1.
    pub active: End,
    /// The side that called `Accept`. Its queue pair's context is 2.
    pub passive: End,
}

impl Pair {
    /// Connects two ends of the device under test.
    pub fn new() -> Pair {
        Pair::at(crate::address())
    }

    /// Connects two ends at `address`.
    pub fn at(address: SockAddr) -> Pair {
        let adapter = crate::adapter();
        Pair::connect(
            End::new(&adapter, 1),
            End::new(&adapter, 2),
            address,
            Offer::default(),
            Offer::default(),
        )
    }

    /// Connects two new ends, with the private data `asked` and `answered`.
    pub fn connect(
        active: End,
        passive: End,
        address: SockAddr,
        asked: Offer<'_>,
        answered: Offer<'_>,
    ) -> Pair {
        let (listener, at) = listen(&passive.adapter, &passive.file, address);
        active.connector.bind(address).unwrap();
        establish(&active, &passive, (&listener, at), [asked, answered], || ());
        Pair { active, passive }
    }
}

impl Default for Pair {
    fn default() -> Pair {
        Pair::new()
    }
}
