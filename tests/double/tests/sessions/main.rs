//! Sessions of the Rust API: what they keep alive while requests are outstanding, and how they wait.

mod failures;
mod memory;
mod peers;
#[path = "../../../shared/sessions.rs"]
mod shared;
mod waiting;

use double::{
    CmEvent, Side, call_that_failed, complete_with, fail, fail_call, heap, hold, pending, raise_async,
    raise_event, remove_device, turn,
};
use ndcompat::types::{Completion, RegionFlags, RequestFlags};
use ndcompat::verbs::bindings::{IBV_EVENT_CQ_ERR, RDMA_CM_EVENT_REJECTED};
use ndcompat::{
    Connection, Memory, Offer, Pair, Port, Provider, QueuePairConfig, RemoteMemory, Session, Status,
};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// The allocator always maps blocks of this size separately.
const LENGTH: usize = 40 << 20;
/// The time limit.
const SOON: Duration = Duration::from_secs(60);

/// Whether a block is in use that was not when the heap was `before`. Other threads of the program use the heap, too, but little of it.
fn is_kept(length: usize, before: isize) -> bool {
    heap() - before > length as isize / 2
}

fn session() -> Session {
    Session::new(&Provider::open_any().unwrap()).unwrap()
}

/// Two ends of a connection, both of `session`. `first` posts on the second before it is connected.
fn connected(session: &Session, first: impl FnOnce(&Pair)) -> (Connection, Connection) {
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, ..Offer::default() };
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = session.queue_pair().name(1).build().unwrap();
            session.wait(session.connect(pair, address, offer)).unwrap()
        });
        let pair = session.queue_pair().name(2).build().unwrap();
        first(&pair);
        let request = session.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let accepted = session.wait(request.accept(pair, offer)).unwrap();
        (connecting.join().unwrap(), accepted)
    })
}

/// Two ends of a connection, of a session each. The second has room for so many receives; `first` posts there before it is connected.
fn connect_to(
    client: &Session,
    server: &Session,
    receives: u32,
    first: impl FnOnce(&Pair),
) -> (Connection, Connection) {
    let acceptor = server.listen(own()).unwrap();
    let address = acceptor.local_address().unwrap();
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = client.queue_pair().build().unwrap();
            client.wait(client.connect(pair, address, Offer::default())).unwrap()
        });
        let pair = server.queue_pair().receives(receives).build().unwrap();
        first(&pair);
        let request = server.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let accepted = server.wait(request.accept(pair, Offer::default())).unwrap();
        (connecting.join().unwrap(), accepted)
    })
}

fn own() -> SocketAddr {
    Provider::addresses().unwrap()[0]
}

/// What the session's `Debug` tells, which takes no results.
fn outstanding(session: &Session) -> usize {
    let text = format!("{session:?}");
    let digits = text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    digits.expect("a number").parse().unwrap()
}

/// The number of wake-ups of a task.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
