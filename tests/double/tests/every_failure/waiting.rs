//! How a program waits for its overlapped requests.

use crate::LIMIT;
use double::failed_call;
use ndcompat::Status;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};
use support::client::Ov;
use support::library::{
    CloseHandle, CreateEventW, CreateIoCompletionPort, GetQueuedCompletionStatus, WaitForSingleObject,
};
use win32::object::RawHandle;

/// The method that failed, and its status.
pub type Stop = (&'static str, Status);

/// How a program waits for its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waiting {
    /// On an event.
    Event,
    /// On a completion port that both files share.
    Port,
    /// It polls `Internal`.
    Background,
}

pub fn ok(method: &'static str, status: Status) -> Result<(), Stop> {
    if status == Status::SUCCESS { Ok(()) } else { Err((method, status)) }
}

/// A handle, closed on drop.
pub struct Handle(pub RawHandle);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is this one's.
        unsafe { CloseHandle(self.0) };
    }
}

/// An overlapped request and its event.
pub struct Request {
    pub ov: Ov,
    event: Option<Handle>,
}

/// A way to wait, with its completion port.
pub struct Waiter {
    pub waiting: Waiting,
    pub port: Option<Handle>,
}

impl Waiter {
    pub fn request(&self) -> Result<Request, Stop> {
        if self.waiting != Waiting::Event {
            return Ok(Request { ov: Ov::new(), event: None });
        }
        // SAFETY: the arguments are plain.
        let event = unsafe { CreateEventW(null_mut(), 1, 0, null()) };
        if event == RawHandle::NULL {
            return Err(("CreateEvent", Status::INSUFFICIENT_RESOURCES));
        }
        Ok(Request { ov: Ov::with(event), event: Some(Handle(event)) })
    }

    /// Binds the file to the shared port, which the first call creates.
    pub fn bind(&mut self, file: RawHandle) -> Result<(), Stop> {
        if self.waiting != Waiting::Port {
            return Ok(());
        }
        let port = self.port.as_ref().map_or(RawHandle::NULL, |port| port.0);
        // SAFETY: the handles are open.
        let bound = unsafe { CreateIoCompletionPort(file, port, 7, 0) };
        if bound == RawHandle::NULL {
            return Err(("CreateIoCompletionPort", Status::INSUFFICIENT_RESOURCES));
        }
        if self.port.is_none() {
            self.port = Some(Handle(bound));
        }
        Ok(())
    }

    /// Waits for a short time.
    fn pause(&self, request: &Request) {
        match (&request.event, &self.port) {
            // SAFETY: the handle is open.
            (Some(event), _) => drop(unsafe { WaitForSingleObject(event.0, 5) }),
            (_, Some(port)) => {
                let (mut bytes, mut key, mut ov) = (0, 0, null_mut());
                // SAFETY: the handle is open, the results are this function's own.
                unsafe { GetQueuedCompletionStatus(port.0, &mut bytes, &mut key, &mut ov, 5) };
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }

    /// Waits until the request completes; returns early if another one, on which it depends, fails.
    pub fn wait(
        &self,
        method: &'static str,
        returned: Status,
        request: &Request,
        other: Option<(&'static str, &Request)>,
    ) -> Result<(), Stop> {
        if returned != Status::PENDING {
            return Err((method, returned));
        }
        let deadline = Instant::now() + LIMIT;
        while request.ov.internal() == Status::PENDING {
            self.pause(request);
            // The disconnect was never sent: the connection managers of real devices time out then.
            if method == "IND2Connector::Disconnect" && failed_call() == Some("rdma_disconnect") {
                return Err(("a silent peer", Status::IO_TIMEOUT));
            }
            if let Some((method, other)) = other {
                let status = other.ov.internal();
                if status != Status::PENDING {
                    ok(method, status)?;
                }
            }
            assert!(Instant::now() < deadline, "{method} never completes, after {:?}", failed_call());
        }
        ok(method, request.ov.internal())
    }
}
