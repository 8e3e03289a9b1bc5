//! Thread-local slots: those of `TlsAlloc`, and those of `FlsAlloc`, with callbacks when the thread ends.
//!
//! Both exist until the last callback has returned, so callbacks may use them. They are called when the routine of a thread has
//! returned, if the thread was created here; else at its end.

use super::sync::{AtomicU32, Mutex};
use super::tls_indices::TlsIndices;
use crate::io::thread_end::{Step, at_end};
use crate::io::threads::outside;
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

thread_local! {
    /// NULL before the first use, and again at the end of the thread. Without a destructor, so that it can be used until then.
    static SLOTS: Cell<*mut Slots> = const { Cell::new(null_mut()) };
}

/// Calls the callbacks for the values of the calling thread, which ends.
fn run_callbacks() {
    let Some(values) = existing(|slots| slots.fls.clone()).flatten() else { return };
    // A callback may set values again. As on Windows, the rounds are limited.
    for _ in 0..4 {
        let mut next = 0;
        while let Some((index, callback, value)) = take_value(&values, next) {
            call(callback, value);
            next = index + 1;
        }
        if next == 0 {
            break;
        }
    }
}

fn free_slots() {
    let slots = SLOTS.replace(null_mut());
    if slots.is_null() {
        return;
    }
    // SAFETY: made by `Box::into_raw` in `with`, and nobody else has it any more.
    let slots = unsafe { Box::from_raw(slots) };
    if let Some(values) = &slots.fls {
        FLS.lock().threads.retain(|other| !Arc::ptr_eq(other, values));
    }
}

/// Runs `body` with the calling thread's slots, if it has any.
fn existing<R>(body: impl FnOnce(&mut Slots) -> R) -> Option<R> {
    let slots = SLOTS.get();
    // SAFETY: NULL or the thread's own, and no `body` comes back here.
    unsafe { slots.as_mut() }.map(body)
}

/// As above; they are created if necessary.
fn with<R>(body: impl FnOnce(&mut Slots) -> R) -> R {
    if SLOTS.get().is_null() {
        SLOTS.set(Box::into_raw(Box::default()));
        at_end(Step::Memory, free_slots);
    }
    // SAFETY: the thread's own, and no `body` comes back here.
    body(unsafe { &mut *SLOTS.get() })
}

fn call(callback: FlsCallback, value: usize) {
    let value = std::ptr::with_exposed_provenance_mut(value);
    // SAFETY: who allocated the slot gave this function for its values, and this is one of them.
    outside(|| unsafe { callback(value) });
}

/// Takes the first of a thread's values from slot `from` on that has a callback. Returns its slot, too.
fn take_value(values: &FlsValues, from: usize) -> Option<(usize, FlsCallback, usize)> {
    let fls = FLS.lock();
    let mut values = values.0.lock();
    values.iter_mut().enumerate().skip(from).find_map(|(index, value)| {
        let callback = fls.slots.get(index).copied().flatten().flatten()?;
        (*value != 0).then(|| (index, callback, std::mem::take(value)))
    })
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
        existing(|slots| slots.tls.get(index).filter(|(then, _)| *then == uses).map(|(_, value)| *value));
    Some(value.flatten().unwrap_or(0))
}

/// Sets the value of a slot; false if the index is out of range.
pub(crate) fn tls_set(index: usize, value: usize) -> bool {
    let Some(uses) = TLS.current(index) else { return false };
    with(|slots| {
        if slots.tls.len() <= index {
            slots.tls.resize(index + 1, (0, 0));
        }
        slots.tls[index] = (uses, value);
    });
    true
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
    let value = existing(|slots| slots.fls.as_ref()?.0.lock().get(index).copied());
    Some(value.flatten().unwrap_or(0))
}

/// Sets the value of a slot; false if it is not in use.
pub(crate) fn fls_set(index: usize, value: usize) -> bool {
    let mut fls = FLS.lock();
    if !fls_in_use(&fls, index) {
        return false;
    }
    with(|slots| {
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
    drop(fls);
    if value != 0 {
        at_end(Step::Callbacks, run_callbacks);
    }
    true
}
