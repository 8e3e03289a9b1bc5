//! Memory windows: bounds, access rights and invalidation, with both ends on the device under test.

use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags, RequestType};
use ndcompat::{MemoryWindow, Status};
use std::ops::Range;
use std::sync::Arc;
use support::{End, Memory, Pair, adapter, address, is_iwarp, is_siw, siw_is_mended};

/// Two ends that may read from each other.
fn pair() -> Pair {
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
    let adapter = adapter();
    Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer)
}

fn addresses(memory: &Memory, range: Range<usize>) -> Range<usize> {
    let start = memory.bytes.as_ptr() as usize;
    start + range.start..start + range.end
}

/// Binds a window to part of an end's memory and takes the result.
fn bind(end: &End, range: Range<usize>, flags: RequestFlags) -> Arc<MemoryWindow> {
    let window = end.adapter.create_memory_window().unwrap();
    // SAFETY: the test lets peers do what they do.
    unsafe {
        end.queue_pair.bind(70, &end.memory.region, &window, addresses(&end.memory, range), flags).unwrap()
    };
    // A window that allows nothing needs no token.
    assert!(
        window.remote_token() != 0 || flags == RequestFlags::empty(),
        "valid before the binding completes"
    );
    let bound = end.completion();
    assert_eq!(
        (bound.status, bound.request_context, bound.request_type),
        (Status::SUCCESS, 70, RequestType::Bind)
    );
    window
}

fn write(from: &End, to: &End, length: usize, offset: usize, token: u32) {
    let remote = to.memory.remote_address(0) + offset as u64;
    // SAFETY: the memory outlives the request.
    unsafe {
        from.queue_pair.write(1, &[from.memory.sge(0..length)], remote, token, RequestFlags::empty()).unwrap()
    };
}

fn read(from: &End, to: &End, length: usize, offset: usize, token: u32) {
    let remote = to.memory.remote_address(0) + offset as u64;
    // SAFETY: the memory outlives the request.
    unsafe {
        from.queue_pair.read(2, &[from.memory.sge(0..length)], remote, token, RequestFlags::empty()).unwrap()
    };
}

/// Asserts that the request fails, and the connection with it.
fn expect_violation(pair: &Pair, silent_on_iwarp: bool) {
    let mut gone = pair.passive.operation();
    // SAFETY: waited for.
    let notified = unsafe { pair.passive.connector.notify_disconnect(gone.ov()) };
    let failed = pair.active.completion();
    // An iWARP write completes when it has been sent; the peer's error arrives later.
    match (is_iwarp(), silent_on_iwarp) {
        (true, true) => assert_eq!(failed.status, Status::SUCCESS),
        (true, false) if is_siw() && !siw_is_mended() => assert_eq!(failed.status, Status::CANCELED),
        _ => assert_eq!(failed.status, Status::ACCESS_VIOLATION),
    }
    if notified.is_ok() {
        assert_eq!(gone.wait(), Status::SUCCESS, "the connection is gone");
    }
}

#[test]
fn the_whole_window_is_open() {
    let mut pair = pair();
    let window = bind(&pair.passive, 100..200, RequestFlags::ALLOW_READ | RequestFlags::ALLOW_WRITE);
    pair.active.memory.bytes[..100].fill(7);
    write(&pair.active, &pair.passive, 100, 100, window.remote_token());
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
    read(&pair.active, &pair.passive, 100, 100, window.remote_token());
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
    assert_eq!(pair.passive.memory.bytes[99..201], [&[0][..], &[7; 100], &[0]].concat());
}

#[test]
fn not_a_byte_beyond_can_be_written() {
    for (offset, length) in [(100, 101), (99, 2), (200, 1)] {
        let pair = pair();
        let window = bind(&pair.passive, 100..200, RequestFlags::ALLOW_WRITE);
        write(&pair.active, &pair.passive, length, offset, window.remote_token());
        expect_violation(&pair, true);
    }
}

#[test]
fn not_a_byte_beyond_can_be_read() {
    let pair = pair();
    let window = bind(&pair.passive, 100..200, RequestFlags::ALLOW_READ);
    read(&pair.active, &pair.passive, 101, 100, window.remote_token());
    expect_violation(&pair, false);
}

#[test]
fn a_window_for_reading_is_not_for_writing() {
    let pair = pair();
    let window = bind(&pair.passive, 100..200, RequestFlags::ALLOW_READ);
    write(&pair.active, &pair.passive, 1, 100, window.remote_token());
    expect_violation(&pair, true);
}

#[test]
fn an_invalidated_window_is_closed() {
    let pair = pair();
    let window = bind(&pair.passive, 100..200, RequestFlags::ALLOW_WRITE);
    let token = window.remote_token();
    pair.passive.queue_pair.invalidate(71, &window, RequestFlags::empty()).unwrap();
    let done = pair.passive.completion();
    assert_eq!(
        (done.status, done.request_context, done.request_type),
        (Status::SUCCESS, 71, RequestType::Invalidate)
    );
    write(&pair.active, &pair.passive, 1, 100, token);
    expect_violation(&pair, true);
}

#[test]
fn the_token_is_set_when_a_binding_completes() {
    let pair = pair();
    let end = &pair.passive;
    let windows: Vec<_> = (0..200).map(|_| end.adapter.create_memory_window().unwrap()).collect();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in &windows {
                let bound = end.completion();
                assert_eq!((bound.status, bound.request_type), (Status::SUCCESS, RequestType::Bind));
                assert_ne!(windows[bound.request_context as usize].remote_token(), 0);
            }
        });
        for (context, window) in windows.iter().enumerate() {
            let part = addresses(&end.memory, 0..10);
            loop {
                // SAFETY: nobody has the token.
                let bound = unsafe {
                    end.queue_pair.bind(
                        context as u64,
                        &end.memory.region,
                        window,
                        part.clone(),
                        RequestFlags::ALLOW_READ,
                    )
                };
                match bound {
                    Err(Status::NO_MORE_ENTRIES) => std::thread::yield_now(),
                    bound => break bound.unwrap(),
                }
            }
        }
    });
}

#[test]
fn a_window_can_be_bound_again() {
    let pair = pair();
    let window = bind(&pair.passive, 0..10, RequestFlags::ALLOW_WRITE);
    let first = window.remote_token();
    let end = &pair.passive;
    let again = || unsafe {
        // SAFETY: the test lets peers do what they do.
        end.queue_pair.bind(
            72,
            &end.memory.region,
            &window,
            addresses(&end.memory, 50..60),
            RequestFlags::ALLOW_WRITE,
        )
    };
    assert_eq!(again(), Err(Status::INVALID_DEVICE_STATE), "still bound");
    end.queue_pair.invalidate(71, &window, RequestFlags::SILENT_SUCCESS).unwrap();
    again().unwrap();
    assert_eq!(end.completion().request_context, 72, "the silent invalidation is not seen");
    assert_ne!(window.remote_token(), first);
    write(&pair.active, &pair.passive, 10, 50, window.remote_token());
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
    end.queue_pair.invalidate(73, &window, RequestFlags::empty()).unwrap();
    assert_eq!(end.completion().status, Status::SUCCESS);
    assert_eq!(
        end.queue_pair.invalidate(74, &window, RequestFlags::empty()),
        Err(Status::INVALID_DEVICE_REQUEST),
        "not bound"
    );
}

#[test]
fn a_region_with_a_window_stays_registered() {
    let pair = pair();
    let end = &pair.passive;
    // Even a window that allows nothing.
    let window = bind(end, 0..65536, RequestFlags::empty());
    let mut operation = end.operation();
    // SAFETY: nothing is pending afterwards.
    unsafe {
        assert_eq!(end.memory.region.deregister(operation.ov()), Status::DEVICE_BUSY);
        end.queue_pair.invalidate(71, &window, RequestFlags::empty()).unwrap();
        assert_eq!(end.memory.region.deregister(operation.ov()), Status::PENDING);
    }
    assert_eq!(operation.wait(), Status::SUCCESS);
}

#[test]
fn a_window_needs_a_region_that_fits() {
    let pair = pair();
    let end = &pair.passive;
    let window = end.adapter.create_memory_window().unwrap();
    let memory = Memory::new(&end.adapter, &end.file, 4096, RegionFlags::ALLOW_REMOTE_READ);
    let bind = |range: Range<usize>, flags| unsafe {
        // SAFETY: the test lets peers do what they do.
        end.queue_pair.bind(1, &memory.region, &window, addresses(&memory, range), flags)
    };
    assert_eq!(bind(0..4097, RequestFlags::ALLOW_READ), Err(Status::ACCESS_VIOLATION), "too long");
    assert_eq!(bind(0..0, RequestFlags::ALLOW_READ), Err(Status::ACCESS_VIOLATION), "nothing");
    assert_eq!(bind(0..1, RequestFlags::ALLOW_WRITE), Err(Status::ACCESS_VIOLATION), "no right to write");
    assert_eq!(bind(0..1, RequestFlags::INLINE), Err(Status::INVALID_PARAMETER_6), "no flag of Bind");
    assert_eq!(bind(0..1, RequestFlags::ALLOW_READ), Ok(()));
    let stranger = adapter().create_memory_window().unwrap();
    // SAFETY: the memory lives as long as the window.
    let foreign = unsafe {
        end.queue_pair.bind(1, &memory.region, &stranger, addresses(&memory, 0..1), RequestFlags::ALLOW_READ)
    };
    assert_eq!(foreign, Err(Status::INVALID_PARAMETER_3));
    let idle = End::new(&end.adapter, 3);
    // SAFETY: the memory lives as long as the window.
    let unconnected = unsafe {
        idle.queue_pair.bind(1, &memory.region, &window, addresses(&memory, 0..1), RequestFlags::ALLOW_READ)
    };
    assert_eq!(unconnected, Err(Status::CONNECTION_INVALID));
}

#[test]
fn requests_of_no_bytes_complete() {
    let pair = pair();
    let (active, passive) = (&pair.active, &pair.passive);
    // SAFETY: there is no memory.
    unsafe {
        passive.queue_pair.receive(5, &[]).unwrap();
        active.queue_pair.send(1, &[], RequestFlags::empty()).unwrap();
        active.queue_pair.write(2, &[], 0, 0, RequestFlags::empty()).unwrap();
        active
            .queue_pair
            .read(
                3,
                &[],
                passive.memory.remote_address(0),
                passive.memory.region.remote_token(),
                RequestFlags::empty(),
            )
            .unwrap();
    }
    for (context, kind) in [(1, RequestType::Send), (2, RequestType::Write), (3, RequestType::Read)] {
        let done = active.completion();
        assert_eq!((done.status, done.request_context, done.request_type), (Status::SUCCESS, context, kind));
    }
    let received = passive.completion();
    assert_eq!(
        (received.status, received.bytes_transferred, received.request_context),
        (Status::SUCCESS, 0, 5)
    );
}
