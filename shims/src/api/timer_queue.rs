//! `CreateTimerQueueTimer` and related functions.

use super::registered_wait::{WT_EXECUTEONLYONCE, WaitOrTimerCallback};
use crate::boundary::{guard_bool, guard_handle};
use crate::error::*;
use crate::object::RawHandle;
use crate::object::callbacks::{self, Callbacks, Completion};
use crate::object::ticker::Ticker;
use parking_lot::Mutex;
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

#[derive(Default)]
struct TimerQueue(Mutex<Timers>);

#[derive(Default)]
struct Timers {
    /// By their handles.
    list: Vec<RawHandle>,
    /// The callbacks of deleted timers, of which some may still run.
    leaving: Vec<Arc<Callbacks>>,
}

impl Timers {
    fn delete(&mut self, timer: RawHandle, callbacks: &Arc<Callbacks>) {
        self.list.retain(|other| *other != timer);
        self.leaving.retain(|callbacks| !callbacks.is_idle());
        self.leaving.push(callbacks.clone());
    }
}

struct QueueTimer {
    queue: Arc<TimerQueue>,
    once: bool,
    ticker: Arc<Ticker>,
    callbacks: Arc<Callbacks>,
}

/// The default queue, for NULL.
static DEFAULT: LazyLock<Arc<TimerQueue>> = LazyLock::new(Arc::default);

fn queue(handle: RawHandle) -> Result<Arc<TimerQueue>, u32> {
    if handle == RawHandle::NULL { Ok(DEFAULT.clone()) } else { callbacks::get(handle) }
}

impl QueueTimer {
    fn set(&self, due: u32, period: u32) -> Result<(), u32> {
        let due = (due != u32::MAX)
            .then(|| Instant::now().checked_add(Duration::from_millis(due.into())))
            .flatten();
        let period = if self.once { 0 } else { period };
        let set = self.ticker.set_unless_over(due, Duration::from_millis(period.into()));
        if set { Ok(()) } else { Err(ERROR_NO_SYSTEM_RESOURCES) }
    }
}

/// Ends the timer; see [`Callbacks::complete`].
fn end(timer: RawHandle, completion: Completion) -> Result<(), u32> {
    let object = callbacks::get::<QueueTimer>(timer)?;
    object.ticker.cancel();
    // Before the handle is closed, so that who deletes the queue meanwhile finds one of the two.
    object.queue.0.lock().delete(timer, &object.callbacks);
    callbacks::take::<QueueTimer>(timer)?;
    object.callbacks.complete(completion)
}

/// `CreateTimerQueue`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreateTimerQueue() -> RawHandle {
    guard_handle(|| callbacks::open(Arc::<TimerQueue>::default()))
}

/// `CreateTimerQueueTimer`: times in milliseconds; with a period of 0 the callback is called once. It gets TRUE.
///
/// # Safety
/// `timer` must be valid for a write; the callback must be safe to call on any thread with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateTimerQueueTimer(
    timer: *mut RawHandle,
    queue_handle: RawHandle,
    callback: Option<WaitOrTimerCallback>,
    context: *mut c_void,
    due: u32,
    period: u32,
    flags: u32,
) -> i32 {
    guard_bool(|| {
        let callback = callback.filter(|_| !timer.is_null()).ok_or(ERROR_INVALID_PARAMETER)?;
        let queue = queue(queue_handle)?;
        callbacks::start_timed_threads()?;
        let (callbacks, context) = (Arc::<Callbacks>::default(), context.expose_provenance());
        let tick = {
            let callbacks = callbacks.clone();
            move || {
                // SAFETY: who created the timer promised that the callback may be called on any thread with this context.
                callbacks.submit(move || unsafe { callback(with_exposed_provenance_mut(context), 1) });
            }
        };
        let once = flags & WT_EXECUTEONLYONCE != 0;
        let object =
            Arc::new(QueueTimer { queue: queue.clone(), once, ticker: Ticker::new(tick), callbacks });
        let handle = callbacks::open(object.clone())?;
        queue.0.lock().list.push(handle);
        // SAFETY: not NULL, hence writable, as this function asks. Before the timer runs: the callback may want to know it.
        unsafe { timer.write(handle) };
        object.set(due, period)
    })
}

/// `ChangeTimerQueueTimer`. A timer without a period that has called is left alone, which is no error.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ChangeTimerQueueTimer(
    queue_handle: RawHandle,
    timer: RawHandle,
    due: u32,
    period: u32,
) -> i32 {
    guard_bool(|| {
        queue(queue_handle)?;
        callbacks::get::<QueueTimer>(timer)?.set(due, period)
    })
}

/// `DeleteTimerQueueTimer`: no callback starts any more. `ERROR_IO_PENDING` if one still runs: `completion` is an event to set
/// when it has returned, or `INVALID_HANDLE_VALUE` to wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_DeleteTimerQueueTimer(
    queue_handle: RawHandle,
    timer: RawHandle,
    completion: RawHandle,
) -> i32 {
    guard_bool(|| {
        queue(queue_handle)?;
        end(timer, Completion::of(completion)?)
    })
}

/// `DeleteTimerQueueEx`: the same for all timers of the queue.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_DeleteTimerQueueEx(queue_handle: RawHandle, completion: RawHandle) -> i32 {
    guard_bool(|| {
        let completion = Completion::of(completion)?;
        let queue = callbacks::take::<TimerQueue>(queue_handle)?;
        let Timers { list, mut leaving } = std::mem::take(&mut *queue.0.lock());
        for timer in list.into_iter().filter_map(|timer| callbacks::take::<QueueTimer>(timer).ok()) {
            timer.ticker.cancel();
            leaving.push(timer.callbacks.clone());
        }
        // Completes when the callbacks of all timers have returned.
        let all = Arc::<Callbacks>::default();
        if leaving.iter().any(|callbacks| !callbacks.is_idle()) {
            all.submit(move || leaving.iter().for_each(|callbacks| callbacks.wait()));
        }
        all.complete(completion)
    })
}

/// `DeleteTimerQueue`: as `DeleteTimerQueueEx` without `completion`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_DeleteTimerQueue(queue: RawHandle) -> i32 {
    ndw_DeleteTimerQueueEx(queue, RawHandle::NULL)
}
