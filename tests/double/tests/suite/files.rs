//! Events of the whole device reach all of its files, which share one completion port.

use double::{raise_async, remove_device, turn};
use ndcompat::Status;
use ndcompat::verbs::bindings::IBV_EVENT_CQ_ERR;
use support::client::{Ov, file, open};
use support::com::{Adapter, Com, CompletionQueue, create};
use support::library::{CloseHandle, CreateIoCompletionPort, Port};

/// `ND_CQ_NOTIFY_ERRORS`
const ERRORS: u32 = 0;

/// A completion queue on a file of its own. `late`: the file is bound to the port after the queue was created.
fn queue_on(adapter: &Com<Adapter>, port: &Port, key: usize, late: bool) -> Com<CompletionQueue> {
    let file = file(adapter);
    // SAFETY: `create` passes an id and a place for the object; the file is this function's own, and closed once.
    unsafe {
        let bind =
            || assert_eq!(CreateIoCompletionPort(file, port.handle(), key, 0), port.handle(), "file {key}");
        if !late {
            bind();
        }
        let queue = create(|iid, out| adapter.create_completion_queue(iid, file, 4, 0, 0, out));
        if late {
            bind();
        }
        CloseHandle(file);
        queue.expect("a completion queue")
    }
}

/// Four queues, on two opens of the adapter, with `ovs` pending.
fn queues(port: &Port, late: bool, ovs: &mut [Ov; 4]) -> Vec<Com<CompletionQueue>> {
    let adapters = [open(), open()];
    let queues = (0..4).map(|at| queue_on(&adapters[at % 2], port, at, late)).collect::<Vec<_>>();
    for (queue, ov) in queues.iter().zip(ovs) {
        // SAFETY: the OVERLAPPED lives until it completes.
        assert_eq!(unsafe { queue.notify(ERRORS, ov.ptr()) }, Status::PENDING);
    }
    queues
}

#[test]
fn an_asynchronous_event_arrives_whichever_file_is_left() {
    let _turn = turn();
    for late in [false, true] {
        let port = Port::new();
        let mut ovs = [(); 4].map(|()| Ov::new());
        let mut queues = queues(&port, late, &mut ovs);
        for at in (0..4).rev() {
            // The newest queue fails.
            raise_async(IBV_EVENT_CQ_ERR);
            assert_eq!(port.packet(20_000), Some((at, ovs[at].ptr())));
            assert_eq!(ovs[at].internal(), Status::BUFFER_OVERFLOW);
            drop(queues.pop());
        }
        assert_eq!(port.packet(0), None);
    }
}

#[test]
fn all_hear_of_the_removal_once() {
    let _turn = turn();
    for late in [false, true] {
        let port = Port::new();
        let mut ovs = [(); 4].map(|()| Ov::new());
        let mut queues = queues(&port, late, &mut ovs);
        // The queue on the first file.
        drop(queues.remove(0));
        assert_eq!(port.packet(20_000), Some((0, ovs[0].ptr())));
        assert_eq!(ovs[0].internal(), Status::CANCELED);
        remove_device();
        let mut told: Vec<_> = (1..4).map(|_| port.packet(20_000).expect("a packet")).collect();
        told.sort_unstable();
        let pending = |at: usize, ov: &mut Ov| (at, ov.ptr());
        assert_eq!(told, (1..4).map(|at| pending(at, &mut ovs[at])).collect::<Vec<_>>());
        assert!(ovs[1..].iter().all(|ov| ov.internal() == Status::DEVICE_REMOVED));
        assert_eq!(port.packet(0), None);
    }
}
