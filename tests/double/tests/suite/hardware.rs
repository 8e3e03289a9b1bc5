//! What drivers of hardware report and do, and neither soft-RoCE nor soft-iWARP does.

use double::{report_attributes, turn};
use support::client::{info, open};

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
