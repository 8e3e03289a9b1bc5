//! Memory that the program may only read, as what is sent.

use ndcompat::types::{RegionFlags, RequestFlags, Sge};
use ndcompat::{MemoryRegion, Status};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::Arc;
use support::{End, Operation, Pair, is_emulator};

const LENGTH: usize = 4096;

/// What all of the memory holds.
static CONSTANT: [u8; LENGTH] = [0xA5; LENGTH];

/// Read-only pages of a file with the contents of [`CONSTANT`].
fn mapped(flags: i32) -> *mut u8 {
    let path = std::env::temp_dir().join(format!("ndcompat-read-only-{}-{flags}", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&CONSTANT).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    // SAFETY: a new mapping; the arguments are numbers.
    let pages = unsafe { libc::mmap(null_mut(), LENGTH, libc::PROT_READ, flags, file.as_raw_fd(), 0) };
    assert_ne!(pages, libc::MAP_FAILED);
    std::fs::remove_file(path).unwrap();
    pages.cast()
}

/// Read-only pages of no file.
fn anonymous() -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping; the arguments are numbers.
    let pages = unsafe { libc::mmap(null_mut(), LENGTH, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(pages, libc::MAP_FAILED);
    // SAFETY: the pages are this test's own, and have room for the bytes.
    unsafe { pages.cast::<u8>().copy_from_nonoverlapping(CONSTANT.as_ptr(), LENGTH) };
    // SAFETY: as before.
    assert_eq!(unsafe { libc::mprotect(pages, LENGTH, libc::PROT_READ) }, 0);
    pages.cast()
}

/// Registers the memory for sending from it, and for the peer's reads.
fn register(end: &End, memory: *mut u8) -> (Arc<MemoryRegion>, Status) {
    let region = end.adapter.create_memory_region(&end.file).unwrap();
    let mut operation = Operation::on(&end.file);
    // SAFETY: the memory stays mapped until the process ends.
    let status = unsafe { region.register(memory, LENGTH, RegionFlags::ALLOW_REMOTE_READ, operation.ov()) };
    assert_eq!(status, Status::PENDING);
    let status = operation.wait();
    (region, status)
}

/// Sends the memory, and compares what arrives.
fn is_sent(pair: &Pair, memory: *mut u8, region: &MemoryRegion) {
    let sge = [Sge { buffer: memory as u64, length: LENGTH as u32, token: region.local_token() }];
    pair.passive.receive(1, 0..LENGTH).unwrap();
    // SAFETY: the memory stays mapped until the process ends.
    unsafe { pair.active.queue_pair.send(2, &sge, RequestFlags::empty()) }.unwrap();
    for end in [&pair.passive, &pair.active] {
        assert_eq!(end.completion().status, Status::SUCCESS);
    }
    assert_eq!(pair.passive.memory.bytes[..LENGTH], CONSTANT);
}

#[test]
fn constants_and_private_read_only_memory_are_sent() {
    let pair = Pair::new();
    for memory in [CONSTANT.as_ptr().cast_mut(), anonymous(), mapped(libc::MAP_PRIVATE)] {
        let (region, status) = register(&pair.active, memory);
        assert_eq!(status, Status::SUCCESS);
        is_sent(&pair, memory, &region);
    }
}

/// Linux registers a file that is shared and may only be read on newer kernels than 6.1 (docs/differences.md).
#[test]
fn shared_read_only_files_are_sent_or_refused() {
    let pair = Pair::new();
    let memory = mapped(libc::MAP_SHARED);
    let (region, status) = register(&pair.active, memory);
    match status {
        Status::ACCESS_VIOLATION if !is_emulator() => {}
        status => {
            assert_eq!(status, Status::SUCCESS);
            is_sent(&pair, memory, &region);
        }
    }
}
