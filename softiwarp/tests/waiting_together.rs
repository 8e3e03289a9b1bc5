//! Messages of several connections that wait for receives: of a shared queue, and with threads that do everything at once.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use softiwarp::completion::{CompletionQueue, Status};
use softiwarp::memory::Memory;
use softiwarp::queue_pair::{Payload, QueuePair, QueuePairConfig, SendRequest, SharedReceiveQueue};
use softiwarp::socket::{Background, Connection, Event};
use support::device::*;

/// Several connections that share their receives.
struct Shared {
    /// Of the senders, then one for each of the others, so that a test says whose connection is driven.
    devices: Vec<Device>,
    queue: Arc<SharedReceiveQueue>,
    received: Arc<CompletionQueue>,
    ours: Vec<Arc<Connection>>,
    theirs: Vec<(End, Arc<Connection>)>,
    _ends: Vec<End>,
}

impl Shared {
    fn new(count: u32, limit: Duration) -> Shared {
        let devices: Vec<_> = (0..=count).map(|_| Device::new()).collect();
        let queue = Arc::new(SharedReceiveQueue::new(Memory::new().domain(), 64, 4, || {}));
        let received = Arc::new(CompletionQueue::new(10_000, |_| {}));
        let (mut ours, mut theirs, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (number, device) in (1..).zip(&devices[1..]) {
            let both = [&devices[0], device];
            let (_listener, address) = device.listen("127.0.0.1:0");
            let sent = Arc::new(CompletionQueue::new(64, |_| {}));
            let mut pair = QueuePair::new(QueuePairConfig {
                number,
                domain: device.domain.clone(),
                send_completions: Arc::clone(&sent),
                receive_completions: Arc::clone(&received),
                send_depth: 16,
                receive_depth: 1,
                shared_receives: Some(Arc::clone(&queue)),
                pieces_max: 4,
                inline_max: 64,
            });
            pair.wait_for_receives(limit);
            let end = End { pair: Arc::new(Mutex::new(pair)), sent, received: Arc::clone(&received) };
            let near = devices[0].end(number);
            ours.push(devices[0].connect(address, OFFER, b"", &near));
            ends.push(near);
            let (asking, _) = event(&both, device);
            asking.accept(&OFFER, b"", Arc::clone(&end.pair)).unwrap();
            assert!(matches!(event(&both, &devices[0]).1, Event::Established { .. }));
            theirs.push((end, asking));
        }
        Shared { devices, queue, received, ours, theirs, _ends: ends }
    }

    fn all(&self) -> Vec<&Device> {
        self.devices.iter().collect()
    }

    /// Has a message of a connection wait. The others are not driven.
    fn wait(&self, number: usize) {
        post(&self.ours[number], 1, SEND, &[]);
        until_one_waits(&[&self.devices[0], &self.devices[number + 1]], &self.theirs[number].0);
    }

    /// The numbers of the connections whose messages are received next.
    fn received(&self, count: usize) -> Vec<u32> {
        let done = completions(&self.all(), &self.received, count);
        done.iter().map(|done| done.queue_pair - 1).collect()
    }
}

#[test]
fn receives_of_a_shared_queue_go_to_those_who_have_waited_longest() {
    let shared = Shared::new(4, LONG);
    for number in [2, 0, 1] {
        shared.wait(number);
    }
    shared.queue.post(1, &[]).unwrap();
    assert_eq!(shared.received(1), [2]);
    // One that has just arrived does not come before those that wait, though it is driven first.
    shared.queue.post(2, &[]).unwrap();
    shared.wait(3);
    assert!(shared.received.poll().is_none());
    assert_eq!(shared.received(1), [0]);
    for id in 3..5 {
        shared.queue.post(id, &[]).unwrap();
    }
    let mut last = shared.received(2);
    last.sort_unstable();
    assert_eq!(last, [1, 3]);
    assert!(shared.received.poll().is_none());
    // Nobody waits any more: a receive is anybody's.
    shared.queue.post(5, &[]).unwrap();
    post(&shared.ours[2], 2, SEND, &[]);
    assert_eq!(shared.received(1), [2]);
}

#[test]
fn who_ends_while_it_waits_for_a_shared_receive_leaves_it_to_the_next() {
    for called in [false, true] {
        let shared = Shared::new(2, LONG);
        shared.wait(0);
        shared.wait(1);
        if called {
            shared.queue.post(1, &[]).unwrap();
        }
        // Before anybody has driven the device.
        shared.theirs[0].1.disconnect();
        if !called {
            shared.queue.post(1, &[]).unwrap();
        }
        assert_eq!(shared.received(1), [1]);
    }
    // A queue pair that is dropped without an end.
    let mut shared = Shared::new(2, LONG);
    shared.wait(0);
    shared.wait(1);
    shared.queue.post(1, &[]).unwrap();
    let (end, connection) = shared.theirs.remove(0);
    end.pair.lock().abandon();
    drop((end, connection));
    assert_eq!(shared.received(1), [1]);
}

/// Threads send, post receives and drive at once. No receive stays without a message while one waits.
#[test]
fn no_wake_up_is_lost() {
    // No queue has less room for results.
    const COUNT: u64 = 1000;
    let shared = Shared::new(3, LONG);
    let own = waiting_for_receives(LONG);
    let Connected { devices, ends, connections } = &own;
    let drivers: Vec<_> = shared.all().into_iter().chain([&devices.0, &devices.1]).collect();
    let _background: Vec<_> =
        drivers.iter().map(|device| Background::start(Arc::clone(&device.poller)).unwrap()).collect();
    let done = AtomicBool::new(false);
    // Posting is tried until there is room.
    let begin = Instant::now();
    let retry = |mut post: Box<dyn FnMut() -> bool + '_>| {
        while !post() {
            assert!(begin.elapsed() < LONG, "there is never room");
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        for connection in shared.ours.iter().chain([&connections.0]) {
            scope.spawn(|| {
                let payload = Payload::Pieces(&[]);
                for id in 0..COUNT {
                    let request = SendRequest { id, work: SEND, payload, signaled: false, fence: false };
                    retry(Box::new(|| connection.post_send(&request).is_ok()));
                }
            });
        }
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(1);
            for id in 0..COUNT * shared.ours.len() as u64 {
                retry(Box::new(|| shared.queue.post(id, &[]).is_ok()));
                pause(&mut random);
            }
        });
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(2);
            for id in 0..COUNT {
                retry(Box::new(|| ends.1.pair.lock().post_receive(id, &[]).is_ok()));
                pause(&mut random);
            }
        });
        // One thread sleeps in `drive` now and then, so that the background does not serve all.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && begin.elapsed() < LONG {
                shared.devices[1].poller.drive(Some(Duration::from_millis(1)));
                thread::sleep(Duration::from_micros(200));
            }
        });
        let mut left = [COUNT * shared.ours.len() as u64, COUNT];
        let mut last = begin;
        while left != [0, 0] {
            for (left, queue) in left.iter_mut().zip([&shared.received, &ends.1.received]) {
                while let Some(done) = queue.poll() {
                    assert_eq!(done.status, Status::Success);
                    *left -= 1;
                    last = Instant::now();
                }
            }
            assert!(last.elapsed() < LONG, "a message waits for ever: {left:?}");
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
}

fn pause(random: &mut fastrand::Rng) {
    if random.u8(..) < 16 {
        thread::sleep(Duration::from_micros(random.u64(0..300)));
    }
}
