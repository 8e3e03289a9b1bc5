//! Overlapped requests of sockets.
//!
//! A socket has two queues, for input (receives, accepts) and for output (sends, connects, disconnects). A request is tried at
//! once if it is the first, and otherwise waits for its turn and for the socket to be ready, which threads that serve the file's
//! sources detect. So requests of a queue complete in order.
//!
//! The socket is watched edge-triggered (`EPOLLET`), and `ready` stores the last edge, so that no system call is made in vain. A
//! queue's lock is held while its operations are tried, none of which blocks, and while they complete, so that their packets are
//! in order, too.

mod accept;
mod connect;
mod disconnect;
mod receive;
mod send;
mod transmit;

pub(in crate::winsock) use accept::{Accept, Room, addresses_in, fits, prepare};
pub(in crate::winsock) use connect::Connect;
pub(in crate::winsock) use disconnect::Disconnect;
pub(in crate::winsock) use receive::Receive;
pub(in crate::winsock) use send::Send;
pub(in crate::winsock) use transmit::{Part, Transmit};

use super::Known;
use super::selection::Selected;
use crate::error::*;
use crate::io::{
    CancelScope, Canceller, File, Overlapped, Registration, Request, STATUS_CANCELLED, STATUS_SUCCESS,
    Source, WeakList,
};
use crate::winsock::completion_routine::{self, Call};
use crate::winsock::errors::{error_of, status_of};
use libc::c_int;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

const ARRIVED: u32 = (libc::EPOLLIN | libc::EPOLLPRI) as u32;
const ENDED: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
const ROOM: u32 = libc::EPOLLOUT as u32;
/// After these, a call that moves less than it was asked to may leave something behind: no edge follows the end, and a receive stops at
/// urgent data.
const STAYS_READY: u32 = ENDED | libc::EPOLLPRI as u32;

/// The driver of a socket's overlapped requests.
pub(in crate::winsock) struct Driver {
    fd: RawFd,
    /// The process whose requests these are: a forked child's are others.
    process: u32,
    file: Arc<File>,
    input: Mutex<Queue>,
    output: Mutex<Queue>,
    /// Set once a request had to wait.
    registration: Mutex<Option<Registration>>,
    /// Room to send is watched, too: a request had to wait for it, or events are selected.
    awaits_room: AtomicBool,
    /// Accepted sockets that wait for their first data before the request completes.
    accepted: Mutex<WeakList<Accepted>>,
    /// The events that the program has selected.
    pub(in crate::winsock) selected: Selected,
}

/// Which of the queues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::winsock) enum Direction {
    In,
    Out,
}

struct Queue {
    pending: InOrder,
    /// The socket may be ready.
    ready: bool,
    /// It counts as ready from now on.
    stays_ready: bool,
    closed: bool,
    /// Whether the program has ended this direction.
    end: End,
    /// The `how` of the `shutdown` that does it.
    how: c_int,
}

/// The end of a direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    None,
    /// Once the pending requests have completed.
    Pending,
    Reached,
}

impl End {
    /// What it is after another call has ended it, too.
    fn or(self, other: End) -> End {
        if self == End::None { other } else { self }
    }
}

impl Queue {
    fn new(how: c_int) -> Mutex<Queue> {
        let pending = InOrder::default();
        Mutex::new(Queue { pending, ready: true, stays_ready: false, closed: false, end: End::None, how })
    }
}

/// Requests in order. The usual single one is stored inline: with many sockets, memory elsewhere is seldom in the cache.
#[derive(Default)]
struct InOrder {
    first: Option<Pending>,
    /// Empty unless there is a first one.
    more: VecDeque<Pending>,
}

impl InOrder {
    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn add(&mut self, pending: Pending) {
        match self.first {
            None => self.first = Some(pending),
            Some(_) => self.more.push_back(pending),
        }
    }

    fn take_first(&mut self) -> Option<Pending> {
        let first = self.first.take();
        if !self.more.is_empty() {
            self.first = self.more.pop_front();
        }
        first
    }

    /// Removes the requests that `meant` selects.
    fn take_if(&mut self, meant: impl Fn(&Pending) -> bool) -> VecDeque<Pending> {
        let all = self.first.take().into_iter().chain(std::mem::take(&mut self.more));
        let (taken, mut left): (VecDeque<_>, VecDeque<_>) = all.partition(meant);
        self.first = left.pop_front();
        self.more = left;
        taken
    }
}

/// A connection that waits for its first data. Owned by the listener's request, and gone with it: the connection may last, or be
/// the next one of the same socket.
type Accepted = Weak<Driver>;

struct Pending {
    request: Request,
    operation: Operation,
    call: Option<Call>,
    /// The request of a listener.
    of_listener: Option<Arc<Accepted>>,
}

impl Pending {
    fn accepts_into(&self, socket: &Arc<Known>) -> bool {
        matches!(&self.operation, Operation::Accept(accept) if Arc::ptr_eq(&accept.into, socket))
    }
}

/// The operation of a request.
pub(in crate::winsock) enum Operation {
    Receive(Receive),
    Send(Send),
    Transmit(Transmit),
    Accept(Accept),
    Connect(Connect),
    Disconnect(Disconnect),
}

/// The outcome of an attempt.
pub(in crate::winsock) enum Step {
    /// Nothing can be done before the socket becomes ready.
    Blocked,
    /// Done. `drained`: there is nothing left for the next request.
    Done { status: i32, bytes: usize, drained: bool },
    /// A connection was accepted, and the request waits for data on it.
    Await(Arc<Driver>, Receive),
    /// The connection is established, and the request continues with a send.
    Then(Send),
    /// The connection has ended, and the socket is to be made anew before the request completes.
    Renew(Arc<Known>),
}

impl Step {
    fn done(bytes: usize) -> Step {
        Step::Done { status: STATUS_SUCCESS, bytes, drained: false }
    }

    fn failed(errno: i32) -> Step {
        Step::Done { status: status_of(errno), bytes: 0, drained: false }
    }
}

impl Operation {
    pub(in crate::winsock) fn attempt(&mut self, fd: RawFd) -> Step {
        match self {
            Operation::Receive(receive) => receive.attempt(fd),
            Operation::Send(send) => send.attempt(fd),
            Operation::Transmit(transmit) => transmit.attempt(fd),
            Operation::Accept(accept) => accept.attempt(fd),
            Operation::Connect(connect) => connect.attempt(fd),
            Operation::Disconnect(disconnect) => disconnect.attempt(fd),
        }
    }

    fn always_pends(&self) -> bool {
        matches!(self, Operation::Accept(_) | Operation::Connect(_) | Operation::Disconnect(_))
    }

    /// Takes back what a blocked attempt has begun, as nobody would hear of its end.
    fn take_back(&self, fd: RawFd) {
        if let Operation::Connect(connect) = self {
            connect.take_back(fd);
        }
    }

    /// The number of bytes transferred so far.
    fn transferred(&self) -> usize {
        match self {
            Operation::Receive(receive) => receive.done,
            Operation::Send(send) => send.sent,
            Operation::Transmit(transmit) => transmit.sent,
            Operation::Accept(_) | Operation::Connect(_) | Operation::Disconnect(_) => 0,
        }
    }
}

impl Driver {
    pub(in crate::winsock) fn new(fd: RawFd, file: Arc<File>) -> Arc<Driver> {
        let driver = Arc::new(Driver {
            fd,
            process: std::process::id(),
            file,
            input: Queue::new(libc::SHUT_RD),
            output: Queue::new(libc::SHUT_WR),
            registration: Mutex::default(),
            awaits_room: AtomicBool::new(false),
            accepted: Mutex::default(),
            selected: Selected::default(),
        });
        let canceller = Arc::downgrade(&driver);
        driver.file.add_canceller(canceller);
        driver
    }

    pub(in crate::winsock) fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn queue(&self, direction: Direction) -> &Mutex<Queue> {
        match direction {
            Direction::In => &self.input,
            Direction::Out => &self.output,
        }
    }

    /// Watches the socket, with `room` also for room to send. There usually is room, and edges that report it with each arrival
    /// would make the serving thread wait for another thread's send.
    pub(in crate::winsock) fn watch(self: &Arc<Self>, room: bool) -> Result<(), u32> {
        let mut registration = self.registration.lock();
        let more = room && !self.awaits_room.swap(true, Ordering::Relaxed);
        let watched = match &*registration {
            None => self.file.add_source(self.fd, self.clone()).map(|added| *registration = Some(added)),
            Some(registration) if more => registration.renew(),
            Some(_) => Ok(()),
        };
        watched.map_err(|error| {
            if more {
                self.awaits_room.store(false, Ordering::Relaxed);
            }
            crate::winsock::wsa_error(&error)
        })
    }

    /// Starts a request. It has completed if the number of bytes is returned; `WSA_IO_PENDING` means that it was started, any
    /// other error that it was not.
    ///
    /// # Safety
    /// As for [`File::begin`]; what the operation points to must be valid as long.
    pub(in crate::winsock) unsafe fn start(
        self: &Arc<Self>,
        direction: Direction,
        overlapped: *mut Overlapped,
        mut operation: Operation,
        call: Option<Call>,
    ) -> Result<usize, u32> {
        let mut queue = self.queue(direction).lock();
        if queue.closed {
            return Err(WSAENOTSOCK);
        }
        if call.is_some() && self.file.is_bound() {
            return Err(WSAEINVAL);
        }
        let former_end = queue.end;
        if let Operation::Disconnect(_) = operation {
            queue.end = queue.end.or(End::Reached);
            // It needs no room.
            queue.ready |= queue.pending.is_empty();
        } else if queue.end != End::None {
            return Err(WSAESHUTDOWN);
        }
        let mut left = None;
        if queue.pending.is_empty() && queue.ready {
            // On Windows these never complete at once, and programs take the packet for the only word on it.
            let pends = operation.always_pends();
            match operation.attempt(self.fd) {
                Step::Blocked => queue.ready = false,
                Step::Done { status: STATUS_SUCCESS, bytes, drained } if !pends => {
                    queue.ready = !drained || queue.stays_ready;
                    // SAFETY: an OVERLAPPED that no other request has, by the function's own promise.
                    unsafe { completion_routine::finish_at_once(&self.file, overlapped, bytes, call) };
                    return Ok(bytes);
                }
                Step::Done { status, .. } if status as u32 >> 30 == 3 => return Err(error_of(status)),
                // A warning is reported by a completion.
                step => left = Some(step),
            }
        }
        // What has been done needs no watch.
        let is_done = matches!(left, Some(Step::Done { .. } | Step::Renew(_) | Step::Await(..)));
        if !is_done && let Err(code) = self.watch(direction == Direction::Out) {
            let bytes = operation.transferred();
            if bytes == 0 && left.is_none() {
                operation.take_back(self.fd);
                (queue.ready, queue.end) = (true, former_end);
                return Err(code);
            }
            // A part is done: the request was started, and ends so.
            left = Some(Step::Done { status: status_of(libc::ENOBUFS), bytes, drained: false });
        }
        // SAFETY: an OVERLAPPED that stays until the request has completed, by the function's own promise.
        let request = unsafe { completion_routine::begin(&self.file, overlapped, call.as_ref()) };
        let pending = Pending { request, operation, call, of_listener: None };
        match left {
            None => queue.pending.add(pending),
            Some(step) => {
                queue.pending.add(pending);
                self.apply(&mut queue, step);
                self.run(&mut queue);
            }
        }
        Err(WSA_IO_PENDING)
    }

    /// Tries the requests in order, as far as the socket is ready.
    fn run(&self, queue: &mut MutexGuard<'_, Queue>) {
        while queue.ready && !queue.closed {
            let Some(first) = &mut queue.pending.first else { return };
            match first.operation.attempt(self.fd) {
                Step::Blocked => queue.ready = false,
                step => self.apply(queue, step),
            }
        }
    }

    /// Applies the outcome of an attempt to the first request.
    fn apply(&self, queue: &mut MutexGuard<'_, Queue>, step: Step) {
        match step {
            Step::Blocked => queue.ready = false,
            Step::Then(send) => {
                if let Some(first) = &mut queue.pending.first {
                    first.operation = Operation::Send(send);
                }
            }
            Step::Done { status, bytes, drained } => {
                queue.ready = !drained || queue.stays_ready;
                if let Some(first) = queue.pending.take_first() {
                    self.complete(first, status, bytes);
                }
                self.shut_down_after_the_last(queue);
            }
            Step::Renew(socket) => {
                let Some(first) = queue.pending.take_first() else { return };
                let status = MutexGuard::unlocked(queue, || self.reuse(&socket))
                    .err()
                    .map_or(STATUS_SUCCESS, status_of);
                self.complete(first, status, 0);
            }
            Step::Await(connection, receive) => {
                if let Some(first) = queue.pending.take_first() {
                    let accepted = Arc::new(Arc::downgrade(&connection));
                    self.accepted.lock().add(Arc::downgrade(&accepted));
                    connection.wait_for_data(&self.file, first.request, receive, accepted);
                }
            }
        }
    }

    fn complete(&self, pending: Pending, status: i32, bytes: usize) {
        if pending.of_listener.is_some() {
            // The connection was watched by the listener's file.
            drop(self.registration.lock().take());
        }
        let overlapped = pending.request.overlapped();
        pending.request.complete(status, bytes);
        if let Some(call) = pending.call {
            call.queue(overlapped, status, bytes);
        }
    }

    /// Completes a listener's request with the first data of this connection, which is watched by the listener's file.
    fn wait_for_data(
        self: &Arc<Self>,
        listener: &Arc<File>,
        request: Request,
        receive: Receive,
        accepted: Arc<Accepted>,
    ) {
        let mut queue = self.input.lock();
        if queue.closed {
            return request.complete(STATUS_CANCELLED, 0);
        }
        let added = listener.add_source(self.fd, self.clone());
        let Ok(registration) = added else {
            return request.complete(status_of(libc::ENOBUFS), 0);
        };
        *self.registration.lock() = Some(registration);
        let operation = Operation::Receive(receive);
        queue.pending.add(Pending { request, operation, call: None, of_listener: Some(accepted) });
        self.run(&mut queue);
    }

    /// Cancels the requests that `meant` selects.
    fn cancel_if(&self, meant: impl Fn(&Pending) -> bool) -> usize {
        let mut count = 0;
        for queue in [&self.input, &self.output] {
            let mut queue = queue.lock();
            let cancelled = queue.pending.take_if(&meant);
            if cancelled.is_empty() {
                continue;
            }
            count += cancelled.len();
            for pending in cancelled {
                // The descriptor of a closed socket may be another's.
                if !queue.closed {
                    pending.operation.take_back(self.fd);
                }
                let bytes = pending.operation.transferred();
                self.complete(pending, STATUS_CANCELLED, bytes);
            }
            self.shut_down_after_the_last(&mut queue);
            // What is next may not need what the cancelled one has waited for.
            queue.ready = true;
            self.run(&mut queue);
        }
        count
    }

    /// Whether an `AcceptEx` pends that is to make `socket` a connection.
    pub(in crate::winsock) fn accepts_into(&self, socket: &Arc<Known>) -> bool {
        let queue = self.input.lock();
        queue.pending.first.iter().chain(&queue.pending.more).any(|pending| pending.accepts_into(socket))
    }

    /// Cancels it.
    pub(in crate::winsock) fn cancel_accept(&self, socket: &Arc<Known>) {
        self.cancel_if(|pending| pending.accepts_into(socket));
    }

    /// No more requests of this direction are accepted. Returns whether some are pending, and it is shut down when they have completed;
    /// otherwise the caller does it.
    pub(in crate::winsock) fn shut_down(&self, direction: Direction) -> bool {
        let mut queue = self.queue(direction).lock();
        if queue.pending.is_empty() {
            queue.end = End::Reached;
            return false;
        }
        queue.end = End::Pending;
        true
    }

    fn shut_down_after_the_last(&self, queue: &mut Queue) {
        if queue.end == End::Pending && queue.pending.is_empty() && !queue.closed {
            queue.end = End::Reached;
            // SAFETY: takes no pointer. What it says to a connection that was reset does not matter.
            unsafe { libc::shutdown(self.fd, queue.how) };
        }
    }

    /// Replaces the descriptor's socket by calling `replace`, unless it is closed. Requests on the former one are cancelled.
    pub(in crate::winsock) fn renew<R>(&self, replace: impl FnOnce() -> R) -> Option<R> {
        let (mut input, mut output) = (self.input.lock(), self.output.lock());
        if input.closed {
            return None;
        }
        // The epoll set still has the former socket.
        drop(self.registration.lock().take());
        let replaced = replace();
        for queue in [&mut input, &mut output] {
            for pending in queue.pending.take_if(|_| true) {
                let bytes = pending.operation.transferred();
                self.complete(pending, STATUS_CANCELLED, bytes);
            }
            (queue.ready, queue.stays_ready, queue.end) = (true, false, End::None);
        }
        self.selected.renew();
        Some(replaced)
    }

    /// Afterwards the descriptor is not used.
    pub(in crate::winsock) fn leave(&self) {
        self.input.lock().closed = true;
        self.output.lock().closed = true;
        self.selected.leave(&self.file);
        drop(self.registration.lock().take());
    }

    /// Ends all requests.
    pub(in crate::winsock) fn abort(&self) {
        self.cancel_if(|_| true);
        self.file.cancel_all();
    }
}

impl Source for Driver {
    fn ready(&self) {
        unreachable!("sockets are asked what they are ready for");
    }

    fn events(&self) -> u32 {
        let room = if self.awaits_room.load(Ordering::Relaxed) { ROOM } else { 0 };
        ARRIVED | room | libc::EPOLLRDHUP as u32 | libc::EPOLLET as u32
    }

    fn ready_for(&self, events: u32) {
        for (direction, relevant) in [(Direction::In, ARRIVED | ENDED), (Direction::Out, ROOM | ENDED)] {
            if events & relevant != 0 {
                let mut queue = self.queue(direction).lock();
                queue.ready = true;
                queue.stays_ready |= events & relevant & STAYS_READY != 0;
                self.run(&mut queue);
            }
        }
        self.selected.look(self.fd, events & ARRIVED != 0);
    }
}

impl Canceller for Driver {
    fn cancel(&self, scope: CancelScope) -> usize {
        let own = self.cancel_if(|pending| pending.of_listener.is_none() && pending.request.is_in(scope));
        let connections = self.accepted.lock().living();
        let of_connections = connections.iter().filter_map(|accepted| accepted.upgrade()).map(|connection| {
            connection.cancel_if(|pending| pending.of_listener.is_some() && pending.request.is_in(scope))
        });
        own + of_connections.sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
