//! The clock of a file: calls objects now and then, while there are any that want it.

use crate::sync::mutex::lock;
use crate::sync::timer::Timer;
use std::io;
use std::sync::{Arc, Mutex, Weak};
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
}

impl Clock {
    /// A clock that stands still.
    ///
    /// # Errors
    /// Those of creating the descriptor and of adding it to the file's sources.
    pub(crate) fn on(file: &Arc<File>) -> io::Result<(Arc<Clock>, Registration)> {
        let clock = Arc::new(Clock { timer: Timer::new()?, objects: Mutex::default() });
        let registration = file.add_source(clock.timer.fd(), clock.clone())?;
        Ok((clock, registration))
    }

    /// Calls `object` from now on.
    pub(crate) fn add(&self, object: Weak<dyn Ticked>) {
        let mut objects = lock(&self.objects);
        objects.push(object);
        if objects.len() == 1 {
            self.start();
        }
    }

    fn start(&self) {
        if let Err(error) = self.timer.start(INTERVAL) {
            tracing::warn!(target: "ndcompat::device", %error, "a clock cannot be set");
        }
    }
}

impl Source for Clock {
    fn ready(&self) {
        self.timer.clear();
        let called = std::mem::take(&mut *lock(&self.objects));
        let still: Vec<_> = called
            .into_iter()
            .filter(|object| object.upgrade().is_some_and(|object| object.tick()))
            .collect();
        let mut objects = lock(&self.objects);
        objects.extend(still);
        if !objects.is_empty() {
            self.start();
        }
    }
}
