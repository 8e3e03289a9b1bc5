//! Look-ups of `GetAddrInfoEx` that go on after the call, each on a thread of its own: the C library's cannot be interrupted. One that
//! is cancelled, or too late, ends at once for the program; what it finds then is dropped.

use super::Chain;
use crate::arguments::{InOut, Out};
use crate::boundary::guard;
use crate::error::*;
use crate::io::alarm::{self, Alarm};
use crate::io::signal::Signal;
use crate::io::threads::{outside, spawn};
use crate::io::{Overlapped, STATUS_PENDING, pool};
use crate::object::{Object, RawHandle, callbacks, handle};
use crate::text::Unit;
use parking_lot::Mutex;
use std::mem::offset_of;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// `LPLOOKUPSERVICE_COMPLETION_ROUTINE`.
pub type LookupRoutine = unsafe extern "C" fn(u32, u32, *mut Overlapped);

/// How the program is told of the end.
enum Notice {
    Event(Option<Arc<Signal>>),
    Routine(LookupRoutine),
}

/// A look-up that the program has not been told the end of.
struct Open {
    notice: Notice,
    /// For `GetAddrInfoExCancel`.
    handle: RawHandle,
    alarm: Option<Alarm>,
}

struct Pending {
    /// The address of the program's `OVERLAPPED`.
    overlapped: usize,
    /// Whoever takes it completes the look-up.
    open: Mutex<Option<Open>>,
}

impl Pending {
    fn overlapped(&self) -> *mut Overlapped {
        with_exposed_provenance_mut(self.overlapped)
    }

    /// The end, if it has not come before: `deliver` writes the result, and `run` calls the program's routine. Whether it was the end.
    fn end(&self, code: u32, deliver: impl FnOnce(), run: impl FnOnce(pool::Job)) -> bool {
        let Some(open) = self.open.lock().take() else { return false };
        if let Some(alarm) = open.alarm {
            alarm::cancel(alarm);
        }
        callbacks::close_if(open.handle, (&raw const *self).cast());
        deliver();
        // SAFETY: the program keeps the OVERLAPPED until the look-up has ended, which it does here.
        let overlapped = unsafe { &*self.overlapped() };
        overlapped.internal_high.store(0, Ordering::Relaxed);
        overlapped.internal.store(code as usize, Ordering::Release);
        match open.notice {
            Notice::Event(event) => event.iter().for_each(|event| event.set()),
            Notice::Routine(routine) => {
                let overlapped = self.overlapped;
                // SAFETY: the program's routine, with its OVERLAPPED.
                run(Box::new(move || unsafe { routine(code, 0, with_exposed_provenance_mut(overlapped)) }));
            }
        }
        true
    }

    /// An end that is not of the look-up's making. The threads of callbacks run, so that there is one for the routine.
    fn end_early(&self, code: u32) -> bool {
        self.end(code, || (), |job| _ = pool::run(job))
    }
}

/// Begins a look-up; `cancel` gets a handle that is good until the end.
///
/// # Safety
/// `overlapped` and what `result` points to stay valid until the end. The routine may be called on any thread.
pub(super) unsafe fn begin<T: Unit + 'static>(
    overlapped: *mut Overlapped,
    routine: Option<LookupRoutine>,
    cancel: Out<'_, RawHandle>,
    timeout: Option<Duration>,
    result: *mut *mut super::AddrInfoEx<T>,
    look_up: impl FnOnce() -> Result<Chain<T>, u32> + Send + 'static,
) -> Result<(), u32> {
    // SAFETY: valid, as the caller promises.
    let event = unsafe { (*overlapped).event };
    let notice = match routine {
        Some(_) if event != RawHandle::NULL => return Err(WSAEINVAL),
        Some(routine) => Notice::Routine(routine),
        None if event == RawHandle::NULL => Notice::Event(None),
        None => match handle::get(event) {
            Some(Object::Event(event)) => Notice::Event(Some(event)),
            _ => return Err(WSA_INVALID_HANDLE),
        },
    };
    callbacks::start_timed_threads()?;
    if let Notice::Event(Some(event)) = &notice {
        event.reset();
    }
    let result = result.expose_provenance();
    // SAFETY: valid, as the caller promises, and used by nobody else yet.
    unsafe {
        overlapped.wrapping_byte_add(offset_of!(Overlapped, offset)).cast::<u64>().write(result as u64)
    };
    // SAFETY: valid, as the caller promises.
    unsafe { (*overlapped).internal.store(STATUS_PENDING as usize, Ordering::Relaxed) };
    let pending = Arc::new(Pending { overlapped: overlapped.expose_provenance(), open: Mutex::default() });
    let handle = if cancel.is_null() { RawHandle::NULL } else { callbacks::open(pending.clone())? };
    *pending.open.lock() = Some(Open { notice, handle, alarm: None });
    let looking = pending.clone();
    let work = move || {
        let found = outside(look_up);
        let (code, chain) = match found {
            Ok(chain) => (0, chain),
            Err(code) => (code, Chain::EMPTY),
        };
        let place = with_exposed_provenance_mut::<*mut super::AddrInfoEx<T>>(result);
        // SAFETY: the program keeps the place of the result until the end.
        looking.end(code, || unsafe { place.write_unaligned(chain.into_raw()) }, outside);
    };
    if spawn("ndcompat-names", work).is_err() {
        callbacks::close_if(handle, Arc::as_ptr(&pending).cast());
        return Err(WSA_NOT_ENOUGH_MEMORY);
    }
    cancel.put(handle);
    if let Some(timeout) = timeout.and_then(|timeout| Instant::now().checked_add(timeout)) {
        let mut open = pending.open.lock();
        if let Some(open) = open.as_mut() {
            let pending = pending.clone();
            open.alarm = alarm::set(timeout, move || _ = pending.end_early(WSAETIMEDOUT));
        }
    }
    Ok(())
}

/// `GetAddrInfoExCancel`: the look-up ends with `WSA_E_CANCELLED`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetAddrInfoExCancel(handle: InOut<'_, RawHandle>) -> i32 {
    guard(WSA_INVALID_HANDLE as i32, || {
        let pending = callbacks::get::<Pending>(handle.read().unwrap_or(RawHandle::NULL));
        match pending {
            Ok(pending) if pending.end_early(WSA_E_CANCELLED) => 0,
            _ => {
                set_last_error(WSA_INVALID_HANDLE);
                WSA_INVALID_HANDLE as i32
            }
        }
    })
}

/// `GetAddrInfoExOverlappedResult`: what the look-up has ended with, `WSAEINPROGRESS` before.
///
/// # Safety
/// `overlapped` is NULL or that of a look-up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetAddrInfoExOverlappedResult(overlapped: *const Overlapped) -> i32 {
    // SAFETY: NULL or valid, as this function asks.
    let Some(overlapped) = (unsafe { overlapped.as_ref() }) else {
        set_last_error(WSAEINVAL);
        return WSAEINVAL as i32;
    };
    match overlapped.internal.load(Ordering::Acquire) as i32 {
        0 => 0,
        code => {
            let code = if code == STATUS_PENDING { WSAEINPROGRESS as i32 } else { code };
            set_last_error(code as u32);
            code
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::event::{ndw_CreateEventA, ndw_SetEvent};
    use crate::api::handle::close_handle;
    use crate::api::wait::ndw_WaitForSingleObject;
    use crate::arguments::Text;
    use std::ptr::{null, null_mut};
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::{Receiver, channel};

    /// A request, what its routine was told, and the event that it sets.
    #[repr(C)]
    struct Query {
        overlapped: Overlapped,
        error: AtomicU32,
        called: RawHandle,
    }

    impl Query {
        fn new() -> Query {
            let called = ndw_CreateEventA(null(), 0, 0, Text::NULL);
            Query { overlapped: Overlapped::default(), error: AtomicU32::new(u32::MAX), called }
        }

        /// Waits for the routine; the error that it was told, and that of the request.
        fn end(&self) -> (u32, u32) {
            assert_eq!(ndw_WaitForSingleObject(self.called, u32::MAX), 0);
            // SAFETY: this query's own request.
            let result = unsafe { ndw_GetAddrInfoExOverlappedResult(&self.overlapped) };
            (self.error.load(Ordering::Relaxed), result as u32)
        }
    }

    impl Drop for Query {
        fn drop(&mut self) {
            close_handle(self.called);
        }
    }

    unsafe extern "C" fn note(error: u32, bytes: u32, overlapped: *mut Overlapped) {
        // SAFETY: the first field of a query, which waits for this.
        let query = unsafe { &*overlapped.cast::<Query>() };
        query.error.store(error + bytes, Ordering::Relaxed);
        ndw_SetEvent(query.called);
    }

    /// A look-up that lasts until something is sent, and finds nothing.
    fn slow(until: Receiver<()>) -> impl FnOnce() -> Result<Chain<u8>, u32> {
        move || until.recv().map(|()| Chain::EMPTY).map_err(|_| WSAHOST_NOT_FOUND)
    }

    #[test]
    fn a_routine_is_told_what_a_look_up_has_ended_with() {
        for (answer, expected) in [(true, 0), (false, WSAHOST_NOT_FOUND)] {
            let (send, until) = channel();
            let (mut query, mut list) = (Query::new(), null_mut::<super::super::AddrInfoEx<u8>>());
            let overlapped = (&raw mut query).cast();
            // SAFETY: the query and the list stay until the routine was called.
            unsafe { begin(overlapped, Some(note), Out::NULL, None, &mut list, slow(until)) }.unwrap();
            // SAFETY: that of the query.
            assert_eq!(unsafe { ndw_GetAddrInfoExOverlappedResult(overlapped) }, WSAEINPROGRESS as i32);
            if answer {
                send.send(()).unwrap();
            }
            drop(send);
            assert_eq!(query.end(), (expected, expected));
        }
    }

    #[test]
    fn a_look_up_that_is_cancelled_or_too_late_ends_before_the_answer_comes() {
        for cancels in [true, false] {
            let (send, until) = channel();
            let (mut query, mut handle) = (Query::new(), RawHandle::NULL);
            let mut list = null_mut::<super::super::AddrInfoEx<u8>>().wrapping_add(1);
            let timeout = (!cancels).then_some(Duration::from_millis(1));
            let (overlapped, place) = ((&raw mut query).cast(), &raw mut list);
            let cancel = Out::from(&mut handle);
            // SAFETY: the query and the list stay until the routine was called.
            unsafe { begin(overlapped, Some(note), cancel, timeout, place, slow(until)) }.unwrap();
            if cancels {
                assert_eq!(ndw_GetAddrInfoExCancel(InOut::from(&mut handle)), 0);
            }
            let code = if cancels { WSA_E_CANCELLED } else { WSAETIMEDOUT };
            assert_eq!(query.end(), (code, code));
            let again = ndw_GetAddrInfoExCancel(InOut::from(&mut handle));
            assert_eq!((again, last_error()), (WSA_INVALID_HANDLE as i32, WSA_INVALID_HANDLE));
            // The answer is dropped. Its thread has the sender's other end until then.
            send.send(()).unwrap();
            assert_eq!(list.addr(), size_of::<super::super::AddrInfoEx<u8>>());
        }
    }
}
