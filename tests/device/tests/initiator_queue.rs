//! The initiator queue: depth, silent requests, inline data, long lists.

use ndcompat::connector::Offer;
use ndcompat::types::{RequestFlags, RequestType, Sge};
use ndcompat::{QueuePair, Status};
use std::time::{Duration, Instant};
use support::{End, Pair, QUEUE_DEPTH, adapter, address, shows};

/// The time limit of what must come.
const LIMIT: Duration = Duration::from_secs(60);

fn pair() -> Pair {
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
    let adapter = adapter();
    Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer)
}

/// Writes one byte to the start of the passive side's memory.
fn write(pair: &Pair, context: u64, flags: RequestFlags) -> Result<(), Status> {
    let (active, passive) = (&pair.active, &pair.passive);
    let token = passive.memory.region.remote_token();
    // SAFETY: the memory outlives the request.
    unsafe {
        active.queue_pair.write(
            context,
            &[active.memory.sge(0..1)],
            passive.memory.remote_address(0),
            token,
            flags,
        )
    }
}

#[test]
fn takes_exactly_its_depth() {
    let pair = pair();
    for round in 0..3 {
        for context in 0..QUEUE_DEPTH {
            write(&pair, context.into(), RequestFlags::empty()).unwrap();
        }
        assert_eq!(write(&pair, 99, RequestFlags::empty()), Err(Status::NO_MORE_ENTRIES), "round {round}");
        for context in 0..QUEUE_DEPTH {
            let done = pair.active.completion();
            assert_eq!((done.status, done.request_context), (Status::SUCCESS, context.into()));
        }
        assert!(pair.active.try_completion().is_none());
    }
}

#[test]
fn silent_requests_never_wedge_the_queue() {
    let pair = pair();
    let begin = Instant::now();
    for round in 0..20 * QUEUE_DEPTH {
        while let Err(status) = write(&pair, 1, RequestFlags::SILENT_SUCCESS) {
            assert_eq!(status, Status::NO_MORE_ENTRIES, "round {round}");
            assert!(begin.elapsed() < LIMIT, "the queue is wedged");
            std::thread::yield_now();
        }
    }
    while write(&pair, 7, RequestFlags::empty()).is_err() {
        assert!(begin.elapsed() < LIMIT);
        std::thread::yield_now();
    }
    let done = pair.active.completion();
    assert_eq!((done.request_context, done.status), (7, Status::SUCCESS), "only the loud one is seen");
    assert!(pair.active.try_completion().is_none());
}

#[test]
fn a_silent_request_that_fails_is_reported() {
    let pair = pair();
    let active = &pair.active;
    // SAFETY: no memory of the process is named.
    let posted = unsafe {
        let nowhere = [Sge { buffer: active.memory.remote_address(0), length: 8, token: 0x00DE_AD00 }];
        active.queue_pair.send(5, &nowhere, RequestFlags::SILENT_SUCCESS)
    };
    assert_eq!(posted, Ok(()));
    let done = active.completion();
    assert_eq!((done.request_context, done.request_type, done.queue_pair_context), (5, RequestType::Send, 1));
    shows("ND2_RESULT::Send", done.status, Status::ACCESS_VIOLATION);
}

#[test]
fn silent_requests_do_not_delay_later_results() {
    let pair = pair();
    for round in 0..2 {
        write(&pair, round, RequestFlags::SILENT_SUCCESS).unwrap();
    }
    pair.active.queue_pair.flush().unwrap();
    write(&pair, 7, RequestFlags::empty()).unwrap();
    // A silent request that had not completed by then is reported, too.
    let last = loop {
        let done = pair.active.completion();
        assert_eq!(done.status, Status::CANCELED);
        if done.request_context > 1 {
            break done.request_context;
        }
    };
    assert_eq!(last, 7);
    assert!(pair.active.try_completion().is_none());
}

#[test]
fn inline_data_is_copied_at_once() {
    let mut pair = pair();
    let limit = pair.active.adapter.info().unwrap().inline_request_threshold as usize;
    assert!(limit >= 64);
    pair.passive.receive(1, 0..1024).unwrap();
    // More entries than the queue pair was created for, in unregistered memory.
    let mut data: Vec<u8> = (0..limit).map(|at| at as u8).collect();
    let pieces: Vec<_> = data
        .chunks(limit / 5)
        .map(|piece| Sge { buffer: piece.as_ptr() as u64, length: piece.len() as u32, token: 0 })
        .collect();
    assert!(pieces.len() > 2);
    // SAFETY: the data is there during the call.
    unsafe { pair.active.queue_pair.send(1, &pieces, RequestFlags::INLINE).unwrap() };
    let expected = data.clone();
    data.fill(0xFF);
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
    assert_eq!(pair.passive.completion().bytes_transferred as usize, limit);
    assert_eq!(pair.passive.memory.bytes[..limit], expected);
    // SAFETY: refused.
    let too_long = unsafe {
        pair.active.queue_pair.send(2, &[pair.active.memory.sge(0..limit + 1)], RequestFlags::INLINE)
    };
    assert_eq!(too_long, Err(Status::BUFFER_OVERFLOW));
    drop(std::mem::take(&mut pair.active.memory.bytes));
}

#[test]
fn reads_and_writes_with_lists() {
    let mut pair = pair();
    pair.passive.memory.bytes[..300].iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
    let token = pair.passive.memory.region.remote_token();
    let (active, remote) = (&pair.active, pair.passive.memory.remote_address(0));
    let pieces = [active.memory.sge(1000..1100), active.memory.sge(5000..5200)];
    // SAFETY: the memory outlives the requests.
    unsafe {
        active.queue_pair.read(1, &pieces, remote, token, RequestFlags::INLINE).unwrap();
        let done = active.completion();
        assert_eq!(
            (done.status, done.request_type, done.request_context),
            (Status::SUCCESS, RequestType::Read, 1)
        );
        assert!(active.try_completion().is_none(), "one completion for both pieces");
        assert_eq!(active.memory.bytes[1000..1100], pair.passive.memory.bytes[..100]);
        assert_eq!(active.memory.bytes[5000..5200], pair.passive.memory.bytes[100..300]);
        active.queue_pair.write(2, &pieces, remote + 400, token, RequestFlags::empty()).unwrap();
        assert_eq!(active.completion().status, Status::SUCCESS);
        active
            .queue_pair
            .read(3, &[active.memory.sge(0..300)], remote + 400, token, RequestFlags::empty())
            .unwrap();
        assert_eq!(active.completion().status, Status::SUCCESS);
    }
    assert_eq!(pair.passive.memory.bytes[400..700], pair.passive.memory.bytes[..300]);
}

#[test]
fn flags_and_lists_are_checked() {
    let pair = pair();
    let queue_pair: &QueuePair = &pair.active.queue_pair;
    let list = vec![pair.active.memory.sge(0..1); 17];
    // SAFETY: all are refused.
    unsafe {
        assert_eq!(
            queue_pair.send(1, &list[..1], RequestFlags::from_bits_retain(0x40)),
            Err(Status::INVALID_PARAMETER_4)
        );
        assert_eq!(
            queue_pair.send(1, &list[..1], RequestFlags::ALLOW_READ),
            Err(Status::INVALID_PARAMETER_4)
        );
        assert_eq!(
            queue_pair.write(1, &list[..1], 0, 0, RequestFlags::SOLICIT),
            Err(Status::INVALID_PARAMETER_6)
        );
        assert_eq!(
            queue_pair.read(1, &list[..1], 0, 0, RequestFlags::from_bits_retain(0x40)),
            Err(Status::INVALID_PARAMETER_6)
        );
        assert_eq!(queue_pair.send(1, &list, RequestFlags::empty()), Err(Status::DATA_OVERRUN));
        assert_eq!(queue_pair.receive(1, &list), Err(Status::DATA_OVERRUN));
        let idle = End::new(&pair.active.adapter, 3);
        assert_eq!(
            idle.queue_pair.send(1, &list[..1], RequestFlags::empty()),
            Err(Status::CONNECTION_INVALID)
        );
        assert_eq!(idle.queue_pair.receive(1, &[idle.memory.sge(0..1)]), Ok(()));
    }
}
