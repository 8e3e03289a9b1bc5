//! The device: its name, attributes, function table and asynchronous events.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use verbs_sys::*;

use super::cancellation::PutOff;
use super::completion::Cq;
use super::context::{Asynchronous, Context};
use super::inbox::Inbox;
use super::limits::{COMPLETIONS_MAX, DEPTH_MAX, PIECES_MAX, READS_MAX};
use super::queue_pair::{Qp, Srq};
use super::{completion, created, functions, last_errno, memory, post, removal, waits};
use crate::queue_pair::MESSAGE_MAX;

/// The vendor id: none.
const VENDOR: u32 = 0;
const PART: u32 = 1;

struct Device(*mut ibv_device);

// SAFETY: it is never changed.
unsafe impl Send for Device {}
// SAFETY: it is never changed.
unsafe impl Sync for Device {}

/// A device, with the layout of rdma-core's private `struct verbs_device`. Vendor libraries (libefa, libmlx5) compare its
/// function table with theirs to see whether a device is theirs.
#[repr(C)]
struct Provided {
    device: ibv_device,
    _functions: *const c_void,
    _more: [u64; 64],
}

static DEVICE: LazyLock<Device> = LazyLock::new(|| {
    // SAFETY: structures of C for which zeros mean nothing, and pointers that are null.
    let mut provided: Provided = unsafe { std::mem::zeroed() };
    let device = &mut provided.device;
    device.node_type = IBV_NODE_RNIC;
    device.transport_type = IBV_TRANSPORT_IWARP;
    for place in [&mut device.name, &mut device.dev_name] {
        for (to, from) in place.iter_mut().zip(b"softiwarp0") {
            *to = *from as c_char;
        }
    }
    Device(Box::into_raw(Box::new(provided)).cast())
});

/// The contexts in the `verbs` field of connection ids, and the domains in their `pd` field: of the device, and of those before it that were
/// removed or are the parent process's. They are never closed.
static NAMED: Mutex<Vec<Named>> = Mutex::new(Vec::new());

struct Named {
    context: *mut ibv_context,
    /// Null until it is asked for.
    domain: *mut ibv_pd,
}

// SAFETY: contexts may be used by any thread.
unsafe impl Send for Named {}

/// Calls `take` for the context of connection ids, which is made if there is none.
fn with_named<T>(take: impl FnOnce(&mut Named) -> Result<T, c_int>) -> Result<T, c_int> {
    let mut all = NAMED.lock();
    let is_there = |named: &Named| {
        // SAFETY: never closed.
        let removed = unsafe { Context::is_removed(named.context) };
        // SAFETY: never closed.
        !removed && unsafe { Context::is_own(named.context) }
    };
    if !all.last().is_some_and(is_there) {
        all.push(Named { context: open()?.cast(), domain: ptr::null_mut() });
    }
    all.last_mut().map_or(Err(libc::ENODEV), take)
}

/// The context in the `verbs` field of connection ids.
pub(super) fn named() -> Result<*mut ibv_context, c_int> {
    with_named(|named| Ok(named.context))
}

/// The same, and the default protection domain of ids.
pub(super) fn named_with_domain() -> Result<(*mut ibv_context, *mut ibv_pd), c_int> {
    with_named(|named| {
        if named.domain.is_null() {
            // SAFETY: the context is never closed.
            named.domain = unsafe { memory::ibv_alloc_pd(named.context) };
        }
        if named.domain.is_null() { Err(last_errno()) } else { Ok((named.context, named.domain)) }
    })
}

/// Whether it is the context of connection ids, or was.
fn is_named(context: *mut ibv_context) -> bool {
    NAMED.lock().iter().any(|named| named.context == context)
}

/// Opens the device.
fn open() -> Result<*mut Context, c_int> {
    if removal::is_gone() {
        return Err(libc::ENODEV);
    }
    let events = Inbox::new(false).map_err(|error| super::errno(&error))?;
    let mut raw: ibv_context = zeroed();
    raw.device = DEVICE.0;
    raw.async_fd = events.descriptor();
    raw.cmd_fd = -1;
    raw.num_comp_vectors = 1;
    raw.ops.poll_cq = Some(completion::poll_cq);
    raw.ops.req_notify_cq = Some(completion::req_notify_cq);
    raw.ops.post_send = Some(post::post_send);
    raw.ops.post_recv = Some(post::post_recv);
    raw.ops.post_srq_recv = Some(post::post_srq_recv);
    raw.ops.alloc_mw = Some(memory::alloc_mw);
    raw.ops.dealloc_mw = Some(memory::dealloc_mw);
    raw.ops.bind_mw = Some(memory::bind_mw);
    Ok(Context::open(raw, events))
}

/// The GUID of the device, the same in every process of the machine.
pub(super) fn guid() -> u64 {
    static GUID: LazyLock<u64> = LazyLock::new(|| {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        guid_of(&read("/etc/machine-id"), &read("/proc/sys/kernel/random/boot_id"))
    });
    *GUID
}

/// The GUID for a machine id. Images of containers and of new machines have none, or a word in its place: then the boot id is
/// used.
fn guid_of(machine: &str, boot: &str) -> u64 {
    let machine = machine.trim();
    let has_id = machine.len() == 32 && machine.bytes().all(|digit| digit.is_ascii_hexdigit());
    let id = if has_id { machine } else { boot };
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // A locally administered identifier.
    hash & !(3 << 56) | 2 << 56
}

/// Takes the next event of a context; `ETIMEDOUT` if there is none within the limit.
///
/// # Safety
/// As for `ibv_get_async_event`.
unsafe fn next_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
    limit: Option<Duration>,
) -> Result<(), c_int> {
    let _put_off = PutOff::new();
    // SAFETY: made by `open`, and not closed during the call, as verbs ask.
    let own = unsafe { &*context.cast::<Context>() };
    let taken = |next: &Asynchronous| next.events.as_ref().map_or((), |events| events.taken());
    // SAFETY: room for an event, as verbs ask.
    own.events.next_within(None, limit, taken).map(|next| unsafe { event.write(next.raw) })
}

waits! {
    fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) = next_event;
}

functions! {
    fn rdma_get_devices(count: *mut c_int) -> *mut *mut ibv_context {
        created(if removal::is_gone() { Err(libc::ENODEV) } else { named() }.map(|context| {
            if !count.is_null() {
                // SAFETY: room for a number, as librdmacm asks.
                unsafe { *count = 1 };
            }
            Box::into_raw(Box::new([context, ptr::null_mut()])).cast()
        }))
    }

    fn rdma_free_devices(list: *mut *mut ibv_context) {
        // SAFETY: made above, freed once.
        drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_context; 2]>()) });
    }

    fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char {
        // SAFETY: the only device there is, which is never freed.
        unsafe { (&raw const (*device).name).cast() }
    }

    fn ibv_get_device_guid(_device: *mut ibv_device) -> __be64 {
        guid().to_be()
    }

    fn ibv_open_device(_device: *mut ibv_device) -> *mut ibv_context {
        created(open().map(<*mut Context>::cast))
    }

    fn ibv_close_device(context: *mut ibv_context) -> c_int {
        if !is_named(context) {
            // SAFETY: opened above, closed once.
            unsafe { Context::close(context.cast()) };
        }
        0
    }

    fn ibv_query_device(_context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
        let mut device: ibv_device_attr = zeroed();
        for (to, from) in device.fw_ver.iter_mut().zip(env!("CARGO_PKG_VERSION").bytes()) {
            *to = from as c_char;
        }
        device.node_guid = guid().to_be();
        device.sys_image_guid = guid().to_be();
        device.max_mr_size = 1 << 47;
        device.page_size_cap = !0xFFF;
        device.vendor_id = VENDOR;
        device.vendor_part_id = PART;
        device.max_qp = 1 << 20;
        device.max_qp_wr = DEPTH_MAX as c_int;
        device.device_cap_flags =
            IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_MGT_EXTENSIONS;
        device.max_sge = PIECES_MAX as c_int;
        device.max_sge_rd = PIECES_MAX as c_int;
        device.max_cq = 1 << 20;
        device.max_cqe = COMPLETIONS_MAX as c_int;
        device.max_mr = 1 << 20;
        device.max_pd = 1 << 20;
        device.max_qp_rd_atom = READS_MAX.into();
        device.max_res_rd_atom = c_int::from(READS_MAX) << 10;
        device.max_qp_init_rd_atom = READS_MAX.into();
        device.max_mw = 1 << 20;
        device.max_srq = 1 << 20;
        device.max_srq_wr = DEPTH_MAX as c_int;
        device.max_srq_sge = PIECES_MAX as c_int;
        device.phys_port_cnt = 1;
        // SAFETY: room for the attributes, as verbs ask.
        unsafe { attr.write(device) };
        0
    }

    fn ibv_query_port(_context: *mut ibv_context, port: u8, attr: *mut _compat_ibv_port_attr) -> c_int {
        if port != 1 {
            return libc::EINVAL;
        }
        let attr = attr.cast::<ibv_port_attr>();
        macro_rules! set {
            ($field:ident, $value:expr) => {
                // SAFETY: room for the attributes, as verbs ask; the field is of the part that the shorter structure has, too.
                unsafe { (&raw mut (*attr).$field).write($value) }
            };
        }
        set!(state, IBV_PORT_ACTIVE);
        set!(max_mtu, IBV_MTU_4096);
        set!(active_mtu, IBV_MTU_1024);
        set!(gid_tbl_len, 1);
        set!(max_msg_sz, MESSAGE_MAX as u32);
        set!(pkey_tbl_len, 1);
        set!(phys_state, 5);
        set!(link_layer, IBV_LINK_LAYER_ETHERNET as u8);
        0
    }

    fn ibv_ack_async_event(event: *mut ibv_async_event) {
        // SAFETY: from the function above, as verbs ask.
        let event = unsafe { &*event };
        match event.event_type {
            IBV_EVENT_CQ_ERR => {
                // SAFETY: events of this kind have a completion queue.
                let cq = unsafe { event.element.cq };
                // SAFETY: a queue is not destroyed before its events are acknowledged.
                unsafe { Cq::of(cq) }.events.acknowledged(1);
            }
            IBV_EVENT_SRQ_LIMIT_REACHED => {
                // SAFETY: events of this kind have a shared receive queue.
                let srq = unsafe { event.element.srq };
                // SAFETY: a queue is not destroyed before its events are acknowledged.
                unsafe { Srq::of(srq) }.low.acknowledged();
            }
            IBV_EVENT_QP_LAST_WQE_REACHED => {
                // SAFETY: events of this kind have a queue pair.
                let qp = unsafe { event.element.qp };
                // SAFETY: a queue pair is not destroyed before its events are acknowledged.
                if let Some(events) = &unsafe { Qp::of(qp) }.last_receive {
                    events.acknowledged();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::guid_of;

    #[test]
    fn machines_without_an_id_of_their_own_differ_all_the_same() {
        let id = "0123456789abcdef0123456789abcdef\n";
        assert_eq!(guid_of(id, "one boot"), guid_of(id, "the next"));
        for none in ["", "\n", "uninitialized\n"] {
            assert_ne!(guid_of(none, "one machine"), guid_of(none, "another"), "{none:?}");
        }
        assert_eq!(guid_of("", "") >> 56 & 3, 2, "locally administered");
    }
}
