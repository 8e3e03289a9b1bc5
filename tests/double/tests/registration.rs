//! Registrations of large memory, which continue after the call.

use double::{fail, hold, pending, stall, turn};
use ndcompat::Status;
use ndcompat::types::RegionFlags;
use std::time::Duration;
use support::client::{Client, Ov};
use support::com::{Com, MemoryRegion, create};

/// From this size on a worker thread registers.
const LARGE: usize = 64 << 20;
/// How long nothing must happen.
const WHILE: Duration = Duration::from_millis(500);

fn region(client: &Client) -> Com<MemoryRegion> {
    // SAFETY: `create` passes an id and a place for the object; the file is the client's.
    create(|iid, out| unsafe { client.adapter.create_memory_region(iid, client.file, out) }).unwrap()
}

/// Registers `length` bytes of address space. The double touches no page of it.
fn register(region: &Com<MemoryRegion>, length: usize, ov: &mut Ov) -> Status {
    // SAFETY: the region is only named, never accessed.
    unsafe { region.register(0x1000_0000 as *const _, length, RegionFlags::ALLOW_LOCAL_WRITE, ov.ptr()) }
}

fn token(region: &Com<MemoryRegion>) -> u32 {
    // SAFETY: takes no pointers.
    unsafe { region.get_local_token() }
}

/// Waits until the faults have happened, and a while longer, in which nothing must happen.
fn settled() {
    while pending() > 0 {
        std::thread::yield_now();
    }
    std::thread::sleep(2 * WHILE);
}

#[test]
fn much_memory_is_registered_after_the_call() {
    let _turn = turn();
    let client = Client::new();
    let (region, mut ov, mut other) = (region(&client), Ov::new(), Ov::new());
    let held = hold("ibv_reg_mr");
    assert_eq!(register(&region, LARGE, &mut ov), Status::PENDING);
    assert_eq!(
        (ov.internal(), token(&region)),
        (Status::PENDING, 0),
        "the call has not waited for the device"
    );
    assert_eq!(register(&region, 4096, &mut other), Status::INVALID_DEVICE_STATE);
    // SAFETY: refused, so nothing is pending on it.
    assert_eq!(unsafe { region.deregister(other.ptr()) }, Status::INVALID_DEVICE_STATE);
    drop(held);
    assert_eq!(ov.wait(&region), Status::SUCCESS);
    assert_ne!(token(&region), 0);
    // SAFETY: waited for.
    assert_eq!(unsafe { region.deregister(other.ptr()) }, Status::PENDING);
    assert_eq!(other.internal(), Status::SUCCESS);
}

#[test]
fn less_is_registered_within_the_call() {
    let _turn = turn();
    let client = Client::new();
    let (region, mut ov) = (region(&client), Ov::new());
    stall("ibv_reg_mr", Duration::from_millis(50));
    assert_eq!(register(&region, LARGE - 1, &mut ov), Status::PENDING);
    assert_eq!(ov.internal(), Status::SUCCESS);
    assert_ne!(token(&region), 0);
}

#[test]
fn a_registration_fails_after_the_call() {
    let _turn = turn();
    let client = Client::new();
    let (region, mut ov) = (region(&client), Ov::new());
    fail("ibv_reg_mr", libc::ENOMEM);
    assert_eq!(register(&region, LARGE, &mut ov), Status::PENDING);
    assert_eq!(ov.wait(&region), Status::INSUFFICIENT_RESOURCES);
    assert_eq!(register(&region, LARGE, &mut ov), Status::PENDING);
    assert_eq!(ov.wait(&region), Status::SUCCESS);
}

#[test]
fn a_registration_is_cancelled() {
    let _turn = turn();
    let client = Client::new();
    let (region, mut ov, mut next) = (region(&client), Ov::new(), Ov::new());
    let held = hold("ibv_reg_mr");
    assert_eq!(register(&region, LARGE, &mut ov), Status::PENDING);
    while pending() > 0 {
        std::thread::yield_now();
    }
    // SAFETY: takes no pointers.
    assert_eq!(unsafe { region.cancel_overlapped_requests() }, Status::SUCCESS);
    assert_eq!((ov.internal(), token(&region)), (Status::CANCELED, 0));
    assert_eq!(register(&region, 4096, &mut next), Status::PENDING);
    let second = token(&region);
    assert_eq!(next.internal(), Status::SUCCESS);
    drop(held);
    settled();
    assert_eq!(token(&region), second, "what was cancelled took effect");
}

#[test]
fn a_region_is_released_while_it_registers() {
    let _turn = turn();
    let client = Client::new();
    let (region, mut ov) = (region(&client), Ov::new());
    let held = hold("ibv_reg_mr");
    assert_eq!(register(&region, LARGE, &mut ov), Status::PENDING);
    assert_eq!(region.release(), 0);
    assert_eq!(ov.internal(), Status::CANCELED);
    drop(held);
    settled();
}
