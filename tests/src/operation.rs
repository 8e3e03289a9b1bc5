//! Overlapped requests of the tests.

use ndcompat::Status;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};
use win32::io::{File, Overlapped, result};
use win32::object::RawHandle;

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

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

    /// What the calls under test take.
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

    /// Asks again and again until the request has completed; fails the test if it does not in time.
    pub fn poll(&mut self) -> Status {
        let deadline = Instant::now() + PATIENCE;
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
        // A test that fails may leave its request pending: then the OVERLAPPED must stay.
        if self.status() != Status::PENDING {
            // SAFETY: not used again.
            unsafe { ManuallyDrop::drop(&mut self.ov) };
        }
    }
}
