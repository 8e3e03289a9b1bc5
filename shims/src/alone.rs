//! Tests that need a process of their own, as what they look at belongs to the whole process.

use std::io::{Write, stderr};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const SKIPPED: &str = "skipped: ";

/// Says that a test, or the rest of it, is left out: also if it passes, whose output is not shown otherwise.
pub(crate) fn skipped(why: &str) {
    writeln!(stderr(), "{SKIPPED}{why}").unwrap();
}

/// Runs an ignored test of this program, with no other beside it, on the first thread of a new process. Repeats what it has
/// [`skipped`].
pub(crate) fn run(test: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", "--ignored", "--test-threads=1", test]).output().unwrap();
    let [said, complained] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
    complained.lines().filter_map(|line| line.strip_prefix(SKIPPED)).for_each(skipped);
}

/// A child made by `fork`, which does `work` and ends with what it returns. The calling thread is the only one of its process.
pub(crate) fn child(work: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: no other thread holds a lock that the child could want.
    match unsafe { libc::fork() } {
        // SAFETY: takes no pointer, runs no handler.
        0 => unsafe { libc::_exit(work()) },
        child => child,
    }
}

/// Forks many times, each time while another thread does `meanwhile`. The children do `work`, which must return 0.
pub(crate) fn children_beside(meanwhile: impl Fn() + Sync, work: impl Fn() -> i32) {
    for _ in 0..100 {
        let begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Not for ever: it could take a lock again and again before who forks has it.
            scope.spawn(|| {
                (0..50).for_each(|_| {
                    meanwhile();
                    begun.store(true, Ordering::Relaxed);
                });
            });
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let child = child(|| {
                // SAFETY: ends the child if it hangs.
                unsafe { libc::alarm(60) };
                work()
            });
            let mut status = 0;
            // SAFETY: room for the status.
            assert_eq!((unsafe { libc::waitpid(child, &mut status, 0) }, status), (child, 0));
        });
    }
}
