//! Thread-local slots: those of `TlsAlloc`, and those of `FlsAlloc`, with callbacks when the thread ends.
//!
//! Both exist until the last callback has returned, so callbacks may use them.

use super::sync::{AtomicU32, Mutex};
use super::tls_indices::TlsIndices;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

/// The number of TLS slots: `TLS_MINIMUM_AVAILABLE` and 1024 more.
pub(crate) const TLS_SLOTS: usize = 1088;
/// The number of FLS slots: `FLS_MAXIMUM_AVAILABLE`.
pub(crate) const FLS_SLOTS: usize = 4080;

/// `PFLS_CALLBACK_FUNCTION`.
pub(crate) type FlsCallback = unsafe extern "C" fn(*mut c_void);

static TLS: TlsIndices = TlsIndices {
    uses: {
        static USES: [AtomicU32; TLS_SLOTS] = [const { AtomicU32::new(0) }; TLS_SLOTS];
        &USES
    },
    allocation: {
        static ALLOCATION: Mutex<()> = Mutex::new(());
        &ALLOCATION
    },
};

static FLS: Mutex<Fls> = Mutex::new(Fls { slots: Vec::new(), threads: Vec::new() });

struct Fls {
    /// The slots up to the last that was ever in use, and their callbacks.
    slots: Vec<Option<Option<FlsCallback>>>,
    /// The values of all threads that have any.
    threads: Vec<Arc<FlsValues>>,
}

/// The values of one thread. Locked after [`FLS`].
#[derive(Default)]
struct FlsValues(Mutex<Vec<usize>>);

/// One thread's slots.
#[derive(Default)]
struct Slots {
    /// The values, each with the use of its slot.
    tls: Vec<(u32, usize)>,
    fls: Option<Arc<FlsValues>>,
}

/// Frees them when the thread ends.
struct Guard;

thread_local! {
    /// NULL before the first use, and again at the end of the thread. Without a destructor, so that it can be used until then.
    static SLOTS: Cell<*mut Slots> = const { Cell::new(null_mut()) };
    static GUARD: Guard = const { Guard };
}

impl Drop for Guard {
    fn drop(&mut self) {
        let values = with(false, |slots| slots.fls.clone()).flatten();
        if let Some(values) = values {
            // A callback may set values again. As on Windows, the rounds are limited.
            for _ in 0..4 {
                let last = take_values(&values);
                if last.is_empty() {
                    break;
                }
                last.into_iter().for_each(|(callback, value)| call(callback, value));
            }
            FLS.lock().threads.retain(|other| !Arc::ptr_eq(other, &values));
        }
        let slots = SLOTS.replace(null_mut());
        if !slots.is_null() {
            // SAFETY: made by `Box::into_raw` in `with`, and nobody else has it any more.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}

/// Runs `body` with the calling thread's slots, which are created if necessary. `None` if there are none.
fn with<R>(make: bool, body: impl FnOnce(&mut Slots) -> R) -> Option<R> {
    let mut slots = SLOTS.get();
    if slots.is_null() {
        // A thread that is ending gets no new slots.
        if !make || GUARD.try_with(|_| ()).is_err() {
            return None;
        }
        slots = Box::into_raw(Box::default());
        SLOTS.set(slots);
    }
    // SAFETY: the thread's own, and no `body` comes back here.
    Some(body(unsafe { &mut *slots }))
}

fn call(callback: FlsCallback, value: usize) {
    // SAFETY: who allocated the slot gave this function for its values, and this is one of them.
    unsafe { callback(std::ptr::with_exposed_provenance_mut(value)) };
}

/// Takes the values of a thread that have callbacks.
fn take_values(values: &FlsValues) -> Vec<(FlsCallback, usize)> {
    let fls = FLS.lock();
    let mut values = values.0.lock();
    let with_callback = |(index, value): (usize, &mut usize)| {
        let value = std::mem::take(value);
        let callback = fls.slots.get(index).copied().flatten().flatten()?;
        (value != 0).then_some((callback, value))
    };
    values.iter_mut().enumerate().filter_map(with_callback).collect()
}

/// Allocates a slot, whose value is NULL in all threads.
pub(crate) fn tls_alloc() -> Option<usize> {
    TLS.allocate()
}

/// Frees a slot; returns whether it was in use.
pub(crate) fn tls_free(index: usize) -> bool {
    TLS.free(index)
}

/// The value of a slot, NULL unless the thread has set it. `None` if the index is out of range.
#[inline]
pub(crate) fn tls_get(index: usize) -> Option<usize> {
    let uses = TLS.current(index)?;
    let value =
        with(false, |slots| slots.tls.get(index).filter(|(then, _)| *then == uses).map(|(_, value)| *value));
    Some(value.flatten().unwrap_or(0))
}

/// Sets the value of a slot. `None` if the index is out of range; `Some(false)` if the thread is ending.
pub(crate) fn tls_set(index: usize, value: usize) -> Option<bool> {
    let uses = TLS.current(index)?;
    let set = with(true, |slots| {
        if slots.tls.len() <= index {
            slots.tls.resize(index + 1, (0, 0));
        }
        slots.tls[index] = (uses, value);
    });
    Some(set.is_some())
}

/// Allocates a slot with a callback. The first is 1, as 0 is invalid.
pub(crate) fn fls_alloc(callback: Option<FlsCallback>) -> Option<usize> {
    let mut fls = FLS.lock();
    if fls.slots.is_empty() {
        fls.slots.push(Some(None));
    }
    match fls.slots.iter().position(Option::is_none) {
        Some(index) => {
            fls.slots[index] = Some(callback);
            Some(index)
        }
        None if fls.slots.len() < FLS_SLOTS => {
            fls.slots.push(Some(callback));
            Some(fls.slots.len() - 1)
        }
        None => None,
    }
}

fn fls_in_use(fls: &Fls, index: usize) -> bool {
    index != 0 && fls.slots.get(index).is_some_and(Option::is_some)
}

/// Frees a slot, and calls its callback for the values of all threads. Returns whether it was in use.
pub(crate) fn fls_free(index: usize) -> bool {
    let mut fls = FLS.lock();
    if !fls_in_use(&fls, index) {
        return false;
    }
    let callback = fls.slots[index].take().flatten();
    let mut last = VecDeque::new();
    for values in &fls.threads {
        let value = values.0.lock().get_mut(index).map_or(0, std::mem::take);
        if value != 0 {
            last.push_back(value);
        }
    }
    drop(fls);
    if let Some(callback) = callback {
        last.into_iter().for_each(|value| call(callback, value));
    }
    true
}

/// The value of a slot. `None` when it is not in use.
pub(crate) fn fls_get(index: usize) -> Option<usize> {
    if !fls_in_use(&FLS.lock(), index) {
        return None;
    }
    let value = with(false, |slots| slots.fls.as_ref()?.0.lock().get(index).copied());
    Some(value.flatten().unwrap_or(0))
}

/// Sets the value of a slot. `None` if it is not in use; `Some(false)` if the thread is ending.
pub(crate) fn fls_set(index: usize, value: usize) -> Option<bool> {
    let mut fls = FLS.lock();
    if !fls_in_use(&fls, index) {
        return None;
    }
    let set = with(true, |slots| {
        let values = slots.fls.get_or_insert_with(|| {
            let values = Arc::<FlsValues>::default();
            fls.threads.push(values.clone());
            values
        });
        let mut values = values.0.lock();
        if values.len() <= index {
            values.resize(index + 1, 0);
        }
        values[index] = value;
    });
    Some(set.is_some())
}
