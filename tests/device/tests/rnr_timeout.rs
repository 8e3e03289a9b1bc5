//! Messages that arrive before their receive is posted, on the emulator with `NDCOMPAT_EMULATOR_RNR_TIMEOUT`. Each test runs in a process
//! that has the variable. What RoCE does is in `receiver_not_ready.rs`.

use ndcompat::connector::Offer;
use ndcompat::types::{NotifyType, RegionFlags, RequestFlags};
use ndcompat::{SharedReceiveQueueConfig, Status};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use support::{End, Memory, Pair, adapter, address};

const VARIABLE: &str = "NDCOMPAT_EMULATOR_RNR_TIMEOUT";
/// The file that, while it exists, says that the device is gone.
const GONE: &str = "NDCOMPAT_EMULATOR_GONE";
/// Longer than a test takes.
const LONG: Duration = Duration::from_secs(60);
/// For the test of the limit itself.
const SHORT: Duration = Duration::from_millis(1500);

/// Whether this is a process with the variable. Otherwise runs the test of this name in one.
fn has_variable(test: &str, limit: Duration) -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().expect("a program"));
    child.args(["--exact", test, "--nocapture"]).stdin(Stdio::null());
    child.env(VARIABLE, limit.as_millis().to_string());
    let gone = format!("ndcompat-{test}-{}", std::process::id());
    child.env(GONE, std::env::temp_dir().join(gone));
    for (name, value) in [
        ("NDCOMPAT_EMULATOR", "on"),
        ("NDCOMPAT_DEVICE", "emulator"),
        ("NDCOMPAT_ADDR", "127.0.0.1"),
        ("NDCOMPAT_ADDR6", "::1"),
    ] {
        child.env(name, value);
    }
    let output = child.output().expect("it runs");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}{}", said[0], said[1]);
    false
}

fn succeeds(end: &End, context: u64) {
    let result = end.completion();
    assert_eq!((result.status, result.request_context), (Status::SUCCESS, context));
}

#[test]
fn a_message_goes_on_when_its_receive_comes_late() {
    if !has_variable("a_message_goes_on_when_its_receive_comes_late", LONG) {
        return;
    }
    let mut pair = Pair::new();
    for round in 0..5 {
        pair.active.memory.bytes[..64].fill(round as u8 + 1);
        pair.active.send(round, 0..64, RequestFlags::empty()).unwrap();
        succeeds(&pair.active, round);
        assert!(pair.passive.try_completion().is_none());
        thread::sleep(Duration::from_millis(50));
        pair.passive.receive(round, 0..64).unwrap();
        succeeds(&pair.passive, round);
        assert_eq!(pair.passive.memory.bytes[..64], [round as u8 + 1; 64]);
    }
}

/// A thread sleeps in the library while another one posts the receive.
#[test]
fn who_waits_is_told_of_a_message_whose_receive_comes_late() {
    if !has_variable("who_waits_is_told_of_a_message_whose_receive_comes_late", LONG) {
        return;
    }
    let pair = Pair::new();
    pair.active.send(1, 0..64, RequestFlags::empty()).unwrap();
    let mut notified = pair.passive.operation();
    // SAFETY: waited for below.
    let begun = unsafe { pair.passive.completion_queue.notify(NotifyType::Any, notified.ov()) };
    assert_eq!(begun, Status::PENDING);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            pair.passive.receive(2, 0..64).unwrap();
        });
        assert_eq!(notified.wait(), Status::SUCCESS);
    });
    succeeds(&pair.passive, 2);
}

#[test]
fn a_message_whose_receive_never_comes_times_out() {
    if !has_variable("a_message_whose_receive_never_comes_times_out", SHORT) {
        return;
    }
    // More than TCP takes at once, so that the message has no result before.
    const LENGTH: usize = 4 << 20;
    let pair = Pair::new();
    let memory = Memory::new(&pair.active.adapter, &pair.active.file, LENGTH, RegionFlags::ALLOW_REMOTE_READ);
    let begin = Instant::now();
    for context in 1..4 {
        // SAFETY: the memory lives until the end of the test.
        unsafe { pair.active.queue_pair.send(context, &[memory.sge(0..LENGTH)], RequestFlags::empty()) }
            .unwrap();
    }
    for context in 1..4 {
        let result = pair.active.completion();
        let expected = if context == 1 { Status::IO_TIMEOUT } else { Status::CANCELED };
        assert_eq!((result.status, result.request_context), (expected, context));
    }
    assert!(begin.elapsed() >= SHORT);
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
}

#[test]
fn messages_wait_for_receives_of_a_shared_queue() {
    if !has_variable("messages_wait_for_receives_of_a_shared_queue", LONG) {
        return;
    }
    let adapter = adapter();
    let pool = End::new(&adapter, 0);
    let config = SharedReceiveQueueConfig { depth: 8, max_sge: 2, threshold: 0, affinity: (0, 3) };
    let shared = adapter.create_shared_receive_queue(&pool.file, config).unwrap();
    let pairs = [11, 12, 13].map(|context| {
        let passive = End::sharing(&adapter, context, &shared);
        let active = End::new(&adapter, context);
        Pair::connect(active, passive, address(), Offer::default(), Offer::default())
    });
    for pair in &pairs {
        pair.active.send(1, 0..64, RequestFlags::empty()).unwrap();
        succeeds(&pair.active, 1);
    }
    thread::sleep(Duration::from_millis(50));
    // One ends; its place goes to another.
    assert_eq!(pairs[0].passive.disconnect(), Status::SUCCESS);
    for context in 0..2 {
        let at = context as usize * 64;
        // SAFETY: the memory lives as long as the end.
        unsafe { shared.receive(context, &[pool.memory.sge(at..at + 64)]) }.unwrap();
    }
    for pair in &pairs[1..] {
        assert_eq!(pair.passive.completion().status, Status::SUCCESS);
    }
}

#[test]
fn disconnecting_while_a_message_waits() {
    if !has_variable("disconnecting_while_a_message_waits", LONG) {
        return;
    }
    let pair = Pair::new();
    pair.active.send(1, 0..64, RequestFlags::empty()).unwrap();
    succeeds(&pair.active, 1);
    thread::sleep(Duration::from_millis(50));
    let begin = Instant::now();
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert!(begin.elapsed() < LONG / 2, "nobody waits for the limit");
}

#[test]
fn a_device_is_removed_while_a_message_waits() {
    if !has_variable("a_device_is_removed_while_a_message_waits", LONG) {
        return;
    }
    let pair = Pair::new();
    pair.active.send(1, 0..64, RequestFlags::empty()).unwrap();
    succeeds(&pair.active, 1);
    let mut notified = pair.passive.operation();
    // SAFETY: waited for below.
    let begun = unsafe { pair.passive.completion_queue.notify(NotifyType::Any, notified.ov()) };
    assert_eq!(begun, Status::PENDING);
    thread::sleep(Duration::from_millis(50));
    let gone = std::env::var_os(GONE).expect("it is set above");
    std::fs::write(&gone, "").unwrap();
    let begin = Instant::now();
    assert_eq!(notified.wait(), Status::DEVICE_REMOVED);
    assert!(pair.passive.try_completion().is_none(), "its receive was never posted");
    pair.passive.receive(2, 0..64).unwrap();
    let late = pair.passive.completion();
    assert_eq!((late.status, late.request_context), (Status::CANCELED, 2));
    drop(pair);
    assert!(begin.elapsed() < LONG / 2, "nobody waits for the limit");
    std::fs::remove_file(gone).unwrap();
}
