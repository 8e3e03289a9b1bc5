//! What drivers of hardware report and do, and neither soft-RoCE nor soft-iWARP does.

use double::{
    ADDRESS, SECOND_ADDRESS, add_second, fail, flush_nothing, forget_all, limit_inline_room, newest_vector,
    objects, path_of_newest_queue_pair, pending, raise_async, report_attributes, report_longest_message,
    set_path, share_guid, stop_newest_queue_pair, turn,
};
use ndcompat::types::RequestFlags;
use ndcompat::verbs::bindings::*;
use ndcompat::{SockAddr, Status};
use std::net::SocketAddr;
use std::ptr::null_mut;
use support::address;
use support::client::{Client, Ov, connect, connected, info, messages_pass, open, open_at};
use support::com::{Com, CompletionQueue, MemoryWindow, create};

#[test]
fn a_device_without_shared_receive_queues_does_not_limit_receives_by_theirs() {
    let _turn = turn();
    report_attributes(|device| (device.max_srq, device.max_srq_wr, device.max_srq_sge) = (0, 0, 0));
    let limits = info(&open());
    assert_eq!(limits.max_receive_sge, limits.max_initiator_sge);
    assert_eq!(limits.max_shared_receive_queue_depth, 0);
}

#[test]
fn shared_receive_queues_limit_the_pieces_of_receives() {
    let _turn = turn();
    report_attributes(|device| device.max_srq_sge = 3);
    assert_eq!(info(&open()).max_receive_sge, 3);
}

#[test]
fn a_device_that_does_not_tell_its_longest_message_carries_messages() {
    let _turn = turn();
    report_longest_message(0);
    assert_eq!(info(&open()).max_transfer_length, 16 << 20);
    let (active, passive) = connected();
    assert_eq!(passive.receive(1, 64), Status::SUCCESS);
    assert_eq!(active.send(2, 5, RequestFlags::empty()), Status::SUCCESS);
    assert_eq!((active.result().status, passive.result().status), (Status::SUCCESS, Status::SUCCESS));
}

/// As with bnxt_re and mana, whose kernels' halves report windows.
#[test]
fn windows_that_the_driver_cannot_bind_are_the_librarys_own() {
    let _turn = turn();
    report_attributes(|device| {
        device.max_mw = 1 << 10;
        device.device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    });
    let (active, mut passive) = connected();
    // SAFETY: `create` passes an id and a place for the object.
    let window: Com<MemoryWindow> =
        create(|iid, out| unsafe { passive.adapter.create_memory_window(iid, out) }).unwrap();
    let (start, context) = (passive.memory.as_mut_ptr(), null_mut());
    passive.memory[..8].copy_from_slice(b"windowed");
    // SAFETY: the memory lives until the request has completed, and nothing else touches it meanwhile.
    unsafe {
        let flags = RequestFlags::ALLOW_READ;
        let bound = passive.queue_pair.bind(
            context,
            passive.region.as_ptr(),
            window.as_ptr(),
            start.cast(),
            8,
            flags,
        );
        assert_eq!((bound, passive.result().status), (Status::SUCCESS, Status::SUCCESS));
        let (list, token) = (active.sge(0, 8), window.get_remote_token());
        let read = active.queue_pair.read(context, &list, 1, start as u64, token, RequestFlags::empty());
        assert_eq!((read, active.result().status), (Status::SUCCESS, Status::SUCCESS));
    }
    assert_eq!(&active.memory[..8], b"windowed");
}

/// As with cxgb4 and the X722: the completion tells the length of the last piece.
#[test]
fn a_read_in_pieces_has_transferred_the_bytes_of_all() {
    let _turn = turn();
    report_attributes(|device| device.max_sge_rd = 1);
    let (active, passive) = connected();
    let (list, there) = ([active.sge(0, 100), active.sge(100, 20)], passive.memory.as_ptr() as u64);
    // SAFETY: the memory lives until the request has completed, and nothing else touches it meanwhile.
    let read = unsafe {
        let token = passive.region.get_remote_token();
        active.queue_pair.read(null_mut(), list.as_ptr(), 2, there, token, RequestFlags::empty())
    };
    assert_eq!(read, Status::SUCCESS);
    let result = active.result();
    assert_eq!((result.status, result.bytes_transferred), (Status::SUCCESS, 120));
}

/// As on cxgb4, mana and erdma, before any event or completion tells.
#[test]
fn a_post_refused_as_the_connection_is_gone_is_cancelled_like_the_others() {
    for (errno, tells_state) in
        [(libc::EINVAL, true), (libc::EINVAL, false), (libc::EIO, true), (libc::ENOTCONN, true)]
    {
        let _turn = turn();
        // mana's driver does not tell it.
        let forget_state = || {
            if !tells_state {
                fail("ibv_query_qp", libc::EOPNOTSUPP)
            }
        };
        let (_active, passive) = connected();
        assert_eq!(passive.receive(1, 64), Status::SUCCESS);
        stop_newest_queue_pair();
        forget_state();
        fail("post_send", errno);
        assert_eq!(passive.send(2, 5, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(passive.send(3, 5, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(passive.receive(4, 64), Status::SUCCESS);
        let mut results = [(); 4].map(|()| passive.result());
        results.sort_by_key(|result| result.request_context);
        let seen = results.map(|result| (result.request_context, result.status));
        assert_eq!(seen, [1, 2, 3, 4].map(|context| (context, Status::CANCELED)));

        let (_active, passive) = connected();
        stop_newest_queue_pair();
        forget_state();
        fail("post_recv", errno);
        assert_eq!(passive.receive(1, 64), Status::SUCCESS);
        let result = passive.result();
        assert_eq!((result.request_context, result.status), (1, Status::CANCELED));
    }
}

#[test]
fn a_post_refused_while_the_connection_lives_is_not_accepted() {
    let _turn = turn();
    let (active, passive) = connected();
    fail("post_send", libc::EINVAL);
    assert_eq!(active.send(1, 5, RequestFlags::empty()), Status::INVALID_PARAMETER);
    messages_pass(&active, &passive);
}

/// As on InfiniBand outside the default partition, and on adapters of two ports.
#[test]
fn a_queue_pair_has_the_port_and_the_partition_of_its_connection() {
    let _turn = turn();
    for path in [(2, 3), (1, 0), (1, 5)] {
        set_path(path.0, path.1);
        let (active, passive) = connected();
        assert_eq!(path_of_newest_queue_pair(), path, "who accepts");
        messages_pass(&active, &passive);
        let adapter = open();
        let (passive, active) = (Client::on(&adapter), Client::on(&adapter));
        connect(&active, &passive);
        assert_eq!(path_of_newest_queue_pair(), path, "who connects");
        messages_pass(&active, &passive);
    }
}

#[test]
fn a_queue_pair_forgets_the_path_of_an_attempt_that_has_failed() {
    let _turn = turn();
    let adapter = open();
    let (passive, mut active) = (Client::on(&adapter), Client::on(&adapter));
    set_path(2, 3);
    assert_eq!(active.bind(), Status::SUCCESS);
    let mut ov = Ov::new();
    assert_eq!(active.connect(address().with_port(9), b"", &mut ov), Status::PENDING);
    assert_eq!(ov.wait(&active.connector), Status::CONNECTION_REFUSED);
    assert_eq!(path_of_newest_queue_pair(), (2, 3));
    set_path(1, 0);
    active.connector =
        // SAFETY: `create` passes an id and a place for the object; the file is the client's.
        create(|iid, out| unsafe { adapter.create_connector(iid, active.file, out) }).unwrap();
    connect(&active, &passive);
    assert_eq!(path_of_newest_queue_pair(), (1, 0));
    messages_pass(&active, &passive);
}

/// mana tells so that a request has failed, and any device that a queue pair with a shared receive queue, which has nothing to flush, is
/// stopped.
#[test]
fn a_queue_pair_that_the_device_stops_is_disconnected() {
    for kind in [IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR] {
        let _turn = turn();
        let (other, its_peer) = connected();
        let (active, passive) = connected();
        let mut notice = Ov::new();
        // SAFETY: the OVERLAPPED is waited for.
        assert_eq!(unsafe { passive.connector.notify_disconnect(notice.ptr()) }, Status::PENDING);
        raise_async(kind);
        assert_eq!(notice.wait(&passive.connector), Status::SUCCESS);
        assert_eq!(passive.send(1, 5, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(passive.result().status, Status::CANCELED);
        messages_pass(&other, &its_peer);
        drop(active);
    }
}

/// As on irdma over iWARP and on erdma.
#[test]
fn requests_that_the_device_never_flushes_are_cancelled() {
    let _turn = turn();
    let (active, _passive) = connected();
    assert_eq!(active.receive(1, 64), Status::SUCCESS);
    // There is no receive for it.
    assert_eq!(active.send(2, 5, RequestFlags::empty()), Status::SUCCESS);
    flush_nothing();
    let queue_pairs = objects()[0];
    // SAFETY: no arguments.
    assert_eq!(unsafe { active.queue_pair.flush() }, Status::SUCCESS);
    let mut results = [(); 2].map(|()| active.result());
    assert_eq!(objects()[0], queue_pairs - 1, "the device may go on using their memory");
    results.sort_by_key(|result| result.request_context);
    let seen = results.map(|result| (result.request_context, result.status));
    assert_eq!(seen, [1, 2].map(|context| (context, Status::CANCELED)));
}

/// As on erdma, whose driver takes nothing more once the connection is gone.
#[test]
fn requests_behind_silent_ones_are_cancelled_though_the_driver_takes_none_to_drain_these() {
    let _turn = turn();
    let (active, passive) = connected();
    assert_eq!(passive.receive(1, 64), Status::SUCCESS);
    assert_eq!(active.send(2, 5, RequestFlags::SILENT_SUCCESS), Status::SUCCESS);
    // SAFETY: no arguments.
    assert_eq!(unsafe { active.queue_pair.flush() }, Status::SUCCESS);
    (0..4096).for_each(|_| fail("post_send", libc::EIO));
    assert_eq!(active.send(3, 5, RequestFlags::empty()), Status::SUCCESS);
    let last = std::iter::repeat_with(|| active.result()).find(|result| result.request_context == 3);
    assert_eq!(last.map(|result| result.status), Some(Status::CANCELED));
    assert!(pending() > 4000, "the library has not gone on trying");
    forget_all();
}

#[test]
fn a_read_in_pieces_of_which_the_driver_takes_some_ends_the_connection() {
    let _turn = turn();
    report_attributes(|device| device.max_sge_rd = 1);
    let (active, passive) = connected();
    let (list, there) = ([active.sge(0, 100), active.sge(100, 20)], passive.memory.as_ptr() as u64);
    fail("post_send of a list", libc::ENOMEM);
    // SAFETY: the memory lives until the request has completed, and nothing else touches it meanwhile.
    let read = unsafe {
        let token = passive.region.get_remote_token();
        active.queue_pair.read(null_mut(), list.as_ptr(), 2, there, token, RequestFlags::empty())
    };
    assert_eq!((read, active.result().status), (Status::SUCCESS, Status::CANCELED));
}

#[test]
fn queues_are_no_deeper_than_reads_in_pieces_allow() {
    let _turn = turn();
    report_attributes(|device| (device.max_sge, device.max_sge_rd, device.max_qp_wr) = (4, 1, 1000));
    let limits = info(&open());
    assert_eq!((limits.max_initiator_queue_depth, limits.max_receive_queue_depth), (250, 1000));
}

/// As with mlx5.
#[test]
fn more_inline_data_than_usual_fits_on_the_largest_queue_pair_too() {
    let _turn = turn();
    assert_eq!(info(&open()).max_inline_data_size, 1024);
    limit_inline_room(3 << 20);
    assert_eq!(info(&open()).max_inline_data_size, 512);
    limit_inline_room(1 << 20);
    assert_eq!(info(&open()).max_inline_data_size, 256);
}

/// As with mlx5.
#[test]
fn windows_of_the_devices_own_are_no_larger_than_devices_bind() {
    let _turn = turn();
    assert_eq!(info(&open()).max_window_size, 1 << 40);
    // SAFETY: only Rust code reads the environment here, under std's lock.
    unsafe { std::env::set_var("NDCOMPAT_MEMORY_WINDOWS", "2") };
    let adapter = open();
    // SAFETY: only Rust code reads the environment, under std's lock.
    unsafe { std::env::remove_var("NDCOMPAT_MEMORY_WINDOWS") };
    assert_eq!(info(&adapter).max_window_size, 1 << 31);
}

/// As with virtual functions of mlx5.
#[test]
fn adapters_whose_nodes_have_the_same_guid_have_ids_of_their_own() {
    let _turn = turn();
    add_second();
    let ids = || {
        [ADDRESS, SECOND_ADDRESS].map(|address| {
            let address = SockAddr::from(SocketAddr::from((address, 0)));
            // It is opened by the id of its address.
            let id = info(&open_at(address)).adapter_id;
            assert_eq!(ndcompat::provider::resolve_address(address), Ok(id));
            id
        })
    };
    let own = ids();
    assert_ne!(own[0], own[1]);
    for guid in [0, 7] {
        share_guid(Some(guid));
        let [first, second] = ids();
        assert!(first != second && first != guid && second != guid);
    }
    share_guid(None);
    assert_eq!(ids(), own);
}

#[test]
fn queues_interrupt_the_lowest_processor_of_their_affinity_and_others_take_turns() {
    let _turn = turn();
    let client = Client::new();
    let make = |group, mask| {
        let made: Result<Com<CompletionQueue>, _> =
            // SAFETY: `create` passes an id and a place for the object; the file is the client's.
            create(|iid, out| unsafe { client.adapter.create_completion_queue(iid, client.file, 4, group, mask, out) });
        made.unwrap();
        newest_vector()
    };
    assert_eq!([make(0, 0b1000), make(0, 1 << 6), make(1, 0b110)], [3, 2, 1]);
    let mut turns = [(); 4].map(|()| make(0, 0));
    turns.sort_unstable();
    assert_eq!(turns, [0, 1, 2, 3]);
    // A driver that has not so many as it reports, or has no interrupt left.
    for errno in [libc::EINVAL, libc::ENOMEM] {
        fail("ibv_create_cq", errno);
        assert_eq!(make(0, 0b1000), 0);
    }
}
