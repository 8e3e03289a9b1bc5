//! Calls and the close of a socket under loom: the same count, on top of its primitives.

#![allow(clippy::duplicate_mod, reason = "compiling the same file again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

#[path = "count.rs"]
mod count;
mod sync {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
}

use count::Count;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;

/// As the kernel has it: a call waits until the socket is shut down, and does not begin on one that is closed.
#[derive(Clone, Copy, PartialEq)]
enum Socket {
    Open,
    ShutDown,
    Closed,
}

struct Descriptor {
    count: Count,
    socket: Mutex<Socket>,
    changed: Condvar,
}

impl Descriptor {
    fn new() -> Arc<Descriptor> {
        let count = Count(sync::AtomicU32::new(0));
        Arc::new(Descriptor { count, socket: Mutex::new(Socket::Open), changed: Condvar::new() })
    }

    /// A call that waits for ever, but for the close of the socket.
    fn call(&self) {
        while !self.count.enter() {
            thread::yield_now();
        }
        let mut socket = self.socket.lock().unwrap();
        if *socket != Socket::Closed {
            while *socket == Socket::Open {
                socket = self.changed.wait(socket).unwrap();
            }
            assert!(*socket == Socket::ShutDown, "the descriptor was closed under a call");
            drop(socket);
            assert!(self.count.is_closing(), "the call cannot tell why it was woken");
        }
        self.count.leave();
    }

    fn close(&self) {
        while !self.count.close() {
            thread::yield_now();
        }
        if *self.socket.lock().unwrap() == Socket::Closed {
            return self.count.open();
        }
        if self.count.has_calls() {
            *self.socket.lock().unwrap() = Socket::ShutDown;
            self.changed.notify_all();
            while self.count.has_calls() {
                thread::yield_now();
            }
        }
        let former = std::mem::replace(&mut *self.socket.lock().unwrap(), Socket::Closed);
        assert!(former != Socket::Closed, "it is closed twice");
        self.count.open();
    }
}

/// Each of them in a thread of its own.
fn at_once(run: [fn(&Descriptor); 2]) {
    loom::model(move || {
        let descriptor = Descriptor::new();
        let threads = run.map(|run| {
            let descriptor = descriptor.clone();
            thread::spawn(move || run(&descriptor))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(!descriptor.count.has_calls() && !descriptor.count.is_closing());
    });
}

#[test]
fn a_call_ends_with_the_socket_or_never_begins() {
    at_once([Descriptor::call, Descriptor::close]);
}

#[test]
fn of_two_threads_that_close_a_socket_one_does() {
    at_once([Descriptor::close, Descriptor::close]);
}
