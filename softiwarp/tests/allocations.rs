//! Memory: none is asked for while messages come and go, and little is kept for a connection.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use softiwarp::queue_pair::{Cause, Payload, Phase, SendRequest, Work};
use softiwarp::wire::SendKind;
use support::device::*;
use support::{ALL, Block, Pair, pipes};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which counts what the thread asks for.
struct Counting;

fn count(calls: u64, bytes: isize) {
    // At the end of a thread there is nothing to count any more.
    let _ = CALLS.try_with(|all| all.set(all.get() + calls));
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: all is left to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        // SAFETY: as the caller says.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One of each kind there and back, of a few bytes and of many.
fn round(one: &Connected, blocks: &(Block, Block), depth: u64) {
    let both = [&one.devices.0, &one.devices.1];
    for (size, from) in [(8, 0), (200, 0), (5_000, 0), (300_000, 0)] {
        let token = blocks.1.token();
        for id in 0..depth {
            one.ends.1.pair.lock().post_receive(id, &[blocks.1.piece(0, 300_000)]).unwrap();
            let target = blocks.1.at(0);
            post(&one.connections.0, id, Work::Send(SendKind::default()), &[blocks.0.piece(from, size)]);
            post(
                &one.connections.0,
                id,
                Work::Write { token, offset: target },
                &[blocks.0.piece(from, size)],
            );
            post(&one.connections.0, id, Work::Read { token, offset: target }, &[blocks.0.piece(0, size)]);
        }
        let inline = Payload::Inline(&[b"12345678", b"abc"]);
        one.ends.1.pair.lock().post_receive(99, &[]).unwrap();
        one.ends.1.pair.lock().post_receive(99, &[blocks.1.piece(0, 100)]).unwrap();
        let work = Work::Send(SendKind::default());
        post(&one.connections.0, 98, work, &[]);
        let request = SendRequest { id: 99, work, payload: inline, signaled: true, fence: true };
        one.connections.0.post_send(&request).unwrap();
        let (mut sent, mut received) = (0, 0);
        while sent < 3 * depth + 2 || received < depth + 2 {
            for device in both {
                device.poller.progress(&one.ends.0.sent);
                device.poller.progress(&one.ends.1.received);
            }
            while let Some(done) = one.ends.0.sent.poll() {
                assert_eq!(done.status, softiwarp::completion::Status::Success);
                sent += 1;
            }
            while one.ends.1.received.poll().is_some() {
                received += 1;
            }
        }
    }
}

#[test]
fn messages_ask_for_no_memory_once_the_first_have_passed() {
    for crc in [false, true] {
        let one = connected("127.0.0.1:0", softiwarp::startup::Offer { crc, ..OFFER });
        let block = |device: &Device| Block::new(&device.domain, 300_000, ALL);
        let blocks = (block(&one.devices.0), block(&one.devices.1));
        for _ in 0..20 {
            round(&one, &blocks, 8);
        }
        let before = CALLS.get();
        for _ in 0..50 {
            round(&one, &blocks, 8);
        }
        let calls = CALLS.get() - before;
        // A list may grow when TCP takes and gives as it has not before.
        assert!(calls <= 20, "{calls} calls for {} messages", 50 * 4 * 26);
    }
}

#[test]
fn a_connection_at_rest_keeps_little() {
    const COUNT: usize = 100;
    let near = Device::new();
    let far = Device::new();
    let both = [&near, &far];
    let (_listener, address) = far.listen("127.0.0.1:0");
    let blocks = (Block::new(&near.domain, 300_000, ALL), Block::new(&far.domain, 300_000, ALL));
    let before = LIVE.get();
    let mut kept = Vec::with_capacity(COUNT);
    for number in 0..COUNT as u32 {
        let ends = (near.end(number), far.end(number));
        let ours = near.connect(address, OFFER, b"hello", &ends.0);
        let (theirs, _) = event(&both, &far);
        theirs.accept(&OFFER, b"", std::sync::Arc::clone(&ends.1.pair)).unwrap();
        event(&both, &near);
        for size in [8, 5_000, 300_000] {
            for id in 0..8 {
                ends.1.pair.lock().post_receive(id, &[blocks.1.piece(0, 300_000)]).unwrap();
                post(&ours, id, Work::Send(SendKind::default()), &[blocks.0.piece(0, size)]);
            }
            completions(&both, &ends.1.received, 8);
            completions(&both, &ends.0.sent, 8);
        }
        kept.push((ends, ours, theirs));
    }
    let each = (LIVE.get() - before) / (2 * COUNT as isize);
    assert!(each <= 16 << 10, "{each} bytes for each end, completion queues included");
}

#[test]
fn a_connection_that_has_ended_in_the_middle_of_a_frame_keeps_little() {
    const COUNT: usize = 50;
    // With a CRC, a frame is kept until it is whole.
    let broken = |lost: bool| {
        let Pair { ends: (mut a, mut b), pipes: (mut here, mut there) } =
            Pair::new(true, 1, 65_536, pipes(1 << 20, 30_000, 1));
        let block = Block::new(&a.domain, 50_000, ALL);
        a.send(1, &[block.piece(0, 50_000)]);
        a.pair.transmit(&mut here);
        b.pair.receive(&mut there);
        assert_eq!(b.pair.phase(), Phase::Running);
        if lost {
            b.pair.lose(Cause::Lost);
        } else {
            b.pair.disconnect();
            b.pair.transmit(&mut there);
        }
        b
    };
    let mut kept = Vec::with_capacity(COUNT);
    let before = LIVE.get();
    for number in 0..COUNT {
        kept.push(broken(number % 2 == 0));
    }
    let each = (LIVE.get() - before) / COUNT as isize;
    assert!(each <= 8 << 10, "{each} bytes for each");
}
