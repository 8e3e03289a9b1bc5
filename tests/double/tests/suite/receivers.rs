//! Receives that the peer lacks, and shared receive queues that get low.

use crate::shared_queue;
use double::{Side, complete_with, flush_nothing, hold, objects, pending, take_completions_along, turn};
use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags};
use ndcompat::verbs::bindings::{IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR};
use std::ffi::c_void;
use std::sync::mpsc::Sender;
use std::time::Instant;
use support::client::{Client, Ov, TIME_LIMIT, connect, open};
use support::com::{Adapter, Com, QueuePair, SharedReceiveQueue, create};
use support::{End, Memory, Pair, address, establish, listen};

/// Sends a message that meets no receive.
fn times_out(end: &End) {
    end.send(1000, 0..64, RequestFlags::empty()).unwrap();
    let result = end.notified_completion();
    assert_eq!((result.status, result.request_context), (Status::IO_TIMEOUT, 1000));
}

/// Each long message has its time while it is on its way, not afterwards.
#[test]
fn a_stream_of_long_messages_does_not_put_off_the_time_limit_of_the_next() {
    const LENGTH: usize = 1 << 20;
    let _turn = turn();
    let Pair { active, passive } = Pair::new();
    let own = Memory::new(&active.adapter, &active.file, LENGTH, RegionFlags::empty());
    let peer = Memory::new(&passive.adapter, &passive.file, LENGTH, RegionFlags::ALLOW_REMOTE_WRITE);
    for context in 0..300 {
        let (from, to, token) = (own.sge(0..LENGTH), peer.remote_address(0), peer.region.remote_token());
        // SAFETY: both buffers live until the result is taken.
        unsafe { active.queue_pair.write(context, &[from], to, token, RequestFlags::empty()) }.unwrap();
        assert_eq!(active.completion().status, Status::SUCCESS);
    }
    times_out(&active);
}

/// The clock of a file ticks for all its connections, also while one of them is being made.
#[test]
fn a_slow_accept_does_not_lose_the_time_limit_of_its_messages() {
    let _turn = turn();
    let first = Pair::new();
    let (adapter, file) = (&first.passive.adapter, &first.passive.file);
    let active = End::new(adapter, 3);
    let connector = adapter.create_connector(file).unwrap();
    let passive = End { connector, file: file.clone(), ..End::new(adapter, 4) };
    let (listener, at) = listen(adapter, file, address());
    active.connector.bind(address()).unwrap();
    let held = hold("rdma_accept");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            establish(&active, &passive, (&listener, at), [Offer::default(), Offer::default()], || ())
        });
        // Some ticks later.
        times_out(&first.passive);
        drop(held);
    });
    times_out(&passive);
}

fn queue_pair(own: &Client, shared: &Com<SharedReceiveQueue>) -> Com<QueuePair> {
    let queue = own.completion_queue.as_ptr();
    // SAFETY: `create` passes an id and a place for the object; the queues live.
    create(|iid, out| unsafe {
        let context = std::ptr::null_mut();
        own.adapter.create_queue_pair_with_srq(iid, queue, queue, shared.as_ptr(), context, 4, 1, 0, out)
    })
    .unwrap()
}

/// Two ends, of which the first takes its receives from a shared queue of eight.
fn sharing(adapter: &Com<Adapter>, threshold: u32) -> (Client, Client, Com<SharedReceiveQueue>) {
    let (mut own, peer) = (Client::on(adapter), Client::on(adapter));
    let shared = shared_queue(&own, 8, threshold);
    own.queue_pair = queue_pair(&own, &shared);
    (own, peer, shared)
}

/// Two connected ends, of which the first has its results and receives where `own` has them.
fn connected_beside(
    own: &Client,
    shared: &Com<SharedReceiveQueue>,
    adapter: &Com<Adapter>,
) -> (Client, Client) {
    let (mut other, peer) = (Client::on(adapter), Client::on(adapter));
    other.queue_pair = queue_pair(own, shared);
    connect(&peer, &other);
    (other, peer)
}

fn post(own: &Client, shared: &Com<SharedReceiveQueue>, receives: usize) {
    for context in 0..receives {
        // SAFETY: the memory lives as long as its owner.
        let status = unsafe { shared.receive(context as *mut c_void, &own.sge(0, 8), 1) };
        assert_eq!(status, Status::SUCCESS);
    }
}

fn send(peer: &Client, messages: usize) {
    for context in 0..messages {
        assert_eq!(peer.send(context, 8, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(peer.result().status, Status::SUCCESS);
    }
}

fn wait_until(complaint: &str, happens: impl Fn() -> bool) {
    let deadline = Instant::now() + TIME_LIMIT;
    while !happens() {
        assert!(Instant::now() < deadline, "{complaint}");
        std::thread::yield_now();
    }
}

fn ends(ov: &Ov) {
    wait_until("nobody is told that receives are few", || ov.internal() != Status::PENDING);
    assert_eq!(ov.internal(), Status::SUCCESS);
}

/// Releases the queue pair of `own`, and waits until the device has it no more.
fn replace_queue_pair(own: &mut Client, spare: &Client) {
    let queue_pairs = objects()[0];
    (own.queue_pair, own.connector) = (spare.queue_pair.cast().unwrap(), spare.connector.cast().unwrap());
    wait_until("it is not destroyed", || objects()[0] < queue_pairs);
}

/// As on mlx5: the receive is the shared queue's, and the queue pair's completions go with it.
#[test]
fn a_message_is_reported_though_its_queue_pair_has_gone_before_anybody_looked() {
    let _turn = turn();
    let adapter = open();
    let (mut own, peer, shared) = sharing(&adapter, 0);
    connect(&peer, &own);
    post(&own, &shared, 1);
    send(&peer, 1);
    take_completions_along();
    let spare = Client::on(&adapter);
    replace_queue_pair(&mut own, &spare);
    let result = own.result();
    assert_eq!((result.request_context, result.status, result.bytes_transferred), (0, Status::SUCCESS, 8));
}

/// What the failure asks for is done though it was found while another queue pair was released.
#[test]
fn a_failure_that_is_found_while_another_queue_pair_goes_ends_its_connection() {
    let _turn = turn();
    let adapter = open();
    let (mut own, peer, shared) = sharing(&adapter, 0);
    connect(&peer, &own);
    let (other, others_peer) = connected_beside(&own, &shared, &adapter);
    post(&own, &shared, 1);
    complete_with(Side::Receive, IBV_WC_LOC_PROT_ERR);
    assert_eq!(others_peer.send(0, 8, RequestFlags::empty()), Status::SUCCESS);
    assert!(!others_peer.result().status.is_success());
    let spare = Client::on(&adapter);
    replace_queue_pair(&mut own, &spare);
    assert!(!own.result().status.is_success());
    assert_eq!(other.send(7, 8, RequestFlags::empty()), Status::SUCCESS);
    let result = own.result();
    assert_eq!((result.request_context, result.status), (7, Status::CANCELED));
}

/// The queue pair stays, as a message may be half in one of the shared receives.
#[test]
fn shared_receives_serve_others_though_the_device_never_flushes_the_queue_pair_that_failed() {
    let _turn = turn();
    let adapter = open();
    let (own, peer, shared) = sharing(&adapter, 0);
    connect(&peer, &own);
    let (_other, others_peer) = connected_beside(&own, &shared, &adapter);
    post(&own, &shared, 2);
    // There is no receive for it.
    assert_eq!(own.send(7, 8, RequestFlags::empty()), Status::SUCCESS);
    flush_nothing();
    let queue_pairs = objects()[0];
    // SAFETY: no arguments.
    assert_eq!(unsafe { own.queue_pair.flush() }, Status::SUCCESS);
    let result = own.result();
    assert_eq!((result.request_context, result.status), (7, Status::CANCELED));
    assert_eq!(objects()[0], queue_pairs);
    send(&others_peer, 2);
    for context in 0..2 {
        let result = own.result();
        assert_eq!(
            (result.request_context, result.status, result.bytes_transferred),
            (context, Status::SUCCESS, 8)
        );
    }
}

#[test]
fn a_higher_threshold_does_not_cost_the_next_notification() {
    let _turn = turn();
    let adapter = open();
    let (own, peer, shared) = sharing(&adapter, 2);
    connect(&peer, &own);
    post(&own, &shared, 6);
    let (mut first, mut second) = (Ov::new(), Ov::new());
    // SAFETY: both OVERLAPPEDs live until they are complete.
    unsafe {
        assert_eq!(shared.notify(first.ptr()), Status::PENDING);
        assert_eq!(shared.modify(0, 8), Status::SUCCESS);
        ends(&first);
        assert_eq!(shared.modify(0, 4), Status::SUCCESS);
        assert_eq!(shared.notify(second.ptr()), Status::PENDING);
    }
    send(&peer, 3);
    // Nobody takes the results.
    ends(&second);
}

/// A limit that is armed when receives are few already is signalled by the next message only.
#[test]
fn a_limit_that_comes_too_late_does_not_cost_the_next_notification() {
    let _turn = turn();
    let adapter = open();
    let (own, peer, shared) = sharing(&adapter, 4);
    connect(&peer, &own);
    post(&own, &shared, 4);
    send(&peer, 2);
    let (mut first, mut second) = (Ov::new(), Ov::new());
    // SAFETY: both OVERLAPPEDs live until they are complete.
    unsafe {
        assert_eq!(shared.notify(first.ptr()), Status::PENDING);
        (0..2).for_each(|_| assert_eq!(own.result().status, Status::SUCCESS));
        ends(&first);
        post(&own, &shared, 4);
        assert_eq!(shared.notify(second.ptr()), Status::PENDING);
    }
    send(&peer, 2);
    assert_eq!(second.internal(), Status::PENDING, "four are left");
    send(&peer, 1);
    // Nobody takes the results.
    ends(&second);
}

/// Creating a queue pair with the number of one that is gone takes the results of that one, so that receives are few.
#[test]
fn who_waits_for_few_receives_is_told_by_a_queue_pair_that_takes_anothers_number() {
    let _turn = turn();
    let adapter = open();
    let (mut own, peer, shared) = sharing(&adapter, 4);
    // It takes the number that has just become free.
    let spare = Client::on(&adapter);
    connect(&peer, &own);
    post(&own, &shared, 4);
    send(&peer, 1);
    let mut few = Ov::new();
    // SAFETY: the OVERLAPPED lives until it is complete.
    assert_eq!(unsafe { shared.notify(few.ptr()) }, Status::PENDING);
    replace_queue_pair(&mut own, &spare);
    let _second = queue_pair(&own, &shared);
    assert_eq!(few.internal(), Status::SUCCESS);
}

/// Nobody takes the results, of which one needed the queue pair that it is of.
#[test]
fn queues_go_though_the_results_of_another_queue_pair_were_saved_there() {
    let _turn = turn();
    let adapter = open();
    let before = objects();
    let (mut own, peer, shared) = sharing(&adapter, 0);
    connect(&peer, &own);
    let (other, others_peer) = connected_beside(&own, &shared, &adapter);
    complete_with(Side::Initiator, IBV_WC_LOC_QP_OP_ERR);
    assert_eq!(other.send(0, 8, RequestFlags::empty()), Status::SUCCESS);
    let spare = Client::on(&adapter);
    replace_queue_pair(&mut own, &spare);
    drop((own, other, peer, others_peer, spare, shared));
    assert_eq!(objects(), before);
}

/// Has a queue pair go with its result, so that one receive is left where two are few; the device's event is held meanwhile. Nobody takes
/// the result.
fn goes_with_a_result(
    own: &mut Client,
    peer: &Client,
    shared: &Com<SharedReceiveQueue>,
    few: &mut Ov,
) -> Sender<()> {
    let spare = Client::on(&own.adapter);
    connect(peer, own);
    post(own, shared, 2);
    let held = hold("ibv_get_async_event");
    // SAFETY: the caller's OVERLAPPED lives until it is complete.
    assert_eq!(unsafe { shared.notify(few.ptr()) }, Status::PENDING);
    send(peer, 1);
    wait_until("nobody looks for the event", || pending() == 0);
    replace_queue_pair(own, &spare);
    held
}

#[test]
fn who_waits_for_few_receives_can_cancel_though_a_queue_pair_has_gone_that_used_one() {
    let _turn = turn();
    let (mut own, peer, shared) = sharing(&open(), 2);
    let mut few = Ov::new();
    let _held = goes_with_a_result(&mut own, &peer, &shared, &mut few);
    // SAFETY: no arguments.
    assert_eq!(unsafe { shared.cancel_overlapped_requests() }, Status::SUCCESS);
    assert_eq!(few.internal(), Status::CANCELED);
}

#[test]
fn who_waits_for_few_receives_is_told_by_the_device_though_a_queue_pair_has_gone_that_used_one() {
    let _turn = turn();
    let (mut own, peer, shared) = sharing(&open(), 2);
    let mut few = Ov::new();
    drop(goes_with_a_result(&mut own, &peer, &shared, &mut few));
    ends(&few);
}

/// Whichever comes first, the request ends.
#[test]
fn a_request_beside_the_close_of_its_listener_ends() {
    let _turn = turn();
    let adapter = support::adapter();
    let end = End::new(&adapter, 1);
    for round in 0..1000_u32 {
        let (listener, _) = listen(&adapter, &end.file, address());
        let connector = adapter.create_connector(&end.file).unwrap();
        let mut request = end.operation();
        let begun = std::thread::scope(|scope| {
            let closing = scope.spawn(|| {
                (0..round % 100 * 5).for_each(|_| std::hint::spin_loop());
                listener.close();
            });
            // SAFETY: waited for.
            let begun = unsafe { listener.connection_request(&connector, request.ov()) };
            closing.join().unwrap();
            begun
        });
        match begun {
            Ok(()) => assert_eq!(request.poll(), Status::CANCELED, "round {round}"),
            Err(status) => assert_eq!(status, Status::INVALID_DEVICE_STATE, "round {round}"),
        }
    }
}
