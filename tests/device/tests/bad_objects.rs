//! Invalid objects and pointers: each call returns the documented status.

use ndcompat::Status;
use ndcompat::types::{RegionFlags, RequestFlags};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use support::address;
use support::client::{Client, Ov, connected, listen_on, messages_pass};
use support::com::{
    self, Adapter, Com, CompletionQueue, Connector, Guid, Interface, Listener, MemoryWindow, QueuePair,
    SharedReceiveQueue, create,
};
use support::library::{CloseHandle, DllGetClassObject, event};
use win32::object::RawHandle;

const NO_INTERFACE: Status = Status(0x8000_4002_u32 as i32);
const POINTER: Status = Status(0x8000_4003_u32 as i32);

#[test]
fn null_results() {
    let client = Client::new();
    let (adapter, provider) = (&client.adapter, com::provider());
    let (iid, out) = (null(), null_mut());
    let mut found = null_mut();
    // SAFETY: every pointer is to a local with the length told, or null, which each method has to refuse.
    unsafe {
        assert_eq!(DllGetClassObject(&Guid::new(0), &com::Provider::IID, out), POINTER);
        assert_eq!(DllGetClassObject(&Guid::new(0), iid, &mut found), POINTER);
        assert_eq!(adapter.unknown().query_interface(&Adapter::IID, out), POINTER);
        assert_eq!(adapter.unknown().query_interface(iid, &mut found), NO_INTERFACE);
        assert_eq!(provider.query_address_list(null_mut(), null_mut()), Status::INVALID_PARAMETER);
        let (raw, length) = address().to_raw();
        let address = raw.as_ptr().cast();
        assert_eq!(provider.resolve_address(address, length, null_mut()), Status::INVALID_PARAMETER_3);
        assert_eq!(adapter.create_overlapped_file(null_mut()), Status::INVALID_PARAMETER_1);
        assert_eq!(adapter.query(null_mut(), null_mut()), Status::INVALID_PARAMETER);
        assert_eq!(adapter.query_address_list(null_mut(), null_mut()), Status::INVALID_PARAMETER);
        for (iid, out) in [(iid, &mut found as *mut _), (&Connector::IID as *const Guid, out)] {
            let (file, queue) = (client.file, client.completion_queue.as_ptr());
            let none = null_mut();
            let created = [
                provider.open_adapter(iid, 1, out),
                adapter.create_completion_queue(iid, file, 1, 0, 0, out),
                adapter.create_memory_region(iid, file, out),
                adapter.create_memory_window(iid, out),
                adapter.create_shared_receive_queue(iid, file, 1, 1, 0, 0, 0, out),
                adapter.create_queue_pair(iid, queue, queue, none, 1, 1, 1, 1, 0, out),
                adapter.create_queue_pair_with_srq(iid, queue, queue, none, none, 1, 1, 0, out),
                adapter.create_connector(iid, file, out),
                adapter.create_listener(iid, file, out),
            ];
            assert_eq!(created, [Status::INVALID_PARAMETER; 9]);
        }
        assert_eq!(client.connector.get_local_address(null_mut(), null_mut()), Status::CONNECTION_INVALID);
        assert_eq!(client.bind(), Status::SUCCESS);
        assert_eq!(client.connector.get_local_address(null_mut(), null_mut()), Status::INVALID_PARAMETER);
        assert_eq!(
            client.completion_queue.get_notify_affinity(null_mut(), null_mut()),
            Status::INVALID_PARAMETER
        );
        assert_eq!(client.completion_queue.get_results(null_mut(), 5), 0);
    }
}

#[test]
fn null_overlapped() {
    let (active, passive) = connected();
    let (listener, at) = listen_on(&passive.adapter, passive.file);
    let (raw, length) = at.to_raw();
    let none = null_mut();
    // SAFETY: every pointer is to memory of the test's with the length told, or null, which each method has to refuse.
    unsafe {
        let memory = active.memory.as_ptr().cast();
        assert_eq!(
            active.region.register(memory, 1, RegionFlags::empty(), none),
            Status::INVALID_PARAMETER_4
        );
        assert_eq!(active.region.deregister(none), Status::INVALID_PARAMETER_1);
        assert_eq!(active.completion_queue.notify(1, none), Status::INVALID_PARAMETER_2);
        let connector = &active.connector;
        let pair = active.queue_pair.as_ptr();
        assert_eq!(
            connector.connect(pair, raw.as_ptr().cast(), length, 0, 0, null(), 0, none),
            Status::INVALID_PARAMETER_8
        );
        assert_eq!(connector.accept(pair, 0, 0, null(), 0, none), Status::INVALID_PARAMETER_6);
        assert_eq!(connector.complete_connect(none), Status::INVALID_PARAMETER_1);
        assert_eq!(connector.notify_disconnect(none), Status::INVALID_PARAMETER_1);
        assert_eq!(connector.disconnect(none), Status::INVALID_PARAMETER_1);
        assert_eq!(listener.get_connection_request(connector.as_ptr(), none), Status::INVALID_PARAMETER_2);
        assert_eq!(active.completion_queue.get_overlapped_result(none, 1), Status::INVALID_PARAMETER);
    }
    messages_pass(&active, &passive);
}

#[test]
fn interfaces_that_an_object_does_not_have() {
    let client = Client::new();
    let (adapter, file) = (&client.adapter, client.file);
    let queue = client.completion_queue.as_ptr();
    // SAFETY: `create` passes an id, which is that of another interface, and a place for the object; the queue is the client's,
    // which lives.
    unsafe {
        let wrong = Some(NO_INTERFACE);
        assert_eq!(create::<Listener>(|iid, out| adapter.create_connector(iid, file, out)).err(), wrong);
        assert_eq!(create::<Connector>(|iid, out| adapter.create_listener(iid, file, out)).err(), wrong);
        assert_eq!(create::<QueuePair>(|iid, out| adapter.create_memory_region(iid, file, out)).err(), wrong);
        assert_eq!(create::<QueuePair>(|iid, out| adapter.create_memory_window(iid, out)).err(), wrong);
        let made = |iid, out| adapter.create_completion_queue(iid, file, 1, 0, 0, out);
        assert_eq!(create::<QueuePair>(made).err(), wrong);
        let made = |iid, out| adapter.create_shared_receive_queue(iid, file, 1, 1, 0, 0, 0, out);
        assert_eq!(create::<CompletionQueue>(made).err(), wrong);
        let made = |iid, out| adapter.create_queue_pair(iid, queue, queue, null_mut(), 1, 1, 1, 1, 0, out);
        assert_eq!(create::<com::Overlapping>(made).err(), wrong, "a queue pair has no requests");
    }
    assert_eq!(client.queue_pair.cast::<Connector>().err(), Some(NO_INTERFACE));
    assert!(
        client.queue_pair.cast::<com::Unknown>().is_ok()
            && client.connector.cast::<com::Overlapping>().is_ok()
    );
}

#[test]
fn objects_of_the_wrong_kind() {
    let client = Client::new();
    let adapter = &client.adapter;
    let (queue, pair, connector) =
        (client.completion_queue.as_ptr(), client.queue_pair.as_ptr(), client.connector.as_ptr());
    let new = |receive, initiator| {
        // SAFETY: interface pointers or null.
        create::<QueuePair>(|iid, out| unsafe {
            adapter.create_queue_pair(iid, receive, initiator, null_mut(), 1, 1, 1, 1, 0, out)
        })
        .err()
    };
    for wrong in [null_mut(), connector] {
        assert_eq!(new(wrong, queue), Some(Status::INVALID_PARAMETER_2));
        assert_eq!(new(queue, wrong), Some(Status::INVALID_PARAMETER_3));
        // SAFETY: interface pointers or null.
        let with_srq = create::<QueuePair>(|iid, out| unsafe {
            adapter.create_queue_pair_with_srq(iid, queue, queue, wrong, null_mut(), 1, 1, 0, out)
        });
        assert_eq!(with_srq.err(), Some(Status::INVALID_PARAMETER_4));
    }
    let (listener, at) = listen_on(adapter, client.file);
    let (raw, length) = at.to_raw();
    let mut ov = Ov::new();
    assert_eq!(client.bind(), Status::SUCCESS);
    // SAFETY: interface pointers or null.
    unsafe {
        for wrong in [null_mut(), queue] {
            let to = raw.as_ptr().cast();
            assert_eq!(
                client.connector.connect(wrong, to, length, 0, 0, null(), 0, ov.ptr()),
                Status::INVALID_PARAMETER_1
            );
            assert_eq!(
                client.connector.accept(wrong, 0, 0, null(), 0, ov.ptr()),
                Status::INVALID_PARAMETER_1
            );
            assert_eq!(listener.get_connection_request(wrong, ov.ptr()), Status::INVALID_PARAMETER_1);
            let window: Com<MemoryWindow> =
                create(|iid, out| adapter.create_memory_window(iid, out)).unwrap();
            let (region, memory) = (client.region.as_ptr(), client.memory.as_ptr().cast());
            let bind = |region, window| {
                client.queue_pair.bind(null_mut(), region, window, memory, 1, RequestFlags::ALLOW_READ)
            };
            assert_eq!(bind(wrong, window.as_ptr()), Status::INVALID_PARAMETER_2);
            assert_eq!(bind(region, wrong), Status::INVALID_PARAMETER_3);
            assert_eq!(
                client.queue_pair.invalidate(null_mut(), wrong, RequestFlags::empty()),
                Status::INVALID_PARAMETER_2
            );
        }
        assert_eq!(listener.get_connection_request(pair, ov.ptr()), Status::INVALID_PARAMETER_1);
    }
}

/// A program's object that wraps one of the library's.
#[repr(C)]
struct Wrapper {
    methods: *const WrapperMethods,
    references: AtomicU32,
    inside: *mut c_void,
}

#[repr(C)]
struct WrapperMethods {
    query_interface: unsafe extern "C" fn(*mut Wrapper, *const Guid, *mut *mut c_void) -> Status,
    add_ref: unsafe extern "C" fn(*mut Wrapper) -> u32,
    release: unsafe extern "C" fn(*mut Wrapper) -> u32,
}

unsafe extern "C" fn wrapper_query(this: *mut Wrapper, iid: *const Guid, out: *mut *mut c_void) -> Status {
    // SAFETY: the library passes the wrapper that it was given, and an id and a place of its own; the object inside lives as
    // long as the test.
    unsafe { (*(*this).inside.cast::<com::Unknown>()).query_interface(iid, out) }
}

unsafe extern "C" fn wrapper_add_ref(this: *mut Wrapper) -> u32 {
    // SAFETY: the library passes the wrapper.
    unsafe { (*this).references.fetch_add(1, Ordering::Relaxed) + 1 }
}

unsafe extern "C" fn wrapper_release(this: *mut Wrapper) -> u32 {
    // SAFETY: the library passes the wrapper.
    unsafe { (*this).references.fetch_sub(1, Ordering::Relaxed) - 1 }
}

#[test]
fn strangers_are_asked_for_the_interface() {
    let methods =
        WrapperMethods { query_interface: wrapper_query, add_ref: wrapper_add_ref, release: wrapper_release };
    let client = Client::new();
    let queue = client.completion_queue.as_ptr();
    let new = |receive: &mut Wrapper| {
        // SAFETY: interface pointers.
        create::<QueuePair>(|iid, out| unsafe {
            let receive = std::ptr::from_mut(receive).cast();
            client.adapter.create_queue_pair(iid, receive, queue, null_mut(), 1, 1, 1, 1, 0, out)
        })
    };
    let wrap = |inside| Wrapper { methods: &methods, references: AtomicU32::new(1), inside };
    let mut good = wrap(queue);
    new(&mut good).expect("it leads to a completion queue");
    let mut bad = wrap(client.connector.as_ptr());
    assert_eq!(new(&mut bad).err(), Some(Status::INVALID_PARAMETER_2));
    assert_eq!((good.references.into_inner(), bad.references.into_inner()), (1, 1));
    for object in [client.completion_queue.unknown(), client.connector.unknown()] {
        // SAFETY: no arguments.
        assert_eq!(unsafe { (object.add_ref(), object.release()) }, (2, 1), "no reference was kept");
    }
}

#[test]
fn objects_of_another_adapter() {
    let (mine, other) = (Client::new(), Client::new());
    let (queue, strange) = (mine.completion_queue.as_ptr(), other.completion_queue.as_ptr());
    let (listener, at) = listen_on(&mine.adapter, mine.file);
    let (raw, length) = at.to_raw();
    let mut ov = Ov::new();
    assert_eq!(mine.bind(), Status::SUCCESS);
    // SAFETY: interface pointers.
    unsafe {
        let new = |receive, initiator| {
            create::<QueuePair>(|iid, out| {
                mine.adapter.create_queue_pair(iid, receive, initiator, null_mut(), 1, 1, 1, 1, 0, out)
            })
            .err()
        };
        assert_eq!(new(strange, queue), Some(Status::INVALID_PARAMETER_2));
        assert_eq!(new(queue, strange), Some(Status::INVALID_PARAMETER_3));
        let shared: Com<SharedReceiveQueue> =
            create(|iid, out| other.adapter.create_shared_receive_queue(iid, other.file, 4, 1, 0, 0, 0, out))
                .unwrap();
        let with_srq = create::<QueuePair>(|iid, out| {
            mine.adapter.create_queue_pair_with_srq(
                iid,
                queue,
                queue,
                shared.as_ptr(),
                null_mut(),
                1,
                1,
                0,
                out,
            )
        });
        assert_eq!(with_srq.err(), Some(Status::INVALID_PARAMETER_4));
        let pair = other.queue_pair.as_ptr();
        assert_eq!(
            mine.connector.connect(pair, raw.as_ptr().cast(), length, 0, 0, null(), 0, ov.ptr()),
            Status::INVALID_PARAMETER_1
        );
        assert_eq!(
            listener.get_connection_request(other.connector.as_ptr(), ov.ptr()),
            Status::INVALID_PARAMETER_1
        );
        let window: Com<MemoryWindow> =
            create(|iid, out| other.adapter.create_memory_window(iid, out)).unwrap();
        let (memory, region) = (mine.memory.as_ptr().cast(), mine.region.as_ptr());
        let bind = |region, window| {
            mine.queue_pair.bind(null_mut(), region, window, memory, 1, RequestFlags::ALLOW_READ)
        };
        assert_eq!(bind(region, window.as_ptr()), Status::INVALID_PARAMETER_3);
        assert_eq!(bind(other.region.as_ptr(), window.as_ptr()), Status::INVALID_PARAMETER_2);
        assert_eq!(
            mine.queue_pair.invalidate(null_mut(), window.as_ptr(), RequestFlags::empty()),
            Status::INVALID_PARAMETER_2
        );
    }
}

#[test]
fn handles_that_are_no_files() {
    let client = Client::new();
    let (signal, closed) = (event(true), event(true));
    // SAFETY: `create` passes an id and a place for the object, and a handle may be anything; each event is closed once.
    unsafe {
        CloseHandle(closed);
        for handle in [RawHandle::NULL, RawHandle::INVALID, signal, closed] {
            let queue = create::<CompletionQueue>(|iid, out| {
                client.adapter.create_completion_queue(iid, handle, 1, 0, 0, out)
            });
            assert_eq!(queue.err(), Some(Status::INVALID_HANDLE), "{handle:?}");
            let connector = create::<Connector>(|iid, out| client.adapter.create_connector(iid, handle, out));
            assert_eq!(connector.err(), Some(Status::INVALID_HANDLE), "{handle:?}");
        }
        CloseHandle(signal);
    }
}
