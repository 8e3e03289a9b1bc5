//! Behaviour on which ND v2 programs rely, through the C interface: objects and memory. Requests are in `spi_requests`.

use ndcompat::Status;
use ndcompat::types::{AdapterInfo, RegionFlags, RequestFlags};
use std::ptr;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use support::client::{BYTES, Client, Ov, connect, connected, info, listen_on, memory_is_read, open};
use support::com::{self, ClassFactory, Com, CompletionQueue, MemoryRegion, Provider, create};
use support::library::{BindIoCompletionCallback, CloseHandle, DllCanUnloadNow, DllGetClassObject};
use support::{address, is_iwarp};
use win32::io::Overlapped;

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

/// Calls GetPrivateData with a buffer of `room` bytes; returns the status, the length, and the buffer.
fn private_data(client: &Client, room: u32) -> (Status, u32, Vec<u8>) {
    let (mut buffer, mut length) = (vec![0xEE; 1024], room);
    // SAFETY: the buffer is large enough for all that is asked.
    let status = unsafe { client.connector.get_private_data(buffer.as_mut_ptr().cast(), &mut length) };
    (status, length, buffer)
}

/// Checks the three cases of GetPrivateData for data that begins with `sent`; returns the length.
fn check_private_data(client: &Client, sent: &[u8]) -> u32 {
    let mut needed = 0xDDDD_DDDD;
    // SAFETY: the length is a local, and without a buffer nothing else is written.
    let status = unsafe { client.connector.get_private_data(ptr::null_mut(), &mut needed) };
    assert_eq!(status, Status::BUFFER_OVERFLOW, "asked for the length");
    assert!(needed as usize >= sent.len() && needed <= 512, "{needed}");
    let (status, length, buffer) = private_data(client, 1);
    assert_eq!((status, length), (Status::BUFFER_OVERFLOW, 1), "a short buffer's length stays");
    assert_eq!(buffer[..2], [sent[0], 0xEE], "and it has what fits");
    for room in [needed, 1024] {
        let (status, length, buffer) = private_data(client, room);
        assert_eq!((status, length), (Status::SUCCESS, needed));
        assert!(buffer.starts_with(sent));
        assert!(buffer[sent.len()..needed as usize].iter().all(|&byte| byte == 0), "padded with zeros");
        assert!(buffer[needed as usize..].iter().all(|&byte| byte == 0xEE), "not a byte more");
    }
    needed
}

#[test]
fn private_data_has_three_behaviours() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut connect, mut accept, mut complete) = (Ov::new(), Ov::new(), Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    assert_eq!(private_data(&active, 64).0, Status::CONNECTION_INVALID);
    // SAFETY: all OVERLAPPEDs live until they are completed.
    unsafe {
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        assert_eq!(active.connect(at, b"question", &mut connect), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        let asked = check_private_data(&passive, b"question");
        assert_eq!(passive.accept(b"answer", &mut accept), Status::PENDING);
        assert_eq!(connect.wait(&active.connector), Status::SUCCESS);
        let answered = check_private_data(&active, b"answer");
        if !is_iwarp() {
            assert_eq!((asked, answered), (56, 196), "padded as Windows programs know it");
        }
        assert_eq!(active.connector.complete_connect(complete.ptr()), Status::PENDING);
        assert_eq!(complete.wait(&active.connector), Status::SUCCESS);
        assert_eq!(accept.wait(&passive.connector), Status::SUCCESS);
        // A rejection carries private data, too.
        let (caller, callee) = (Client::on(&adapter), Client::on(&adapter));
        assert_eq!(caller.bind(), Status::SUCCESS);
        listener.get_connection_request(callee.connector.as_ptr(), request.ptr());
        assert_eq!(caller.connect(at, b"", &mut connect), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(callee.connector.reject(b"because".as_ptr().cast(), 7), Status::SUCCESS);
        assert_eq!(connect.wait(&caller.connector), Status::CONNECTION_REFUSED);
        check_private_data(&caller, b"because");
    }
}

#[test]
fn remote_tokens_are_in_network_order() {
    let client = Client::new();
    // SAFETY: no arguments.
    let (local, remote) = unsafe { (client.region.get_local_token(), client.region.get_remote_token()) };
    // rxe and siw use one key for local and remote access, so the byte order of the remote token shows.
    assert_eq!(remote, local.swap_bytes());
    assert_ne!(remote, local, "a key that reads the same both ways shows nothing");
}

#[test]
fn tokens_reach_the_peer_as_they_are() {
    let (active, mut passive) = connected();
    memory_is_read(&active, &mut passive);
}

#[test]
fn receives_posted_early_survive_a_failed_connect() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    assert_eq!(active.receive(41, 64), Status::SUCCESS, "never connected");
    assert_eq!(active.send(1, 64, RequestFlags::empty()), Status::CONNECTION_INVALID);
    let (listener, at) = listen_on(&adapter, passive.file);
    drop(listener);
    let (mut failed, mut request, mut connect, mut accept, mut complete) =
        (Ov::new(), Ov::new(), Ov::new(), Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    assert_eq!(active.connect(at, b"", &mut failed), Status::PENDING);
    assert_eq!(failed.wait(&active.connector), Status::CONNECTION_REFUSED, "nobody listens");
    // SAFETY: all OVERLAPPEDs live until they are completed.
    unsafe {
        // The same queue pair, with a new connector.
        let connector: Com<com::Connector> =
            create(|iid, out| adapter.create_connector(iid, active.file, out)).unwrap();
        let (listener, at) = listen_on(&adapter, passive.file);
        let (raw, length) = address().to_raw();
        assert_eq!(connector.bind(raw.as_ptr().cast(), length), Status::SUCCESS);
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        let (raw, length) = at.to_raw();
        let queue_pair = active.queue_pair.as_ptr();
        let to = raw.as_ptr().cast();
        assert_eq!(
            connector.connect(queue_pair, to, length, 0, 0, ptr::null(), 0, connect.ptr()),
            Status::PENDING
        );
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
        assert_eq!(connect.wait(&connector), Status::SUCCESS);
        assert_eq!(connector.complete_connect(complete.ptr()), Status::PENDING);
        assert_eq!(accept.wait(&passive.connector), Status::SUCCESS);
        // On iWARP the connecting side sends first.
        assert_eq!(passive.receive(3, 64), Status::SUCCESS);
        assert_eq!(active.send(1, 1, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(passive.result().status, Status::SUCCESS);
        assert_eq!(passive.send(2, 64, RequestFlags::empty()), Status::SUCCESS);
        loop {
            let result = active.result();
            if result.request_context == 41 {
                assert_eq!((result.status, result.bytes_transferred), (Status::SUCCESS, 64));
                break;
            }
        }
        drop(connector);
    }
}

#[test]
fn flush_is_legal_in_any_state() {
    let idle = Client::new();
    assert_eq!(idle.receive(1, 64), Status::SUCCESS);
    // SAFETY: no arguments.
    assert_eq!(unsafe { idle.queue_pair.flush() }, Status::SUCCESS);
    let flushed = idle.result();
    assert_eq!((flushed.status, flushed.request_context), (Status::CANCELED, 1));
    // SAFETY: no arguments.
    assert_eq!(unsafe { idle.queue_pair.flush() }, Status::SUCCESS, "again");
    let (active, passive) = connected();
    assert_eq!(active.receive(2, 64), Status::SUCCESS);
    // SAFETY: no arguments.
    assert_eq!(unsafe { active.queue_pair.flush() }, Status::SUCCESS, "while connected");
    assert_eq!((active.result().status, active.try_result().is_none()), (Status::CANCELED, true));
    assert_eq!(active.disconnect(&mut Ov::new()), Status::PENDING);
    drop(passive);
}

#[test]
fn releases_in_any_order_count_to_zero() {
    // Connected queue pairs, without Disconnect, with receives posted, released in five orders.
    for first in 0..5 {
        let (active, passive) = connected();
        assert_eq!((active.receive(1, 64), passive.receive(2, 64)), (Status::SUCCESS, Status::SUCCESS));
        let adapter = active.adapter.cast::<com::Adapter>().unwrap();
        // The references are moved out of the client, so that the test sees what each release returns.
        let mut releases: Vec<Box<dyn FnOnce() -> u32>> = Vec::new();
        let client = std::mem::ManuallyDrop::new(active);
        // SAFETY: each field is read out once, and the client never dropped.
        unsafe {
            let (connector, pair) = (ptr::read(&client.connector), ptr::read(&client.queue_pair));
            let (queue, region) = (ptr::read(&client.completion_queue), ptr::read(&client.region));
            let owned = ptr::read(&client.adapter);
            releases.push(Box::new(|| connector.release()));
            releases.push(Box::new(|| pair.release()));
            releases.push(Box::new(|| queue.release()));
            releases.push(Box::new(|| region.release()));
            releases.push(Box::new(|| {
                drop(adapter);
                owned.release()
            }));
            CloseHandle(client.file);
        }
        releases.rotate_left(first);
        let counts: Vec<u32> = releases.into_iter().map(|release| release()).collect();
        // The adapter is shared with the passive side, which holds one reference.
        let expected: Vec<u32> = (0..5).map(|at| u32::from((at + first) % 5 == 4)).collect();
        assert_eq!(counts, expected, "object {first} first");
        // The passive side still works, and is told of the end.
        let mut notice = Ov::new();
        // SAFETY: waited for.
        unsafe {
            if passive.connector.notify_disconnect(notice.ptr()) == Status::PENDING {
                assert_eq!(notice.wait(&passive.connector), Status::SUCCESS, "object {first} first");
            }
        }
        // The notified side keeps its receives until it has disconnected, too.
        assert_eq!(passive.disconnect(&mut Ov::new()), Status::PENDING);
        assert_eq!(passive.result().status, Status::CANCELED);
    }
}

#[test]
fn maxima_hold_all_at_once() {
    let adapter = open();
    let info = info(&adapter);
    assert!(info.max_completion_queue_depth >= 768, "{info:?}");
    assert!(info.max_initiator_queue_depth >= 512 && info.max_receive_queue_depth >= 256, "{info:?}");
    assert!(info.max_transfer_length > 0 && info.max_initiator_sge > 0, "{info:?}");
    assert!(info.inline_request_threshold <= info.max_inline_data_size, "{info:?}");
    let client = Client::on(&adapter);
    // SAFETY: `create` passes an id and a place for the object; the queues live until the end of the block.
    unsafe {
        let queues: [Com<CompletionQueue>; 2] = [(); 2].map(|()| {
            let depth = info.max_completion_queue_depth;
            create(|iid, out| adapter.create_completion_queue(iid, client.file, depth, 0, 0, out)).unwrap()
        });
        let queue_pair: Com<com::QueuePair> = create(|iid, out| {
            adapter.create_queue_pair(
                iid,
                queues[0].as_ptr(),
                queues[1].as_ptr(),
                ptr::null_mut(),
                info.max_receive_queue_depth,
                info.max_initiator_queue_depth,
                info.max_receive_sge,
                info.max_initiator_sge,
                info.max_inline_data_size,
                out,
            )
        })
        .unwrap();
        let list = vec![client.sge(0, 1); info.max_receive_sge as usize];
        for at in 0..info.max_receive_queue_depth {
            let posted = queue_pair.receive(ptr::null_mut(), list.as_ptr(), list.len() as u32);
            assert_eq!(posted, Status::SUCCESS, "receive {at}");
        }
        let one_more = queue_pair.receive(ptr::null_mut(), list.as_ptr(), 1);
        assert_eq!(one_more, Status::NO_MORE_ENTRIES);
    }
}

#[test]
fn read_limits_are_clamped() {
    let adapter = open();
    let info = info(&adapter);
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut connect) = (Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    let (raw, length) = at.to_raw();
    // SAFETY: all OVERLAPPEDs live until they are completed.
    unsafe {
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        let asked = active.connector.connect(
            active.queue_pair.as_ptr(),
            raw.as_ptr().cast(),
            length,
            u32::MAX,
            0x1_0000_u32,
            ptr::null(),
            0,
            connect.ptr(),
        );
        assert_eq!(asked, Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        let (mut inbound, mut outbound) = (0, 0);
        assert_eq!(passive.connector.get_read_limits(&mut inbound, &mut outbound), Status::SUCCESS);
        assert!(inbound > 0 && inbound <= info.max_outbound_read_limit, "{inbound}");
        assert!(outbound > 0 && outbound <= info.max_inbound_read_limit, "{outbound}");
        assert_eq!(passive.connector.reject(ptr::null(), 0), Status::SUCCESS);
        connect.wait(&active.connector);
    }
}

#[test]
fn remote_write_is_a_bit_of_its_own_and_strange_bits_are_ignored() {
    const PEER_DIRECT: u32 = 0x1000_0000;
    for (flags, allowed) in [(1, false), (3, false), (4, true), (5 | PEER_DIRECT, true)] {
        let flags = RegionFlags::from_bits_retain(flags);
        let (active, mut passive) = connected();
        passive.memory[..8].copy_from_slice(b"as it is");
        let (mut ov, mut notice) = (Ov::new(), Ov::new());
        // SAFETY: the memory lives longer than the region; only the peer writes to it meanwhile.
        unsafe {
            let region: Com<MemoryRegion> =
                create(|iid, out| passive.adapter.create_memory_region(iid, passive.file, out)).unwrap();
            let memory = passive.memory.as_ptr();
            assert_eq!(region.register(memory.cast(), BYTES, flags, ov.ptr()), Status::PENDING);
            assert_eq!(ov.wait(&region), Status::SUCCESS, "{flags:?}");
            let token = region.get_remote_token();
            let written = active.queue_pair.write(
                ptr::null_mut(),
                &active.sge(0, 8),
                1,
                memory as u64,
                token,
                RequestFlags::empty(),
            );
            assert_eq!(written, Status::SUCCESS);
            let status = active.result().status;
            if allowed {
                assert_eq!(status, Status::SUCCESS, "{flags:?}");
                passive.receive(1, 8);
                active.send(1, 8, RequestFlags::empty());
                assert_eq!(passive.result().status, Status::SUCCESS, "{flags:?}");
                assert_eq!(passive.memory[..8], [0; 8], "{flags:?}");
            } else {
                // On iWARP it completes when it has been sent; both sides are told of the end.
                let expected = if is_iwarp() { Status::SUCCESS } else { Status::ACCESS_VIOLATION };
                assert_eq!(status, expected, "{flags:?}");
                assert_eq!(active.connector.notify_disconnect(notice.ptr()), Status::PENDING);
                assert_eq!(notice.wait(&active.connector), Status::SUCCESS, "{flags:?}");
                assert_eq!(&passive.memory[..8], b"as it is", "{flags:?}");
            }
        }
    }
}

/// Where the callback of [`callbacks_get_the_ntstatus`] reports its arguments.
static STATUSES: Mutex<Option<Sender<(Status, usize)>>> = Mutex::new(None);

unsafe extern "C" fn told(status: u32, _bytes: u32, ov: *mut Overlapped) {
    // As above.
    let _ = STATUSES.lock().unwrap().as_ref().unwrap().send((Status(status as i32), ov as usize));
}

#[test]
fn callbacks_get_the_ntstatus() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let _listener = connect(&active, &passive);
    let (sender, receiver) = channel();
    *STATUSES.lock().unwrap() = Some(sender);
    let (mut notify, mut notice, mut end) = (Ov::new(), Ov::new(), Ov::new());
    let next = || receiver.recv_timeout(Duration::from_secs(60)).expect("a callback");
    // SAFETY: the OVERLAPPEDs live until the callbacks have them.
    unsafe {
        assert_ne!(BindIoCompletionCallback(active.file, told, 0), 0);
        assert_eq!(active.completion_queue.notify(ANY, notify.ptr()), Status::PENDING);
        assert_eq!(active.connector.notify_disconnect(notice.ptr()), Status::PENDING);
        assert_eq!(active.completion_queue.cancel_overlapped_requests(), Status::SUCCESS);
        assert_eq!(next(), (Status::CANCELED, notify.ptr() as usize));
        assert_eq!(active.disconnect(&mut end), Status::PENDING);
        let mut both = [next(), next()];
        both.sort_by_key(|(status, _)| status.0);
        assert_eq!(both[0], (Status::CONNECTION_DISCONNECTED, notice.ptr() as usize));
        assert_eq!(both[1], (Status::SUCCESS, end.ptr() as usize));
    }
}

#[test]
fn the_provider_comes_directly_and_from_a_class_factory() {
    const CLASS_NOT_AVAILABLE: Status = Status(0x8004_0111_u32 as i32);
    const NO_AGGREGATION: Status = Status(0x8004_0110_u32 as i32);
    let class = com::Guid::new(0x1234);
    let direct = com::provider();
    assert_eq!(direct.release(), 0);
    // SAFETY: `create` passes an id and a place for the object; what is null is refused, or stands for no outer object.
    unsafe {
        let factory: Com<ClassFactory> =
            create(|iid, out| DllGetClassObject(&class, iid, out)).expect("a class factory");
        assert_eq!((factory.lock_server(1), factory.lock_server(0)), (Status::SUCCESS, Status::SUCCESS));
        let provider: Com<Provider> =
            create(|iid, out| factory.create_instance(ptr::null_mut(), iid, out)).expect("a provider");
        let outer = factory.as_ptr();
        assert_eq!(
            create::<Provider>(|iid, out| factory.create_instance(outer, iid, out)).err(),
            Some(NO_AGGREGATION)
        );
        assert_eq!(
            create::<com::Listener>(|iid, out| factory.create_instance(ptr::null_mut(), iid, out)).err(),
            Some(Status::NO_INTERFACE)
        );
        let wrong = create::<com::Listener>(|iid, out| DllGetClassObject(&class, iid, out));
        assert_eq!(wrong.err(), Some(CLASS_NOT_AVAILABLE));
        assert_eq!(DllCanUnloadNow(), Status(1), "there are objects");
        assert_eq!((factory.release(), provider.release()), (0, 0));
    }
}

#[test]
fn an_adapter_holds_its_provider() {
    let provider = com::provider();
    let (raw, length) = address().to_raw();
    let mut id = 0;
    // SAFETY: the address has the length told, the id is a local, and the references that are released were this test's own.
    unsafe {
        assert_eq!(provider.resolve_address(raw.as_ptr().cast(), length, &mut id), Status::SUCCESS);
        let adapter: Com<com::Adapter> = create(|iid, out| provider.open_adapter(iid, id, out)).unwrap();
        provider.unknown().add_ref();
        assert_eq!(provider.unknown().release(), 2, "the program's and the adapter's");
        assert_eq!(adapter.release(), 0);
        assert_eq!(provider.release(), 0);
    }
}

#[test]
fn query_takes_any_version() {
    let adapter = open();
    for version in [0x2_0000, 1, 0, 0xCCCC_CCCC] {
        let mut info = AdapterInfo { info_version: version, ..AdapterInfo::default() };
        let mut length = size_of::<AdapterInfo>() as u32;
        // SAFETY: the buffer has that length.
        assert_eq!(unsafe { adapter.query(&mut info, &mut length) }, Status::SUCCESS, "version {version:#x}");
        assert_eq!((info.info_version, length), (0x2_0000, 96));
    }
    let mut info = AdapterInfo::default();
    let mut length = 95;
    // SAFETY: the buffer is larger than that.
    assert_eq!(unsafe { adapter.query(&mut info, &mut length) }, Status::BUFFER_OVERFLOW);
    assert_eq!((info.adapter_id, length), (0, 96), "nothing written, and the size told");
    length = 0;
    // SAFETY: a length alone.
    assert_eq!(unsafe { adapter.query(ptr::null_mut(), &mut length) }, Status::BUFFER_OVERFLOW);
    assert_eq!(length, 96);
}
