//! Polling for failed requests while a solicited notification is pending, on devices that do not signal solicited events
//! for them.

use super::Queue;
use crate::sync::timer::Timer;
use crate::types::NotifyType;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use win32::io::{Registration, Source};

/// The interval of polling: the greatest delay of a failure.
const INTERVAL: Duration = Duration::from_millis(50);

/// The timer of a completion queue, created when it is first needed.
#[derive(Default)]
pub(super) struct Failures(OnceLock<(Arc<Watch>, Registration)>);

impl Failures {
    /// Creates the timer.
    ///
    /// # Errors
    /// Those of creating the descriptor and of adding it to the file's sources.
    pub(super) fn prepare(&self, queue: &Arc<Queue>) -> io::Result<()> {
        if self.0.get().is_none() {
            let watch = Arc::new(Watch {
                timer: Timer::new()?,
                runs: AtomicBool::new(false),
                queue: Arc::downgrade(queue),
            });
            let registration = queue.file.file().add_source(watch.timer.fd(), watch.clone())?;
            // If another thread was first, its timer is kept.
            drop(self.0.set((watch, registration)));
        }
        Ok(())
    }

    /// Starts the timer, if it has been created, as a notification is pending.
    pub(super) fn start(&self) {
        if let Some((watch, _)) = self.0.get() {
            watch.start();
        }
    }
}

struct Watch {
    timer: Timer,
    /// The timer is running.
    runs: AtomicBool,
    queue: Weak<Queue>,
}

impl Watch {
    fn start(&self) {
        if !self.runs.swap(true, Ordering::AcqRel)
            && let Err(error) = self.timer.start(INTERVAL)
        {
            // The next notification tries again.
            self.runs.store(false, Ordering::Release);
            tracing::warn!(target: "ndcompat::queue", %error, "failed requests will not be noticed");
        }
    }
}

impl Source for Watch {
    fn ready(&self) {
        let Some(queue) = self.queue.upgrade() else { return };
        self.timer.clear();
        // Cleared before polling, so that a notification that begins afterwards starts the timer again.
        self.runs.store(false, Ordering::Release);
        if queue.poll_for_failures() {
            self.start();
        }
    }
}

impl Queue {
    /// Polls the device, and completes the notifications if a request has failed. Returns whether they are still pending.
    fn poll_for_failures(&self) -> bool {
        let notification = self.notification.lock();
        if !notification.has_solicited() {
            return false;
        }
        if notification.waited() == Some(NotifyType::Any) {
            // The device signals failures to `Any`; if those requests are cancelled, this one is left.
            return true;
        }
        let mut backlog = self.backlog.lock();
        self.collect(&mut backlog);
        let failed = backlog.failure;
        self.conclude(notification, backlog, failed);
        !failed
    }
}
