//! Threads for system calls that may take long, kept for a while because to make one costs more than most of those calls.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// How long a thread without work stays.
pub(crate) const LINGER: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Pool {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job.
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { jobs: VecDeque::new(), idle: 0 });
static WORK: Condvar = Condvar::new();

/// Runs `job` on a thread of its own, at once.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut pool = lock();
    if pool.jobs.len() < pool.idle {
        pool.jobs.push_back(Box::new(job));
        // First, as the thread that wakes needs it.
        drop(pool);
        WORK.notify_one();
        return Ok(());
    }
    drop(pool);
    // The program's signals are not for this thread.
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

/// The next job, unless none comes for a while.
fn next() -> Option<Job> {
    let mut pool = lock();
    pool.idle += 1;
    let (mut pool, _) = WORK
        .wait_timeout_while(pool, LINGER, |pool| pool.jobs.is_empty())
        .unwrap_or_else(PoisonError::into_inner);
    pool.idle -= 1;
    pool.jobs.pop_front()
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
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
        // The thread is back soon.
        assert!((0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            run_and_wait() == first
        }));
        release.send(()).unwrap();
        free.recv().unwrap();
    }
}
