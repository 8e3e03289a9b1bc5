//! Connections that several threads create, use and end concurrently.

use double::turn;
use ndcompat::Status;
use ndcompat::types::RequestFlags;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::client::{Client, Ov, TIME_LIMIT, connect, connected, listen_on, messages_pass, open};
use support::com::Overlapping;

/// How many threads post.
const POSTERS: usize = 2;
/// How many requests each posts.
const REQUESTS: usize = 400;
/// The connection is ended after this many results.
const END: usize = POSTERS * REQUESTS / 3;
/// The number of connections.
const ROUNDS: usize = 20;
/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

/// Every request is accepted, and reported once, whether it succeeds or not.
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

/// Successful silent requests are not reported. Requests posted after the end are.
#[test]
fn silent_requests_do_not_delay_other_results() {
    let _turn = turn();
    for loud_last in [false, true] {
        let (client, peer) = connected();
        for context in 0..2 {
            assert_eq!(peer.receive(context, 8), Status::SUCCESS);
            assert_eq!(client.send(context, 8, RequestFlags::SILENT_SUCCESS), Status::SUCCESS);
            assert_eq!(peer.result().status, Status::SUCCESS);
        }
        if loud_last {
            assert_eq!(client.send(2, 8, RequestFlags::empty()), Status::SUCCESS);
        }
        // SAFETY: no arguments.
        assert_eq!(unsafe { client.queue_pair.flush() }, Status::SUCCESS);
        assert_eq!(client.send(3, 8, RequestFlags::empty()), Status::SUCCESS);
        for context in if loud_last { 2..4 } else { 3..4 } {
            let result = client.result();
            assert_eq!((result.status, result.request_context), (Status::CANCELED, context));
        }
        assert!(client.try_result().is_none());
    }
}

/// Sends from some threads, takes results in others, and calls `end` meanwhile.
fn use_until(client: &Client, peer: &Client, end: impl FnOnce()) {
    let seen: Vec<AtomicU32> = (0..POSTERS * REQUESTS).map(|_| AtomicU32::new(0)).collect();
    let reported = AtomicUsize::new(0);
    let deadline = Instant::now() + TIME_LIMIT;
    let over = || reported.load(Ordering::Relaxed) >= seen.len() || Instant::now() > deadline;
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
                    client.send_in_turn(context, 8);
                }
            });
        }
        // One thread polls and reposts the peer's receives.
        scope.spawn(|| {
            while !over() {
                peer.receive(0, 8);
                peer.try_result();
                reap();
                thread::yield_now();
            }
        });
        let waiter = scope.spawn(|| {
            while !over() {
                let mut ov = Ov::new();
                // SAFETY: waited for.
                assert_eq!(unsafe { client.completion_queue.notify(ANY, ov.ptr()) }, Status::PENDING);
                assert!(matches!(ov.wait(&client.completion_queue), Status::SUCCESS | Status::CANCELED));
                reap();
            }
        });
        while reported.load(Ordering::Relaxed) < END && !over() {
            thread::yield_now();
        }
        end();
        // The other thread may have taken all results.
        let requests = client.completion_queue.cast::<Overlapping>().expect("IND2Overlapped");
        while !waiter.is_finished() {
            thread::sleep(Duration::from_millis(1));
            if over() {
                // SAFETY: no arguments.
                unsafe { requests.cancel_overlapped_requests() };
            }
        }
    });
    assert!(seen.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    assert!(client.try_result().is_none());
}

/// How many threads connect.
const MAKERS: usize = 4;
/// How many connections each makes.
const EACH: usize = 25;

/// On one adapter, with files for each thread.
#[test]
fn threads_connect_at_once() {
    let _turn = turn();
    let adapter = open();
    thread::scope(|scope| {
        for _ in 0..MAKERS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
                    drop(connect(&active, &passive));
                    messages_pass(&active, &passive);
                    let mut ov = Ov::new();
                    assert_eq!(active.disconnect(&mut ov), Status::PENDING);
                    assert_eq!(ov.wait(&active.connector), Status::SUCCESS);
                }
            });
        }
    });
}

/// One thread waits for a `Connect` that another cancels: it completes exactly once.
#[test]
fn a_connect_is_cancelled_from_another_thread() {
    let _turn = turn();
    let adapter = open();
    let passive = Client::on(&adapter);
    let (_listener, at) = listen_on(&adapter, passive.file);
    for _ in 0..EACH {
        let client = Client::on(&adapter);
        assert_eq!(client.bind(), Status::SUCCESS);
        let mut ov = Ov::new();
        // There is no accept, so only the cancellation ends it.
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| ov.wait(&client.connector));
            thread::yield_now();
            // SAFETY: no arguments.
            unsafe { client.connector.cancel_overlapped_requests() };
            assert_eq!(waiter.join().unwrap(), Status::CANCELED);
        });
    }
}
