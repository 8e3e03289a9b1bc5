//! A call that lasts as long as a test wants, and threads that wait for something at once.

use crate::io::sys::{is_asleep, thread_id};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

pub(crate) struct HeldCall {
    begun: mpsc::Receiver<()>,
    end: mpsc::Sender<()>,
    ended: Arc<AtomicBool>,
}

impl HeldCall {
    /// With the call itself.
    pub(crate) fn new() -> (HeldCall, impl Fn() + Send + Sync) {
        let (begin, begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel();
        let (ended, may_end) = (Arc::new(AtomicBool::new(false)), Mutex::new(may_end));
        let says = ended.clone();
        let call = move || {
            begin.send(()).unwrap();
            may_end.lock().unwrap().recv().unwrap();
            says.store(true, Ordering::SeqCst);
        };
        (HeldCall { begun, end, ended }, call)
    }

    /// Runs `cancel` while the call is being made, which ends once `cancel` sleeps. Fails if `cancel` returns before; returns its result.
    pub(crate) fn ends_before(self, cancel: impl FnOnce() -> bool + Send) -> bool {
        self.begun.recv().unwrap();
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let ended = &self.ended;
            let cancels = scope.spawn(move || {
                tell.send(thread_id()).unwrap();
                (cancel(), ended.load(Ordering::SeqCst))
            });
            let number = told.recv().unwrap();
            while !cancels.is_finished() && !is_asleep(number) {
                thread::yield_now();
            }
            self.end.send(()).unwrap();
            let (cancelled, in_order) = cancels.join().unwrap();
            assert!(in_order, "it returns while the call is being made");
            cancelled
        })
    }

    /// Runs `set` on two threads while the call is being made, which ends once both sleep.
    pub(crate) fn ends_before_two(self, set: impl Fn() + Sync) {
        self.begun.recv().unwrap();
        on_two_threads(set, || self.end.send(()).unwrap());
    }
}

/// Runs `body` on two threads, and `wake` once both sleep.
pub(crate) fn on_two_threads(body: impl Fn() + Sync, wake: impl FnOnce()) {
    let (tell, told) = mpsc::channel();
    let body = &body;
    thread::scope(|scope| {
        for tell in [tell.clone(), tell] {
            scope.spawn(move || {
                tell.send(thread_id()).unwrap();
                body();
            });
        }
        let numbers = [told.recv().unwrap(), told.recv().unwrap()];
        // One that has ended counts as asleep.
        while !numbers.into_iter().all(is_asleep) {
            thread::yield_now();
        }
        wake();
    });
}
