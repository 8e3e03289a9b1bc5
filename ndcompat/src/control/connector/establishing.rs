//! What both sides of a connection share: its terms, and moving the queue pair to RTR and RTS.

use super::{Connector, Offer};
use crate::control::connection::{State, Terms};
use crate::control::phase::Phase;
use crate::data::queue_pair::{Core, RETRIES};
use crate::status::{Result, Status};
use crate::verbs::bindings::{IBV_QPS_RTR, IBV_QPS_RTS};
use crate::verbs::{ConnectParam, Id};
use std::io;
use std::sync::Arc;

/// `rnr_retry_count`: how often a message is resent while the peer has no receive: 7 is no limit. The library has one of its own
/// (`data/receiver_not_ready.rs`).
const RNR_RETRIES: u8 = 7;
/// `min_rnr_timer`: the delay between those; code 12 is 0.64 ms.
const RNR_TIMER: u8 = 12;

impl Connector {
    /// Clamps an offer to the adapter's limits.
    pub(super) fn terms(&self, offer: Offer<'_>) -> Terms {
        let info = &self.adapter().limits().info;
        Terms {
            private_data: offer.private_data.to_vec(),
            inbound_reads: offer.inbound_read_limit.min(info.max_inbound_read_limit),
            outbound_reads: offer.outbound_read_limit.min(info.max_outbound_read_limit),
            peer_shares: false,
        }
    }

    /// Moves the queue pair to RTR and RTS.
    pub(super) fn make_ready(&self, id: &Id, core: &Arc<Core>, terms: &Terms) -> Result<()> {
        // `rdma_init_qp_attr` fails once the peer has given up.
        let given_up = |error: io::Error| match error.raw_os_error() {
            Some(libc::EINVAL) => Status::CONNECTION_ABORTED.because(&error),
            _ => error.into(),
        };
        core.use_path(id).map_err(given_up)?;
        let attributes = |state| id.init_qp_attr(state).map_err(given_up);
        let (mut attr, mask) = attributes(IBV_QPS_RTR)?;
        attr.max_dest_rd_atomic = terms.inbound_reads as u8;
        attr.min_rnr_timer = RNR_TIMER;
        core.qp.modify(&attr, mask)?;
        let (mut attr, mask) = attributes(IBV_QPS_RTS)?;
        attr.max_rd_atomic = terms.outbound_reads as u8;
        // The peer may have asked for more; see [`RETRIES`].
        attr.retry_cnt = attr.retry_cnt.min(RETRIES);
        attr.rnr_retry = RNR_RETRIES;
        core.expect_resending(attr.timeout);
        core.qp.modify(&attr, mask)?;
        // Created here, where it may fail.
        core.clock()?;
        Ok(())
    }

    /// Lets the program post requests. The clock comes after that: it forgets a queue pair that is not ready.
    pub(super) fn set_ready(&self, core: &Arc<Core>, terms: &Terms) {
        core.set_ready(terms.outbound_reads);
        // A shared queue may be empty for as long as its program likes.
        if !self.is_iwarp() && !terms.peer_shares {
            core.be_called();
        }
    }

    pub(super) fn set_connected(&self, state: &mut State) {
        tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(),
            qp = state.core.as_ref().map(|core| core.number()), "connected");
        state.phase = Phase::Connected;
        self.file().expect_events();
    }
}

/// The parameters of `rdma_connect` and `rdma_accept`.
pub(super) fn param<'a>(core: &Core, terms: &'a Terms) -> ConnectParam<'a> {
    ConnectParam {
        private_data: &terms.private_data,
        responder_resources: terms.inbound_reads as u8,
        initiator_depth: terms.outbound_reads as u8,
        retry_count: RETRIES,
        rnr_retry_count: RNR_RETRIES,
        srq: core.is_shared(),
        qp_num: core.number(),
    }
}
