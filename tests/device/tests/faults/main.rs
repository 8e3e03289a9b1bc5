//! Traffic whose contents are compared: over a wire that loses, delays, reorders, duplicates and corrupts packets; with a link,
//! an address or a device that goes away; with a peer that is stopped and killed; over many connections.
//!
//! `NDCOMPAT_FAULTS` multiplies how often each is done. `NDCOMPAT_SEED` chooses what.

mod netem;
mod peers;
mod removal;
mod shared;
mod traffic;

use fastrand::Rng;
use ndcompat::Status;
use ndcompat::types::RequestFlags;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use support::lab::Wire;
use support::seed::{seed, variable};
use support::{is_emulator, is_iwarp};
use traffic::{ROOM, WINDOW, exchange, fill, over, receive_window, received, sent};

/// The time limit after a fault. Devices retransmit several times, with seconds between.
const BOUND: Duration = Duration::from_secs(60);

/// The wire, for one test at a time.
fn wire() -> MutexGuard<'static, Wire> {
    static WIRE: OnceLock<Mutex<Wire>> = OnceLock::new();
    WIRE.get_or_init(|| Mutex::new(Wire::new())).lock().unwrap_or_else(PoisonError::into_inner)
}

fn times(least: u32) -> u32 {
    least * variable("NDCOMPAT_FAULTS").unwrap_or(1) as u32
}

fn random() -> Rng {
    Rng::with_seed(seed())
}

/// A receiver that posts late: the sender's device retries, and no message is lost. iWARP has no such retries.
#[test]
fn receivers_may_be_late() {
    if is_iwarp() {
        return;
    }
    let (wire, mut random) = (wire(), random());
    let mut pair = over(&wire).expect("a connection");
    for round in 0..times(4) {
        // No receive is posted beforehand; the first window uses those posted when connecting.
        for number in 0..2 * WINDOW {
            let at = sent(number);
            fill(&mut pair.active, at, &[round as u8; 64]);
            pair.active.send(number as u64, at..at + 64, RequestFlags::empty()).unwrap();
            if number >= WINDOW {
                std::thread::sleep(Duration::from_millis(random.u64(0..150)));
                pair.passive.receive(number as u64, received(number)..received(number) + ROOM).unwrap();
            }
        }
        for number in 0..2 * WINDOW {
            let result = pair.passive.completion();
            assert_eq!(result.status, Status::SUCCESS, "message {number} of round {round}");
            assert_eq!(pair.passive.memory.bytes[received(number)..][..64], [round as u8; 64]);
            assert_eq!(pair.active.completion().status, Status::SUCCESS);
        }
        receive_window(&pair.passive).unwrap();
    }
}

/// The sizes of the buffers of TCP's sockets, restored on drop.
struct Buffers([(&'static str, String); 2]);

impl Buffers {
    fn set(sizes: &str) -> Buffers {
        let files = ["/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"];
        Buffers(files.map(|file| {
            let before = std::fs::read_to_string(file).unwrap();
            std::fs::write(file, sizes).unwrap();
            (file, before)
        }))
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        for (file, before) in &self.0 {
            // A failure affects only later tests on this machine.
            let _ = std::fs::write(file, before);
        }
    }
}

/// Less than a message in flight fits in.
#[test]
fn the_smallest_socket_buffers_spoil_no_message() {
    // Other devices' sockets are the kernel's.
    if !is_emulator() {
        return;
    }
    let (wire, mut random) = (wire(), random());
    let buffers = Buffers::set("4096 4096 4096");
    let pair = over(&wire);
    drop(buffers);
    let mut pair = pair.expect("a connection");
    exchange(&mut pair, &mut random, 4 * WINDOW).expect("messages");
    traffic::read(&mut pair, &mut random).expect("reads");
}

/// The numbers of descriptors, threads and resident pages of the process.
fn holds() -> [usize; 3] {
    let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident = pages.split(' ').nth(1).unwrap().parse().unwrap();
    [count("/proc/self/fd"), count("/proc/self/task"), resident]
}

#[test]
fn connections_come_and_go_and_leave_nothing() {
    let (wire, mut random) = (wire(), random());
    let cycle = |random: &mut Rng| {
        let mut pair = over(&wire).expect("a connection");
        exchange(&mut pair, random, WINDOW).expect("messages");
        assert_eq!(pair.active.disconnect(), Status::SUCCESS);
        assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
    };
    let cycles = times(50);
    // The first cycles allocate what the library, the driver and the allocator keep.
    (0..20).for_each(|_| cycle(&mut random));
    let (begin, before) = (Instant::now(), holds());
    (0..cycles).for_each(|_| cycle(&mut random));
    // The driver may close a connection's socket a little later.
    let (elapsed, mut after) = (begin.elapsed(), holds());
    let end = Instant::now() + Duration::from_secs(60);
    while after[0] > before[0] && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
        after = holds();
    }
    println!("{cycles} connections in {elapsed:?}: descriptors, threads, pages {before:?}, then {after:?}");
    assert!(after[0] <= before[0] && after[1] <= before[1] + 2, "{before:?}, then {after:?}");
    // The allocator may grow a little. Leaked connections would take hundreds of KiB.
    assert!(after[2] < before[2] + 512, "{before:?}, then {after:?}");
}
