//! Removal of a device while the program uses it.
//!
//! Drivers of hardware can disassociate a device from its users, and report `IBV_EVENT_DEVICE_FATAL`. rxe and siw cannot.
//! When their link is deleted:
//!
//! - every id bound to the device gets `RDMA_CM_EVENT_DEVICE_REMOVAL`, but no listener on the wildcard; afterwards all
//!   calls on those ids but `rdma_destroy_id` fail with `ENXIO`, and binding to the device's addresses with `ENODEV`;
//! - there is no asynchronous event, no queue pair fails, and all verbs still work, except that `ibv_query_port` fails with
//!   `ENODEV` if the network device is gone, too;
//! - `rdma link delete` waits until the last program has closed the device, whose name stays in use; librdmacm closes the
//!   last device of the machine only when the process ends.
//!
//! So an adapter has an id for that event. It notifies the adapter's objects, which complete their pending requests and
//! flush; from then on [`Removal::check`] fails.
//!
//! The kernel visits the ids in the order in which they were bound: sends each the event and ends its connection. The
//! adapter's id is the first: when a connection or a request fails because of the removal, the event is already in its
//! channel, where [`Removal::is_gone_now`] finds it.

use crate::device::async_events::{Acknowledged, AsyncEventHandler};
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::verbs::bindings::{
    IBV_EVENT_DEVICE_FATAL, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, ibv_qp,
};
use crate::verbs::{AsyncEvent, Context, Event, EventChannel, EventKind, Id, Library, SockAddr};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use win32::io::{Source, WeakList};

/// How long, in milliseconds, [`Removal::check`] relies on the last poll of the channel, which is a system call.
const GOOD_FOR_MS: u64 = 20;

/// An object that is notified when its device is removed, or its queue pair is stopped.
pub(crate) trait Removable: Send + Sync {
    /// Completes pending requests with `ND_DEVICE_REMOVED`, as the device is gone.
    fn device_removed(self: Arc<Self>);

    /// The device has stopped this queue pair, which may be the object's.
    fn queue_pair_failed(self: Arc<Self>, _queue_pair: *mut ibv_qp) {}
}

/// Watches for the removal of a device.
pub(crate) struct Removal {
    channel: Arc<EventChannel>,
    id: Arc<Id>,
    gone: AtomicBool,
    /// When [`Removal::check`] last polled the channel, in milliseconds.
    looked: AtomicU64,
    /// In the order of their creation: completion queues before the queue pairs that use them.
    objects: Mutex<WeakList<dyn Removable>>,
}

impl Removal {
    /// Watches the device of `library` that has `address`.
    pub(crate) fn watch(library: &'static Library, address: SockAddr) -> Result<Arc<Removal>> {
        let channel = EventChannel::create_quiet(library).map_err(Status::of_host)?;
        let id = Id::create_datagram(&channel, 0)?;
        id.bind_addr(address.with_port(0))?;
        Ok(Arc::new(Removal {
            channel,
            id: Arc::new(id),
            gone: AtomicBool::new(false),
            looked: AtomicU64::new(0),
            objects: Mutex::default(),
        }))
    }

    /// The device, kept open by the id that watches it.
    pub(crate) fn context(&self) -> Result<Arc<Context>> {
        self.id.context().map_err(Status::of_host)?.ok_or(Status::DEVICE_REMOVED)
    }

    /// Whether the device was found by this address. The port is ignored.
    pub(crate) fn watches(&self, address: SockAddr) -> bool {
        self.id.local_addr().is_some_and(|own| own.with_port(0) == address.with_port(0))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.channel.fd()
    }

    /// Fails with `ND_DEVICE_REMOVED` if the device is gone; may notice that [`GOOD_FOR_MS`] late. Called without any lock.
    pub(crate) fn check(&self) -> Result<()> {
        let now = win32::time::coarse_milliseconds();
        if now.saturating_sub(self.looked.load(Ordering::Relaxed)) >= GOOD_FOR_MS {
            self.looked.store(now, Ordering::Relaxed);
            self.ready();
        }
        if self.is_known() { Err(Status::DEVICE_REMOVED) } else { Ok(()) }
    }

    /// Whether the device is gone; polls the channel. Called without any lock.
    pub(crate) fn is_gone_now(&self) -> bool {
        self.ready();
        self.is_known()
    }

    /// Whether the device is known to be gone; does not poll the channel.
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Registers `object`, which is notified when the device is gone, or at once if it is.
    pub(crate) fn add(&self, object: Weak<dyn Removable>) {
        self.lock().add(object.clone());
        if self.is_known()
            && let Some(object) = object.upgrade()
        {
            object.device_removed();
        }
    }

    /// Notifies all objects that the device is gone. Called without any lock, and with all events acknowledged.
    pub(crate) fn device_removed(&self) {
        if self.gone.swap(true, Ordering::AcqRel) {
            return;
        }
        let device = self.context().map(|context| context.name()).unwrap_or_default();
        tracing::warn!(target: "ndcompat::device", device, "the device is gone; what is pending ends with ND_DEVICE_REMOVED");
        let objects = self.lock().living();
        for object in objects {
            object.device_removed();
        }
        // With its last user, librdmacm closes only a device that its latest list of devices does not contain: update the
        // list.
        drop(Context::all());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WeakList<dyn Removable>> {
        lock(&self.objects)
    }
}

impl AsyncEventHandler for Removal {
    fn async_event(&self, event: &AsyncEvent) -> Option<Acknowledged> {
        match event.kind() {
            IBV_EVENT_DEVICE_FATAL => self.device_removed(),
            IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_QP_ACCESS_ERR => {
                let queue_pair = event.qp()?;
                // No object made later, with the address of one that goes now, is among these.
                let objects = self.lock().living();
                return Some(Box::new(move || {
                    for object in objects {
                        object.queue_pair_failed(queue_pair);
                    }
                }));
            }
            _ => {}
        }
        None
    }
}

impl Source for Removal {
    fn ready(&self) {
        while let Ok(Some(event)) = self.channel.event() {
            let kind = Event::kind(&event);
            drop(event);
            if kind == EventKind::DeviceRemoval {
                self.device_removed();
            }
        }
    }
}
