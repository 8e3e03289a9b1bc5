//! What drivers of hardware report and do, and neither soft-RoCE nor soft-iWARP does.

use double::{report_attributes, report_longest_message, turn};
use ndcompat::Status;
use ndcompat::types::RequestFlags;
use support::client::{connected, info, open};

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
    let (mut active, mut passive) = connected();
    assert_eq!(passive.receive(1, 64), Status::SUCCESS);
    assert_eq!(active.send(2, 5, RequestFlags::empty()), Status::SUCCESS);
    assert_eq!((active.result().status, passive.result().status), (Status::SUCCESS, Status::SUCCESS));
}
