//! Threads for system calls that may block. They are kept for a while, as creating one costs more than most of these calls.

use crate::sync::mutex::lock;
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// How long an idle thread is kept.
const LINGER: Duration = Duration::from_secs(10);

struct Pool {
    /// The process of the threads; a forked child has another.
    process: u32,
    jobs: VecDeque<Job>,
    /// How many threads wait for a job.
    idle: usize,
}

impl Pool {
    const fn new() -> Pool {
        Pool { process: 0, jobs: VecDeque::new(), idle: 0 }
    }
}

static POOL: Mutex<Pool> = Mutex::new(Pool::new());
static WORK: Condvar = Condvar::new();

/// Runs `job` on a thread of its own, without queuing. A forked child starts without threads.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut pool = lock(&POOL);
    if pool.process != std::process::id() {
        *pool = Pool { process: std::process::id(), ..Pool::new() };
    }
    if pool.jobs.len() < pool.idle {
        pool.jobs.push_back(Box::new(job));
        // Unlock before waking the thread, which takes the lock.
        drop(pool);
        WORK.notify_one();
        return Ok(());
    }
    drop(pool);
    // The program's signal handlers must not run on this thread.
    win32::io::with_signals_blocked(|| {
        std::thread::Builder::new().name("nd-worker".into()).spawn(|| {
            job();
            while let Some(job) = next() {
                job();
            }
        })
    })?;
    Ok(())
}

/// The next job; `None` after [`LINGER`].
fn next() -> Option<Job> {
    let mut pool = lock(&POOL);
    pool.idle += 1;
    let (mut pool, _) = WORK
        .wait_timeout_while(pool, LINGER, |pool| pool.jobs.is_empty())
        .unwrap_or_else(PoisonError::into_inner);
    pool.idle -= 1;
    pool.jobs.pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread::ThreadId;

    fn run_and_wait() -> ThreadId {
        let (done, wait) = mpsc::channel();
        run(move || done.send(std::thread::current().id()).unwrap()).unwrap();
        wait.recv().unwrap()
    }

    #[test]
    fn a_job_waits_for_no_other_and_threads_are_used_again() {
        let (release, blocked) = mpsc::channel::<()>();
        let (freed, free) = mpsc::channel();
        run(move || {
            blocked.recv().unwrap();
            freed.send(()).unwrap();
        })
        .unwrap();
        let first = run_and_wait();
        // Wait until the thread is idle.
        assert!((0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            run_and_wait() == first
        }));
        release.send(()).unwrap();
        free.recv().unwrap();
    }
}
