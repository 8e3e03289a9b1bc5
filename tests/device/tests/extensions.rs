//! The interfaces of `ndendpoint.h`, through the C interface.

use ndcompat::Status;
use ndcompat::{RawSockAddr, SockAddr};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use support::address;
use support::client::{Client, Ov, listen_on, messages_pass, open};
use support::com::{Com, ExtendedAdapter, ExtendedConnector, ExtendedListener, SharedEndpoint, create};

fn endpoint(client: &Client, address: SockAddr) -> Result<Com<SharedEndpoint>, Status> {
    let adapter: Com<ExtendedAdapter> = client.adapter.cast().expect("INDCompatAdapter");
    assert_eq!(adapter.as_ptr(), client.adapter.as_ptr(), "one object");
    let (raw, length) = address.to_raw();
    // SAFETY: `create` passes an id and a place for the object; the address has the length told.
    create(|iid, out| unsafe {
        adapter.create_shared_endpoint(iid, client.file, raw.as_ptr().cast(), length, out)
    })
}

fn local_address(endpoint: &Com<SharedEndpoint>) -> SockAddr {
    let (mut raw, _) = address().to_raw();
    let mut length = 3;
    // SAFETY: the buffer is as long as said.
    unsafe {
        assert_eq!(endpoint.get_local_address(raw.as_mut_ptr().cast(), &mut length), Status::BUFFER_OVERFLOW);
        assert!(length as usize <= size_of::<RawSockAddr>());
        assert_eq!(endpoint.get_local_address(raw.as_mut_ptr().cast(), &mut length), Status::SUCCESS);
        SockAddr::from_raw(raw.as_ptr().cast(), length as usize).expect("an address")
    }
}

fn connect(client: &Client, endpoint: *mut c_void, to: SockAddr, ov: &mut Ov) -> Status {
    let connector: Com<ExtendedConnector> = client.connector.cast().expect("INDCompatConnector");
    assert_eq!(connector.as_ptr(), client.connector.as_ptr(), "one object");
    let (raw, length) = to.to_raw();
    let (queue_pair, destination) = (client.queue_pair.as_ptr(), raw.as_ptr().cast());
    // SAFETY: the queue pair lives, the address has the length told, and an endpoint that is none is recognised; who calls this
    // waits for the request.
    unsafe {
        let without = connector.connect_with_shared_endpoint(
            queue_pair,
            endpoint,
            destination,
            length,
            1,
            1,
            null(),
            0,
            null_mut(),
        );
        assert_eq!(without, Status::INVALID_PARAMETER_9);
        let without = connector.connect_with_shared_endpoint(
            null_mut(),
            endpoint,
            destination,
            length,
            1,
            1,
            null(),
            0,
            ov.ptr(),
        );
        assert_eq!(without, Status::INVALID_PARAMETER_1);
        let data = b"question".as_ptr().cast();
        connector.connect_with_shared_endpoint(
            queue_pair,
            endpoint,
            destination,
            length,
            1,
            1,
            data,
            8,
            ov.ptr(),
        )
    }
}

#[test]
fn endpoints_and_closing_from_c() {
    let adapter = open();
    let (active, mut passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let from = endpoint(&active, address()).expect("an endpoint");
    let own = local_address(&from);
    assert_eq!(endpoint(&active, own).err(), Some(Status::SHARING_VIOLATION));

    let (mut request, mut connected, mut accepted) = (Ov::new(), Ov::new(), Ov::new());
    assert_eq!(connect(&active, null_mut(), at, &mut connected), Status::INVALID_PARAMETER_2);
    assert_eq!(connect(&active, active.queue_pair.as_ptr(), at, &mut connected), Status::INVALID_PARAMETER_2);
    // SAFETY: all are waited for.
    unsafe {
        let connector = passive.connector.as_ptr();
        assert_eq!(listener.get_connection_request(connector, request.ptr()), Status::PENDING);
        assert_eq!(connect(&active, from.as_ptr(), at, &mut connected), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(passive.accept(b"", &mut accepted), Status::PENDING);
        assert_eq!(connected.wait(&active.connector), Status::SUCCESS);
        assert_eq!(active.connector.complete_connect(connected.ptr()), Status::PENDING);
        assert_eq!(connected.wait(&active.connector), Status::SUCCESS);
        assert_eq!(accepted.wait(&passive.connector), Status::SUCCESS);

        let mut room = size_of::<RawSockAddr>() as u32;
        let (mut peer, _) = address().to_raw();
        assert_eq!(passive.connector.get_peer_address(peer.as_mut_ptr().cast(), &mut room), Status::SUCCESS);
        assert_eq!(SockAddr::from_raw(peer.as_ptr().cast(), room as usize).unwrap(), own);
    }
    messages_pass(&active, &passive);

    // The listener's Close completes with the accepted connector; the endpoint's is cancelled by its release.
    let closing: Com<ExtendedListener> = listener.cast().expect("INDCompatListener");
    let (mut listener_closed, mut endpoint_closed) = (Ov::new(), Ov::new());
    // SAFETY: both are waited for.
    unsafe {
        assert_eq!(closing.close(null_mut()), Status::INVALID_PARAMETER_1);
        assert_eq!(closing.close(listener_closed.ptr()), Status::PENDING);
        assert_eq!(from.close(null_mut()), Status::INVALID_PARAMETER_1);
        assert_eq!(from.close(endpoint_closed.ptr()), Status::PENDING);
        assert_eq!(from.close(connected.ptr()), Status::INVALID_DEVICE_STATE);
    }
    assert_eq!(listener_closed.internal(), Status::PENDING);
    assert_eq!(endpoint_closed.internal(), Status::PENDING);
    assert_eq!(from.release(), 0);
    assert_eq!(endpoint_closed.internal(), Status::CANCELED);
    assert_eq!(endpoint(&passive, own).err(), Some(Status::SHARING_VIOLATION), "a connector has it");
    messages_pass(&active, &passive);
    // SAFETY: `create` passes an id and a place for the object; the file is the client's.
    let fresh = create(|iid, out| unsafe { adapter.create_connector(iid, passive.file, out) });
    assert_eq!(std::mem::replace(&mut passive.connector, fresh.unwrap()).release(), 0);
    assert_eq!(listener_closed.wait(&closing), Status::SUCCESS);
}
