//! The time limit of a `Send` that meets no receive (RoCE and InfiniBand).
//!
//! The device resends such a message for ever, with less than a millisecond between, so that it goes on soon after the receive is posted.
//! That the receive never comes is for the library to see: the oldest request is a `Send`, and stays so for some ticks of a clock. The
//! same clock sees whether the device flushes the requests of a queue pair that has failed.

use crate::data::queue_pair::{Core, RETRIES};
use crate::device::clock::{Clock, Ticked};
use crate::status::Result;
use crate::verbs::nodes::RefusalCounter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// No counter.
const NONE: u8 = u8::MAX;
/// How many ticks a `Send` may be the oldest request at least, where the driver does not count the messages that meet no receive.
const TICKS: u16 = 3;

impl Core {
    /// The clock that calls the queue pair. It lives as long as the queue pair's completion queue.
    ///
    /// # Errors
    /// Those of the first call, which makes it.
    pub(crate) fn clock(&self) -> Result<&Clock> {
        self.initiator_completion_queue.adapter_file().clock()
    }

    /// From now on, a clock calls the queue pair: a `Send` that meets no receive fails in the end, and so do requests that the device does
    /// not flush.
    pub(crate) fn be_called(self: &Arc<Self>) {
        if let Ok(clock) = self.clock()
            && !self.receiver().ticking.swap(true, Ordering::AcqRel)
        {
            clock.add(Arc::downgrade(self) as _);
        }
    }

    /// How many messages of the device's port have met no receive, if its driver counts them.
    fn refused_messages(&self) -> Option<u32> {
        let (device, port) = (self.adapter().device_name(), self.port());
        let mut known = self.receiver().counter.load(Ordering::Relaxed);
        if known == 0 {
            known = RefusalCounter::of(&device, port).map_or(NONE, |counter| counter.0 + 1);
            self.receiver().counter.store(known, Ordering::Relaxed);
        }
        if known == NONE { None } else { RefusalCounter(known - 1).read(&device, port) }
    }

    /// Whether the oldest request has been waiting for a receive for so long that none is to be expected.
    fn waits_in_vain(&self) -> bool {
        let receiver = self.receiver();
        if !self.initiator_completion_queue.is_waiting_to_send(&self.initiator) {
            receiver.ticks.store(0, Ordering::Relaxed);
            receiver.probed.store(false, Ordering::Relaxed);
            if self.initiator_completion_queue.is_idle(&self.initiator) {
                receiver.longest.store(0, Ordering::Relaxed);
            } else if let Some(count) = self.refused_messages() {
                receiver.refused.store(count, Ordering::Relaxed);
            }
            return false;
        }
        let ticks = receiver.ticks.load(Ordering::Relaxed).saturating_add(1);
        receiver.ticks.store(ticks, Ordering::Relaxed);
        // It may also have got lost. Then it is resent, and in the end the device gives it up.
        let resent = receiver.resent.load(Ordering::Relaxed);
        let given_up = resent.saturating_mul(u16::from(RETRIES) + 1);
        let is_late = match self.refused_messages() {
            // Others' messages count, too. Where not even those grow any more, nothing may count.
            Some(count) => {
                let grows = receiver.refused.swap(count, Ordering::Relaxed) != count;
                ticks >= if grows { resent } else { TICKS.max(given_up) }
            }
            None => ticks >= TICKS.max(given_up),
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
        // It is about to fail.
        if !self.is_ready() {
            return true;
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
