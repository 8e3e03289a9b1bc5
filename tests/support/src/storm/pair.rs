//! A connection of the storm, from its creation to its end.

use super::end::{End, Shape};
use super::inbox::Inbox;
use super::ledger::Ledger;
use super::lobby::Lobby;
use super::parts::release;
use super::pool::Pool;
use super::queue::{Member, Queue};
use crate::client::EVERYTHING;
use crate::com::{Adapter, Com, Interface, Listener, create};
use crate::library::CancelIoEx;
use crate::waits::Waits;
use crate::watched::{Completed, LIMIT, Watched};
use ndcompat::Status;
use ndcompat::types::{Completion, NotifyType, RequestType};
use ndcompat::{RawSockAddr, SockAddr};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// siw waits for an answer for 10 s.
const SIW_WAITS: Duration = Duration::from_secs(8);

/// Where connecting is broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Nowhere.
    Never,
    /// There is no listener.
    NobodyListens,
    /// `Connect` is cancelled.
    CancelConnect,
    /// The connection request is rejected.
    Reject,
    /// The listener is released while the connection request arrives.
    ReleaseListener,
    /// The listener's requests are cancelled while the connection request arrives.
    CancelListener,
    /// The active end releases everything before the answer.
    ReleaseAsker,
    /// The passive end releases everything without an answer.
    ReleaseAsked,
    /// The active end rejects the answer.
    RejectAnswer,
    /// `Accept` is cancelled.
    CancelAccept,
    /// `CompleteConnect` is cancelled.
    CancelComplete,
}

impl Break {
    /// Whether the listener has given the connection request to somebody by then.
    pub fn is_after_meeting(self) -> bool {
        use Break::*;
        [Never, Reject, ReleaseAsked, RejectAnswer, CancelAccept, CancelComplete].contains(&self)
    }
}

/// All cases, with the usual one more often.
pub const BREAKS: [Break; 19] = [
    Break::Never,
    Break::Never,
    Break::Never,
    Break::Never,
    Break::Never,
    Break::Never,
    Break::Never,
    Break::Never,
    Break::Never,
    Break::NobodyListens,
    Break::CancelConnect,
    Break::Reject,
    Break::ReleaseListener,
    Break::CancelListener,
    Break::ReleaseAsker,
    Break::ReleaseAsked,
    Break::RejectAnswer,
    Break::CancelAccept,
    Break::CancelComplete,
];

/// Two ends, connected.
pub struct Pair {
    /// The one that called `Connect`, and the one that called `Accept`. Gone once the pair is.
    pub ends: Option<Box<[End; 2]>>,
    /// Requests that complete when the pair is released at the latest.
    pending: Mutex<Vec<Arc<Watched>>>,
    /// Held by the thread that uses a window.
    pub window: Mutex<()>,
    notifications: Mutex<Vec<Notification>>,
    ending: Arc<AtomicBool>,
    completed: Arc<Mutex<Completed>>,
    /// See [`Making::order`].
    order: u64,
}

/// A `Notify` on a queue that was empty afterwards, with the number of results taken by then.
struct Notification {
    request: Arc<Watched>,
    queue: Arc<Queue>,
    taken: u64,
}

/// An end of a pair, as its queues see it: they may report its requests after it is gone, if others use them, too.
struct Place {
    pair: Weak<Pair>,
    at: usize,
    initiated: Arc<Ledger>,
    inbox: Arc<Inbox>,
}

impl Member for Place {
    fn check(&self, result: &Completion, ordered: bool) {
        let receive = result.request_type == RequestType::Receive;
        let ledger = if receive { &self.inbox.ledger } else { &self.initiated };
        // Several connections take receives in the order of posting, and complete them in that of their messages.
        let over = ledger.report(result, ordered && !(receive && self.inbox.is_shared()));
        if let Some(pair) = self.pair.upgrade() {
            let (end, peer) = pair.from(self.at);
            end.check(peer, result, &over, ordered);
        }
        if receive {
            over.iter().filter_map(|posted| posted.slot).for_each(|(slot, _)| self.inbox.slots.give(slot));
        }
    }
}

/// How to create a pair.
pub struct Making<'a> {
    /// Of each end.
    pub adapters: [&'a Com<Adapter>; 2],
    /// Of each end.
    pub shapes: [Shape; 2],
    /// What each end shares with others.
    pub pools: [Option<Arc<Pool>>; 2],
    /// The listener, if others use it, too: one on the second adapter.
    pub lobby: Option<Arc<Lobby>>,
    /// The number of the first end; that of the second is one more.
    pub name: u32,
    /// The number of threads that use it.
    pub threads: usize,
    /// Decides in which order the objects are released.
    pub order: u64,
    /// Where connecting is broken off.
    pub broken: Break,
}

impl Pair {
    /// Creates a pair; `None` if it was broken off.
    pub fn make(
        making: &Making<'_>,
        waits: &Waits<'_>,
        completed: &Arc<Mutex<Completed>>,
    ) -> Option<Arc<Pair>> {
        let ending = Arc::new(AtomicBool::new(false));
        let end = |at: usize| {
            let (adapter, shape) = (making.adapters[at], making.shapes[at]);
            let (pool, name) = (making.pools[at].clone(), making.name + at as u32);
            End::new(adapter, waits.ports(), shape, pool, name, making.threads, ending.clone())
        };
        let mut pair = Pair {
            ends: Some(Box::new([end(0), end(1)])),
            pending: Mutex::default(),
            window: Mutex::default(),
            notifications: Mutex::default(),
            ending: ending.clone(),
            completed: completed.clone(),
            order: making.order,
        };
        for end in pair.ends() {
            let (bytes, length) = end.bytes();
            // SAFETY: the memory goes after its region.
            let status = pair.run("Register", end, 2, &end.region, waits, |ov| unsafe {
                end.region.register(bytes, length, EVERYTHING, ov)
            });
            assert_eq!(status, Status::SUCCESS, "Register");
            end.is_registered();
        }
        let connected = match &making.lobby {
            Some(lobby) => pair.connect_at(lobby, making.broken, waits),
            None => pair.connect(making.broken, waits),
        };
        connected.then(|| Arc::new_cyclic(|weak| pair.joined(weak)))
    }

    /// With its ends known to their queues.
    fn joined(self, pair: &Weak<Pair>) -> Pair {
        for (at, end) in self.ends().iter().enumerate() {
            let (initiated, inbox) = (end.initiated.clone(), end.inbox.clone());
            let place = Arc::new(Place { pair: pair.clone(), at, initiated, inbox });
            end.queues.iter().for_each(|queue| queue.join(end.name(), place.clone()));
        }
        self
    }

    /// Both ends.
    pub fn ends(&self) -> &[End; 2] {
        self.ends.as_ref().expect("a pair that lives")
    }

    /// Both ends, this one first.
    pub fn from(&self, at: usize) -> (&End, &End) {
        let ends = self.ends();
        (&ends[at], &ends[1 - at])
    }

    /// Starts a request on an object of `end` whose file is the one for `of`; `None` if the call fails.
    pub fn begin(
        &self,
        method: &'static str,
        end: &End,
        of: usize,
        call: impl FnOnce(*mut win32::io::Overlapped) -> Status,
    ) -> Result<Arc<Watched>, Status> {
        let request = Watched::new(method, end.file(of), end.way(of));
        match call(request.ptr()) {
            Status::PENDING => {
                self.completed.lock().unwrap().add(request.clone());
                self.pending.lock().unwrap().push(request.clone());
                Ok(request)
            }
            status => {
                request.never_began();
                Err(status)
            }
        }
    }

    /// Starts a request and waits for it; returns its status, or that of the call.
    pub fn run<I: Interface>(
        &self,
        method: &'static str,
        end: &End,
        of: usize,
        object: &Com<I>,
        waits: &Waits<'_>,
        call: impl FnOnce(*mut win32::io::Overlapped) -> Status,
    ) -> Status {
        match self.begin(method, end, of, call) {
            Ok(request) => waits.wait(&request, Some(object)),
            Err(status) => status,
        }
    }

    /// Connects the ends; returns whether they are connected.
    fn connect(&self, broken: Break, waits: &Waits<'_>) -> bool {
        let [active, passive] = self.ends();
        let (mut raw, mut length) = crate::address().to_raw();
        // SAFETY: `create` passes an id and a place for the object; addresses have their lengths, and requests are watched to
        // their end.
        let (connect, _listener) = unsafe {
            let file = passive.files[0].0;
            let adapter = &passive.adapter;
            let listener: Com<Listener> =
                create(|iid, out| adapter.create_listener(iid, file, out)).expect("a listener");
            assert_eq!(listener.bind(raw.as_ptr().cast(), length), Status::SUCCESS, "Listener::Bind");
            assert_eq!(listener.listen(0), Status::SUCCESS, "Listen");
            assert_eq!(active.connector.bind(raw.as_ptr().cast(), length), Status::SUCCESS, "Bind");
            length = size_of::<RawSockAddr>() as u32;
            let status = listener.get_local_address(raw.as_mut_ptr().cast(), &mut length);
            assert_eq!(status, Status::SUCCESS, "GetLocalAddress");
            let at = SockAddr::from_raw(raw.as_ptr().cast(), length as usize).expect("an address");
            let mut listener = Some(listener);
            let asked = (broken != Break::NobodyListens).then(|| {
                let listener = listener.as_ref().expect("not released yet");
                let connector = passive.connector.as_ptr();
                self.begin("GetConnectionRequest", passive, 0, |ov| {
                    listener.get_connection_request(connector, ov)
                })
                .expect("GetConnectionRequest")
            });
            if broken == Break::NobodyListens {
                listener = None;
            }
            let connect = self.ask(at);
            match broken {
                Break::NobodyListens => {
                    let status = waits.wait(&connect, Some(&active.connector));
                    assert_ne!(status, Status::SUCCESS, "a connection with nobody");
                    return false;
                }
                Break::CancelConnect => {
                    assert_eq!(active.connector.cancel_overlapped_requests(), Status::SUCCESS);
                    waits.wait(&connect, Some(&active.connector));
                    return false;
                }
                Break::ReleaseListener => {
                    drop(listener.take());
                    waits.wait::<Listener>(&asked.expect("somebody listens"), None);
                    return false;
                }
                Break::CancelListener => {
                    let listener = listener.as_ref().expect("not released yet");
                    assert_eq!(listener.cancel_overlapped_requests(), Status::SUCCESS);
                    waits.wait(&asked.expect("somebody listens"), Some(listener));
                    return false;
                }
                Break::ReleaseAsker => return false,
                _ => {}
            }
            let status = waits.wait(&asked.expect("somebody listens"), listener.as_ref());
            assert_eq!(status, Status::SUCCESS, "GetConnectionRequest");
            // The listener may go before the answer.
            (connect, listener.filter(|_| self.order.is_multiple_of(2)))
        };
        self.answer(connect, broken, waits)
    }

    /// Connects the first end by a listener that others use, too. The other end is the one that this listener gives the
    /// connection request to. Returns whether the ends are connected.
    fn connect_at(&mut self, lobby: &Lobby, broken: Break, waits: &Waits<'_>) -> bool {
        let [active, passive] = self.ends();
        let (mut raw, length) = crate::address().to_raw();
        // SAFETY: the address has that length.
        let status = unsafe { active.connector.bind(raw.as_mut_ptr().cast(), length) };
        assert_eq!(status, Status::SUCCESS, "Bind");
        let asked = lobby.ask(passive, &self.completed);
        let connect = self.ask(lobby.address);
        lobby.wait(passive, asked, waits, &self.completed);
        let [active, passive] = *self.ends.take().expect("a pair that lives");
        let mut passive = lobby.exchange(passive, active.name());
        passive.ending = self.ending.clone();
        self.ends = Some(Box::new([active, passive]));
        self.answer(connect, broken, waits)
    }

    /// Starts `Connect` of the first end.
    fn ask(&self, at: SockAddr) -> Arc<Watched> {
        let [active, _] = self.ends();
        let (raw, length) = at.to_raw();
        let (queue_pair, said) = (active.queue_pair(), active.words());
        let (data, bytes) = (said.as_ptr().cast(), said.len() as u32);
        // SAFETY: address and data have their lengths, and the request is watched to its end.
        let begun = self.begin("Connect", active, 0, |ov| unsafe {
            active.connector.connect(queue_pair, raw.as_ptr().cast(), length, 4, 4, data, bytes, ov)
        });
        begun.expect("Connect")
    }

    /// Whether `Connect` has ended as siw ends it when there is no answer for 10 s: a machine may be that slow.
    fn gave_up(connect: &Watched, status: Status) -> bool {
        crate::is_siw() && status == Status::IO_TIMEOUT && connect.age() > SIW_WAITS
    }

    /// The second end, which has the connection request, answers it. Returns whether the ends are connected.
    fn answer(&self, connect: Arc<Watched>, broken: Break, waits: &Waits<'_>) -> bool {
        let [active, passive] = self.ends();
        let never = broken == Break::Never;
        // SAFETY: the private data have their lengths, and the requests are watched to their end.
        unsafe {
            passive.is_told_by(active);
            match broken {
                Break::ReleaseAsked => return false,
                Break::Reject => {
                    assert_eq!(passive.say_no(), Status::SUCCESS, "Reject");
                    let status = waits.wait(&connect, Some(&active.connector));
                    if !Self::gave_up(&connect, status) {
                        assert_eq!(status, Status::CONNECTION_REFUSED, "Connect");
                        active.is_told_by(passive);
                    }
                    return false;
                }
                _ => {}
            }
            let accept = self
                .begin("Accept", passive, 0, |ov| {
                    let (queue_pair, said) = (passive.queue_pair(), passive.words());
                    passive.connector.accept(queue_pair, 4, 4, said.as_ptr().cast(), said.len() as u32, ov)
                })
                .expect("Accept");
            if broken == Break::CancelAccept {
                self.ending.store(true, Ordering::Release);
                self.cancel(passive);
                waits.wait(&accept, Some(&passive.connector));
                return false;
            }
            let status = waits.wait(&connect, Some(&active.connector));
            if Self::gave_up(&connect, status) {
                self.ending.store(true, Ordering::Release);
                assert_ne!(waits.wait(&accept, Some(&passive.connector)), Status::SUCCESS, "Accept");
                return false;
            }
            assert_eq!(status, Status::SUCCESS, "Connect");
            active.is_told_by(passive);
            if broken == Break::RejectAnswer {
                self.ending.store(true, Ordering::Release);
                let status = active.connector.reject(null(), 0);
                if status == Status::SUCCESS {
                    waits.wait(&accept, Some(&passive.connector));
                }
                return false;
            }
            if broken == Break::CancelComplete {
                self.ending.store(true, Ordering::Release);
                let complete =
                    self.begin("CompleteConnect", active, 0, |ov| active.connector.complete_connect(ov));
                self.cancel(active);
                waits.wait(&complete.expect("CompleteConnect"), Some(&active.connector));
                return false;
            }
            let status = self.run("CompleteConnect", active, 0, &active.connector, waits, |ov| {
                active.connector.complete_connect(ov)
            });
            assert_eq!(status, Status::SUCCESS, "CompleteConnect");
            assert_eq!(waits.wait(&accept, Some(&passive.connector)), Status::SUCCESS, "Accept");
            assert!(never);
        }
        true
    }

    /// Starts a `Notify` on a completion queue of an end.
    pub fn notify(&self, at: usize, queue: usize, kind: NotifyType) {
        let Some(queue) = self.ends()[at].queues.get(queue) else { return };
        let request = queue.notify(kind, &self.completed);
        // Of results that threads take at once it is not known which came before.
        if kind != NotifyType::Any || queue.free_polling {
            return;
        }
        while queue.poll() > 0 {}
        let taken = queue.taken.load(Ordering::Acquire);
        self.notifications.lock().unwrap().push(Notification { request, queue: queue.clone(), taken });
    }

    /// Waits for the notifications of results that have arrived.
    pub fn see_notifications(&self, waits: &Waits<'_>, seen: &AtomicU64) {
        let mut due = Vec::new();
        self.notifications.lock().unwrap().retain(|notification| {
            let comes = notification.queue.taken.load(Ordering::Acquire) > notification.taken;
            if comes {
                due.push((notification.request.clone(), notification.queue.clone()));
            }
            !comes
        });
        for (request, queue) in due {
            waits.wait(&request, Some(&*queue.object));
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Cancels the requests of an end's connector, by itself or by its file.
    pub fn cancel(&self, end: &End) {
        // SAFETY: the file is open; NULL means all requests.
        unsafe {
            match self.order & 2 {
                0 => drop(CancelIoEx(end.file(0), null_mut())),
                _ => assert_eq!(end.connector.cancel_overlapped_requests(), Status::SUCCESS),
            }
        }
    }

    /// Starts `Disconnect` on one end; `None` if it is too late for that.
    pub fn disconnect(&self, end: &End) -> Option<Arc<Watched>> {
        // SAFETY: the request is watched to its end.
        self.begin("Disconnect", end, 0, |ov| unsafe { end.connector.disconnect(ov) }).ok()
    }

    /// Whether the connection is being ended.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Marks the connection as being ended, so that requests may fail. False if another thread has done so.
    pub fn end(&self) -> bool {
        !self.ending.swap(true, Ordering::AcqRel)
    }

    /// Takes all results that must arrive after the end.
    pub fn drain(&self) {
        let deadline = Instant::now() + LIMIT;
        for at in 0..2 {
            let end = &self.ends()[at];
            loop {
                let polled = end.poll();
                let (left, first) = end.outstanding();
                if left == 0 {
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "end {at}: {left} requests are not reported, first {first:?}"
                );
                if polled == 0 {
                    // Another thread may have asked for its end just before that was noticed: its requests stay until then.
                    if end.awaits_disconnect.load(Ordering::Acquire) {
                        end.flush();
                    }
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        }
    }
}

/// Pending requests have completed once all objects are released.
impl Drop for Pair {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        self.notifications.get_mut().unwrap().clear();
        let mut ends = self.ends.take();
        if std::thread::panicking() {
            return;
        }
        if let Some(ends) = &mut ends {
            release(ends.iter_mut().flat_map(End::parts).collect(), self.order);
        }
        drop(ends);
        for request in self.pending.get_mut().unwrap().drain(..) {
            assert!(request.status().is_some(), "{request} is pending after all was released");
        }
    }
}
