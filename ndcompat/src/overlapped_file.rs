//! An overlapped file as one adapter uses it: where its objects' events arrive.

use crate::adapter::Adapter;
use crate::status::{Result, Status};
use crate::verbs::{Event, EventChannel};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use win32::io::{File, Registration, Source};

/// A file and the adapter whose objects run their requests on it.
pub(crate) struct AdapterFile {
    file: Arc<File>,
    adapter: Arc<Adapter>,
    connections: OnceLock<(Arc<ConnectionChannel>, Registration)>,
    _adapter_events: [Registration; 2],
}

/// Takes the connection events of one id.
pub(crate) trait ConnectionHandler: Send + Sync {
    /// Something happened to the id. A connection request carries its own id.
    fn event(&self, event: Event);
}

/// Handlers by their cookies, in order. New ones have the highest cookies, and so are added at the end.
#[derive(Default)]
struct Handlers(Vec<(usize, Weak<dyn ConnectionHandler>)>);

impl Handlers {
    fn find(&self, cookie: usize) -> std::result::Result<usize, usize> {
        self.0.binary_search_by_key(&cookie, |&(other, _)| other)
    }

    fn get(&self, cookie: usize) -> Option<&Weak<dyn ConnectionHandler>> {
        self.find(cookie).ok().map(|at| &self.0[at].1)
    }

    fn add(&mut self, cookie: usize, handler: Weak<dyn ConnectionHandler>) {
        // Another thread's may have been faster.
        let at = match self.0.last() {
            Some(&(last, _)) if last > cookie => self.find(cookie).unwrap_or_else(|at| at),
            _ => self.0.len(),
        };
        self.0.insert(at, (cookie, handler));
    }

    fn remove(&mut self, cookie: usize) -> Option<Weak<dyn ConnectionHandler>> {
        self.find(cookie).ok().map(|at| self.0.remove(at).1)
    }
}

/// The connection-management channel of a file.
pub(crate) struct ConnectionChannel {
    channel: Arc<EventChannel>,
    handlers: Mutex<Handlers>,
    /// Events of one id must be handled in their order, whichever threads take them.
    order: Mutex<()>,
}

impl AdapterFile {
    pub(crate) fn new(adapter: &Arc<Adapter>, file: &Arc<File>) -> Result<Arc<AdapterFile>> {
        let adapter_events = adapter.add_events_to(file)?;
        Ok(Arc::new(AdapterFile {
            file: file.clone(),
            adapter: adapter.clone(),
            connections: OnceLock::new(),
            _adapter_events: adapter_events,
        }))
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// The channel that connectors and listeners of this file get their events from.
    pub(crate) fn connections(&self) -> Result<&Arc<ConnectionChannel>> {
        if self.connections.get().is_none() {
            let channel = Arc::new(ConnectionChannel {
                channel: EventChannel::create().map_err(Status::of_host)?,
                handlers: Mutex::default(),
                order: Mutex::new(()),
            });
            let source = self.file.add_source(channel.channel.fd(), channel.clone());
            let registration = source.map_err(Status::of_host)?;
            // Another thread may have been faster; its channel stays.
            drop(self.connections.set((channel, registration)));
        }
        let (channel, _) = self.connections.get().expect("set above");
        Ok(channel)
    }
}

/// Never reused, so that a late event cannot reach a stranger.
pub(crate) fn next_cookie() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl ConnectionChannel {
    pub(crate) fn verbs(&self) -> &Arc<EventChannel> {
        &self.channel
    }

    /// Lets `handler` have the events of ids with this cookie.
    pub(crate) fn add(&self, cookie: usize, handler: Weak<dyn ConnectionHandler>) {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner).add(cookie, handler);
    }

    pub(crate) fn remove(&self, cookie: usize) {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner).remove(cookie);
    }
}

impl Source for ConnectionChannel {
    fn ready(&self) {
        let _in_order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        // One event only: were there more, the descriptor would stay readable. To ask until there are none would cost
        // every event a system call.
        if let Ok(Some(event)) = self.channel.event() {
            let handler = {
                let handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
                handlers.get(event.cookie()).cloned()
            };
            if let Some(handler) = handler.and_then(|handler| handler.upgrade()) {
                handler.event(event);
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
}
