//! A device that goes away while the program uses it.
//!
//! Drivers that can take a device from its users (those of hardware) report `IBV_EVENT_DEVICE_FATAL`. rxe and siw cannot:
//! when their link is deleted
//!
//! - `RDMA_CM_EVENT_DEVICE_REMOVAL` comes to every id bound to the device, and to no wildcard listener; afterwards all
//!   calls on those ids but `rdma_destroy_id` fail with `ENXIO`, and binding to the device's addresses with `ENODEV`;
//! - no asynchronous event comes, no queue pair fails and every verb goes on working, even creating objects, except that
//!   `ibv_query_port` fails with `ENODEV` if the network device is gone too;
//! - `rdma link delete` waits until the last program has closed the device, whose name stays taken meanwhile; librdmacm
//!   closes the last device that the machine has only when the process ends.
//!
//! So an adapter keeps an id of its own for that one event. It tells the objects, which complete what is pending and
//! flush what is outstanding; from then on [`Removal::check`] refuses all but the cleaning up.
//!
//! The kernel tells ids in the order in which they were bound, and takes their connections down meanwhile. The
//! adapter's own id is the first, so whoever sees a connection or a request fail finds the removal in its channel
//! already, and asks [`Removal::has_happened`] before he calls it an ordinary failure.

use crate::status::{Result, Status};
use crate::verbs::{Context, Event, EventChannel, EventKind, Id, SockAddr};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use win32::io::{Source, WeakList};

/// How long a look at the channel, which is a system call, is good for.
const GOOD_FOR_MS: u64 = 20;

/// An object with something to do when its device is gone.
pub(crate) trait Removable: Send + Sync {
    /// The device is gone: completes what is pending with `ND_DEVICE_REMOVED`.
    fn device_removed(self: Arc<Self>);
}

/// Watches for the removal of a device.
pub(crate) struct Removal {
    channel: Arc<EventChannel>,
    id: Arc<Id>,
    gone: AtomicBool,
    /// When the channel was looked at last by somebody who had no reason to.
    looked: AtomicU64,
    /// In the order of their making: completion queues before the queue pairs that use them.
    objects: Mutex<WeakList<dyn Removable>>,
}

impl Removal {
    /// Watches the device that `address` belongs to.
    pub(crate) fn watch(address: SockAddr) -> Result<Arc<Removal>> {
        let channel = EventChannel::create().map_err(Status::of_host)?;
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
        Context::of(&self.id).ok_or(Status::DEVICE_REMOVED)
    }

    /// Whether this is the address that the device was found by. Ports play no part.
    pub(crate) fn watches(&self, address: SockAddr) -> bool {
        self.id.local_addr().is_some_and(|own| own.with_port(0) == address.with_port(0))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.channel.fd()
    }

    /// `ND_DEVICE_REMOVED` if the device is gone, as of a moment ago. Called without any lock.
    pub(crate) fn check(&self) -> Result<()> {
        let now = win32::time::coarse_milliseconds();
        if now.saturating_sub(self.looked.load(Ordering::Relaxed)) >= GOOD_FOR_MS {
            self.looked.store(now, Ordering::Relaxed);
            self.ready();
        }
        if self.is_known() { Err(Status::DEVICE_REMOVED) } else { Ok(()) }
    }

    /// Whether the device is gone, as of now. Called without any lock.
    pub(crate) fn has_happened(&self) -> bool {
        self.ready();
        self.is_known()
    }

    /// Whether the device is gone, as far as is known: whoever has taken the word of it from the channel has said so.
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Tells `object` if the device goes, or has gone.
    pub(crate) fn tell(&self, object: Weak<dyn Removable>) {
        self.lock().add(object.clone());
        if self.is_known()
            && let Some(object) = object.upgrade()
        {
            object.device_removed();
        }
    }

    /// The device is gone. Called without any lock, and without an event that an object may wait for.
    pub(crate) fn happened(&self) {
        if self.gone.swap(true, Ordering::AcqRel) {
            return;
        }
        tracing::warn!("the device was removed");
        let objects = self.lock().living();
        for object in objects {
            object.device_removed();
        }
        // librdmacm closes a device with its last user only if it has missed it in a list taken before.
        drop(Context::all());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WeakList<dyn Removable>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Removal {
    fn ready(&self) {
        while let Ok(Some(event)) = self.channel.event() {
            let kind = Event::kind(&event);
            drop(event);
            if kind == EventKind::DeviceRemoval {
                self.happened();
            }
        }
    }
}
