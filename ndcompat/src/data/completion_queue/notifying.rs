//! Notifications of a completion queue: `Notify`, arming the device, and its completion events.

use super::Queue;
use crate::data::backlog::Backlog;
use crate::data::notification::Notification;
use crate::device::async_events::{Acknowledged, AsyncEventHandler};
use crate::device::removal::Removable;
use crate::status::Status;
use crate::sync::lock::Held;
use crate::types::NotifyType;
use crate::verbs::{AsyncEvent, bindings::IBV_EVENT_CQ_ERR};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use win32::io::{CancelScope, Canceller, Overlapped, Source};

impl Queue {
    /// [`CompletionQueue::notify`](super::CompletionQueue::notify).
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub(super) unsafe fn notify(&self, kind: NotifyType, ov: *mut Overlapped) -> Status {
        let mut notification = self.notification.lock();
        if let Some(status) = notification.failure() {
            return status;
        }
        let kind =
            if kind == NotifyType::Solicited && self.any_for_solicited { NotifyType::Any } else { kind };
        let first = notification.waited().is_none();
        // SAFETY: the caller keeps `ov` valid until the request completes.
        notification.add(kind, unsafe { self.requests.begin(self.file.file(), ov) });
        if kind != NotifyType::Errors {
            self.arm(notification, first);
        }
        Status::PENDING
    }

    /// Arms the device if necessary, then polls for results that have arrived already.
    ///
    /// `first` means that no other request was pending: results that the program has taken then need no notification.
    fn arm(&self, mut notification: MutexGuard<'_, Notification>, first: bool) {
        if let Some(kind) = notification.to_arm() {
            if self.cq.req_notify(kind == NotifyType::Solicited).is_err() {
                return self.fail_with(notification, Status::INTERNAL_ERROR);
            }
            notification.armed();
        }
        let mut backlog = self.backlog.lock();
        if first {
            backlog.forget_taken();
        }
        if self.collect(&mut backlog) {
            let complete = notification.waited().is_some_and(|kind| backlog.has_unnotified_for(kind));
            self.conclude(notification, backlog, complete);
        }
    }

    /// Handles a completion event of the device.
    fn completion_event(&self) {
        let mut notification = self.notification.lock();
        notification.event();
        if notification.waited().is_none() {
            return;
        }
        let mut backlog = self.backlog.lock();
        self.collect(&mut backlog);
        if notification.waited().is_some_and(|kind| backlog.has_news_for(kind)) {
            return self.conclude(notification, backlog, true);
        }
        // There were only hidden completions, results that are not due yet, or results that cannot be solicited.
        drop(backlog);
        self.arm(notification, false);
    }

    /// Polls for results that come without a completion event.
    pub(super) fn poll_again(&self) {
        let notification = self.notification.lock();
        if notification.waited().is_none() {
            return;
        }
        let mut backlog = self.backlog.lock();
        self.collect(&mut backlog);
        let complete = notification.waited().is_some_and(|kind| backlog.has_unnotified_for(kind));
        self.conclude(notification, backlog, complete);
    }

    /// Completes the pending notifications if `complete` is set, then does the deferred work, without the locks.
    pub(super) fn conclude(
        &self,
        mut notification: MutexGuard<'_, Notification>,
        mut backlog: Held<'_, Backlog>,
        complete: bool,
    ) {
        let deferred = std::mem::take(&mut backlog.deferred);
        if !complete {
            drop(backlog);
            drop(notification);
            return deferred.run();
        }
        let failure = std::mem::take(&mut backlog.failure);
        backlog.set_notified();
        drop(backlog);
        let ready = notification.take();
        drop(notification);
        // A removed device ends its connections. Their flushed requests often arrive before the removal is reported.
        let removed = failure && self.file.adapter().is_gone();
        let status = if removed { Status::DEVICE_REMOVED } else { Status::SUCCESS };
        for (_, request) in ready {
            request.complete(status.0, 0);
        }
        deferred.run();
    }

    /// Handles the failure of the queue: completes all requests with `status`, now and later.
    fn fail(&self, status: Status) {
        self.fail_with(self.notification.lock(), status);
    }

    fn fail_with(&self, mut notification: MutexGuard<'_, Notification>, status: Status) {
        self.failed.store(status.0, Ordering::Release);
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
        // Reads one event only: reading until there is none would cost a system call at each wake-up.
        match channel.event() {
            Ok(Some(event)) => {
                self.cq.acknowledge_later(event);
                self.completion_event();
            }
            Ok(None) => {}
            // The descriptor does not become readable again for an event that could not be read: poll now.
            Err(_) => self.completion_event(),
        }
    }

    /// There is rarely more than one event: two if the queue was armed again while the first arrived. Handling one polls
    /// the whole queue.
    fn needs_each_once(&self) -> bool {
        true
    }
}

impl AsyncEventHandler for Queue {
    fn async_event(&self, event: &AsyncEvent) -> Option<Acknowledged> {
        if event.kind() == IBV_EVENT_CQ_ERR && event.cq() == Some(self.cq.as_ptr()) {
            // Verbs gives no reason. Overrun is the only failure of the queue itself.
            self.fail(Status::BUFFER_OVERFLOW);
        }
        None
    }
}

impl Removable for Queue {
    fn device_removed(self: Arc<Self>) {
        self.fail(Status::DEVICE_REMOVED);
    }
}

impl Canceller for Queue {
    fn cancel(&self, scope: CancelScope) -> usize {
        let requests = self.notification.lock().cancel(|request| request.is_in(scope));
        let count = requests.len();
        if count > 0 {
            tracing::debug!(target: "ndcompat::queue", cq = self.cq.number(), requests = count, "Cancel");
        }
        for request in requests {
            request.complete(Status::CANCELED.0, 0);
        }
        count
    }
}
