//! Requests that wait for a change: of the host's addresses, or of the provider catalogue.
//!
//! A descriptor shows that something may have changed; the present state is compared with the previous one, so that a request
//! completes only after a real change.

use super::completion_routine::{self, Call, CompletionRoutine};
use super::outcome;
use super::system::Plain;
use crate::arguments::InOut;
use crate::boundary::guard;
use crate::error::*;
use crate::io::{
    CancelScope, Canceller, File, Overlapped, Request, STATUS_CANCELLED, STATUS_SUCCESS, Source,
};
use crate::object::{Object, RawHandle, handle};
use parking_lot::Mutex;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Weak};

/// A subject that is watched for changes.
pub(super) trait Subject: Send + Sync {
    /// A descriptor that becomes readable when there may be a change.
    fn descriptor(&self) -> &OwnedFd;

    /// Drains the descriptor.
    fn drain(&self);

    /// The present state, in a form that can be compared.
    fn look(&self) -> String;
}

/// The requests that wait for the subject to change.
pub(super) struct Changes {
    subject: Box<dyn Subject>,
    state: Mutex<State>,
}

struct State {
    /// The state when the program was last told.
    seen: String,
    pending: Vec<Pending>,
    /// Called at the next change, once.
    notice: Option<Notice>,
}

/// What is called at a change.
pub(super) type Notice = Box<dyn FnOnce() + Send>;

/// A request, and the routine to call at its end.
struct Pending {
    request: Request,
    call: Option<Call>,
}

impl Pending {
    fn complete(self, status: i32) {
        let overlapped = self.request.overlapped();
        self.request.complete(status, 0);
        if let Some(call) = self.call {
            call.queue(overlapped, status, 0);
        }
    }
}

impl Changes {
    /// Starts to watch `subject`.
    pub(super) fn of(subject: Box<dyn Subject>) -> Arc<Changes> {
        let seen = subject.look();
        Arc::new(Changes { subject, state: Mutex::new(State { seen, pending: Vec::new(), notice: None }) })
    }

    /// The descriptor to watch.
    pub(super) fn fd(&self) -> i32 {
        self.subject.descriptor().as_raw_fd()
    }

    /// Starts a request of `file`, of which this is a source. A file that is bound to a port has no completion routines.
    ///
    /// # Safety
    /// As for [`File::begin`].
    pub(super) unsafe fn begin(
        &self,
        file: &Arc<File>,
        overlapped: *mut Overlapped,
        call: Option<Call>,
    ) -> Result<(), u32> {
        if call.is_some() && file.is_bound() {
            return Err(WSAEINVAL);
        }
        // SAFETY: the OVERLAPPED stays valid until the request completes, as the caller promises.
        let request = unsafe { completion_routine::begin(file, overlapped, call.as_ref()) };
        self.state.lock().pending.push(Pending { request, call });
        // A change before the request must not be missed.
        self.ready();
        Ok(())
    }

    /// Has `notice` called at the next change, in place of an earlier one.
    pub(super) fn tell_once(&self, notice: Notice) {
        self.state.lock().notice = Some(notice);
        self.ready();
    }
}

impl Source for Changes {
    fn ready(&self) {
        self.subject.drain();
        let (changed, notice) = {
            let mut state = self.state.lock();
            if state.pending.is_empty() && state.notice.is_none() {
                return;
            }
            let now = self.subject.look();
            if now == state.seen {
                return;
            }
            state.seen = now;
            (std::mem::take(&mut state.pending), state.notice.take())
        };
        if let Some(notice) = notice {
            notice();
        }
        changed.into_iter().for_each(|pending| pending.complete(STATUS_SUCCESS));
    }
}

impl Canceller for Changes {
    fn cancel(&self, scope: CancelScope) -> usize {
        let cancelled: Vec<_> = {
            let mut state = self.state.lock();
            let (meant, others) = std::mem::take(&mut state.pending)
                .into_iter()
                .partition(|pending: &Pending| pending.request.is_in(scope));
            state.pending = others;
            meant
        };
        let count = cancelled.len();
        cancelled.into_iter().for_each(|pending| pending.complete(STATUS_CANCELLED));
        count
    }
}

/// The addresses of one family, `AF_INET` or `AF_INET6`, of the interfaces that are up.
pub(super) struct Addresses {
    family: i32,
    netlink: OwnedFd,
}

impl Addresses {
    pub(super) fn of(family: i32) -> io::Result<Addresses> {
        let of_addresses =
            if family == libc::AF_INET { libc::RTMGRP_IPV4_IFADDR } else { libc::RTMGRP_IPV6_IFADDR };
        Ok(Addresses { family, netlink: netlink(of_addresses | libc::RTMGRP_LINK)? })
    }
}

/// A socket to which the kernel tells changes of these kinds.
pub(super) fn netlink(kinds: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointer.
    let netlink = own(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    let mut groups = libc::sockaddr_nl::zeroed();
    groups.nl_family = libc::AF_NETLINK as _;
    groups.nl_groups = kinds as u32;
    let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: the address has that size.
    match unsafe { libc::bind(netlink.as_raw_fd(), (&raw const groups).cast(), size) } {
        0 => Ok(netlink),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes all that the kernel has told; whether that was anything. What it was is ignored, also what was lost.
pub(super) fn drain_netlink(netlink: &OwnedFd) -> bool {
    let mut message = [0u8; 8192];
    let mut any = false;
    loop {
        // SAFETY: the buffer has that size.
        let taken = unsafe { libc::recv(netlink.as_raw_fd(), message.as_mut_ptr().cast(), message.len(), 0) };
        // There was more than there is room for.
        let lost = || io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
        if taken <= 0 && !lost() {
            return any;
        }
        any = true;
    }
}

impl Subject for Addresses {
    fn descriptor(&self) -> &OwnedFd {
        &self.netlink
    }

    fn drain(&self) {
        drain_netlink(&self.netlink);
    }

    fn look(&self) -> String {
        let mut addresses = super::routing::local_addresses().unwrap_or_default();
        addresses.retain(|address| address.is_ipv4() == (self.family == libc::AF_INET));
        addresses.sort();
        format!("{addresses:?}")
    }
}

/// The provider catalogue.
pub(super) struct Catalogue(OwnedFd);

impl Catalogue {
    pub(super) fn new() -> io::Result<Catalogue> {
        Ok(Catalogue(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches the folders of the catalogue, or their nearest existing parents. Repeated at each check, as folders may be created
    /// and removed.
    fn watch(&self) {
        const COMES: WatchFlags = WatchFlags::CREATE
            .union(WatchFlags::MOVED_TO)
            .union(WatchFlags::DELETE_SELF)
            .union(WatchFlags::MOVE_SELF);
        const CHANGES: WatchFlags = WatchFlags::DELETE
            .union(WatchFlags::MOVED_FROM)
            .union(WatchFlags::CLOSE_WRITE)
            .union(WatchFlags::ATTRIB);
        for folder in super::catalogue::folders() {
            for place in folder.ancestors() {
                let events = if place == folder { COMES | CHANGES } else { COMES };
                if inotify::add_watch(&self.0, place, events).is_ok() {
                    break;
                }
            }
        }
    }
}

impl Subject for Catalogue {
    fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    fn drain(&self) {
        let mut events = [0u8; 4096];
        while rustix::io::read(&self.0, &mut events).is_ok_and(|length| length > 0) {}
    }

    fn look(&self) -> String {
        self.watch();
        format!("{:?}", super::catalogue::providers())
    }
}

fn own(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just returned by the kernel, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The handles from `WSAProviderConfigChange`, by object.
static NOTIFIERS: Mutex<Vec<(Weak<File>, Weak<Changes>)>> = Mutex::new(Vec::new());

/// Opens a handle for changes of the catalogue.
fn open_notifier() -> io::Result<(RawHandle, Arc<File>, Arc<Changes>)> {
    let changes = Changes::of(Box::new(Catalogue::new()?));
    let file = File::sharing()?;
    file.keep_source(changes.fd(), changes.clone())?;
    let canceller: Weak<Changes> = Arc::downgrade(&changes);
    file.add_canceller(canceller);
    file.cancel_on_close();
    let handle = file.handle();
    if handle == RawHandle::NULL {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    let mut notifiers = NOTIFIERS.lock();
    notifiers.retain(|(file, _)| file.strong_count() > 0);
    notifiers.push((Arc::downgrade(&file), Arc::downgrade(&changes)));
    Ok((handle, file, changes))
}

fn find_notifier(handle: RawHandle) -> Option<(Arc<File>, Arc<Changes>)> {
    let Some(Object::File(file)) = handle::get(handle) else { return None };
    let notifiers = NOTIFIERS.lock();
    let (_, changes) = notifiers.iter().find(|(known, _)| std::ptr::eq(known.as_ptr(), &*file))?;
    Some((file, changes.upgrade()?))
}

#[cfg(test)]
impl Changes {
    /// Whether a request is pending.
    pub(super) fn is_awaited(&self) -> bool {
        !self.state.lock().pending.is_empty()
    }
}

/// Waits for the next change. `WSAEINTR` if the socket or handle is closed meanwhile.
pub(super) fn wait(file: &Arc<File>, changes: &Changes) -> Result<(), u32> {
    let overlapped = Overlapped::default();
    // SAFETY: it lives until the request has completed, for which this waits.
    unsafe { changes.begin(file, (&raw const overlapped).cast_mut(), None) }?;
    // SAFETY: that of the request just begun.
    match unsafe { crate::io::result(file, &overlapped, true) } {
        STATUS_CANCELLED => Err(WSAEINTR),
        _ => Ok(()),
    }
}

/// `WSAProviderConfigChange`: with a NULL handle, returns one, which can be bound to a completion port. With an `OVERLAPPED` the
/// request is pending until the catalogue changes, when a routine is called in an alertable wait; with neither, the call waits
/// for that.
///
/// # Safety
/// `overlapped` is NULL, or stays valid until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAProviderConfigChange(
    handle: InOut<'_, RawHandle>,
    overlapped: *mut Overlapped,
    routine: Option<CompletionRoutine>,
) -> i32 {
    let notify = || {
        let given = handle.read().ok_or(WSAEFAULT)?;
        let known = if given == RawHandle::NULL {
            let (opened, file, changes) = open_notifier().map_err(|_| WSA_NOT_ENOUGH_MEMORY)?;
            handle.put(opened);
            if overlapped.is_null() {
                return Ok(());
            }
            (file, changes)
        } else {
            find_notifier(given).ok_or(WSA_INVALID_HANDLE)?
        };
        let (file, changes) = known;
        if overlapped.is_null() {
            return wait(&file, &changes);
        }
        // SAFETY: C's caller keeps the OVERLAPPED until the request has completed.
        unsafe { changes.begin(&file, overlapped, routine.map(Call::of)) }?;
        Err(WSA_IO_PENDING)
    };
    guard(super::SOCKET_ERROR, || outcome(notify()))
}
