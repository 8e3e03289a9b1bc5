//! The end of a queue pair: failure, flush, disconnect, removal of its device.

use crate::data::queue_pair::Core;
use crate::device::removal::Removable;
use crate::verbs::bindings::{
    IBV_PORT_ACTIVE, IBV_QP_AV, IBV_QP_PORT, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_SQD, IBV_QPS_SQE, ibv_qp,
};
use crate::verbs::nodes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// Moves the queue pair to the failed state: cancels outstanding requests, and all that are posted later.
    pub(crate) fn fail(self: &Arc<Self>) {
        if self.readiness.has_failed() {
            return;
        }
        // Posting to the device must stop before the device flushes, and before requests are accepted on a queue pair that
        // was never connected.
        self.initiator.start_flushing();
        if let Some(receive) = &*self.receive {
            receive.start_flushing();
        }
        if !self.readiness.failed(self.bounds()) {
            return;
        }
        if let Err(error) = self.stop() {
            tracing::debug!(target: "ndcompat::queue", %error, "flushing a queue pair");
        }
        self.report_flushed();
        self.watch_flush();
    }

    /// Makes the device flush its requests. Called when nothing is posted to the device any more.
    fn stop(&self) -> io::Result<()> {
        // With a shared receive queue, destroying the queue pair would lose a receive that a message is arriving in.
        if !self.adapter.limits().quirks.cuts_acknowledgements || self.shared.is_some() {
            return self.qp.to_error();
        }
        self.end_device_use()
    }

    /// Makes the device let go of all memory that the requests of a failed queue pair name, whether or not it has flushed them. What it has
    /// not completed so far it does not report.
    ///
    /// # Errors
    /// The errno of `ibv_destroy_qp`: the device may go on using the memory.
    pub(crate) fn end_device_use(&self) -> io::Result<()> {
        debug_assert!(self.readiness.has_failed());
        // SAFETY: nothing posts to the device: all posting takes the lock of a request queue first and finds it flushing. All queues have
        // begun to flush before the state tells of the failure.
        unsafe { self.qp.destroy()? };
        self.lossy.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes the completion queues report the requests that were flushed without the device.
    #[cold]
    pub(crate) fn report_flushed(self: &Arc<Self>) {
        self.initiator_completion_queue.flush(Arc::downgrade(self) as _);
        if !Arc::ptr_eq(&self.initiator_completion_queue, &self.receive_completion_queue) {
            self.receive_completion_queue.flush(Arc::downgrade(self) as _);
        }
    }

    /// Whether the device has no way to the peer, as its port is down or the address that the connection is from is gone.
    pub(crate) fn is_cut_off(&self) -> bool {
        let context = self.adapter.context();
        let asked = self.qp.query(IBV_QP_AV | IBV_QP_PORT);
        let (port, address) =
            asked.map_or((1, None), |attr| (attr.port_num.max(1), Some(attr.ah_attr.grh.sgid_index)));
        context.port_attr(port).is_ok_and(|port| port.state != IBV_PORT_ACTIVE)
            || address.is_some_and(|index| nodes::is_address_gone(&context.name(), port, index))
    }

    /// Whether the device's queue pair has left the state in which it takes requests. iWARP devices put one whose connection has been closed
    /// in others than the error state.
    pub(crate) fn is_stopped(&self) -> bool {
        match self.qp.state() {
            Ok(IBV_QPS_ERR) => true,
            Ok(IBV_QPS_INIT | IBV_QPS_SQD | IBV_QPS_SQE) => self.was_connected(),
            _ => false,
        }
    }

    /// Ends the connection after a request has failed, as rdma_cm may not report the end.
    pub(crate) fn broken(self: &Arc<Self>) {
        let connection = self.connection();
        self.fail();
        if let Some(connection) = connection {
            connection.failed();
        }
    }

    /// Whether flushed receives stay outstanding until the program disconnects or flushes, as they must while a
    /// `NotifyDisconnect` is pending. iWARP devices flush by themselves when the peer disconnects. As flushed requests have
    /// no second completion, the device then counts as lossy
    /// ([`QueueOwner::is_lossy`](crate::data::request_queue::QueueOwner::is_lossy)).
    pub(crate) fn defer_flushed(&self, on: bool) {
        let iwarp = self.adapter.limits().quirks.iwarp;
        let on = on && iwarp && !self.readiness.has_failed();
        if on {
            self.lossy.store(true, Ordering::Release);
        }
        self.initiator.defer_flushed(on);
        if let Some(receive) = &*self.receive {
            receive.defer_flushed(on);
        }
    }

    /// Tells the connection that the device has flushed a request whose result is deferred.
    pub(crate) fn flushed(&self) {
        if let Some(connection) = self.connection() {
            connection.flushed();
        }
    }

    /// Cancels initiator requests after the peer's disconnect; receives stay outstanding until [`fail`](Self::fail).
    pub(crate) fn shut_down(self: &Arc<Self>) {
        self.initiator.start_flushing();
        self.initiator_completion_queue.flush(Arc::downgrade(self) as _);
        self.watch_flush();
    }

    /// From now on, the clock sees to it that the device flushes. Requests posted after the peer's close and before it was noticed are
    /// not flushed by every iWARP device.
    fn watch_flush(self: &Arc<Self>) {
        self.receiver.ticks.store(0, Ordering::Relaxed);
        self.receiver.flushing.store(true, Ordering::Release);
        if self.was_connected() && !self.lossy.load(Ordering::Acquire) {
            self.be_called();
        }
    }

    /// Whether the device has been told to flush the initiator queue at least.
    pub(crate) fn is_flushing(&self) -> bool {
        self.receiver.flushing.load(Ordering::Acquire)
    }

    /// Called at each tick on a queue pair that flushes. Returns whether the device still has requests to report: these are given up after
    /// [`FLUSH_TICKS`].
    pub(crate) fn awaits_flush(self: &Arc<Self>) -> bool {
        let late = self.receiver.ticks.fetch_add(1, Ordering::Relaxed) + 1 >= FLUSH_TICKS;
        let awaits = self.initiator_completion_queue.awaits_device(&self.initiator)
            || self.readiness.has_failed()
                && self
                    .receive
                    .as_ref()
                    .is_some_and(|queue| self.receive_completion_queue.awaits_device(queue));
        if !awaits || self.lossy.load(Ordering::Acquire) {
            return false;
        }
        if late {
            tracing::debug!(target: "ndcompat::queue", qp = self.number, "the device has not flushed");
            // Whoever gets the results takes the memory back. With the queue pair goes a shared receive that is being filled.
            if self.readiness.has_failed()
                && self.shared.is_none()
                && let Err(error) = self.end_device_use()
            {
                tracing::debug!(target: "ndcompat::queue", %error, "destroying a queue pair");
            }
            self.lossy.store(true, Ordering::Release);
            self.report_flushed();
        }
        !late
    }
}

/// At which tick after it had to flush requests, those that the device has not reported are given up: after a second at least.
const FLUSH_TICKS: u16 = 2;

impl Removable for Core {
    fn device_removed(self: Arc<Self>) {
        self.fail();
    }

    fn queue_pair_failed(self: Arc<Self>, queue_pair: *mut ibv_qp) {
        if self.qp.as_ptr() == queue_pair {
            self.broken();
        }
    }
}
