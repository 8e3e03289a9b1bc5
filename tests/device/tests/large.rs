//! Transfers of more than 8 MiB, the limit that soft-RoCE reports; Windows programs receive 64 MiB at a time.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags};
use support::{End, Memory, Pair, adapter, address};

const LENGTH: usize = 9 << 20;
const RECEIVE: usize = 64 << 20;

#[test]
fn large_messages_arrive_whole() {
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
    let adapter = adapter();
    assert!(adapter.info().unwrap().max_transfer_length as usize >= RECEIVE);
    let pair = Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer);
    let everything = RegionFlags::ALLOW_REMOTE_READ | RegionFlags::ALLOW_REMOTE_WRITE;
    let mut ours = Memory::new(&adapter, &pair.active.file, LENGTH, everything);
    let mut theirs = Memory::new(&adapter, &pair.passive.file, RECEIVE, everything);
    let pattern: Vec<u8> = (0..LENGTH).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect();
    ours.bytes.copy_from_slice(&pattern);
    let (remote, token) = (theirs.remote_address(0), theirs.region.remote_token());
    let (active, passive) = (&pair.active, &pair.passive);
    // SAFETY: the memory outlives the requests.
    unsafe {
        passive.queue_pair.receive(1, &[theirs.sge(0..RECEIVE)]).unwrap();
        active.queue_pair.send(2, &[ours.sge(0..LENGTH)], RequestFlags::empty()).unwrap();
    }
    assert_eq!(active.completion().status, Status::SUCCESS);
    assert_eq!(passive.completion().bytes_transferred as usize, LENGTH);
    assert!(theirs.bytes[..LENGTH] == pattern, "sent");
    ours.bytes.fill(0);
    // SAFETY: the memory of both ends lives to the end of the test.
    unsafe {
        active.queue_pair.read(3, &[ours.sge(0..LENGTH)], remote, token, RequestFlags::empty()).unwrap()
    };
    assert_eq!(active.completion().status, Status::SUCCESS);
    assert!(ours.bytes == pattern, "read");
    theirs.bytes.fill(0);
    // SAFETY: the memory of both ends lives to the end of the test.
    unsafe {
        active.queue_pair.write(4, &[ours.sge(0..LENGTH)], remote, token, RequestFlags::empty()).unwrap()
    };
    assert_eq!(active.completion().status, Status::SUCCESS);
    // A read completes after the write before it has arrived, on iWARP, too. SAFETY: the memory of both ends lives to the end of
    // the test.
    unsafe {
        active.queue_pair.read(5, &[ours.sge(0..LENGTH)], remote, token, RequestFlags::empty()).unwrap()
    };
    assert_eq!(active.completion().status, Status::SUCCESS);
    assert!(theirs.bytes[..LENGTH] == pattern && ours.bytes == pattern, "written");
}
