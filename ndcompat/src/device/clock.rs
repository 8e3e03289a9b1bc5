//! The clock of a file: calls objects now and then, while there are any that want it.

use crate::sync::mutex::lock;
use crate::sync::timer::Timer;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use win32::io::{File, Registration, Source};

/// The time between two ticks.
pub(crate) const INTERVAL: Duration = Duration::from_millis(1200);

/// An object that a clock calls.
pub(crate) trait Ticked: Send + Sync {
    /// Called at a tick, without any lock. Returns whether to call it at the next one, too.
    fn tick(self: Arc<Self>) -> bool;
}

/// A clock, as a source of a file.
pub(crate) struct Clock {
    timer: Timer,
    objects: Mutex<Vec<Weak<dyn Ticked>>>,
    /// Makes progress while there are objects, also once their connections have ended.
    file: Weak<File>,
}

impl Clock {
    /// A clock that stands still.
    ///
    /// # Errors
    /// Those of creating the descriptor and of adding it to the file's sources.
    pub(crate) fn on(file: &Arc<File>) -> io::Result<(Arc<Clock>, Registration)> {
        let (objects, file_again) = (Mutex::default(), Arc::downgrade(file));
        let clock = Arc::new(Clock { timer: Timer::new()?, objects, file: file_again });
        let registration = file.add_source(clock.timer.fd(), clock.clone())?;
        Ok((clock, registration))
    }

    /// Calls `object` from now on.
    pub(crate) fn add(&self, object: Weak<dyn Ticked>) {
        let mut objects = lock(&self.objects);
        objects.push(object);
        if objects.len() == 1 {
            self.start();
            if let Some(file) = self.file.upgrade() {
                file.expect_events();
            }
        }
    }

    fn start(&self) {
        if let Err(error) = self.timer.start(INTERVAL) {
            tracing::warn!(target: "ndcompat::device", %error, "a clock cannot be set");
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let expects = !self.objects.get_mut().unwrap_or_else(PoisonError::into_inner).is_empty();
        if expects && let Some(file) = self.file.upgrade() {
            file.no_more_events();
        }
    }
}

impl Source for Clock {
    fn ready(&self) {
        self.timer.clear();
        let called = std::mem::take(&mut *lock(&self.objects));
        let expected = !called.is_empty();
        let still: Vec<_> = called
            .into_iter()
            .filter(|object| object.upgrade().is_some_and(|object| object.tick()))
            .collect();
        let mut objects = lock(&self.objects);
        // Whatever was added meanwhile has expected events, too.
        let surplus = expected && (still.is_empty() || !objects.is_empty());
        objects.extend(still);
        if !objects.is_empty() {
            self.start();
        }
        drop(objects);
        if surplus && let Some(file) = self.file.upgrade() {
            file.no_more_events();
        }
    }
}
