//! Two adapters of different kinds in one process.

use ndcompat::SockAddr;
use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags};
use ndcompat::{QueuePairConfig, SharedReceiveQueueConfig, Status, provider};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use support::lab::{Device, two_kinds};
use support::{End, Memory, Pair, listen};

fn devices() -> &'static [Device; 2] {
    static DEVICES: OnceLock<[Device; 2]> = OnceLock::new();
    DEVICES.get_or_init(two_kinds)
}

fn anywhere(port: u16) -> SockAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into()
}

#[test]
fn each_lists_its_own_addresses() {
    let adapters = devices().each_ref().map(Device::adapter);
    assert_ne!(adapters[0].info().unwrap().adapter_id, adapters[1].info().unwrap().adapter_id);
    assert_ne!(adapters[0].device_name(), adapters[1].device_name());
    for (adapter, device) in adapters.iter().zip(devices()) {
        let own = adapter.addresses().unwrap();
        assert!(own.contains(&device.address), "{own:?}");
        assert_eq!(provider::resolve_address(device.address), Ok(adapter.info().unwrap().adapter_id));
    }
    let [first, second] = adapters.each_ref().map(|adapter| adapter.addresses().unwrap());
    assert!(first.iter().all(|address| !second.contains(address)), "{first:?} {second:?}");
    let both = provider::addresses().unwrap();
    assert!(first.iter().chain(&second).all(|address| both.contains(address)), "{both:?}");
}

#[test]
fn both_work_at_the_same_time() {
    let pairs = devices().each_ref().map(|device| {
        let adapter = device.adapter();
        let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
        Pair::connect(active, passive, device.address, Offer::default(), Offer::default())
    });
    for round in 0..20 {
        for pair in &pairs {
            pair.passive.receive(round, 0..64).unwrap();
            pair.active.send(round, 0..64, RequestFlags::empty()).unwrap();
        }
        for end in pairs.iter().flat_map(|pair| [&pair.active, &pair.passive]) {
            let done = end.notified_completion();
            assert_eq!((done.status, done.request_context), (Status::SUCCESS, round));
        }
    }
}

#[test]
fn objects_of_one_are_refused_by_the_other() {
    let [mine, other] = devices().each_ref().map(Device::adapter);
    let (end, foreign) = (End::new(&mine, 1), End::new(&other, 2));
    let shared = SharedReceiveQueueConfig { depth: 1, max_sge: 1, threshold: 0, affinity: (0, 0) };
    let shared = other.create_shared_receive_queue(&foreign.file, shared).unwrap();
    let config = || QueuePairConfig {
        receive_completion_queue: end.completion_queue.clone(),
        initiator_completion_queue: end.completion_queue.clone(),
        context: 0,
        shared_receive_queue: None,
        receive_queue_depth: 1,
        initiator_queue_depth: 1,
        max_receive_sge: 1,
        max_initiator_sge: 1,
        inline_data_size: 0,
    };
    let queue = || foreign.completion_queue.clone();
    let create = |config| mine.create_queue_pair(config).err();
    assert_eq!(
        create(QueuePairConfig { receive_completion_queue: queue(), ..config() }),
        Some(Status::INVALID_PARAMETER_2)
    );
    assert_eq!(
        create(QueuePairConfig { initiator_completion_queue: queue(), ..config() }),
        Some(Status::INVALID_PARAMETER_3)
    );
    assert_eq!(
        create(QueuePairConfig { shared_receive_queue: Some(shared), ..config() }),
        Some(Status::INVALID_PARAMETER_4)
    );
    assert_eq!(create(config()), None, "its own are taken");

    let (listener, at) = listen(&mine, &end.file, devices()[0].address);
    end.connector.bind(devices()[0].address).unwrap();
    let mut operation = end.operation();
    // SAFETY: refused, so nothing becomes pending.
    unsafe {
        let (queue_pair, offer) = (&foreign.queue_pair, Offer::default());
        let connected = end.connector.connect(queue_pair, at, offer, operation.ov());
        assert_eq!(connected, Err(Status::INVALID_PARAMETER_1));
        let requested = listener.connection_request(&foreign.connector, operation.ov());
        assert_eq!(requested, Err(Status::INVALID_PARAMETER_1));
    }
    assert_eq!(foreign.connector.bind(devices()[0].address), Err(Status::INVALID_ADDRESS));
    let stranger = other.create_listener(&foreign.file).unwrap();
    assert_eq!(stranger.bind(devices()[0].address), Err(Status::INVALID_ADDRESS));
}

#[test]
fn windows_of_one_are_refused_by_the_other() {
    let [mine, other] = devices().each_ref().map(Device::adapter);
    let (active, passive) = (End::new(&mine, 1), End::new(&mine, 2));
    let address = devices()[0].address;
    let pair = Pair::connect(active, passive, address, Offer::default(), Offer::default());
    let file = other.create_overlapped_file().unwrap();
    let foreign = Memory::new(&other, &file, 4096, RegionFlags::ALLOW_LOCAL_WRITE);
    let (window, foreign_window) =
        (mine.create_memory_window().unwrap(), other.create_memory_window().unwrap());
    let queue_pair = &pair.active.queue_pair;
    let bind = |memory: &Memory, window| {
        let start = memory.bytes.as_ptr() as usize;
        // SAFETY: nobody uses the window.
        unsafe { queue_pair.bind(0, &memory.region, window, start..start + 64, RequestFlags::ALLOW_READ) }
    };
    assert_eq!(bind(&foreign, &window), Err(Status::INVALID_PARAMETER_2));
    assert_eq!(bind(&pair.active.memory, &foreign_window), Err(Status::INVALID_PARAMETER_3));
    assert!(queue_pair.invalidate(0, &foreign_window, RequestFlags::empty()).is_err());
}

#[test]
fn a_wildcard_listener_takes_only_its_adapters_peers() {
    let [mine, other] = devices().each_ref().map(Device::adapter);
    let (passive, stranger, friend) = (End::new(&mine, 1), End::new(&other, 2), End::new(&mine, 3));
    let (listener, at) = listen(&mine, &passive.file, anywhere(0));
    let mut request = passive.operation();
    let (mut refused, mut connect) = (stranger.operation(), friend.operation());
    stranger.connector.bind(devices()[1].address).unwrap();
    friend.connector.bind(devices()[0].address).unwrap();
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        let destination = devices()[1].address.with_port(at.port());
        let (queue_pair, offer) = (&stranger.queue_pair, Offer::default());
        stranger.connector.connect(queue_pair, destination, offer, refused.ov()).unwrap();
        // This thread is the only one that polls the listener's side.
        let status = loop {
            assert_eq!(request.status(), Status::PENDING, "a peer of the other adapter");
            match refused.status() {
                Status::PENDING => std::thread::yield_now(),
                status => break status,
            }
        };
        assert_eq!(status, Status::CONNECTION_REFUSED);
        let destination = devices()[0].address.with_port(at.port());
        let queue_pair = &friend.queue_pair;
        friend.connector.connect(queue_pair, destination, offer, connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        passive.connector.reject(b"").unwrap();
        assert_eq!(connect.wait(), Status::CONNECTION_REFUSED);
    }
}
