//! A registration cache, as in MPI libraries: `AddSecureMemoryCacheCallback` tells it when memory is freed, so that the device
//! never reads pages that the program no longer has.

use ndcompat::types::{RegionFlags, RequestFlags, Sge};
use ndcompat::{MemoryRegion, Status};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};
use support::{End, Operation, Pair};
use win32::api::secure_memory::{ndw_AddSecureMemoryCacheCallback, ndw_RemoveSecureMemoryCacheCallback};
use win32::memory::virtual_memory::*;

const LENGTH: usize = 16 << 10;
/// `malloc` always maps blocks of this size.
const LARGE: usize = 40 << 20;

static CACHE: Mutex<Vec<(Range<usize>, Arc<MemoryRegion>)>> = Mutex::new(Vec::new());

/// Deregisters overlapping regions.
unsafe extern "C" fn flush(address: *mut c_void, size: usize) -> u8 {
    let (start, end) = (address as usize, address as usize + size);
    let mut cache = CACHE.lock().unwrap();
    let before = cache.len();
    cache.retain(|(range, region)| {
        let stays = range.end <= start || end <= range.start;
        if !stays {
            deregister(region);
        }
        stays
    });
    (cache.len() < before).into()
}

fn deregister(region: &Arc<MemoryRegion>) {
    let mut operation = Operation::on(region.file());
    // SAFETY: waited for.
    assert_eq!(unsafe { region.deregister(operation.ov()) }, Status::PENDING);
    assert_eq!(operation.wait(), Status::SUCCESS);
}

/// The cached registration of a buffer, or a new one.
fn token(end: &End, address: usize) -> u32 {
    let wanted = address..address + LENGTH;
    let mut cache = CACHE.lock().unwrap();
    if let Some((_, region)) = cache.iter().find(|(range, _)| *range == wanted) {
        return region.local_token();
    }
    let region = end.adapter.create_memory_region(&end.file).unwrap();
    let mut operation = end.operation();
    // SAFETY: the memory is there, and the cache is told when it goes.
    let status = unsafe {
        region.register(address as *mut u8, LENGTH, RegionFlags::ALLOW_LOCAL_WRITE, operation.ov())
    };
    assert_eq!(status, Status::PENDING);
    assert_eq!(operation.wait(), Status::SUCCESS);
    let token = region.local_token();
    cache.push((wanted, region));
    token
}

/// Fills the buffer, sends it, and returns what arrives at the peer.
fn send(pair: &Pair, address: usize, content: u8) -> u8 {
    // SAFETY: a buffer of the test.
    unsafe { (address as *mut u8).write_bytes(content, LENGTH) };
    let token = token(&pair.active, address);
    pair.passive.receive(0, 0..LENGTH).unwrap();
    let sge = Sge { buffer: address as u64, length: LENGTH as u32, token };
    // SAFETY: the buffer stays until the send is done.
    unsafe { pair.active.queue_pair.send(0, &[sge], RequestFlags::empty()) }.unwrap();
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
    assert_eq!(pair.passive.completion().status, Status::SUCCESS);
    let arrived = &pair.passive.memory.bytes[..LENGTH];
    assert!(arrived.iter().all(|byte| *byte == arrived[0]), "in one piece");
    arrived[0]
}

fn map(address: usize) -> usize {
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping that replaces none.
    let memory = unsafe { libc::mmap(address as _, LENGTH, protection, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    memory as usize
}

/// A page within a large block.
fn block() -> (*mut c_void, usize) {
    // SAFETY: an allocation.
    let block = unsafe { libc::malloc(LARGE) };
    (block, (block as usize + 4096).next_multiple_of(4096))
}

/// Frees a buffer in several ways, each time with other memory at its address afterwards.
fn check(pair: &Pair, stale: bool) {
    let mut content = 0;
    let mut after = |way: &str, address: usize, change: &mut dyn FnMut()| {
        content += 2;
        assert_eq!(send(pair, address, content), content, "before {way}");
        change();
        // The emulator pins no pages, so none can be stale.
        let expected = if stale && !support::is_emulator() { content } else { content + 1 };
        assert_eq!(send(pair, address, content + 1), expected, "after {way}");
        // SAFETY: deregisters.
        unsafe { flush(address as _, LENGTH) };
    };
    // SAFETY: buffers of the test's own, which are there again when they are used.
    unsafe {
        let at = map(0);
        after("munmap", at, &mut || {
            assert_eq!(libc::munmap(at as _, LENGTH), 0);
            map(at);
        });
        after("madvise", at, &mut || {
            assert_eq!(libc::madvise(at as _, LENGTH, libc::MADV_DONTNEED), 0);
        });
        after("mremap", at, &mut || {
            let elsewhere = map(0);
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            assert_eq!(libc::mremap(at as _, LENGTH, LENGTH, flags, elsewhere), elsewhere as _);
            map(at);
        });
        after("mmap", at, &mut || {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mmap(at as _, LENGTH, protection, flags, -1, 0), at as _);
        });
        let at = ndw_VirtualAlloc(0, LENGTH, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) as usize;
        after("VirtualFree", at, &mut || {
            assert_eq!(ndw_VirtualFree(at, 0, MEM_RELEASE), 1);
            let again = ndw_VirtualAlloc(at, LENGTH, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
            assert_eq!(again as usize, at);
        });
        after("MEM_DECOMMIT", at, &mut || {
            assert_eq!(ndw_VirtualFree(at, LENGTH, MEM_DECOMMIT), 1);
            assert_eq!(ndw_VirtualAlloc(at, LENGTH, MEM_COMMIT, PAGE_READWRITE) as usize, at);
        });
        // A block of the size just freed is usually returned at the same address.
        let (mut old, at) = block();
        after("free", at, &mut || {
            libc::free(std::mem::replace(&mut old, null_mut()));
            let (again, same) = block();
            assert_eq!(same, at, "the block comes back where it was");
            old = again;
        });
    }
}

#[test]
fn a_cache_of_registrations_never_has_stale_pages_read() {
    let pair = Pair::new();
    // Without the callback a device keeps using the pages that were registered.
    check(&pair, true);
    // SAFETY: the function stays.
    assert_eq!(unsafe { ndw_AddSecureMemoryCacheCallback(Some(flush)) }, 1);
    check(&pair, false);
    assert_eq!(ndw_RemoveSecureMemoryCacheCallback(Some(flush)), 1);
}
