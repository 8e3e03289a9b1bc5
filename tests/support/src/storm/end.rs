//! One end of a connection of the storm: its objects, its memory, and its posted requests.

use super::inbox::Inbox;
use super::ledger::{Ledger, Outcome, Posted};
use super::memory::{Memory, SLOT, Slots, WORDS};
use super::parts::{File, Held, Part};
use super::pool::Pool;
use super::queue::Queue;
use crate::client;
use crate::com::{
    Adapter, Com, Connector, MemoryRegion, MemoryWindow, QueuePair, SharedReceiveQueue, create,
};
use crate::watched::{Ports, Way};
use ndcompat::Status;
use ndcompat::types::{Completion, RequestFlags, RequestType, Sge};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use win32::object::RawHandle;

/// Slots for messages, the first half of them to receive. As many more follow, which the peer may read and write.
const SLOTS: usize = 64;
/// The depth of queues.
pub const DEPTH: u32 = 16;
/// How an end is set up.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Receives are posted to a shared receive queue, its own or that of its pool.
    pub shared: bool,
    /// Each queue of the queue pair has a completion queue of its own.
    pub two_queues: bool,
    /// Each object is on a file of its own.
    pub many_files: bool,
    /// Threads take results concurrently. Their order is then unknown.
    pub free_polling: bool,
    /// How requests notify, for each file in turn.
    pub ways: [Way; 3],
}

/// One end. Its memory goes after its objects, whose order [`parts`](End::parts) leaves to the caller.
pub struct End {
    /// The connector.
    pub connector: Held<Connector>,
    queue_pair: Held<QueuePair>,
    window: Held<MemoryWindow>,
    /// The registration of the memory, with all access flags.
    pub region: Held<MemoryRegion>,
    /// The shared receive queue, if it has one.
    pub shared: Option<Arc<Com<SharedReceiveQueue>>>,
    /// The completion queue of receives, then that of the initiator queue if it has one of its own.
    pub queues: Vec<Arc<Queue>>,
    /// What it shares with other ends.
    pool: Option<Arc<Pool>>,
    /// The files of the connector, of the queues, and of the region.
    pub files: Vec<File>,
    memory: Arc<Memory>,
    local: Slots,
    remote: Slots,
    /// What it has posted besides receives.
    pub initiated: Arc<Ledger>,
    /// Where it receives.
    pub inbox: Arc<Inbox>,
    /// For each thread: contexts used, messages sent, messages received from the peer.
    contexts: Vec<AtomicU32>,
    sent: Vec<AtomicU32>,
    heard: Vec<AtomicU32>,
    /// A `NotifyDisconnect` was started.
    pub awaits_disconnect: AtomicBool,
    /// The adapter of the objects.
    pub adapter: Held<Adapter>,
    /// Shared by both ends: the connection is being ended.
    pub ending: Arc<AtomicBool>,
    /// The most bytes that may be sent inline.
    inline: usize,
    name: u32,
}

impl End {
    /// An end with the number `name`, used by `threads` threads.
    pub fn new(
        adapter: &Com<Adapter>,
        ports: &Ports,
        shape: Shape,
        pool: Option<Arc<Pool>>,
        name: u32,
        threads: usize,
        ending: Arc<AtomicBool>,
    ) -> End {
        let counters = || (0..threads).map(|_| AtomicU32::new(0)).collect();
        let files: Vec<_> = (0..if shape.many_files { 3 } else { 1 })
            .map(|at| {
                let file = File(client::file(adapter), shape.ways[at]);
                ports.bind(file.0, file.1);
                file
            })
            .collect();
        let inline = client::info(adapter).inline_request_threshold.min(64);
        let on = |at: usize| files.get(at).unwrap_or(&files[0]);
        let own_queue = || Queue::new(adapter, (on(1).0, on(1).1), 2 * DEPTH, 1, shape.free_polling);
        let mut queues = vec![pool.as_ref().map_or_else(own_queue, |pool| pool.queue.clone())];
        if shape.two_queues {
            queues.push(own_queue());
        }
        let receives = queues[0].object.as_ptr();
        let initiated = queues.last().expect("one at least").object.as_ptr();
        let shared = shape.shared.then(|| match &pool {
            Some(pool) => pool.shared.clone(),
            // SAFETY: `create` passes an id and a place for the object.
            None => Arc::new(made(create(|iid, out| unsafe {
                adapter.create_shared_receive_queue(iid, on(1).0, DEPTH, 1, 0, 0, 0, out)
            }))),
        });
        let memory = Arc::new(Memory::new(2 * SLOTS));
        let inbox = match &pool {
            Some(pool) if shape.shared => pool.inbox.clone(),
            _ => Inbox::new(memory.clone(), 0..SLOTS / 2, threads, false),
        };
        let context = name as usize as *mut c_void;
        // SAFETY: `create` passes an id and a place for the object; the queues live, and the memory goes after its region.
        unsafe {
            let queue_pair = create(|iid, out| match &shared {
                Some(shared) => adapter.create_queue_pair_with_srq(
                    iid,
                    receives,
                    initiated,
                    shared.as_ptr(),
                    context,
                    DEPTH,
                    2,
                    inline,
                    out,
                ),
                None => adapter
                    .create_queue_pair(iid, receives, initiated, context, DEPTH, DEPTH, 2, 2, inline, out),
            });
            End {
                connector: Held::new(create(|iid, out| adapter.create_connector(iid, on(0).0, out))),
                queue_pair: Held::new(queue_pair),
                window: Held::new(create(|iid, out| adapter.create_memory_window(iid, out))),
                region: Held::new(create(|iid, out| adapter.create_memory_region(iid, on(2).0, out))),
                shared,
                queues,
                pool,
                memory,
                local: Slots::new(SLOTS / 2..SLOTS),
                remote: Slots::new(SLOTS..2 * SLOTS),
                initiated: Arc::new(Ledger::new(threads)),
                inbox,
                contexts: counters(),
                sent: counters(),
                heard: counters(),
                awaits_disconnect: AtomicBool::new(false),
                adapter: Held::new(adapter.cast()),
                ending,
                inline: inline as usize,
                name,
                files,
            }
        }
    }

    /// Its objects and files, to be released in any order before the end is dropped.
    pub fn parts(&mut self) -> Vec<Part> {
        let mut parts: Vec<Part> = vec![
            self.connector.take(),
            self.queue_pair.take(),
            self.window.take(),
            self.region.take(),
            self.adapter.take(),
            Box::new(self.shared.take()),
            Box::new(self.pool.take()),
        ];
        parts.extend(self.queues.drain(..).map(|queue| Box::new(queue) as Part));
        parts.extend(self.files.drain(..).map(|file| Box::new(file) as Part));
        parts
    }

    /// How the file of the connector (0), of the queues (1) or of the region (2) notifies.
    pub fn way(&self, at: usize) -> Way {
        self.files.get(at).unwrap_or(&self.files[0]).1
    }

    /// That file.
    pub fn file(&self, at: usize) -> RawHandle {
        self.files.get(at).unwrap_or(&self.files[0]).0
    }

    /// Its number, which is the context of its queue pair.
    pub fn name(&self) -> u32 {
        self.name
    }

    /// The memory is registered.
    pub fn is_registered(&self) {
        if !self.inbox.is_shared() {
            // SAFETY: no arguments.
            self.inbox.token.store(unsafe { self.region.get_local_token() }, Ordering::Release);
        }
    }

    /// The arguments of `Register`: address and length.
    pub fn bytes(&self) -> (*const c_void, usize) {
        (self.memory.address(0) as *const c_void, 2 * SLOTS * SLOT)
    }

    /// The queue pair, for `Connect` and `Accept`.
    pub fn queue_pair(&self) -> *mut c_void {
        self.queue_pair.as_ptr()
    }

    /// What it says when it connects, accepts or rejects.
    pub fn words(&self) -> [u8; 40] {
        std::array::from_fn(|at| (self.name >> (8 * (at % 4))) as u8 ^ at as u8)
    }

    /// Rejects a connection request, or the answer to one.
    pub fn say_no(&self) -> Status {
        let said = self.words();
        // SAFETY: the data has that length.
        unsafe { self.connector.reject(said.as_ptr().cast(), said.len() as u32) }
    }

    /// The private data that its peer has sent.
    fn told(&self) -> [u8; 40] {
        let (mut data, mut length) = ([0_u8; 512], 512);
        // SAFETY: there is room for as many bytes as told.
        let status = unsafe { self.connector.get_private_data(data.as_mut_ptr().cast(), &mut length) };
        assert_eq!(status, Status::SUCCESS, "GetPrivateData");
        // Some devices fill it up.
        assert!(length >= 40, "{length} bytes of private data");
        *data.first_chunk().expect("as many")
    }

    /// Asserts that the private data is what `peer` says.
    pub fn is_told_by(&self, peer: &End) {
        assert_eq!(self.told(), peer.words(), "the private data of another");
    }

    /// The number of the end whose connection request it has got.
    pub fn asker(&self) -> u32 {
        let told = self.told();
        u32::from_le_bytes(std::array::from_fn(|at| told[at] ^ at as u8))
    }

    /// A message as a list of one or two parts.
    fn list(&self, slot: usize, words: usize, number: u32) -> Vec<Sge> {
        parts(self.sge(slot, words), number)
    }

    fn sge(&self, slot: usize, words: usize) -> Sge {
        // SAFETY: the region lives.
        let token = unsafe { self.region.get_local_token() };
        Sge { buffer: self.memory.address(slot), length: words as u32 * 4, token }
    }

    /// The remote token of the region or of the window.
    fn token(&self, of_window: bool) -> u32 {
        // SAFETY: both live.
        unsafe { if of_window { self.window.get_remote_token() } else { self.region.get_remote_token() } }
    }

    /// Posts a request and records it in the ledger; frees its slots if posting fails.
    fn post(
        &self,
        thread: usize,
        request: Request,
        post: impl FnOnce(*mut c_void) -> Status,
    ) -> Result<Arc<Outcome>, Status> {
        let Request { kind, slot, peer_slot, number, silent } = request;
        let context = Ledger::context(thread, self.contexts[thread].fetch_add(1, Ordering::Relaxed));
        let outcome = Arc::new(Outcome::default());
        let posted = Posted { context, kind, silent, slot, peer_slot, number, outcome: outcome.clone() };
        match self.initiated.post(posted, || post(context as *mut c_void)) {
            Ok(()) => Ok(outcome),
            Err((status, posted)) => {
                if let Some((slot, _)) = posted.slot {
                    self.local.give(slot);
                }
                let full = status == Status::NO_MORE_ENTRIES;
                assert!(full || self.is_ending(), "{kind:?} is refused: {status}");
                Err(status)
            }
        }
    }

    /// Whether the connection is being ended, so that requests may fail.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Posts a receive.
    pub fn receive(&self, thread: usize) {
        let inbox = &self.inbox;
        let Some(slot) = inbox.slots.take() else { return };
        let token = inbox.token.load(Ordering::Acquire);
        let whole = Sge { buffer: inbox.memory.address(slot), length: SLOT as u32, token };
        let context = inbox.context(thread);
        let list = parts(whole, context as u32);
        let posted = Posted {
            context,
            kind: RequestType::Receive,
            silent: false,
            slot: Some((slot, WORDS)),
            peer_slot: None,
            number: 0,
            outcome: Arc::default(),
        };
        let context = context as *mut c_void;
        // SAFETY: the memory lives as long as the end.
        let posted = inbox.ledger.post(posted, || unsafe {
            match &self.shared {
                Some(shared) => shared.receive(context, &whole, 1),
                None => self.queue_pair.receive(context, list.as_ptr(), list.len() as u32),
            }
        });
        match posted {
            Ok(()) => inbox.allow(),
            Err((status, _)) => {
                inbox.slots.give(slot);
                let full = status == Status::NO_MORE_ENTRIES;
                assert!(full || self.is_ending(), "a receive is refused: {status}");
            }
        }
    }

    /// Sends a message of `words` words to `peer`, if `peer` has a receive posted for it. Returns its number.
    pub fn send(&self, peer: &End, thread: usize, words: usize, flags: RequestFlags) -> Option<u32> {
        if !peer.inbox.is_allowed() {
            return None;
        }
        let Some(slot) = self.local.take() else {
            peer.inbox.allow();
            return None;
        };
        // Only this thread counts these messages.
        let number = self.sent[thread].load(Ordering::Relaxed) + 1;
        self.memory.fill(slot, words, self.sender(thread), number);
        let list = self.list(slot, words, number);
        let silent = flags.contains(RequestFlags::SILENT_SUCCESS);
        let inline = words * 4 <= self.inline && number % 4 == 1;
        let flags = if inline { flags | RequestFlags::INLINE } else { flags };
        let request = Request { slot: Some((slot, words)), silent, ..Request::new(RequestType::Send) };
        let posted = self.post(thread, request, |context| {
            // SAFETY: the memory lives as long as the end.
            let status = unsafe { self.queue_pair.send(context, list.as_ptr(), list.len() as u32, flags) };
            if inline && status == Status::SUCCESS {
                // It was copied, and the memory is the program's again.
                self.memory.fill(slot, words, !0, !0);
            }
            status
        });
        match posted {
            Ok(_) => {
                self.sent[thread].store(number, Ordering::Relaxed);
                Some(number)
            }
            Err(_) => {
                peer.inbox.allow();
                None
            }
        }
    }

    /// Whether it has received a message of the peer's.
    pub fn has_heard(&self, thread: usize, number: u32) -> bool {
        self.heard[thread].load(Ordering::Relaxed) >= number
    }

    fn sender(&self, thread: usize) -> u32 {
        self.name << 8 | thread as u32
    }

    /// Writes to the peer's memory, then reads it back, which must find what was written. Returns the outcomes of both. By the peer's
    /// window, it takes results until there is room for the read, which shows that the write has arrived.
    pub fn write_and_read(
        &self,
        peer: &End,
        thread: usize,
        words: usize,
        flags: RequestFlags,
        by_window: bool,
    ) -> (Option<Arc<Outcome>>, Option<Arc<Outcome>>) {
        let Some(target) = peer.remote.take() else { return (None, None) };
        let (address, token) = (peer.memory.address(target), peer.token(by_window));
        let Some(source) = self.local.take() else {
            peer.remote.give(target);
            return (None, None);
        };
        // Unique among writes.
        let number = self.contexts[thread].load(Ordering::Relaxed);
        self.memory.fill(source, words, self.sender(thread), number);
        let list = self.list(source, words, number);
        let silent = flags.contains(RequestFlags::SILENT_SUCCESS);
        let request = Request { slot: Some((source, words)), silent, ..Request::new(RequestType::Write) };
        // SAFETY: the memory of both ends lives as long as the pair.
        let written = self.post(thread, request, |context| unsafe {
            self.queue_pair.write(context, list.as_ptr(), list.len() as u32, address, token, flags)
        });
        if written.is_err() {
            peer.remote.give(target);
            return (None, None);
        }
        // The target is in use from here on. If no read follows, the slot is not used again.
        loop {
            if let Some(result) = self.local.take() {
                let sge = self.sge(result, words);
                let request = Request {
                    slot: Some((result, words)),
                    peer_slot: Some(target),
                    number,
                    ..Request::new(RequestType::Read)
                };
                // SAFETY: the memory of both ends lives as long as the pair.
                let read = self.post(thread, request, |context| unsafe {
                    self.queue_pair.read(context, &sge, 1, address, token, flags & RequestFlags::READ_FENCE)
                });
                if read.is_ok() {
                    return (written.ok(), read.ok());
                }
            }
            if !by_window || self.is_ending() {
                return (written.ok(), None);
            }
            self.poll();
            std::thread::yield_now();
        }
    }

    /// Binds the window to the half of the memory that the peer may access.
    pub fn bind(&self, thread: usize) -> Option<Arc<Outcome>> {
        let buffer = self.memory.address(SLOTS) as *const c_void;
        let allow = RequestFlags::ALLOW_READ | RequestFlags::ALLOW_WRITE;
        let (region, window) = (self.region.as_ptr(), self.window.as_ptr());
        // SAFETY: the objects are this end's.
        let bound = self.post(thread, Request::new(RequestType::Bind), |context| unsafe {
            self.queue_pair.bind(context, region, window, buffer, SLOTS * SLOT, allow)
        });
        bound.ok()
    }

    /// Invalidates the window.
    pub fn invalidate(&self, thread: usize) -> Option<Arc<Outcome>> {
        let window = self.window.as_ptr();
        // SAFETY: the window is this end's.
        let posted = self.post(thread, Request::new(RequestType::Invalidate), |context| unsafe {
            self.queue_pair.invalidate(context, window, RequestFlags::empty())
        });
        posted.ok()
    }

    /// Cancels the outstanding requests.
    pub fn flush(&self) -> Status {
        // SAFETY: no arguments.
        unsafe { self.queue_pair.flush() }
    }

    /// Takes results of its queues, of other ends, too, if those share one. Returns their number.
    pub fn poll(&self) -> usize {
        self.queues.iter().map(|queue| queue.poll()).sum()
    }

    /// Checks a result. `over` are the requests that it reports. `ordered`: no other thread takes results meanwhile.
    pub fn check(&self, peer: &End, result: &Completion, over: &[Posted], ordered: bool) {
        let (kind, status) = (result.request_type, result.status);
        assert!(
            status == Status::SUCCESS || self.is_ending(),
            "{kind:?} ends with {status} on a good connection"
        );
        let reported = over.last().expect("the request itself");
        if status == Status::SUCCESS {
            match (kind, reported.slot) {
                (RequestType::Receive, Some((slot, _))) => {
                    self.hear(peer, slot, result.bytes_transferred, ordered);
                }
                (RequestType::Read, Some((slot, words))) => {
                    let (_, number) = self.memory.read(slot, words);
                    assert_eq!(number, reported.number, "what was read is not what was written");
                }
                _ => {}
            }
        }
        for posted in over.iter().filter(|posted| posted.kind != RequestType::Receive) {
            if let Some((slot, _)) = posted.slot {
                self.local.give(slot);
            }
            if let Some(slot) = posted.peer_slot {
                peer.remote.give(slot);
            }
        }
    }

    /// Checks a received message.
    fn hear(&self, peer: &End, slot: usize, bytes: u32, ordered: bool) {
        let (sender, number) = self.inbox.memory.read(slot, bytes as usize / 4);
        let thread = (sender & 0xFF) as usize;
        assert_eq!(sender >> 8, peer.name, "a message of a stranger");
        let before = self.heard[thread].fetch_max(number, Ordering::Relaxed);
        assert!(
            !ordered || number == before + 1,
            "message {number} after message {before} of thread {thread}"
        );
    }

    /// Whether threads take results of its initiator queue concurrently.
    pub fn takes_any_order(&self) -> bool {
        self.queues.last().expect("one at least").free_polling
    }

    /// The number of requests that must still be reported, and the first of them. Receives of a shared receive queue need not be.
    pub fn outstanding(&self) -> (usize, Option<(RequestType, u64)>) {
        let (initiated, first) = self.initiated.outstanding();
        let (receives, second) =
            if self.shared.is_none() { self.inbox.ledger.outstanding() } else { (0, None) };
        (initiated + receives, first.or(second))
    }
}

/// A buffer as a list of one or two parts.
fn parts(whole: Sge, number: u32) -> Vec<Sge> {
    match 4 * (number % (whole.length / 4)) {
        first if first > 0 && number.is_multiple_of(3) => {
            let rest = Sge { buffer: whole.buffer + u64::from(first), length: whole.length - first, ..whole };
            vec![Sge { length: first, ..whole }, rest]
        }
        _ => vec![whole],
    }
}

fn made<I>(made: Result<I, Status>) -> I {
    made.unwrap_or_else(|status| panic!("an object is not made: {status}"))
}

/// A request to post.
struct Request {
    kind: RequestType,
    slot: Option<(usize, usize)>,
    peer_slot: Option<usize>,
    number: u32,
    silent: bool,
}

impl Request {
    fn new(kind: RequestType) -> Request {
        Request { kind, slot: None, peer_slot: None, number: 0, silent: false }
    }
}
