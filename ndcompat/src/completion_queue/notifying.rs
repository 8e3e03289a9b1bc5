//! How notifications of a completion queue come about.

use super::Queue;
use crate::lock::Held;
use crate::notification::Notification;
use crate::reaping::Poll;
use crate::removal::Removable;
use crate::status::Status;
use crate::types::{Completion, NotifyType, RequestType};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use win32::io::{Canceller, Overlapped, Source, Which};

impl Queue {
    pub(super) unsafe fn notify(&self, kind: NotifyType, ov: *mut Overlapped) -> Status {
        let mut notification = self.notification.lock();
        if let Some(status) = notification.failure() {
            return status;
        }
        let kind =
            if kind == NotifyType::Solicited && self.any_for_solicited { NotifyType::Any } else { kind };
        let first = notification.level().is_none();
        // SAFETY: passed on to the caller.
        notification.add(kind, unsafe { self.file.file().begin(ov) });
        if kind != NotifyType::Errors {
            self.arm(notification, first);
        }
        Status::PENDING
    }

    /// Arms the device for what is being waited for, if it is not, then looks whether that has come already.
    ///
    /// `first` says that nobody was waiting before: what was reaped until now is no news.
    fn arm(&self, mut notification: MutexGuard<'_, Notification>, first: bool) {
        if let Some(level) = notification.level_to_arm() {
            if self.cq.req_notify(level == NotifyType::Solicited).is_err() {
                return self.fail_with(notification, Status::INTERNAL_ERROR);
            }
            notification.armed(level);
        }
        let mut poll = self.poll.lock();
        self.collect(&mut poll);
        if first {
            notification.start_from(poll.reaped);
        }
        if !poll.kept {
            return;
        }
        let fresh = match notification.level() {
            Some(NotifyType::Solicited) => {
                let wanted =
                    |c: &Completion| c.request_type == RequestType::Receive || !c.status.is_success();
                poll.stash.range(poll.announced..).any(wanted)
            }
            _ => poll.stash.len() > poll.announced,
        };
        self.conclude(notification, poll, fresh);
    }

    /// The device reported a completion event.
    fn triggered(&self) {
        let mut notification = self.notification.lock();
        let certain = notification.disarmed();
        if notification.level().is_none() {
            return;
        }
        let mut poll = self.poll.lock();
        let plain = !poll.kept && !self.has_silent.load(Ordering::Acquire);
        if certain
            && plain
            && !poll.failure
            && notification.level() == Some(NotifyType::Any)
            && !self.file.adapter().is_known_gone()
            && let Some(only) = notification.take_only()
        {
            // Mostly. What has come can stay where it is. Should it be a failure because the device has gone: word of that
            // was there earlier, and so has been served earlier, by this thread or by another.
            if poll.reaped == notification.start() {
                poll.announce_first();
            }
            poll.announced = 0;
            drop(poll);
            drop(notification);
            return only.complete(Status::SUCCESS.0, 0);
        }
        self.collect(&mut poll);
        if poll.reaped == notification.start() && poll.stash.len() <= poll.announced {
            // Only completions that are none of the user's business.
            drop(poll);
            return self.arm(notification, false);
        }
        self.conclude(notification, poll, true);
    }

    /// Something may have been put into the queue without the device's knowledge.
    pub(super) fn look_again(&self) {
        let notification = self.notification.lock();
        if notification.level().is_none() {
            return;
        }
        let mut poll = self.poll.lock();
        self.collect(&mut poll);
        let fresh = poll.stash.len() > poll.announced;
        self.conclude(notification, poll, fresh);
    }

    /// Completes the pending notifications if something `fresh` came, then what reaping has brought about.
    fn conclude(
        &self,
        mut notification: MutexGuard<'_, Notification>,
        mut poll: Held<'_, Poll>,
        fresh: bool,
    ) {
        let after = std::mem::take(&mut poll.after);
        if !fresh {
            drop(poll);
            drop(notification);
            return after.run();
        }
        let failure = std::mem::take(&mut poll.failure);
        poll.announced = poll.stash.len();
        drop(poll);
        let ready = notification.take();
        drop(notification);
        // A device that goes ends its connections, whose flushed requests are often here before word of the removal is.
        let removed = failure && self.file.adapter().is_gone();
        let status = if removed { Status::DEVICE_REMOVED } else { Status::SUCCESS };
        for request in ready {
            request.complete(status.0, 0);
        }
        after.run();
    }

    /// The queue itself has failed: nothing will come any more.
    pub(crate) fn fail(&self, status: Status) {
        self.fail_with(self.notification.lock(), status);
    }

    fn fail_with(&self, mut notification: MutexGuard<'_, Notification>, status: Status) {
        let requests = notification.fail(status);
        drop(notification);
        for request in requests {
            request.complete(status.0, 0);
        }
    }
}

impl Source for Queue {
    fn ready(&self) {
        let Some(channel) = self.cq.channel() else { return };
        // One event only: to ask until there are none would cost every wake-up a system call.
        if let Ok(Some(event)) = channel.event() {
            self.cq.keep(event);
            self.triggered();
        }
    }

    /// There is one event at most, unless the queue was armed for more while it came, and each has the whole queue looked
    /// through.
    fn needs_each_once(&self) -> bool {
        true
    }
}

impl Removable for Queue {
    fn device_removed(self: Arc<Self>) {
        self.fail(Status::DEVICE_REMOVED);
    }
}

impl Canceller for Queue {
    fn cancel(&self, which: Which) -> usize {
        let requests = self.notification.lock().cancel(which);
        let count = requests.len();
        for request in requests {
            request.complete(Status::CANCELED.0, 0);
        }
        count
    }
}
