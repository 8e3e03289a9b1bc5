//! The device's own memory windows. soft-RoCE has both types but does not enforce their bounds, so the library does not use them
//! there by default; soft-iWARP has none. Everything but the bounds is tested here.

use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags, RequestType, Sge};
use ndcompat::{MemoryWindow, Status};
use std::ops::Range;
use support::{End, Pair, adapter, address, is_emulator, is_siw};

fn pair() -> Pair {
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
    let adapter = adapter();
    Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer)
}

fn bind(end: &End, window: &MemoryWindow, range: Range<usize>, flags: RequestFlags) {
    let start = end.memory.bytes.as_ptr() as usize;
    let addresses = start + range.start..start + range.end;
    // SAFETY: the test lets peers do what they do.
    unsafe { end.queue_pair.bind(70, &end.memory.region, window, addresses, flags).unwrap() };
    assert_ne!(window.remote_token(), 0, "valid before the binding completes");
    if !flags.contains(RequestFlags::SILENT_SUCCESS) {
        let bound = end.completion();
        assert_eq!((bound.status, bound.request_type), (Status::SUCCESS, RequestType::Bind));
    }
}

fn write(pair: &Pair, length: usize, offset: usize, token: u32) -> Status {
    let (from, to) = (&pair.active, pair.passive.memory.remote_address(offset));
    // SAFETY: the memory outlives the request.
    unsafe {
        from.queue_pair.write(1, &[from.memory.sge(0..length)], to, token, RequestFlags::empty()).unwrap()
    };
    from.completion().status
}

fn read(pair: &Pair, length: usize, offset: usize, token: u32) -> Status {
    let (from, to) = (&pair.active, pair.passive.memory.remote_address(offset));
    // SAFETY: the memory outlives the request.
    unsafe {
        from.queue_pair.read(2, &[from.memory.sge(0..length)], to, token, RequestFlags::empty()).unwrap()
    };
    from.completion().status
}

/// One test, because the kind of windows is chosen once in a process.
#[test]
fn both_types_of_window_bind_and_invalidate() {
    for kind in ["1", "2"] {
        // SAFETY: no other thread reads the environment now.
        unsafe { std::env::set_var("NDCOMPAT_MEMORY_WINDOWS", kind) };
        // siw has no windows, the emulator none of type 1.
        if is_siw() || is_emulator() && kind == "1" {
            assert_eq!(adapter().create_memory_window().err(), Some(Status::NOT_SUPPORTED), "type {kind}");
            continue;
        }
        let mut pair = pair();
        let window = pair.passive.adapter.create_memory_window().unwrap();
        pair.active.memory.bytes[..100].fill(9);
        bind(&pair.passive, &window, 100..200, RequestFlags::ALLOW_READ | RequestFlags::ALLOW_WRITE);
        let first = window.remote_token();
        assert_eq!(write(&pair, 100, 100, first), Status::SUCCESS, "type {kind}");
        assert_eq!(read(&pair, 100, 100, first), Status::SUCCESS, "type {kind}");
        assert_eq!(pair.passive.memory.bytes[99..201], [&[0][..], &[9; 100], &[0]].concat());

        let mut operation = pair.passive.operation();
        // SAFETY: refused.
        let busy = unsafe { pair.passive.memory.region.deregister(operation.ov()) };
        assert_eq!(busy, Status::DEVICE_BUSY, "type {kind}");

        pair.passive.queue_pair.invalidate(71, &window, RequestFlags::empty()).unwrap();
        let done = pair.passive.completion();
        assert_eq!(
            (done.status, done.request_type),
            (Status::SUCCESS, RequestType::Invalidate),
            "type {kind}"
        );
        assert_eq!(
            pair.passive.queue_pair.invalidate(71, &window, RequestFlags::empty()),
            Err(Status::INVALID_DEVICE_REQUEST),
            "not bound"
        );

        bind(&pair.passive, &window, 300..400, RequestFlags::ALLOW_WRITE | RequestFlags::SILENT_SUCCESS);
        assert_ne!(window.remote_token(), first, "type {kind}");
        assert_eq!(write(&pair, 100, 300, window.remote_token()), Status::SUCCESS, "type {kind}");
        assert_eq!(read(&pair, 1, 300, window.remote_token()), Status::ACCESS_VIOLATION, "only for writing");

        let pair = self::pair();
        let window = pair.passive.adapter.create_memory_window().unwrap();
        bind(&pair.passive, &window, 100..200, RequestFlags::ALLOW_WRITE);
        pair.passive.queue_pair.invalidate(71, &window, RequestFlags::SILENT_SUCCESS).unwrap();
        bind(
            &pair.passive,
            &pair.passive.adapter.create_memory_window().unwrap(),
            0..1,
            RequestFlags::ALLOW_READ,
        );
        // On iWARP a write completes when it has been sent.
        let closed = if is_emulator() { Status::SUCCESS } else { Status::ACCESS_VIOLATION };
        assert_eq!(write(&pair, 1, 100, window.remote_token()), closed, "type {kind}: closed");
        constants_are_sent(kind);
    }
}

/// Read-only pages, to which the kernel does not bind windows.
fn constants_are_sent(kind: &str) {
    static CONSTANT: [u8; 64] = [0xA5; 64];
    let pair = self::pair();
    let end = &pair.active;
    let region = end.adapter.create_memory_region(&end.file).unwrap();
    let mut operation = end.operation();
    let memory = CONSTANT.as_ptr().cast_mut();
    // SAFETY: the memory is never unmapped; the operation is waited for.
    let status = unsafe { region.register(memory, 64, RegionFlags::ALLOW_REMOTE_READ, operation.ov()) };
    assert_eq!((status, operation.wait()), (Status::PENDING, Status::SUCCESS), "type {kind}");

    let sge = [Sge { buffer: memory as u64, length: 64, token: region.local_token() }];
    pair.passive.receive(1, 0..64).unwrap();
    // SAFETY: the memory is never unmapped.
    unsafe { end.queue_pair.send(2, &sge, RequestFlags::empty()) }.unwrap();
    for end in [&pair.passive, end] {
        assert_eq!(end.completion().status, Status::SUCCESS, "type {kind}");
    }
    assert_eq!(pair.passive.memory.bytes[..64], CONSTANT, "type {kind}");

    let window = end.adapter.create_memory_window().unwrap();
    let addresses = memory as usize..memory as usize + 64;
    // SAFETY: nobody has the window's token.
    let bound = unsafe { end.queue_pair.bind(3, &region, &window, addresses, RequestFlags::ALLOW_READ) };
    // The emulator reads the pages itself.
    let expected = if is_emulator() { Ok(()) } else { Err(Status::ACCESS_VIOLATION) };
    assert_eq!(bound, expected, "type {kind}");
    if bound.is_ok() {
        assert_eq!(end.completion().status, Status::SUCCESS, "type {kind}");
    }
}
