//! What an adapter can do, and where its device departs from the verbs manual.

use crate::status::{Result, Status};
use crate::types::{AdapterInfo, Sge, VERSION_2, adapter_flags};
use crate::verbs::bindings::{
    IBV_DEVICE_MEM_WINDOW, IBV_DEVICE_MEM_WINDOW_TYPE_2A, IBV_DEVICE_MEM_WINDOW_TYPE_2B,
    IBV_DEVICE_SRQ_RESIZE, ibv_device_attr, ibv_qp_cap,
};
use crate::verbs::{self, Context, ProtectionDomain, Transport};
use std::sync::Arc;

/// The deepest request queue we offer. Odd: Microsoft's ping example leaks a credit at every even depth below 5296.
const MAX_QUEUE_DEPTH: u32 = 4095;
/// The deepest completion queue we offer.
const MAX_COMPLETION_QUEUE_DEPTH: u32 = 16383;
/// The longest scatter/gather list we offer: queues of full depth with more would not fit every device.
pub(crate) const MAX_SGE: u32 = 16;
/// Above this, reads and writes beat sends: the figure of Mellanox's Windows provider.
const LARGE_REQUEST: u32 = 65536;
/// Above this, copying into the request costs more than it saves.
const INLINE_THRESHOLD: u32 = 256;

/// The deepest shared receive queue we offer.
const MAX_SHARED_DEPTH: u32 = 16383;
/// Where the device cannot make a shared receive queue larger, it is made this large at least.
const SHARED_PLACES: u32 = 1024;

/// The vendor that soft-RoCE says it is of.
const RXE_VENDOR: u32 = 0xFF_FFFF;
/// The longest message of a device that takes longer ones than it says.
const LONG_MESSAGE: u32 = 1 << 30;

/// Private data that rdma_cm carries over RoCE and InfiniBand, in a request, and in a response or rejection.
const IB_PRIVATE_DATA: (u32, u32) = (56, 148);
/// The same over iWARP, where librdmacm's one-byte length and siw's own header are the limits.
const IWARP_PRIVATE_DATA: (u32, u32) = (128, 128);

/// How memory windows are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Windows {
    /// As registrations of their own.
    #[default]
    Emulated,
    /// As the device's, of type 1.
    TypeOne,
    /// As the device's, of type 2.
    TypeTwo,
}

/// Where a device departs from what the verbs manual says, as probed on the drivers themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quirks {
    /// iWARP: connections have one phase, and the connecting side sends first.
    pub iwarp: bool,
    /// Solicited events are signalled.
    pub solicited_events: bool,
    /// Completion queues can be resized.
    pub cq_resize: bool,
    /// Shared receive queues can be resized.
    pub srq_resize: bool,
    /// Requests outstanding when a queue pair fails may never be reported.
    pub lossy_flush: bool,
    /// A queue pair that is moved to the error state does not finish what it is doing: the sender of a message whose receive
    /// has completed may never hear of it. One that is destroyed does.
    pub cuts_acknowledgements: bool,
    /// A request must have at least one scatter/gather entry, if only one of no length.
    pub needs_sge: bool,
    /// Messages may be longer than the device says.
    pub long_messages: bool,
    /// A read may wait for earlier reads; where it may not, one that asks blocks the send queue for ever.
    pub fenced_reads: bool,
    /// The read limits in the answer to a connection request are the peer's, not this side's view of them.
    pub reply_limits_swapped: bool,
    /// Memory windows: the device's, if it has them and keeps their bounds.
    pub windows: Windows,
    /// How many scatter/gather entries of an RDMA read the device honours.
    pub read_sge: u32,
}

impl Quirks {
    /// The scatter/gather list for a request without one.
    pub(crate) fn empty_list(&self) -> &'static [Sge] {
        const NOTHING: &[Sge] = &[Sge { buffer: 0, length: 0, token: 0 }];
        if self.needs_sge { NOTHING } else { &[] }
    }
}

/// An adapter's limits.
pub(crate) struct Limits {
    pub info: AdapterInfo,
    pub quirks: Quirks,
    max_cqe: u32,
    max_qp_wr: u32,
}

impl Limits {
    /// Asks the device; finds out by trial what verbs has no attribute for.
    pub(crate) fn probe(context: &Arc<Context>, pd: &Arc<ProtectionDomain>) -> Result<Limits> {
        let device = context.device_attr()?;
        let port = context.port_attr(1)?;
        let quirks = quirks(context, &device);
        let max_cqe = device.max_cqe as u32;
        let inline = probe_inline(context, pd);
        let depth = (device.max_qp_wr as u32).min(MAX_QUEUE_DEPTH);
        let sge = (device.max_sge as u32).min(MAX_SGE);
        let private_data = if quirks.iwarp { IWARP_PRIVATE_DATA } else { IB_PRIVATE_DATA };
        let mut flags = adapter_flags::IN_ORDER_DMA | adapter_flags::MULTI_ENGINE | adapter_flags::LOOPBACK;
        if quirks.cq_resize {
            flags |= adapter_flags::CQ_RESIZE;
        }
        let info = AdapterInfo {
            info_version: VERSION_2,
            vendor_id: device.vendor_id as u16,
            device_id: device.vendor_part_id as u16,
            adapter_id: context.node_guid(),
            max_registration_size: usize::try_from(device.max_mr_size).unwrap_or(usize::MAX).min(1 << 47),
            max_window_size: usize::try_from(device.max_mr_size).unwrap_or(usize::MAX).min(1 << 47),
            max_initiator_sge: sge,
            max_receive_sge: sge.min(device.max_srq_sge.max(1) as u32),
            max_read_sge: sge,
            max_transfer_length: if quirks.long_messages { LONG_MESSAGE } else { port.max_msg_sz },
            max_inline_data_size: inline,
            max_inbound_read_limit: device.max_qp_rd_atom.clamp(0, 255) as u32,
            max_outbound_read_limit: device.max_qp_init_rd_atom.clamp(0, 255) as u32,
            max_receive_queue_depth: depth,
            max_initiator_queue_depth: depth,
            max_shared_receive_queue_depth: (device.max_srq_wr as u32).min(MAX_SHARED_DEPTH),
            max_completion_queue_depth: (max_cqe.saturating_sub(HEADROOM) / 2)
                .min(MAX_COMPLETION_QUEUE_DEPTH),
            inline_request_threshold: inline.min(INLINE_THRESHOLD),
            large_request_threshold: LARGE_REQUEST,
            max_caller_data: private_data.0,
            max_callee_data: private_data.1,
            adapter_flags: flags,
        };
        Ok(Limits { info, quirks, max_cqe, max_qp_wr: device.max_qp_wr as u32 })
    }

    /// How many entries a completion queue needs on the device for the depth its user asked for.
    ///
    /// Real programs put queue pairs deeper than the completion queue on it, and completions that the user never sees
    /// need room too.
    pub(crate) fn completion_entries(&self, depth: u32) -> u32 {
        depth.saturating_mul(2).saturating_add(HEADROOM).min(self.max_cqe)
    }

    /// How many receives a shared queue must hold on the device for the depth its user asked for.
    pub(crate) fn shared_receive_places(&self, depth: u32) -> u32 {
        let places = if self.quirks.srq_resize { depth } else { depth.max(SHARED_PLACES) };
        places.min(self.info.max_shared_receive_queue_depth)
    }

    /// How many send requests a queue pair needs on the device: a read may have to be split.
    pub(crate) fn send_requests(&self, depth: u32, max_sge: u32) -> u32 {
        depth.saturating_mul(max_sge.div_ceil(self.quirks.read_sge)).clamp(1, self.max_qp_wr)
    }

    /// Checks what a queue pair is asked for; the error names the parameter as `CreateQueuePair`, or with a `shared`
    /// receive queue `CreateQueuePairWithSrq`, counts them.
    pub(crate) fn check_queue_pair(&self, cap: &ibv_qp_cap, shared: bool) -> Result<()> {
        let info = &self.info;
        // Programs pass the threshold where they mean the maximum.
        let inline = info.max_inline_data_size.max(info.inline_request_threshold);
        let (sge, inline_data) = if shared {
            (Status::INVALID_PARAMETER_7, Status::INVALID_PARAMETER_8)
        } else {
            (Status::INVALID_PARAMETER_8, Status::INVALID_PARAMETER_9)
        };
        for (asked, limit, status) in [
            (cap.max_recv_wr, info.max_receive_queue_depth, Status::INVALID_PARAMETER_5),
            (cap.max_send_wr, info.max_initiator_queue_depth, Status::INVALID_PARAMETER_6),
            (cap.max_recv_sge, info.max_receive_sge, Status::INVALID_PARAMETER_7),
            (cap.max_send_sge, info.max_initiator_sge, sge),
            (cap.max_inline_data, inline, inline_data),
        ] {
            if asked > limit {
                return Err(status);
            }
        }
        Ok(())
    }
}

/// Completion entries beyond twice what the user asked for.
const HEADROOM: u32 = 64;

fn quirks(context: &Context, device: &ibv_device_attr) -> Quirks {
    let iwarp = context.transport() == Transport::Iwarp;
    // siw names no vendor of its own that could be told from the transport; hardware iWARP has firmware and a vendor.
    let siw = iwarp && device.max_sge_rd == 1 && device.max_mw == 0;
    // rxe up to Linux 6.11 says 8 MiB and sends more; programs of Windows receive 64 MiB at a time.
    let rxe = !iwarp && device.vendor_id == RXE_VENDOR;
    Quirks {
        iwarp,
        solicited_events: !siw,
        cq_resize: !siw,
        srq_resize: device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE != 0,
        lossy_flush: siw,
        cuts_acknowledgements: rxe,
        needs_sge: siw,
        long_messages: rxe,
        fenced_reads: !siw,
        reply_limits_swapped: siw,
        windows: windows(device, !rxe),
        read_sge: (device.max_sge_rd.max(1)) as u32,
    }
}

/// What memory windows to use on a device that keeps their bounds or does not.
///
/// `NDCOMPAT_MEMORY_WINDOWS` (`emulated`, `1` or `2`) overrules, to try what a device makes of it.
fn windows(device: &ibv_device_attr, bounded: bool) -> Windows {
    let has = |capability| device.max_mw > 0 && device.device_cap_flags & capability != 0;
    match std::env::var("NDCOMPAT_MEMORY_WINDOWS").as_deref() {
        Ok("emulated") => Windows::Emulated,
        Ok("1") => Windows::TypeOne,
        Ok("2") => Windows::TypeTwo,
        _ if !bounded => Windows::Emulated,
        _ if has(IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B) => Windows::TypeTwo,
        _ if has(IBV_DEVICE_MEM_WINDOW) => Windows::TypeOne,
        _ => Windows::Emulated,
    }
}

/// The largest inline size that a small queue pair can be created with.
fn probe_inline(context: &Arc<Context>, pd: &Arc<ProtectionDomain>) -> u32 {
    let Ok(cq) = verbs::CompletionQueue::create(context, 1, None, 0) else { return 0 };
    let cq = Arc::new(cq);
    let fits = |bytes: &u32| {
        let cap = ibv_qp_cap {
            max_send_wr: 1,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: *bytes,
        };
        verbs::QueuePair::create(verbs::QueuePairConfig {
            pd: pd.clone(),
            send_cq: cq.clone(),
            recv_cq: cq.clone(),
            srq: None,
            cap,
            cookie: 0,
        })
        .is_ok()
    };
    [1024, 512, 256, 128, 64].into_iter().find(fits).unwrap_or(0)
}
