//! Our way: the interfaces of the built library, as a C program calls them.

use crate::{BATCH, BYTES, DEPTH, Kind, Path, Wait};
use ndcompat::Status;
use ndcompat::types::{Completion, NotifyType, RequestFlags, Sge};
use std::cell::RefCell;
use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use support::client::{Client, Ov, connect, open};
use support::com::{Adapter, Com, create};
use support::library::{Port, event};

/// Connected ends; all their queues have the depth of a round.
pub struct Ours {
    client: Client,
    _peer: Client,
    list: [Sge; 1],
    remote: (u64, u32),
    /// One for each way of waiting, of which only the first needs an event.
    ovs: RefCell<[Ov; 2]>,
    /// One whose requests are waited for by themselves, and one where they go to a port. Neither has been asked for silence.
    waiting: [Client; 2],
    _waiting_peers: [Client; 2],
    port: Port,
}

impl Ours {
    /// Connects the ends. The device must still be one that connects, or have done so before.
    pub fn new() -> Ours {
        let adapter = open();
        let pair = || {
            let ends = [deep(&adapter), deep(&adapter)];
            connect(&ends[0], &ends[1]);
            ends
        };
        let ([client, peer], [single, single_peer], [ported, ported_peer]) = (pair(), pair(), pair());
        let list = [client.sge(0, BYTES)];
        // SAFETY: the region lives.
        let remote = (peer.memory.as_ptr() as u64, unsafe { peer.region.get_remote_token() });
        let port = Port::on(ported.file, 1);
        Ours {
            client,
            _peer: peer,
            list,
            remote,
            ovs: RefCell::new([Ov::with(event(false)), Ov::new()]),
            waiting: [single, ported],
            _waiting_peers: [single_peer, ported_peer],
            port,
        }
    }
}

/// An end with deep queues.
fn deep(adapter: &Com<Adapter>) -> Client {
    let mut client = Client::on(adapter);
    let file = client.file;
    // SAFETY: the queue is made on the adapter of its file, and the pair on the queue, which lives; the results are locals.
    unsafe {
        client.completion_queue =
            create(|iid, out| adapter.create_completion_queue(iid, file, 2 * DEPTH, 0, 0, out)).unwrap();
        let queue = client.completion_queue.as_ptr();
        client.queue_pair = create(|iid, out| {
            adapter.create_queue_pair(iid, queue, queue, null_mut(), DEPTH, DEPTH, 2, 2, 256, out)
        })
        .unwrap();
    }
    client
}

/// Takes up to `most` results of `client`.
#[inline(always)]
fn results(client: &Client, most: usize) -> usize {
    let mut results = [const { MaybeUninit::<Completion>::uninit() }; BATCH];
    let most = most.min(BATCH) as u32;
    // SAFETY: there is room for that many, and as many as it says are written.
    unsafe {
        let count = client.completion_queue.get_results(results.as_mut_ptr().cast(), most) as usize;
        for result in &results[..count] {
            let result = result.assume_init_ref();
            assert!(result.status == Status::SUCCESS);
            black_box(result.request_context);
        }
        count
    }
}

impl Default for Ours {
    fn default() -> Ours {
        Ours::new()
    }
}

impl Path for Ours {
    #[inline(always)]
    fn post(&self, kind: Kind, number: u64) {
        let (queue, context, list) = (&self.client.queue_pair, number as *mut c_void, self.list.as_ptr());
        let (address, token) = self.remote;
        // SAFETY: the memory lives as long as the client.
        let status = unsafe {
            match kind {
                Kind::Send => queue.send(context, list, 1, RequestFlags::empty()),
                Kind::Inline => queue.send(context, list, 1, RequestFlags::INLINE),
                Kind::Silent => queue.send(context, list, 1, RequestFlags::SILENT_SUCCESS),
                Kind::Read => queue.read(context, list, 1, address, token, RequestFlags::empty()),
                Kind::Write => queue.write(context, list, 1, address, token, RequestFlags::empty()),
                Kind::Receive => queue.receive(context, list, 1),
            }
        };
        assert!(status == Status::SUCCESS);
    }

    #[inline(always)]
    fn await_send(&self, how: Wait, number: u64) {
        let way = usize::from(how == Wait::Port);
        let client = &self.waiting[way];
        let (queue, ov) = (&client.completion_queue, &mut self.ovs.borrow_mut()[way]);
        // SAFETY: the OVERLAPPED and the memory live.
        unsafe {
            assert!(queue.notify(NotifyType::Any as u32, ov.ptr()) == Status::PENDING);
            let list = self.list.as_ptr();
            assert!(
                client.queue_pair.send(number as *mut c_void, list, 1, RequestFlags::empty())
                    == Status::SUCCESS
            );
            match how {
                Wait::Result => assert!(queue.get_overlapped_result(ov.ptr(), 1) == Status::SUCCESS),
                Wait::Port => assert!(self.port.packet(u32::MAX) == Some((1, ov.ptr()))),
            }
        }
        assert!(results(client, 1) == 1);
    }

    #[inline(always)]
    fn results(&self, most: usize) -> usize {
        results(&self.client, most)
    }
}
