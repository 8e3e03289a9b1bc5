//! Threads that post, poll and wait, while another ends the connection.

use double::turn;
use ndcompat::Status;
use ndcompat_tests::client::{Client, Ov, connected};
use ndcompat_tests::com::Overlapping;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How many threads post.
const POSTERS: usize = 2;
/// How many requests each posts.
const REQUESTS: usize = 400;
/// After how many results the end comes.
const END: usize = POSTERS * REQUESTS / 3;
/// How many connections are used so.
const ROUNDS: usize = 20;
/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

/// Every request is accepted, and reported once, whatever became of it.
#[test]
fn each_request_is_reported_once() {
    let _turn = turn();
    for round in 0..ROUNDS {
        let (client, peer) = connected();
        let mut ov = Ov::new();
        let end = || match round % 3 {
            // SAFETY: no arguments.
            0 => assert_eq!(unsafe { client.queue_pair.flush() }, Status::SUCCESS),
            1 => assert_eq!(client.disconnect(&mut ov), Status::PENDING),
            _ => assert_eq!(peer.disconnect(&mut ov), Status::PENDING),
        };
        use_until(&client, &peer, end);
        if round % 3 != 0 {
            assert_eq!(ov.wait(&client.connector), Status::SUCCESS);
        }
    }
}

/// Sends from some threads, reaps in others, and calls `end` in the middle of it.
fn use_until(client: &Client, peer: &Client, end: impl FnOnce()) {
    let seen: Vec<AtomicU32> = (0..POSTERS * REQUESTS).map(|_| AtomicU32::new(0)).collect();
    let reported = AtomicUsize::new(0);
    let all_reported = || reported.load(Ordering::Relaxed) >= seen.len();
    let reap = || {
        while let Some(result) = client.try_result() {
            assert!(matches!(result.status, Status::SUCCESS | Status::CANCELED), "{}", result.status);
            seen[result.request_context as usize].fetch_add(1, Ordering::Relaxed);
            reported.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for first in (0..POSTERS).map(|thread| thread * REQUESTS) {
            scope.spawn(move || {
                for context in first..first + REQUESTS {
                    loop {
                        match client.send(context, 8, 0) {
                            Status::SUCCESS => break,
                            status => assert_eq!(status, Status::NO_MORE_ENTRIES),
                        }
                        thread::yield_now();
                    }
                }
            });
        }
        // One polls, and the peer gives what the messages need.
        scope.spawn(|| {
            while !all_reported() {
                peer.receive(0, 8);
                peer.try_result();
                reap();
                thread::yield_now();
            }
        });
        let waiter = scope.spawn(|| {
            while !all_reported() {
                let mut ov = Ov::new();
                // SAFETY: waited for.
                assert_eq!(unsafe { client.completion_queue.notify(ANY, ov.ptr()) }, Status::PENDING);
                assert!(matches!(ov.wait(&client.completion_queue), Status::SUCCESS | Status::CANCELED));
                reap();
            }
        });
        while reported.load(Ordering::Relaxed) < END {
            thread::yield_now();
        }
        end();
        // The other may have taken all that there was to wait for.
        let requests = client.completion_queue.cast::<Overlapping>().expect("IND2Overlapped");
        while !waiter.is_finished() {
            thread::sleep(Duration::from_millis(1));
            if all_reported() {
                // SAFETY: no arguments.
                unsafe { requests.cancel_overlapped_requests() };
            }
        }
    });
    assert!(seen.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    assert!(client.try_result().is_none());
}
