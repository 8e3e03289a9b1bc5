//! The time limit of a `Send` that meets no receive (RoCE and InfiniBand).
//!
//! The device resends such a message for ever, with less than a millisecond between, so that it goes on soon after the receive is posted.
//! That the receive never comes is for the library to see: the oldest request is a `Send`, and stays so for some ticks of a clock. The
//! same clock sees whether the device flushes the requests of a queue pair that has failed.

use crate::data::queue_pair::Core;
use crate::device::clock::{Clock, Ticked};
use crate::verbs::nodes::RefusalCounter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// No counter.
const NONE: u8 = u8::MAX;
/// How many ticks a `Send` may be the oldest request at least, where the driver does not count the messages that meet no receive.
const TICKS: u16 = 3;

impl Core {
    /// From now on, a `Send` that meets no receive fails in the end. `port` is the device's that the connection uses.
    pub(crate) fn limit_waiting(self: &Arc<Self>, clock: &Clock, port: u8) {
        let counter = RefusalCounter::of(&self.adapter().device_name(), port);
        self.receiver().port.store(port, Ordering::Relaxed); // all released by the clock's lock
        self.receiver().counter.store(counter.map_or(NONE, |counter| counter.0), Ordering::Relaxed);
        if !self.receiver().ticking.swap(true, Ordering::AcqRel) {
            clock.add(Arc::downgrade(self) as _);
        }
    }

    /// How many messages of the device's port have met no receive, if its driver counts them.
    fn refused_messages(&self) -> Option<u32> {
        let receiver = self.receiver();
        let counter = RefusalCounter(receiver.counter.load(Ordering::Relaxed));
        counter.read(&self.adapter().device_name(), receiver.port.load(Ordering::Relaxed))
    }

    /// Whether the oldest request has been waiting for a receive for so long that none is to be expected.
    fn waits_in_vain(&self) -> bool {
        let receiver = self.receiver();
        if !self.initiator_completion_queue.is_waiting_to_send(&self.initiator) {
            receiver.ticks.store(0, Ordering::Relaxed);
            receiver.probed.store(false, Ordering::Relaxed);
            if let Some(count) = self.refused_messages() {
                receiver.refused.store(count, Ordering::Relaxed);
            }
            if self.initiator_completion_queue.is_idle(&self.initiator) {
                receiver.longest.store(0, Ordering::Relaxed);
            }
            return false;
        }
        let ticks = receiver.ticks.load(Ordering::Relaxed).saturating_add(1);
        receiver.ticks.store(ticks, Ordering::Relaxed);
        let is_late = match self.refused_messages() {
            // Others' messages count, too; but a message that the peer does not even refuse is for the device to give up.
            Some(count) => receiver.refused.swap(count, Ordering::Relaxed) != count,
            // It may also be lost, and resent by the device.
            None => ticks >= TICKS.max(receiver.resending.load(Ordering::Relaxed)),
        };
        // Silent messages may be done: what is on its way may be one behind them.
        is_late && receiver.had_time_for(self.initiator_completion_queue.unreported(&self.initiator))
    }
}

impl Ticked for Core {
    fn tick(self: Arc<Self>) -> bool {
        if self.is_flushing() {
            let stays = self.awaits_flush();
            self.receiver().ticking.store(stays, Ordering::Release);
            return stays;
        }
        if self.waits_in_vain() {
            let probed = &self.receiver().probed;
            if probed.load(Ordering::Relaxed)
                || !self.initiator_completion_queue.is_unsignalled(&self.initiator)
            {
                self.initiator_completion_queue.time_out(&self.initiator);
            } else {
                // All requests are silent, and may be done. A request behind them shows that.
                let posted = self.initiator.signal_last(|wr_id| self.post_nothing(wr_id).is_ok());
                probed.store(posted, Ordering::Relaxed);
            }
        }
        true
    }
}
