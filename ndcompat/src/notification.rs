//! The pending `Notify` requests of a completion queue.

use crate::status::Status;
use crate::types::NotifyType;
use smallvec::SmallVec;
use win32::io::{Request, Which};

/// Requests, of which there is mostly one.
pub(crate) type Requests = SmallVec<[Request; 1]>;

/// Who waits for a completion queue, and what the device has been asked to report.
///
/// Verbs has one arm bit for a queue, ND any number of requests that one completion completes together.
#[derive(Default)]
pub(crate) struct Notification {
    /// Requests for `Any` or `Solicited`, in the order they came.
    waiting: Requests,
    /// What all of `waiting` wait for: one `Any` makes it `Any` for all.
    level: Option<NotifyType>,
    /// Requests for errors of the queue.
    errors: Vec<Request>,
    /// What the device is armed for.
    armed: Option<NotifyType>,
    /// The next event can only be of something that came since waiting began.
    certain: bool,
    /// The queue was armed while it was armed: there may be one event more than there are answers to it.
    surplus: bool,
    /// How many results had been reaped when waiting began: results reaped later are news.
    start: u64,
    failure: Option<Status>,
}

impl Notification {
    pub(crate) fn failure(&self) -> Option<Status> {
        self.failure
    }

    pub(crate) fn add(&mut self, kind: NotifyType, request: Request) {
        if kind == NotifyType::Errors {
            return self.errors.push(request);
        }
        self.waiting.push(request);
        if self.level != Some(NotifyType::Any) {
            self.level = Some(kind);
        }
    }

    /// What is waited for, if anything.
    pub(crate) fn level(&self) -> Option<NotifyType> {
        self.level
    }

    /// What the device must be armed for now, if it is not.
    pub(crate) fn level_to_arm(&self) -> Option<NotifyType> {
        match (self.level, self.armed) {
            (None, _) | (_, Some(NotifyType::Any)) => None,
            (level, armed) if level == armed => None,
            (level, _) => level,
        }
    }

    pub(crate) fn armed(&mut self, level: NotifyType) {
        self.surplus |= self.armed.is_some();
        self.certain = !self.surplus;
        self.armed = Some(level);
    }

    /// The device has reported. Says whether that is certainly of something that came since waiting began.
    pub(crate) fn disarmed(&mut self) -> bool {
        self.armed = None;
        std::mem::take(&mut self.certain)
    }

    /// Remembers how many results had been reaped when the device was armed.
    pub(crate) fn start_from(&mut self, reaped: u64) {
        self.start = reaped;
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// All that wait for a completion, in order.
    pub(crate) fn take(&mut self) -> Requests {
        self.end_waiting();
        std::mem::take(&mut self.waiting)
    }

    /// The one that waits for a completion, if no other does.
    pub(crate) fn take_only(&mut self) -> Option<Request> {
        if self.waiting.len() != 1 {
            return None;
        }
        self.end_waiting();
        self.waiting.pop()
    }

    fn end_waiting(&mut self) {
        self.level = None;
        self.certain = false;
    }

    /// The request on `ov`, or all requests, in order.
    pub(crate) fn cancel(&mut self, which: Which) -> Vec<Request> {
        let chosen = |request: &Request| request.is_among(which);
        let (mut cancelled, others) = self.waiting.drain(..).partition::<Vec<_>, _>(chosen);
        self.waiting.extend(others);
        cancelled.extend(self.errors.extract_if(.., |request| chosen(request)));
        if self.waiting.is_empty() {
            self.end_waiting();
        }
        cancelled
    }

    /// The queue has failed: all requests, to be completed with `status`, which later ones get at once.
    pub(crate) fn fail(&mut self, status: Status) -> Vec<Request> {
        self.failure = Some(status);
        let mut requests = self.take().into_vec();
        requests.append(&mut self.errors);
        requests
    }
}
