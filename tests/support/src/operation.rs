//! Overlapped requests of the tests.

use ndcompat::Status;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};
use win32::io::{File, Overlapped, result, wait_for};
use win32::object::RawHandle;

/// How long anything may take before a test fails.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// An `OVERLAPPED` and the file its request runs on.
pub struct Operation {
    ov: ManuallyDrop<Box<Overlapped>>,
    file: Arc<File>,
}

impl Operation {
    /// An operation on `file` without an event.
    pub fn on(file: &Arc<File>) -> Operation {
        Operation::with_event(file, RawHandle::NULL)
    }

    /// An operation on `file` that sets `event`.
    pub fn with_event(file: &Arc<File>, event: RawHandle) -> Operation {
        let ov = Overlapped { event, ..Overlapped::default() };
        Operation { ov: ManuallyDrop::new(Box::new(ov)), file: file.clone() }
    }

    /// The pointer to pass to the calls under test.
    pub fn ov(&mut self) -> *mut Overlapped {
        &mut **self.ov
    }

    /// The status now (`GetOverlappedResult` with `wait` false).
    pub fn status(&mut self) -> Status {
        // SAFETY: the OVERLAPPED is ours.
        Status(unsafe { result(&self.file, &**self.ov, false) })
    }

    /// The status in the end (`GetOverlappedResult` with `wait` true).
    pub fn wait(&mut self) -> Status {
        // SAFETY: the OVERLAPPED is ours.
        Status(unsafe { result(&self.file, &**self.ov, true) })
    }

    /// Waits as [`Operation::wait`] does, for a request that completes only if `cause` does not fail. Fails the test if `cause` ends
    /// with an error, and if nothing happens in time.
    pub fn wait_beside(&mut self, cause: &mut Operation) -> Status {
        let deadline = Instant::now() + TIME_LIMIT;
        let ov = self.ov().cast_const();
        // SAFETY: the OVERLAPPED is ours.
        let is_done = || unsafe { result(&self.file, ov, false) } != Status::PENDING.0;
        while !wait_for(&self.file, ov, Duration::from_millis(200), is_done) {
            let why = cause.status();
            assert!(why.is_success(), "the request waits for one that ended with {why:?}");
            assert!(
                Instant::now() < deadline,
                "the request stays pending, and the other's status is {why:?}"
            );
        }
        self.wait()
    }

    /// Polls until the request has completed; fails the test if it does not in time.
    pub fn poll(&mut self) -> Status {
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            match self.status() {
                Status::PENDING => assert!(Instant::now() < deadline, "the request stays pending"),
                status => return status,
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // A failing test may leave its request pending. Its OVERLAPPED is then leaked, as it may still be written to.
        if self.status() != Status::PENDING {
            // SAFETY: not used again.
            unsafe { ManuallyDrop::drop(&mut self.ov) };
        }
    }
}
