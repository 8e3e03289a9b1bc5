//! `ND_OP_FLAG_READ_FENCE`: requests that depend on the data of an earlier read.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags, RequestType};
use support::{End, Memory, Pair, adapter, address};

/// Long enough for a read to be in progress when the next request is posted.
const LENGTH: usize = 1 << 20;

#[test]
fn fenced_requests_wait_for_the_read_before_them() {
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
    let adapter = adapter();
    let pair = Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer);
    let everything = RegionFlags::ALLOW_REMOTE_READ | RegionFlags::ALLOW_REMOTE_WRITE;
    let ours = Memory::new(&adapter, &pair.active.file, LENGTH, everything);
    let mut theirs = Memory::new(&adapter, &pair.passive.file, 2 * LENGTH, everything);
    let (active, passive) = (&pair.active, &pair.passive);
    let (source, token) = (theirs.remote_address(0), theirs.region.remote_token());
    // The send forwards the last bytes that the read fetches.
    let tail = LENGTH - 64..LENGTH;
    for round in 1..=10_u8 {
        theirs.bytes[..LENGTH].fill(round);
        passive.receive(1, 0..64).unwrap();
        // SAFETY: the memory outlives the requests; what they bring is looked at when they are done.
        unsafe {
            let written = theirs.remote_address(LENGTH);
            active.queue_pair.read(2, &[ours.sge(0..LENGTH)], source, token, RequestFlags::empty()).unwrap();
            active.queue_pair.send(3, &[ours.sge(tail.clone())], RequestFlags::READ_FENCE).unwrap();
            active.queue_pair.read(4, &[ours.sge(0..LENGTH)], source, token, RequestFlags::empty()).unwrap();
            let tail = [ours.sge(tail.clone())];
            active.queue_pair.write(5, &tail, written, token, RequestFlags::READ_FENCE).unwrap();
        }
        let kinds = [RequestType::Read, RequestType::Send, RequestType::Read, RequestType::Write];
        for (context, kind) in (2..).zip(kinds) {
            let done = active.completion();
            let seen = (done.status, done.request_context, done.request_type);
            assert_eq!(seen, (Status::SUCCESS, context, kind));
        }
        assert_eq!(passive.completion().status, Status::SUCCESS);
        assert!(
            passive.memory.bytes[..64].iter().all(|&byte| byte == round),
            "sent too early, round {round}"
        );
    }
    // Where a completed write need not have arrived, the last one may still be in flight.
    passive.receive(6, 0..64).unwrap();
    active.send(7, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!(passive.completion().request_context, 6);
    assert!(theirs.bytes[LENGTH..][..64].iter().all(|&byte| byte == 10), "written too early");
}
