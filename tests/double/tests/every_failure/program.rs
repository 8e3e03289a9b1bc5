//! A program that makes, uses and releases an object of each kind.

use crate::LIMIT;
use crate::waiting::{Handle, Request, Stop, Waiter, Waiting, ok};
use double::failed_call;
use ndcompat::Status;
use ndcompat::types::{Completion, RequestFlags, RequestType};
use ndcompat::{RawSockAddr, SockAddr};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};
use support::address;
use support::client::{EVERYTHING, Ov};
use support::com::{
    self, Adapter, Com, CompletionQueue, Connector, Interface, Listener, MemoryRegion, MemoryWindow,
    QueuePair, SharedReceiveQueue, create,
};
use win32::object::RawHandle;

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;
/// `ND_CQ_NOTIFY_SOLICITED`
const SOLICITED: u32 = 2;
/// The peer may read and write the window.
const ALLOW: RequestFlags = RequestFlags::ALLOW_READ.union(RequestFlags::ALLOW_WRITE);
/// Bytes of registered memory of an end.
const BYTES: usize = 4096;

fn made<I: Interface>(method: &'static str, made: Result<Com<I>, Status>) -> Result<Com<I>, Stop> {
    made.map_err(|status| (method, status))
}

/// One end of a connection. Fields are released in the order of declaration.
struct End {
    connector: Com<Connector>,
    queue_pair: Com<QueuePair>,
    window: Com<MemoryWindow>,
    region: Com<MemoryRegion>,
    shared: Com<SharedReceiveQueue>,
    queue: Com<CompletionQueue>,
    memory: Box<[u8]>,
    file: Handle,
}

impl End {
    fn new(adapter: &Com<Adapter>, waiter: &mut Waiter) -> Result<End, Stop> {
        let mut file = RawHandle::NULL;
        // SAFETY: `create` passes an id and a place for the object; the objects are made in their order, and the memory goes
        // after its region.
        unsafe {
            ok("IND2Adapter::CreateOverlappedFile", adapter.create_overlapped_file(&mut file))?;
            let file = Handle(file);
            waiter.bind(file.0)?;
            let queue: Com<CompletionQueue> = made(
                "IND2Adapter::CreateCompletionQueue",
                create(|iid, out| adapter.create_completion_queue(iid, file.0, 32, 0, 0, out)),
            )?;
            let shared: Com<SharedReceiveQueue> = made(
                "IND2Adapter::CreateSharedReceiveQueue",
                create(|iid, out| adapter.create_shared_receive_queue(iid, file.0, 8, 1, 0, 0, 0, out)),
            )?;
            let region: Com<MemoryRegion> = made(
                "IND2Adapter::CreateMemoryRegion",
                create(|iid, out| adapter.create_memory_region(iid, file.0, out)),
            )?;
            let window = made(
                "IND2Adapter::CreateMemoryWindow",
                create(|iid, out| adapter.create_memory_window(iid, out)),
            )?;
            let (raw_queue, raw_shared) = (queue.as_ptr(), shared.as_ptr());
            let queue_pair = made(
                "IND2Adapter::CreateQueuePairWithSrq",
                create(|iid, out| {
                    adapter.create_queue_pair_with_srq(
                        iid,
                        raw_queue,
                        raw_queue,
                        raw_shared,
                        null_mut(),
                        8,
                        1,
                        0,
                        out,
                    )
                }),
            )?;
            let connector = made(
                "IND2Adapter::CreateConnector",
                create(|iid, out| adapter.create_connector(iid, file.0, out)),
            )?;
            let memory = vec![0; BYTES].into_boxed_slice();
            let end = End { connector, queue_pair, window, region, shared, queue, memory, file };
            let mut request = waiter.request()?;
            let status = end.region.register(end.memory.as_ptr().cast(), BYTES, EVERYTHING, request.ov.ptr());
            waiter.wait("IND2MemoryRegion::Register", status, &request, None)?;
            Ok(end)
        }
    }

    fn sge(&self, length: u32) -> ndcompat::types::Sge {
        // SAFETY: the region lives.
        let token = unsafe { self.region.get_local_token() };
        ndcompat::types::Sge { buffer: self.memory.as_ptr() as u64, length, token }
    }

    fn result(&self, method: &'static str) -> Result<(), Stop> {
        let mut result = Completion {
            status: Status::INTERNAL_ERROR,
            bytes_transferred: 0,
            queue_pair_context: 0,
            request_context: 0,
            request_type: RequestType::Receive,
        };
        let deadline = Instant::now() + LIMIT;
        // SAFETY: there is room for one result.
        while unsafe { self.queue.get_results(&mut result, 1) } == 0 {
            assert!(Instant::now() < deadline, "{method} has no result, after {:?}", failed_call());
            std::thread::yield_now();
        }
        ok(method, result.status)
    }
}

/// Deregisters, before the memory is freed. Failures are ignored.
impl Drop for End {
    fn drop(&mut self) {
        let mut ov = Ov::new();
        // SAFETY: waited for.
        let status = unsafe { self.region.deregister(ov.ptr()) };
        let deadline = Instant::now() + LIMIT;
        while status == Status::PENDING && ov.internal() == Status::PENDING {
            std::thread::sleep(Duration::from_millis(1));
            assert!(Instant::now() < deadline, "Deregister never completes, after {:?}", failed_call());
        }
    }
}

/// Creates, uses and releases everything; returns early if a method fails.
pub fn life(waiting: Waiting) -> Result<(), Stop> {
    let provider = com::provider();
    let mut waiter = Waiter { waiting, port: None };
    let (raw, length) = address().to_raw();
    let mut id = 0;
    // SAFETY: the address has the length told, and the id is a local; the requests outlive what `talk` makes, whose release
    // ends them.
    unsafe {
        let status = provider.resolve_address(raw.as_ptr().cast(), length, &mut id);
        ok("IND2Provider::ResolveAddress", status)?;
        let adapter: Com<Adapter> =
            made("IND2Provider::OpenAdapter", create(|iid, out| provider.open_adapter(iid, id, out)))?;
        // Requests outlive the objects, as they may still be pending when a method fails.
        let mut requests = Vec::new();
        for _ in 0..7 {
            requests.push(waiter.request()?);
        }
        let ended = talk(&adapter, &mut waiter, &mut requests);
        for request in &requests {
            assert_ne!(request.ov.internal(), Status::PENDING, "pending after the release, {ended:?}");
        }
        ended
    }
}

/// Connects two ends and moves data between them.
///
/// # Safety
/// None of `requests` is pending.
unsafe fn talk(adapter: &Com<Adapter>, waiter: &mut Waiter, requests: &mut [Request]) -> Result<(), Stop> {
    let [request, connect, accept, complete, notify, solicited, gone] = requests else {
        panic!("as many requests as there are methods")
    };
    let active = End::new(adapter, waiter)?;
    let passive = End::new(adapter, waiter)?;
    let (mut raw, mut length) = address().to_raw();
    // SAFETY: addresses and data have the lengths told, and objects live while they are used; requests are waited for, or end
    // with the release of their object.
    unsafe {
        let listener: Com<Listener> = made(
            "IND2Adapter::CreateListener",
            create(|iid, out| adapter.create_listener(iid, passive.file.0, out)),
        )?;
        ok("IND2Listener::Bind", listener.bind(raw.as_ptr().cast(), length))?;
        ok("IND2Listener::Listen", listener.listen(0))?;
        ok("IND2Connector::Bind", active.connector.bind(raw.as_ptr().cast(), length))?;
        length = size_of::<RawSockAddr>() as u32;
        let status = listener.get_local_address(raw.as_mut_ptr().cast(), &mut length);
        ok("IND2Listener::GetLocalAddress", status)?;
        let at = SockAddr::from_raw(raw.as_ptr().cast(), length as usize).expect("an address");

        let status = listener.get_connection_request(passive.connector.as_ptr(), request.ov.ptr());
        let asked = ("IND2Listener::GetConnectionRequest", status);
        if asked.1 != Status::PENDING {
            return Err(asked);
        }
        let (raw, length) = at.to_raw();
        let status = active.connector.connect(
            active.queue_pair.as_ptr(),
            raw.as_ptr().cast(),
            length,
            4,
            4,
            null(),
            0,
            connect.ov.ptr(),
        );
        if status != Status::PENDING {
            return Err(("IND2Connector::Connect", status));
        }
        waiter.wait(asked.0, asked.1, request, Some(("IND2Connector::Connect", connect)))?;
        let accepted =
            passive.connector.accept(passive.queue_pair.as_ptr(), 4, 4, null(), 0, accept.ov.ptr());
        if accepted != Status::PENDING {
            return Err(("IND2Connector::Accept", accepted));
        }
        waiter.wait("IND2Connector::Connect", status, connect, Some(("IND2Connector::Accept", accept)))?;
        let status = active.connector.complete_connect(complete.ov.ptr());
        waiter.wait("IND2Connector::CompleteConnect", status, complete, None)?;
        waiter.wait("IND2Connector::Accept", accepted, accept, None)?;

        let status = passive.queue.notify(ANY, notify.ov.ptr());
        if status != Status::PENDING {
            return Err(("IND2CompletionQueue::Notify", status));
        }
        // For soft-RoCE, the library looks for failed results by a timer.
        let asked = active.queue.notify(SOLICITED, solicited.ov.ptr());
        if asked != Status::PENDING {
            return Err(("IND2CompletionQueue::Notify", asked));
        }
        let noted = passive.connector.notify_disconnect(gone.ov.ptr());
        if noted != Status::PENDING {
            return Err(("IND2Connector::NotifyDisconnect", noted));
        }
        let (here, there) = (active.sge(64), passive.sge(64));
        let context = null_mut::<c_void>();
        ok("IND2SharedReceiveQueue::Receive", passive.shared.receive(context, &there, 1))?;
        ok("IND2QueuePair::Send", active.queue_pair.send(context, &here, 1, RequestFlags::empty()))?;
        active.result("ND2_RESULT::Send")?;
        waiter.wait("IND2CompletionQueue::Notify", status, notify, None)?;
        passive.result("ND2_RESULT::Receive")?;

        let status = passive.queue_pair.bind(
            context,
            passive.region.as_ptr(),
            passive.window.as_ptr(),
            passive.memory.as_ptr().cast(),
            1024,
            ALLOW,
        );
        ok("IND2QueuePair::Bind", status)?;
        passive.result("ND2_RESULT::Bind")?;
        let (target, token) = (passive.memory.as_ptr() as u64, passive.window.get_remote_token());
        ok(
            "IND2QueuePair::Write",
            active.queue_pair.write(context, &here, 1, target, token, RequestFlags::empty()),
        )?;
        active.result("ND2_RESULT::Write")?;
        ok(
            "IND2QueuePair::Read",
            active.queue_pair.read(context, &here, 1, target, token, RequestFlags::empty()),
        )?;
        active.result("ND2_RESULT::Read")?;
        let status = passive.queue_pair.invalidate(context, passive.window.as_ptr(), RequestFlags::empty());
        ok("IND2QueuePair::Invalidate", status)?;
        passive.result("ND2_RESULT::Invalidate")?;
        ok("IND2SharedReceiveQueue::Modify", passive.shared.modify(16, 0))?;
        ok("IND2CompletionQueue::Resize", passive.queue.resize(64))?;

        let mut ended = waiter.request()?;
        let status = active.connector.disconnect(ended.ov.ptr());
        waiter.wait("IND2Connector::Disconnect", status, &ended, None)?;
        waiter.wait("IND2Connector::NotifyDisconnect", noted, gone, None)?;
        ok("IND2QueuePair::Flush", passive.queue_pair.flush())
    }
}
