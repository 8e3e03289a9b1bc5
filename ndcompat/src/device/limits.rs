//! The limits of an adapter, and the deviations of its device from the verbs manual.

use crate::diagnosis;
use crate::status::{Result, Status};
use crate::types::{AdapterFlags, AdapterInfo, Sge, VERSION_2};
use crate::verbs::bindings::{
    IBV_DEVICE_MEM_WINDOW_TYPE_2A, IBV_DEVICE_MEM_WINDOW_TYPE_2B, IBV_DEVICE_SRQ_RESIZE, ibv_device_attr,
    ibv_qp_cap,
};
use crate::verbs::{self, Context, ProtectionDomain, Transport, WindowType};
use std::sync::Arc;

/// The limit of queue depths. Odd, as Microsoft's ping example leaks a credit at every even depth below 5296.
const MAX_QUEUE_DEPTH: u32 = 4095;
/// The limit of completion queue depths.
const MAX_COMPLETION_QUEUE_DEPTH: u32 = 16383;
/// The limit of SGEs: with more, queues of full depth would not fit on every device.
pub(crate) const MAX_SGE: u32 = 16;
/// The value of [`AdapterInfo::large_request_threshold`], that of Mellanox's Windows provider.
const LARGE_REQUEST: u32 = 65536;
/// The limit of windows of the device's own, in bytes: mlx5 binds no larger ones.
const LARGEST_WINDOW: usize = 1 << 31;
/// The value of [`AdapterInfo::inline_request_threshold`]: above, copying costs more than it saves.
const INLINE_THRESHOLD: u32 = 256;

/// The limit of shared receive queue depths.
const MAX_SHARED_DEPTH: u32 = 16383;
/// The least size of a shared receive queue on a device that cannot resize it later, in receives.
const MIN_SHARED_DEPTH: u32 = 1024;

/// The vendor id of Soft-RoCE.
const RXE_VENDOR: u32 = 0xFF_FFFF;
/// The vendor id of soft-iWARP: "bmt".
const SIW_VENDOR: u32 = 0x62_6D74;
/// The message limit, in bytes, of a device that takes longer messages than it reports.
const LONG_MESSAGE: u32 = 1 << 30;

/// The message limit, in bytes, of a device that reports none, as mana does with kernels before 7.0: mana's own.
const UNREPORTED_MESSAGE: u32 = 16 << 20;

/// The limits of private data over RoCE and InfiniBand, in bytes: in a request, and in a reply or rejection.
const IB_PRIVATE_DATA: (u32, u32) = (56, 148);
/// The same over iWARP, where librdmacm's length of one byte and siw's header limit them.
const IWARP_PRIVATE_DATA: (u32, u32) = (128, 128);

/// How memory windows are implemented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Windows {
    /// By a registration for each window.
    #[default]
    Emulated,
    /// By the device's windows of type 1.
    TypeOne,
    /// By the device's windows of type 2.
    TypeTwo,
}

/// The deviations of a device from the verbs manual, as observed on the drivers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quirks {
    /// iWARP: connections have one phase, and the connecting side sends first.
    pub iwarp: bool,
    /// Connections are TCP connections of the kernel: `rdma_listen` needs a TCP port of the host, which `rdma_bind_addr`
    /// does not check, and destroying an id whose peer has not answered takes 10 s.
    pub kernel_tcp: bool,
    /// Solicited events are signalled.
    pub solicited_events: bool,
    /// Failed requests do not signal a solicited event.
    pub unsolicited_failures: bool,
    /// Completion queues can be resized. Many drivers cannot: cxgb4, mana, erdma, siw.
    pub cq_resize: bool,
    /// Shared receive queues can be resized.
    pub srq_resize: bool,
    /// The device may never report requests that are outstanding when a queue pair fails.
    pub lossy_flush: bool,
    /// Sends and writes may complete before reads that were posted earlier.
    pub reads_are_overtaken: bool,
    /// A queue pair moved to the error state drops acknowledgements: a message may fail at its sender although its receive
    /// has completed. A queue pair that is destroyed sends them.
    pub cuts_acknowledgements: bool,
    /// A message that got lost is resent just when that is asked for. Other devices take up to four times as long.
    pub exact_timeouts: bool,
    /// A request must have at least one SGE, which may be of length 0.
    pub needs_sge: bool,
    /// Messages may be longer than the device reports.
    pub long_messages: bool,
    /// Reads can be fenced. Otherwise a fenced read blocks the send queue for ever.
    pub fenced_reads: bool,
    /// In the reply to a connection request, the inbound and outbound read limits are swapped.
    pub reply_limits_swapped: bool,
    /// The memory windows to use: the device's, if it has them and enforces their bounds.
    pub windows: Windows,
    /// The device's limit of SGEs of a read.
    pub read_sge: u32,
}

impl Quirks {
    /// The scatter/gather list of a request without SGEs.
    pub(crate) fn empty_list(&self) -> &'static [Sge] {
        const NOTHING: &[Sge] = &[Sge { buffer: 0, length: 0, token: 0 }];
        if self.needs_sge { NOTHING } else { &[] }
    }
}

impl Quirks {
    /// The deviations of this device, each by name and meaning.
    pub(crate) fn in_force(&self) -> Vec<(&'static str, &'static str)> {
        let all = [
            (self.iwarp, "iwarp", "connections have one phase, and the connecting side sends first"),
            (
                self.kernel_tcp,
                "kernel_tcp",
                "ports are those of the kernel's TCP, and unanswered connects end slowly",
            ),
            (
                !self.solicited_events,
                "no_solicited_events",
                "any completion satisfies a solicited notification",
            ),
            (
                self.unsolicited_failures,
                "unsolicited_failures",
                "failures are looked for while a solicited notification waits",
            ),
            (!self.cq_resize, "no_cq_resize", "completion queues cannot be resized"),
            (!self.srq_resize, "no_srq_resize", "shared receive queues have room for 1024 receives at least"),
            (
                self.lossy_flush,
                "lossy_flush",
                "requests outstanding at a failure are reported by the library",
            ),
            (
                self.reads_are_overtaken,
                "reads_are_overtaken",
                "reads complete in turn with what was posted later",
            ),
            (
                self.cuts_acknowledgements,
                "cuts_acknowledgements",
                "a queue pair that fails is destroyed at once",
            ),
            (self.exact_timeouts, "exact_timeouts", "a message that got lost is resent in time"),
            (self.needs_sge, "needs_sge", "empty messages have one empty piece"),
            (self.long_messages, "long_messages", "messages may be longer than the device says"),
            (!self.fenced_reads, "no_fenced_reads", "reads do not wait for earlier reads"),
            (self.reply_limits_swapped, "reply_limits_swapped", "read limits in answers are the peer's"),
            (
                self.windows == Windows::Emulated,
                "emulated_windows",
                "memory windows are registrations of their own",
            ),
            (self.read_sge == 1, "one_piece_reads", "reads into several pieces are split"),
        ];
        all.into_iter().filter(|(is, ..)| *is).map(|(_, name, meaning)| (name, meaning)).collect()
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
    /// Queries the device, and probes for what verbs has no attribute.
    ///
    /// # Errors
    /// The errno of `ibv_query_device` or `ibv_query_port` as a status; `ND_INVALID_PARAMETER` if `NDCOMPAT_MEMORY_WINDOWS` has an
    /// invalid value.
    pub(crate) fn probe(context: &Arc<Context>, pd: &Arc<ProtectionDomain>) -> Result<Limits> {
        let device = context.device_attr()?;
        let port = context.port_attr(1)?;
        let quirks = quirks(context, pd, &device)?;
        let max_cqe = device.max_cqe as u32;
        let depth = (device.max_qp_wr as u32).min(MAX_QUEUE_DEPTH);
        let sge = (device.max_sge as u32).min(MAX_SGE);
        // Every request may be a read, and be split.
        let pieces = sge.div_ceil(quirks.read_sge).max(1);
        let initiator_depth = (device.max_qp_wr as u32 / pieces).clamp(1, MAX_QUEUE_DEPTH);
        let fullest = ibv_qp_cap {
            max_send_wr: initiator_depth * pieces,
            max_recv_wr: depth,
            max_send_sge: sge,
            max_recv_sge: sge,
            max_inline_data: 0,
        };
        let Probed { inline, cq_resize } = Probed::of(context, pd, fullest);
        let quirks = Quirks { cq_resize, ..quirks };
        // A device without shared receive queues may report no SGEs for theirs.
        let shared = device.max_srq > 0 && device.max_srq_sge > 0;
        let receive_sge = if shared { sge.min(device.max_srq_sge as u32) } else { sge };
        let private_data = if quirks.iwarp { IWARP_PRIVATE_DATA } else { IB_PRIVATE_DATA };
        let mut flags = AdapterFlags::IN_ORDER_DMA | AdapterFlags::MULTI_ENGINE | AdapterFlags::LOOPBACK;
        if quirks.cq_resize {
            flags |= AdapterFlags::CQ_RESIZE;
        }
        let info = AdapterInfo {
            info_version: VERSION_2,
            vendor_id: device.vendor_id as u16,
            device_id: device.vendor_part_id as u16,
            adapter_id: context.adapter_id(&Context::all()?),
            max_registration_size: usize::try_from(device.max_mr_size).unwrap_or(usize::MAX).min(1 << 47),
            max_window_size: usize::try_from(device.max_mr_size)
                .unwrap_or(usize::MAX)
                .min(if quirks.windows == Windows::Emulated { 1 << 47 } else { LARGEST_WINDOW }),
            max_initiator_sge: sge,
            max_receive_sge: receive_sge,
            max_read_sge: sge,
            max_transfer_length: match port.max_msg_sz {
                _ if quirks.long_messages => LONG_MESSAGE,
                0 => UNREPORTED_MESSAGE,
                limit => limit,
            },
            max_inline_data_size: inline,
            max_inbound_read_limit: device.max_qp_rd_atom.clamp(0, 255) as u32,
            max_outbound_read_limit: device.max_qp_init_rd_atom.clamp(0, 255) as u32,
            max_receive_queue_depth: depth,
            max_initiator_queue_depth: initiator_depth,
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

    /// The number of entries of the device's completion queue for the depth that the program asks for.
    ///
    /// More than the depth: programs use a completion queue for deeper queue pairs, and hidden completions take entries,
    /// too.
    pub(crate) fn completion_entries(&self, depth: u32) -> u32 {
        depth.saturating_mul(2).saturating_add(HEADROOM).min(self.max_cqe)
    }

    /// The size of the device's shared receive queue for the depth that the program asks for, in receives.
    pub(crate) fn shared_receive_entries(&self, depth: u32) -> u32 {
        let entries = if self.quirks.srq_resize { depth } else { depth.max(MIN_SHARED_DEPTH) };
        entries.min(self.info.max_shared_receive_queue_depth)
    }

    /// The depth of the device's send queue, as reads may be split.
    pub(crate) fn send_requests(&self, depth: u32, max_sge: u32) -> u32 {
        depth.saturating_mul(max_sge.div_ceil(self.quirks.read_sge)).clamp(1, self.max_qp_wr)
    }

    /// Checks the sizes of a queue pair. The error has the number of the parameter in `CreateQueuePair`, or in
    /// `CreateQueuePairWithSrq` with a `shared` receive queue.
    pub(crate) fn check_queue_pair(&self, cap: &ibv_qp_cap, shared: bool) -> Result<()> {
        let info = &self.info;
        // Programs pass the threshold instead of the maximum.
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

/// How many completion entries there are beyond twice the depth.
pub(crate) const HEADROOM: u32 = 64;

/// Whether the device is a soft-iWARP one.
pub(crate) fn is_siw(context: &Context) -> bool {
    context.device_attr().is_ok_and(|device| is_siw_device(context, &device))
}

fn is_siw_device(context: &Context, device: &ibv_device_attr) -> bool {
    context.transport() == Transport::Iwarp && device.vendor_id == SIW_VENDOR
}

fn quirks(context: &Context, pd: &Arc<ProtectionDomain>, device: &ibv_device_attr) -> Result<Quirks> {
    let iwarp = context.transport() == Transport::Iwarp;
    let siw = is_siw_device(context, device);
    // Up to Linux 6.11, rxe reports 8 MiB and sends more; Windows programs receive 64 MiB at a time.
    let rxe = !iwarp && device.vendor_id == RXE_VENDOR;
    Ok(Quirks {
        iwarp,
        kernel_tcp: iwarp && !context.library().is_emulator(),
        solicited_events: !siw,
        unsolicited_failures: rxe,
        // `Probed` tells.
        cq_resize: true,
        srq_resize: device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE != 0,
        lossy_flush: siw,
        reads_are_overtaken: siw,
        cuts_acknowledgements: rxe,
        exact_timeouts: rxe,
        needs_sge: siw,
        long_messages: rxe,
        fenced_reads: !siw,
        reply_limits_swapped: siw,
        windows: match wanted_windows()? {
            Some(wanted) => wanted,
            None if rxe => Windows::Emulated,
            None => own_windows(pd, device),
        },
        read_sge: (device.max_sge_rd.max(1)) as u32,
    })
}

/// The memory windows that the environment variable `NDCOMPAT_MEMORY_WINDOWS` (`emulated`, `1` or `2`) asks for, in tests.
fn wanted_windows() -> Result<Option<Windows>> {
    let Some(value) = std::env::var_os("NDCOMPAT_MEMORY_WINDOWS").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    match value.to_str() {
        Some("emulated") => Ok(Some(Windows::Emulated)),
        Some("1") => Ok(Some(Windows::TypeOne)),
        Some("2") => Ok(Some(Windows::TypeTwo)),
        _ => {
            diagnosis::no_windows(&value.to_string_lossy());
            Err(Status::INVALID_PARAMETER)
        }
    }
}

/// The memory windows to use on a device that enforces their bounds: its own of type 2, if it has them. Those of type 1 are used only if
/// asked for, as no driver has been seen that has these alone.
///
/// The kernel's half of the driver reports windows, and the half in user space may have none: bnxt_re's can neither make nor bind them,
/// mana's not bind them.
fn own_windows(pd: &Arc<ProtectionDomain>, device: &ibv_device_attr) -> Windows {
    let type_two = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    let works = device.max_mw > 0
        && device.device_cap_flags & type_two != 0
        && pd.context().binds_windows()
        && verbs::MemoryWindow::create(pd, WindowType::Two).is_ok();
    if works { Windows::TypeTwo } else { Windows::Emulated }
}

/// What only trying tells.
struct Probed {
    /// The limit of inline data that a queue pair can be created with, in bytes.
    inline: u32,
    /// Completion queues can be resized.
    cq_resize: bool,
}

impl Probed {
    /// `fullest` are the limits of the largest queue pair, without inline data.
    fn of(context: &Arc<Context>, pd: &Arc<ProtectionDomain>, fullest: ibv_qp_cap) -> Probed {
        match verbs::CompletionQueue::create(context, 1, None, 0, Some(0)) {
            Ok(cq) => {
                Probed { cq_resize: probe_resize(&cq), inline: probe_inline(pd, &Arc::new(cq), fullest) }
            }
            Err(_) => Probed { cq_resize: true, inline: 0 },
        }
    }
}

/// Whether the driver has the call. Another failure may be one of the moment.
fn probe_resize(cq: &verbs::CompletionQueue) -> bool {
    cq.resize(2).map_err(|error| Status::from_io(&error)) != Err(Status::NOT_SUPPORTED)
}

fn probe_inline(pd: &Arc<ProtectionDomain>, cq: &Arc<verbs::CompletionQueue>, fullest: ibv_qp_cap) -> u32 {
    let fits = |cap: ibv_qp_cap, bytes: u32| {
        let config = verbs::QueuePairConfig {
            pd: pd.clone(),
            send_cq: cq.clone(),
            recv_cq: cq.clone(),
            srq: None,
            cap: ibv_qp_cap { max_inline_data: bytes, ..cap },
            cookie: 0,
        };
        verbs::QueuePair::create(config).is_ok()
    };
    let least =
        ibv_qp_cap { max_send_wr: 1, max_recv_wr: 1, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };
    // Much inline data makes the requests of a queue so large that fewer fit (mlx5).
    let is_limit = |&bytes: &u32| fits(least, bytes) && (bytes <= INLINE_THRESHOLD || fits(fullest, bytes));
    [1024, 512, 256, 128, 64].into_iter().find(is_limit).unwrap_or(0)
}
