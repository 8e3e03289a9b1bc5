//! The storm on the device under test, in one process and in several, of which some are killed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::storm::Storm;

#[test]
fn a_storm_passes() {
    Storm::from_environment(40).pass();
}

/// The time limit of a process whose storm takes `seconds`.
fn limit(seconds: u64) -> Duration {
    Duration::from_secs(120 + 4 * seconds)
}

/// A storm in a process of its own.
#[test]
#[ignore = "the other processes of these tests"]
fn another_process() {
    Storm::from_environment(10).pass();
}

fn start(seconds: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["another_process", "--exact", "--ignored", "--nocapture"])
        .env("NDCOMPAT_STORM_SECONDS", seconds.to_string())
        .env("NDCOMPAT_STORM_THREADS", "2")
        .env_remove("NDCOMPAT_STORM_SEED")
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Two processes must succeed while others on the same device are killed at random moments.
#[test]
fn storms_pass_beside_processes_that_are_killed() {
    let seconds = std::env::var("NDCOMPAT_STORM_SECONDS").map_or(6, |text| text.parse().expect("a number"));
    let begin = Instant::now();
    let mut lasting = [start(seconds), start(seconds)];
    let mut kills = 0;
    loop {
        let ended = lasting.each_mut().map(|child| child.try_wait().unwrap());
        for status in ended.iter().flatten() {
            assert!(status.success(), "after {kills} kills: {status}");
        }
        if ended.iter().all(Option::is_some) {
            break;
        }
        assert!(begin.elapsed() < limit(seconds), "a storm does not end");
        let mut victim = start(seconds);
        std::thread::sleep(Duration::from_millis(fastrand::u64(0..1500)));
        victim.kill().unwrap();
        victim.wait().unwrap();
        kills += 1;
    }
    println!("{kills} processes killed in {:?}", begin.elapsed());
    assert!(kills > 0);
}
