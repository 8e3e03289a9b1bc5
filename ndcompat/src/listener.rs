//! Listeners: waiting for peers that ask for connections.

use crate::adapter::Adapter;
use crate::connection::Happening;
use crate::connector::{Connector, Incoming};
use crate::endpoint::{self, Endpoint, Hold};
use crate::overlapped_file::{AdapterFile, ConnectionChannel, ConnectionHandler, next_cookie};
use crate::removal::Removable;
use crate::status::{Result, Status};
use crate::verbs::{Event, EventKind, SockAddr, bindings::rdma_cm_id};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use win32::io::{Canceller, File, Overlapped, Request, Which};

/// The kernel's backlog. When it is full, the kernel ignores newcomers rather than refuse them, so the queue that counts
/// is ours, and the kernel's as long as it can be.
const KERNEL_BACKLOG: u32 = 1024;

/// A listener (`IND2Listener`). All methods are thread-safe. Dropping it refuses who is still waiting.
pub struct Listener {
    file: Arc<AdapterFile>,
    cookie: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    hold: Hold,
    listening: bool,
    /// How many peers may be queued.
    backlog: usize,
    /// Peers that nobody has asked for yet.
    queued: VecDeque<Incoming>,
    /// `GetConnectionRequest` requests that no peer has come for yet, in order.
    waiting: VecDeque<(Request, Arc<Connector>)>,
}

impl Listener {
    pub(crate) fn new(file: Arc<AdapterFile>) -> Result<Arc<Listener>> {
        // Opened now, so that what follows finds it, going included.
        file.connections()?;
        let listener = Arc::new(Listener { file, cookie: next_cookie(), state: Mutex::default() });
        listener.channel()?.add(listener.cookie, Arc::downgrade(&listener) as _);
        listener.file().add_canceller(Arc::downgrade(&listener) as _);
        listener.adapter().tell_of_removal(Arc::downgrade(&listener) as _);
        Ok(listener)
    }

    /// Binds to a local address (`Bind`); port 0 takes a free one, the wildcard all addresses of the adapter.
    pub fn bind(&self, address: SockAddr) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        match state.hold {
            Hold::None => {}
            Hold::Open(_) => return Err(Status::ADDRESS_ALREADY_ASSOCIATED),
            Hold::Closed(_) => return Err(Status::INVALID_DEVICE_STATE),
        }
        let id = endpoint::bind(&self.file, self.cookie, address)?;
        state.hold = Hold::Open(Endpoint::new(self.file.clone(), id));
        Ok(())
    }

    /// Starts to listen (`Listen`); a `backlog` of 0 is no limit.
    pub fn listen(&self, backlog: u32) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        let endpoint = match &state.hold {
            Hold::None => return Err(Status::ADDRESS_NOT_ASSOCIATED),
            Hold::Open(endpoint) if !state.listening => endpoint.clone(),
            _ => return Err(Status::INVALID_DEVICE_STATE),
        };
        endpoint.id().listen(KERNEL_BACKLOG).map_err(|error| match error.raw_os_error() {
            Some(libc::EADDRINUSE) => Status::SHARING_VIOLATION,
            _ => Status::INSUFFICIENT_RESOURCES,
        })?;
        endpoint.set_listening();
        state.listening = true;
        state.backlog = if backlog == 0 { usize::MAX } else { backlog as usize };
        Ok(())
    }

    /// The address listened on (`GetLocalAddress`).
    pub fn local_address(&self) -> Result<SockAddr> {
        let state = self.lock();
        let endpoint = state.hold.open().filter(|_| state.listening).ok_or(Status::INVALID_DEVICE_STATE)?;
        endpoint.id().local_addr().ok_or(Status::INVALID_DEVICE_STATE)
    }

    /// Completes `ov` when a peer has asked for a connection, which `connector` then stands for
    /// (`GetConnectionRequest`).
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn connection_request(&self, connector: &Arc<Connector>, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        if !Arc::ptr_eq(connector.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_1);
        }
        if !self.lock().listening {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        connector.await_request()?;
        // SAFETY: passed on to the caller.
        let request = unsafe { self.file().begin(ov) };
        self.lock().waiting.push_back((request, connector.clone()));
        self.match_up();
        Ok(())
    }

    /// Brings waiting requests and queued peers together.
    fn match_up(&self) {
        loop {
            let mut state = self.lock();
            if state.waiting.is_empty() || state.queued.is_empty() {
                return;
            }
            let (Some(incoming), Some((request, connector))) =
                (state.queued.pop_front(), state.waiting.pop_front())
            else {
                return;
            };
            drop(state);
            let Ok(channel) = self.channel() else { return };
            match connector.adopt(incoming, channel) {
                Ok(()) => request.complete(Status::SUCCESS.0, 0),
                // The peer is gone; the next one is as good.
                Err(_) => self.lock().waiting.push_front((request, connector)),
            }
        }
    }

    /// Completes all pending requests with `ND_CANCELED`.
    pub fn cancel(&self) {
        Canceller::cancel(self, Which::All);
    }

    /// Stops listening, as [`close`](Self::close) does, and completes `ov` when all connectors accepted here are closed, too:
    /// from then on the address is free (an extension: `Close`).
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn close_request(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        if matches!(state.hold, Hold::Closed(_)) {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        self.hear_no_more();
        // SAFETY: passed on to the caller.
        let request = unsafe { self.file().begin(ov) };
        let closed = state.hold.close_with(request);
        state.listening = false;
        let queued = std::mem::take(&mut state.queued);
        drop(state);
        drop(queued);
        self.end_waiting(Which::All, Status::CANCELED);
        if let Err(request) = closed {
            request.complete(Status::SUCCESS.0, 0);
        }
        Ok(())
    }

    /// Stops listening: newcomers are refused, queued peers too, pending requests cancelled. The address stays taken while
    /// there are connectors that were accepted here.
    pub fn close(&self) {
        self.hear_no_more();
        let (endpoint, queued) = {
            let mut state = self.lock();
            state.listening = false;
            (state.hold.close(), std::mem::take(&mut state.queued))
        };
        drop(queued);
        drop(endpoint);
        self.cancel();
    }

    /// Events of the listener's id reach nobody any more, which refuses newcomers.
    fn hear_no_more(&self) {
        if let Ok(channel) = self.channel() {
            channel.remove(self.cookie);
        }
    }

    /// The file that the listener's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// The adapter that the listener belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.file.adapter()
    }

    fn channel(&self) -> Result<&Arc<ConnectionChannel>> {
        self.file.connections()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes the request on `ov`, or all of them, with `status`, and gives back their connectors.
    fn end_waiting(&self, which: Which, status: Status) -> usize {
        let mut state = self.lock();
        let chosen = |(request, _): &(Request, _)| request.is_among(which);
        let (chosen, rest): (VecDeque<_>, _) = state.waiting.drain(..).partition(chosen);
        state.waiting = rest;
        drop(state);
        let count = chosen.len();
        for (request, connector) in chosen {
            connector.await_no_more();
            request.complete(status.0, 0);
        }
        count
    }

    fn end_closing(&self, which: Which, status: Status) -> usize {
        let endpoint = self.lock().hold.closed();
        endpoint.map_or(0, |endpoint| endpoint.end_closing(which, status))
    }

    /// A queued peer has given up.
    fn forget(&self, id: *mut rdma_cm_id) {
        let gone = {
            let mut state = self.lock();
            let at = state.queued.iter().position(|incoming| incoming.id.as_ptr() == id);
            at.and_then(|at| state.queued.remove(at))
        };
        drop(gone);
    }
}

impl ConnectionHandler for Listener {
    fn event(&self, mut event: Event) {
        let happening = Happening::new(&event);
        let subject = event.id();
        let id = event.take_request();
        drop(event);
        match (happening.kind, id) {
            (EventKind::ConnectRequest, Some(id)) => {
                // A wildcard listener hears of other devices' peers too. Dropping the id refuses them.
                if id.verbs() != self.adapter().context().as_ptr() {
                    return;
                }
                let mut state = self.lock();
                let Some(endpoint) = state.hold.open().cloned() else { return };
                if state.waiting.is_empty() && state.queued.len() >= state.backlog {
                    return;
                }
                state.queued.push_back(Incoming { id, terms: happening.terms, endpoint });
                drop(state);
                self.match_up();
            }
            (EventKind::DeviceRemoval, _) => self.adapter().removed(),
            _ => self.forget(subject),
        }
    }
}

impl Canceller for Listener {
    fn cancel(&self, which: Which) -> usize {
        self.end_waiting(which, Status::CANCELED) + self.end_closing(which, Status::CANCELED)
    }
}

impl Removable for Listener {
    fn device_removed(self: Arc<Self>) {
        let queued = std::mem::take(&mut self.lock().queued);
        drop(queued);
        self.end_waiting(Which::All, Status::DEVICE_REMOVED);
        self.end_closing(Which::All, Status::DEVICE_REMOVED);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}
