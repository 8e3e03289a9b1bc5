//! Loom's stand-ins for [`verbs::sync`](super::super::sync).

use std::sync::Arc;

use loom::sync::{Condvar, Mutex};

pub(super) use crate::socket::ModelLock as Lock;

/// As `std`'s; loom's has no constants.
macro_rules! per_thread {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = const { $value:expr };) => {
        loom::thread_local! {
            $(#[$attribute])*
            static $name: $type = $value;
        }
    };
}
pub(super) use per_thread as thread_local;

/// What a thread can wait for.
#[derive(Clone, Copy, Default)]
struct Readable {
    signal: bool,
    sockets: bool,
}

/// The kernel, as `poll(2)` shows it.
pub(super) struct Kernel {
    readable: Mutex<Readable>,
    changed: Condvar,
}

impl Kernel {
    pub(super) fn new() -> Arc<Kernel> {
        Arc::new(Kernel { readable: Mutex::new(Readable::default()), changed: Condvar::new() })
    }

    fn change(&self, change: impl FnOnce(&mut Readable)) {
        change(&mut self.readable.lock().unwrap());
        self.changed.notify_all();
    }

    /// The device's sockets become ready.
    pub(super) fn arrive(&self) {
        self.change(|readable| readable.sockets = true);
    }

    pub(super) fn is_signal_readable(&self) -> bool {
        self.readable.lock().unwrap().signal
    }

    /// Waits for the signal or for the sockets; whether this thread is the one that serves the sockets.
    pub(super) fn poll(&self) -> bool {
        let mut readable = self.readable.lock().unwrap();
        while !readable.signal && !readable.sockets {
            readable = self.changed.wait(readable).unwrap();
        }
        std::mem::take(&mut readable.sockets)
    }
}

pub(super) struct Signal(pub(super) Arc<Kernel>);

impl Signal {
    pub(super) fn set(&self) {
        self.0.change(|readable| readable.signal = true);
    }

    pub(super) fn clear(&self) {
        self.0.change(|readable| {
            assert!(readable.signal, "reading it would block");
            readable.signal = false;
        });
    }
}
