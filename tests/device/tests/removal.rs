//! A device that is deleted while a program uses it, next to one that stays. The emulator's goes when a file comes.

use ndcompat::connector::Offer;
use ndcompat::types::{NotifyType, RegionFlags, RequestFlags};
use ndcompat::{
    Adapter, Connector, Listener, MemoryRegion, QueuePairConfig, SharedReceiveQueueConfig, Status, provider,
};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::lab::{Device, two_kinds};
use support::{End, Operation, Pair, is_emulator, listen, shows};

#[test]
fn all_that_is_pending_ends_and_the_other_adapter_stays() {
    let [device, other] = two_kinds();
    // The emulator is the only one of its kind.
    let other = (!is_emulator()).then_some(other);
    let stays = other.as_ref().map(pair_at);
    let adapter = device.adapter();
    let pair = pair_at_adapter(&adapter, &device);
    let mut pending = Pending::start(&adapter, &device, &pair);
    let waiter = wait_in_a_thread(&pair.passive);
    let (mut registration, region, memory) = begin_registration(&adapter);
    // Last, because the silence of the peer ends it, too, on siw after ten seconds.
    pending.connect(&adapter, &device);
    let deletion = device.delete();

    pending.assert_removed();
    // Verbs still work.
    assert_eq!(registration.wait(), Status::SUCCESS, "a registration under way");
    assert_eq!(waiter.join().unwrap(), Status::DEVICE_REMOVED, "a thread blocked in the wait");
    for end in [&pair.active, &pair.passive] {
        let flushed = end.completion();
        assert_eq!((flushed.status, flushed.request_context), (Status::CANCELED, 5));
    }
    assert_only_cleaning_up_works(&adapter, &device, &pair);
    stays.iter().for_each(exchange);
    assert!(provider::addresses().unwrap().iter().all(|address| address.ip() != device.address.ip()));
    assert_eq!(provider::resolve_address(device.address), Err(Status::INVALID_ADDRESS));
    other.iter().for_each(|other| exchange(&pair_at(other)));

    drop((registration, region, memory));
    drop(pending);
    drop(pair);
    drop(adapter);
    assert_ends(deletion);
    device.restore();
    exchange(&pair_at(&device));
    stays.iter().for_each(exchange);
}

/// Starts to register enough memory for the registration to continue after the call.
fn begin_registration(adapter: &Arc<Adapter>) -> (Operation, Arc<MemoryRegion>, Vec<u8>) {
    let file = adapter.create_overlapped_file().unwrap();
    let region = adapter.create_memory_region(&file).unwrap();
    let mut memory = vec![0; 128 << 20];
    let mut operation = Operation::on(&file);
    let flags = RegionFlags::ALLOW_LOCAL_WRITE;
    // SAFETY: the memory is kept until the operation has ended.
    let status = unsafe { region.register(memory.as_mut_ptr(), memory.len(), flags, operation.ov()) };
    assert_eq!(status, Status::PENDING);
    assert_eq!(operation.status(), Status::PENDING);
    (operation, region, memory)
}

/// The requests that are pending when the device is removed.
struct Pending {
    /// Requests that complete with `ND_DEVICE_REMOVED`.
    removed: Vec<(&'static str, Operation)>,
    notices: Vec<Operation>,
    listeners: Vec<Arc<Listener>>,
    connectors: Vec<Arc<Connector>>,
    ends: Vec<End>,
    _shared: Arc<ndcompat::SharedReceiveQueue>,
}

impl Pending {
    fn start(adapter: &Arc<Adapter>, device: &Device, pair: &Pair) -> Pending {
        let file = &pair.active.file;
        let mut removed = Vec::new();
        let mut begin = |what, start: &mut dyn FnMut(&mut Operation)| {
            let mut operation = Operation::on(file);
            start(&mut operation);
            removed.push((what, operation));
        };
        for end in [&pair.active, &pair.passive] {
            end.receive(5, 0..64).unwrap();
        }
        for kind in [NotifyType::Any, NotifyType::Solicited, NotifyType::Errors] {
            // SAFETY: the operations live until they have completed.
            begin("IND2CompletionQueue::Notify", &mut |operation| unsafe {
                let status = pair.active.completion_queue.notify(kind, operation.ov());
                assert_eq!(status, Status::PENDING);
            });
        }
        let config = SharedReceiveQueueConfig { depth: 8, max_sge: 1, threshold: 4, affinity: (0, 0) };
        let shared = adapter.create_shared_receive_queue(file, config).unwrap();
        for context in 0..8 {
            // SAFETY: the memory lives as long as the pair.
            unsafe { shared.receive(context, &[pair.active.memory.sge(0..64)]).unwrap() };
        }
        // SAFETY: the operation owns the OVERLAPPED, and outlives the request.
        begin("IND2SharedReceiveQueue::Notify", &mut |operation| unsafe {
            shared.notify(operation.ov()).unwrap();
        });

        let mut listeners = Vec::new();
        let mut connectors = Vec::new();
        for address in [device.address, "0.0.0.0:0".parse::<std::net::SocketAddr>().unwrap().into()] {
            let (listener, _) = listen(adapter, file, address);
            let connector = adapter.create_connector(file).unwrap();
            // SAFETY: the operation owns the OVERLAPPED, and outlives the request.
            begin("IND2Listener::GetConnectionRequest", &mut |operation| unsafe {
                listener.connection_request(&connector, operation.ov()).unwrap();
            });
            listeners.push(listener);
            connectors.push(connector);
        }
        let notices = [&pair.active, &pair.passive].map(|end| {
            let mut notice = end.operation();
            // SAFETY: the operation owns the OVERLAPPED, and outlives the request.
            unsafe { end.connector.notify_disconnect(notice.ov()).unwrap() };
            notice
        });
        for (what, operation) in &mut removed {
            assert_eq!(operation.status(), Status::PENDING, "{what}");
        }
        Pending { removed, notices: notices.into(), listeners, connectors, ends: Vec::new(), _shared: shared }
    }

    /// Starts a connection whose peer does not answer.
    fn connect(&mut self, adapter: &Arc<Adapter>, device: &Device) {
        let asking = End::new(adapter, 3);
        let (listener, at) = listen(adapter, &asking.file, device.address);
        asking.connector.bind(device.address).unwrap();
        let connector = adapter.create_connector(&asking.file).unwrap();
        let mut asked = Operation::on(&asking.file);
        let mut connecting = Operation::on(&asking.file);
        let (queue_pair, offer) = (&asking.queue_pair, Offer::default());
        // SAFETY: the operations own their OVERLAPPEDs, and outlive the requests.
        unsafe {
            listener.connection_request(&connector, asked.ov()).unwrap();
            asking.connector.connect(queue_pair, at, offer, connecting.ov()).unwrap();
        }
        assert_eq!(asked.wait(), Status::SUCCESS);
        assert_eq!(connecting.status(), Status::PENDING, "IND2Connector::Connect");
        self.removed.push(("IND2Connector::Connect", connecting));
        self.listeners.push(listener);
        self.connectors.push(connector);
        self.ends.push(asking);
    }

    fn assert_removed(&mut self) {
        for (what, operation) in &mut self.removed {
            shows(what, operation.poll(), Status::DEVICE_REMOVED);
            shows("IND2Overlapped::GetOverlappedResult", operation.wait(), Status::DEVICE_REMOVED);
        }
        for notice in &mut self.notices {
            shows("IND2Connector::NotifyDisconnect", notice.poll(), Status::SUCCESS);
        }
    }
}

/// Waits for a notification the way most programs do. Its request is pending when this returns.
fn wait_in_a_thread(end: &End) -> std::thread::JoinHandle<Status> {
    let (queue, file) = (end.completion_queue.clone(), end.file.clone());
    let (begun, begin) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let mut operation = Operation::on(&file);
        // SAFETY: waited for.
        begun.send(unsafe { queue.notify(NotifyType::Any, operation.ov()) }).unwrap();
        operation.wait()
    });
    assert_eq!(begin.recv(), Ok(Status::PENDING));
    waiter
}

fn assert_only_cleaning_up_works(adapter: &Arc<Adapter>, device: &Device, pair: &Pair) {
    let removed = Status::DEVICE_REMOVED;
    let refused = |method, error: Option<Status>| shows(method, error.unwrap_or(Status::SUCCESS), removed);
    let End { file, completion_queue, connector, memory, queue_pair, .. } = &pair.active;
    let mut operation = Operation::on(file);
    let ov = operation.ov();
    assert_eq!(adapter.info().err(), Some(removed), "Query");
    assert_eq!(adapter.addresses().err(), Some(removed), "QueryAddressList");
    refused("IND2Adapter::CreateOverlappedFile", adapter.create_overlapped_file().err());
    refused("IND2Adapter::CreateCompletionQueue", adapter.create_completion_queue(file, 4, (0, 0)).err());
    refused("IND2Adapter::CreateMemoryRegion", adapter.create_memory_region(file).err());
    refused("IND2Adapter::CreateMemoryWindow", adapter.create_memory_window().err());
    refused("IND2Adapter::CreateConnector", adapter.create_connector(file).err());
    refused("IND2Adapter::CreateListener", adapter.create_listener(file).err());
    let shared = SharedReceiveQueueConfig { depth: 1, max_sge: 1, threshold: 0, affinity: (0, 0) };
    refused("IND2Adapter::CreateSharedReceiveQueue", adapter.create_shared_receive_queue(file, shared).err());
    let config = QueuePairConfig {
        receive_completion_queue: completion_queue.clone(),
        initiator_completion_queue: completion_queue.clone(),
        context: 0,
        shared_receive_queue: None,
        receive_queue_depth: 1,
        initiator_queue_depth: 1,
        max_receive_sge: 1,
        max_initiator_sge: 1,
        inline_data_size: 0,
    };
    refused("IND2Adapter::CreateQueuePair", adapter.create_queue_pair(config).err());
    refused("IND2CompletionQueue::Resize", completion_queue.resize(8).err());
    refused("IND2Connector::Bind", connector.bind(device.address).err());
    refused("IND2Connector::Reject", connector.reject(b"").err());
    // SAFETY: all complete before they return, if they complete at all.
    unsafe {
        shows("IND2CompletionQueue::Notify", completion_queue.notify(NotifyType::Any, ov), removed);
        let offer = Offer::default();
        refused("IND2Connector::Connect", connector.connect(queue_pair, device.address, offer, ov).err());
        refused("IND2Connector::CompleteConnect", connector.complete_connect(ov).err());
        refused("IND2Connector::Accept", connector.accept(queue_pair, offer, ov).err());
        refused("IND2Connector::Disconnect", connector.disconnect(ov).err());
        let (start, length) = (memory.bytes.as_ptr().cast_mut(), 64);
        let registered = memory.region.register(start, length, RegionFlags::ALLOW_LOCAL_WRITE, ov);
        shows("IND2MemoryRegion::Register", registered, removed);

        // Calls that release, and those that need no device.
        assert_eq!(memory.region.deregister(ov), Status::PENDING);
        assert_eq!(operation.wait(), Status::SUCCESS);
    }
    queue_pair.flush().unwrap();
    assert_eq!(pair.active.send(6, 0..8, RequestFlags::SOLICIT), Ok(()));
    let late = pair.active.completion();
    assert_eq!((late.status, late.request_context), (Status::CANCELED, 6));
}

fn pair_at(device: &Device) -> Pair {
    pair_at_adapter(&device.adapter(), device)
}

fn pair_at_adapter(adapter: &Arc<Adapter>, device: &Device) -> Pair {
    let (active, passive) = (End::new(adapter, 1), End::new(adapter, 2));
    Pair::connect(active, passive, device.address, Offer::default(), Offer::default())
}

fn exchange(pair: &Pair) {
    pair.passive.receive(2, 0..64).unwrap();
    pair.active.send(1, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!(pair.active.notified_completion().status, Status::SUCCESS);
    assert_eq!(pair.passive.notified_completion().status, Status::SUCCESS);
}

/// Asserts that the kernel deletes the device, once the last program has closed it.
fn assert_ends(mut deletion: Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while deletion.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "something keeps the device");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(deletion.wait().unwrap().success());
}
