//! Queues of any size within the adapter's limits can be created, and many of them.

use ndcompat::QueuePairConfig;
use support::adapter;

/// Sizes from 1 to `most`: powers of two, their neighbours, and round numbers.
fn sizes(most: u32) -> Vec<u32> {
    let powers = (0..15).flat_map(|bit| [(1_u32 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    let mut sizes: Vec<_> = powers.chain([10, 20, 50, 100, 200, 500, 1000, 2000, 3000, most]).collect();
    sizes.retain(|&size| 0 < size && size <= most);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[test]
fn completion_queues_of_all_sizes() {
    let adapter = adapter();
    let file = adapter.create_overlapped_file().unwrap();
    for depth in sizes(adapter.info().unwrap().max_completion_queue_depth) {
        let made = adapter.create_completion_queue(&file, depth, (0, 0));
        assert!(made.is_ok(), "{depth} results: {:?}", made.err());
    }
}

#[test]
fn queue_pairs_of_all_sizes() {
    let adapter = adapter();
    let info = adapter.info().unwrap();
    let file = adapter.create_overlapped_file().unwrap();
    let mut failed = Vec::new();
    for results in [128, 4096] {
        let queue = adapter.create_completion_queue(&file, results, (0, 0)).unwrap();
        for initiator in sizes(info.max_initiator_queue_depth) {
            for receive in [1, 128, initiator.min(info.max_receive_queue_depth)] {
                for sge in [1, 2, 4, info.max_initiator_sge.min(info.max_receive_sge)] {
                    let made = adapter.create_queue_pair(QueuePairConfig {
                        receive_completion_queue: queue.clone(),
                        initiator_completion_queue: queue.clone(),
                        context: 0,
                        shared_receive_queue: None,
                        receive_queue_depth: receive,
                        initiator_queue_depth: initiator,
                        max_receive_sge: sge,
                        max_initiator_sge: sge,
                        inline_data_size: 0,
                    });
                    if let Err(status) = made {
                        failed.push((results, receive, initiator, sge, status));
                    }
                }
            }
        }
    }
    assert!(failed.is_empty(), "(results, receives, others, entries): {failed:?}");
}

#[test]
fn many_queues_at_once() {
    let adapter = adapter();
    let file = adapter.create_overlapped_file().unwrap();
    let queues: Vec<_> = (0..400)
        .map(|number| {
            let made = adapter.create_completion_queue(&file, 1, (0, 0));
            made.unwrap_or_else(|status| panic!("queue {number}: {status:?}"))
        })
        .collect();
    drop(queues);
}
