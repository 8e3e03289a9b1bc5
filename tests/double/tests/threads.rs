//! Many threads on one queue pair and its completion queue, on the null device, for the most contention.

use double::{complete_at_once, turn};
use ndcompat::Status;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use support::client::connected;

/// How many threads post, and how many poll.
const THREADS: usize = 3;
/// How many requests each posts.
const REQUESTS: usize = 20_000;

#[test]
fn each_result_is_seen_once() {
    let _turn = turn();
    let (client, _peer) = connected();
    complete_at_once();
    let seen: Vec<AtomicU32> = (0..THREADS * REQUESTS).map(|_| AtomicU32::new(0)).collect();
    let left = AtomicUsize::new(seen.len());
    thread::scope(|scope| {
        for first in (0..THREADS).map(|thread| thread * REQUESTS) {
            let client = &client;
            scope.spawn(move || {
                for context in first..first + REQUESTS {
                    client.send_in_turn(context, 8);
                }
            });
        }
        for _ in 0..THREADS {
            scope.spawn(|| {
                while left.load(Ordering::Relaxed) > 0 {
                    let Some(result) = client.try_result() else {
                        thread::yield_now();
                        continue;
                    };
                    assert_eq!(result.status, Status::SUCCESS);
                    seen[result.request_context as usize].fetch_add(1, Ordering::Relaxed);
                    left.fetch_sub(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(seen.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    assert!(client.try_result().is_none());
}
