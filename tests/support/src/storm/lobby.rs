//! A listener that several threads use at once: each asks for a connection request, and gets any one's. The private data say
//! whose it is, and who has asked there finds the end that got it.

use super::end::End;
use super::parts::{File, Held};
use crate::client;
use crate::com::{Adapter, Com, Listener};
use crate::library::CancelIoEx;
use crate::waits::Waits;
use crate::watched::{Completed, LIMIT, Watched, Way};
use ndcompat::{SockAddr, Status};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::{Arc, Condvar, Mutex};

/// A shared listener.
pub struct Lobby {
    listener: Held<Listener>,
    /// Where it listens.
    pub address: SockAddr,
    file: File,
    /// The ends that have got a connection request, by the name of the end that had asked.
    met: Mutex<HashMap<u32, End>>,
    came: Condvar,
}

impl Lobby {
    /// A listener on a file that notifies in this way.
    pub fn new(adapter: &Com<Adapter>, waits: &Waits<'_>, way: Way) -> Lobby {
        let file = File(client::file(adapter), way);
        waits.ports().bind(file.0, way);
        let (listener, address) = client::listen_on(adapter, file.0);
        let listener = Held::new(Ok(listener));
        Lobby { listener, address, file, met: Mutex::default(), came: Condvar::new() }
    }

    /// `GetConnectionRequest` for `end`.
    pub fn ask(&self, end: &End, completed: &Mutex<Completed>) -> Arc<Watched> {
        let request = Watched::new("GetConnectionRequest", self.file.0, self.file.1);
        // SAFETY: the request is watched to its end.
        let status = unsafe { self.listener.get_connection_request(end.connector.as_ptr(), request.ptr()) };
        assert_eq!(status, Status::PENDING, "GetConnectionRequest");
        completed.lock().unwrap().add(request.clone());
        request
    }

    /// Waits until `end` has a connection request. If others cancel that, it asks again.
    pub fn wait(&self, end: &End, mut asked: Arc<Watched>, waits: &Waits<'_>, completed: &Mutex<Completed>) {
        loop {
            match waits.wait(&asked, Some(&*self.listener)) {
                Status::SUCCESS => return,
                status => assert_eq!(status, Status::CANCELED, "GetConnectionRequest"),
            }
            asked = self.ask(end, completed);
        }
    }

    /// Cancels what all threads ask for.
    pub fn cancel(&self, whole_file: bool) {
        // SAFETY: the file is open; NULL means all requests.
        unsafe {
            match whole_file {
                true => drop(CancelIoEx(self.file.0, null_mut())),
                false => assert_eq!(self.listener.cancel_overlapped_requests(), Status::SUCCESS),
            }
        }
    }

    /// Gives `got`, which has a connection request, to the thread whose end has asked for it; returns the end that `name`
    /// has asked.
    pub fn exchange(&self, got: End, name: u32) -> End {
        let asker = got.asker();
        let mut met = self.met.lock().unwrap();
        assert!(met.insert(asker, got).is_none(), "two connection requests of {asker}");
        self.came.notify_all();
        loop {
            if let Some(end) = met.remove(&name) {
                return end;
            }
            let (guard, late) = self.came.wait_timeout(met, LIMIT).unwrap();
            assert!(!late.timed_out(), "the connection request of {name} does not come");
            met = guard;
        }
    }
}

impl Drop for Lobby {
    fn drop(&mut self) {
        drop(self.listener.take());
        assert!(
            std::thread::panicking() || self.met.get_mut().unwrap().is_empty(),
            "a connection request of nobody's"
        );
    }
}
