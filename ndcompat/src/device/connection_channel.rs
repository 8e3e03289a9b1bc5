//! The rdma_cm event channel of an overlapped file, and the handlers of its events.

use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::sync::timer::Timer;
use crate::verbs::{Event, EventChannel, Library};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};
use win32::io::{File, Registration, Source};

/// A handler of the rdma_cm events of its ids.
pub(crate) trait ConnectionHandler: Send + Sync {
    /// Handles an event of one of its ids. A connection request carries a new id.
    fn event(&self, event: Event);

    /// Called when the time limit of [`ConnectionChannel::limit`] has passed for this id.
    fn timed_out(&self, id: Cookie);
}

/// The context of an rdma_cm id, which its events carry: the number of its handler, and the number of the id within the
/// handler.
///
/// Handler numbers are not reused. The number of the id tells events of an earlier id of the same handler from those of the
/// current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cookie(pub usize);

impl Cookie {
    /// The cookie of ids whose events have no handler.
    pub(crate) const NOBODY: Cookie = Cookie(0);
    /// How many low bits are the number of the id.
    const ID_BITS: u32 = u16::BITS;

    /// The cookie of the first id of a new handler.
    pub(crate) fn next() -> Cookie {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Cookie(NEXT.fetch_add(1, Ordering::Relaxed) << Cookie::ID_BITS)
    }

    /// The cookie of id number `id` of the same handler.
    pub(crate) fn numbered(self, id: u16) -> Cookie {
        Cookie(self.handler() << Cookie::ID_BITS | usize::from(id))
    }

    fn handler(self) -> usize {
        self.0 >> Cookie::ID_BITS
    }

    /// The number of the connector or listener in the log.
    pub(crate) fn number(self) -> usize {
        self.handler()
    }
}

/// Handlers, sorted by number. A new one usually has the highest, and is added at the end.
#[derive(Default)]
struct Handlers(Vec<(usize, Weak<dyn ConnectionHandler>)>);

impl Handlers {
    fn find(&self, number: usize) -> std::result::Result<usize, usize> {
        self.0.binary_search_by_key(&number, |&(other, _)| other)
    }

    fn get(&self, number: usize) -> Option<&Weak<dyn ConnectionHandler>> {
        self.find(number).ok().map(|at| &self.0[at].1)
    }

    fn add(&mut self, number: usize, handler: Weak<dyn ConnectionHandler>) {
        // Another thread may have added a higher number already.
        let at = match self.0.last() {
            Some(&(last, _)) if last > number => self.find(number).unwrap_or_else(|at| at),
            _ => self.0.len(),
        };
        self.0.insert(at, (number, handler));
    }

    fn remove(&mut self, number: usize) -> Option<Weak<dyn ConnectionHandler>> {
        self.find(number).ok().map(|at| self.0.remove(at).1)
    }
}

/// The rdma_cm event channel of a file.
pub(crate) struct ConnectionChannel {
    channel: Arc<EventChannel>,
    handlers: Mutex<Handlers>,
    /// Held while an event is handled, as several threads may read events, and those of an id must be handled in order.
    order: Mutex<()>,
    file: Weak<File>,
    limits: OnceLock<(Arc<Limits>, Registration)>,
}

impl ConnectionChannel {
    /// Opens a channel, as a source of `file`.
    pub(crate) fn open(
        library: &'static Library,
        file: &Arc<File>,
    ) -> Result<(Arc<ConnectionChannel>, Registration)> {
        let channel = Arc::new(ConnectionChannel {
            channel: EventChannel::create(library).map_err(Status::of_host)?,
            handlers: Mutex::default(),
            order: Mutex::new(()),
            file: Arc::downgrade(file),
            limits: OnceLock::new(),
        });
        let source = file.add_source(channel.channel.fd(), channel.clone());
        Ok((channel, source.map_err(Status::of_host)?))
    }

    pub(crate) fn verbs(&self) -> &Arc<EventChannel> {
        &self.channel
    }

    /// Registers `handler` for the events of ids with the handler number of this cookie.
    pub(crate) fn add(&self, cookie: Cookie, handler: Weak<dyn ConnectionHandler>) {
        lock(&self.handlers).add(cookie.handler(), handler);
    }

    pub(crate) fn remove(&self, cookie: Cookie) {
        lock(&self.handlers).remove(cookie.handler());
    }

    /// Calls [`ConnectionHandler::timed_out`] of the id's handler after [`LIMIT`]. It is never cancelled.
    pub(crate) fn limit(self: &Arc<Self>, id: Cookie) -> io::Result<()> {
        if self.limits.get().is_none() {
            let file = self.file.upgrade().ok_or(io::ErrorKind::NotConnected)?;
            let limits = Arc::new(Limits {
                timer: Timer::new()?,
                running: Mutex::default(),
                channel: Arc::downgrade(self),
            });
            let registration = file.add_source(limits.timer.fd(), limits.clone())?;
            // If another thread was first, its timer is kept.
            drop(self.limits.set((limits, registration)));
        }
        let (limits, _) = self.limits.get().expect("set above");
        limits.add(id)
    }

    fn handler(&self, id: Cookie) -> Option<Arc<dyn ConnectionHandler>> {
        lock(&self.handlers).get(id.handler())?.upgrade()
    }
}

impl Source for ConnectionChannel {
    fn ready(&self) {
        let _in_order = lock(&self.order);
        // Reads one event only. With more, the descriptor stays readable; reading until there is none would cost another
        // system call at each event.
        if let Ok(Some(event)) = self.channel.event()
            && let Some(handler) = self.handler(Cookie(event.cookie()))
        {
            handler.event(event);
        }
    }
}

/// How long `rdma_connect` may take where it connects in one system call.
pub(crate) const LIMIT: Duration = Duration::from_secs(15);

/// The time limits that are running, oldest first, as all have the same length.
struct Limits {
    timer: Timer,
    running: Mutex<VecDeque<(Instant, Cookie)>>,
    channel: Weak<ConnectionChannel>,
}

impl Limits {
    fn add(&self, id: Cookie) -> io::Result<()> {
        let mut running = lock(&self.running);
        if running.is_empty() {
            self.timer.start(LIMIT)?;
        }
        running.push_back((Instant::now() + LIMIT, id));
        Ok(())
    }

    /// Takes the limits that have passed, and starts the timer for the next one.
    fn take_due(&self) -> Vec<Cookie> {
        let mut running = lock(&self.running);
        let now = Instant::now();
        let count = running.iter().take_while(|&&(end, _)| end <= now).count();
        let due = running.drain(..count).map(|(_, id)| id).collect();
        if let Some(&(next, _)) = running.front()
            && let Err(error) = self.timer.start(next - now)
        {
            tracing::warn!(target: "ndcompat::connection", %error, "a limit cannot be set");
        }
        due
    }
}

impl Source for Limits {
    fn ready(&self) {
        let Some(channel) = self.channel.upgrade() else { return };
        self.timer.clear();
        for id in self.take_due() {
            if let Some(handler) = channel.handler(id) {
                handler.timed_out(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl ConnectionHandler for Nobody {
        fn event(&self, _event: Event) {}
        fn timed_out(&self, _id: Cookie) {}
    }

    #[test]
    fn handlers_are_found_whatever_their_order() {
        let mut handlers = Handlers::default();
        for cookie in [3, 7, 5, 1, 9] {
            handlers.add(cookie, Weak::<Nobody>::new());
        }
        assert!(handlers.remove(5).is_some() && handlers.remove(5).is_none());
        let found: Vec<_> = (0..12).filter(|&cookie| handlers.get(cookie).is_some()).collect();
        assert_eq!(found, [1, 3, 7, 9]);
    }

    #[test]
    fn cookies_name_a_handler_and_one_of_its_ids() {
        let (first, second) = (Cookie::next(), Cookie::next());
        assert_ne!(first.handler(), second.handler());
        assert_ne!(first.handler(), Cookie::NOBODY.handler());
        let last = second.numbered(u16::MAX);
        assert_eq!(last.handler(), second.handler());
        assert_ne!(last, second);
        assert_eq!(last.numbered(0), second);
    }
}
