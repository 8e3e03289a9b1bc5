//! The storm on the device under test, in one process and in several, of which some are killed.

use fastrand::Rng;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::seed::seed;
use support::storm::Storm;

/// What each thread of the one storm does, and of those beside processes that are killed.
const ACTIONS: [u64; 2] = [4000, 1000];

#[test]
fn a_storm_passes() {
    Storm::from_environment(ACTIONS[0]).pass();
}

/// A storm in a process of its own.
#[test]
#[ignore = "the other processes of these tests"]
fn another_process() {
    Storm::from_environment(ACTIONS[1]).pass();
}

fn start(seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["another_process", "--exact", "--ignored", "--nocapture"])
        .env("NDCOMPAT_STORM_THREADS", "2")
        .env("NDCOMPAT_SEED", seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Two processes must succeed while others on the same device are killed at random moments. A process that hangs does so until the
/// time limit of this program.
#[test]
fn storms_pass_beside_processes_that_are_killed() {
    let (seed, begin) = (seed(), Instant::now());
    let mut chance = Rng::with_seed(seed);
    let mut lasting = [start(seed), start(!seed)];
    let mut kills = 0;
    loop {
        let ended = lasting.each_mut().map(|child| child.try_wait().unwrap());
        for status in ended.iter().flatten() {
            assert!(status.success(), "after {kills} kills: {status}");
        }
        if ended.iter().all(Option::is_some) {
            break;
        }
        let mut victim = start(chance.u64(..));
        std::thread::sleep(Duration::from_millis(chance.u64(0..1500)));
        victim.kill().unwrap();
        victim.wait().unwrap();
        kills += 1;
    }
    println!("{kills} processes killed in {:?}", begin.elapsed());
    assert!(kills > 0);
}
