//! Our way: the interfaces of the built library, as a C program calls them.

use crate::{BATCH, BYTES, DEPTH, Kind, Path};
use ndcompat::Status;
use ndcompat::types::{Completion, Sge, op_flags};
use ndcompat_tests::client::{Client, connect, open};
use ndcompat_tests::com::create;
use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// A connected end; all its queues have the depth of a round.
pub struct Ours {
    client: Client,
    _peer: Client,
    list: [Sge; 1],
    remote: (u64, u32),
}

impl Ours {
    /// Connects two ends. The device must still be one that connects, or have done so before.
    pub fn new() -> Ours {
        let adapter = open();
        let (mut client, peer) = (Client::on(&adapter), Client::on(&adapter));
        // SAFETY: the arguments are valid.
        unsafe {
            let file = client.file;
            client.completion_queue =
                create(|iid, out| adapter.create_completion_queue(iid, file, 2 * DEPTH, 0, 0, out)).unwrap();
            let queue = client.completion_queue.as_ptr();
            client.queue_pair = create(|iid, out| {
                adapter.create_queue_pair(iid, queue, queue, null_mut(), DEPTH, DEPTH, 2, 2, 256, out)
            })
            .unwrap();
        }
        connect(&client, &peer);
        let list = [client.sge(0, BYTES)];
        // SAFETY: the region lives.
        let remote = (peer.memory.as_ptr() as u64, unsafe { peer.region.get_remote_token() });
        Ours { client, _peer: peer, list, remote }
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
                Kind::Send => queue.send(context, list, 1, 0),
                Kind::Inline => queue.send(context, list, 1, op_flags::INLINE),
                Kind::Silent => queue.send(context, list, 1, op_flags::SILENT_SUCCESS),
                Kind::Read => queue.read(context, list, 1, address, token, 0),
                Kind::Write => queue.write(context, list, 1, address, token, 0),
                Kind::Receive => queue.receive(context, list, 1),
            }
        };
        assert!(status == Status::SUCCESS);
    }

    #[inline(always)]
    fn results(&self, most: usize) -> usize {
        let mut results = [const { MaybeUninit::<Completion>::uninit() }; BATCH];
        let most = most.min(BATCH) as u32;
        // SAFETY: there is room for that many, and as many as it says are written.
        unsafe {
            let count = self.client.completion_queue.get_results(results.as_mut_ptr().cast(), most) as usize;
            for result in &results[..count] {
                let result = result.assume_init_ref();
                assert!(result.status == Status::SUCCESS);
                black_box(result.request_context);
            }
            count
        }
    }
}
