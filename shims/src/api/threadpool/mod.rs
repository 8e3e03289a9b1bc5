//! Thread pools: work, timers, waits, I/O, cleanup groups.
//!
//! The pointers that programs hold to these objects are handles of the table, so that closed ones are detected.

mod at_return;
mod group;
mod io;
mod timer;
mod wait;
mod work;

pub use at_return::*;
pub use group::*;
pub use io::*;
pub use timer::*;
pub use wait::*;
pub use work::*;

use crate::arguments::In;
use crate::boundary::{guard, guard_bool, guard_handle};
use crate::error::*;
use crate::io::pool;
use crate::object::RawHandle;
use crate::object::callbacks::{self, Callbacks};
use crate::time::FileTime;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `TP_CALLBACK_ENVIRON`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Environment {
    version: u32,
    pool: RawHandle,
    group: RawHandle,
    cancelled: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    race_dll: *mut c_void,
    activation: *mut c_void,
    finalization: Option<unsafe extern "C" fn(*mut Instance, *mut c_void)>,
    flags: u32,
    priority: u32,
    size: u32,
}

const _: () = assert!(size_of::<Environment>() == 72);

/// `TP_CALLBACK_INSTANCE`: a running callback.
#[derive(Default)]
pub struct Instance {
    /// The actions when it returns.
    at_return: Vec<Box<dyn FnOnce()>>,
}

/// A pool: a limit on concurrent callbacks, on threads that all pools share.
struct Pool(Mutex<Load>);

struct Load {
    most: usize,
    running: usize,
    backlog: VecDeque<pool::Job>,
}

impl Pool {
    fn run(self: &Arc<Self>, job: pool::Job) -> bool {
        {
            let mut load = self.0.lock();
            if load.running >= load.most {
                load.backlog.push_back(job);
                return true;
            }
            load.running += 1;
        }
        let owner = self.clone();
        let work = move || {
            let mut next = Some(job);
            while let Some(job) = next {
                job();
                let mut load = owner.0.lock();
                next = if load.running > load.most { None } else { load.backlog.pop_front() };
                if next.is_none() {
                    load.running -= 1;
                }
            }
        };
        let started = pool::run(Box::new(work)).is_ok();
        if !started {
            self.0.lock().running -= 1;
        }
        started
    }

    /// Sets the limit, and starts callbacks that it allows now.
    fn set_most(self: &Arc<Self>, most: usize) {
        let jobs = {
            let mut load = self.0.lock();
            load.most = most.max(1);
            let more = load.most.saturating_sub(load.running).min(load.backlog.len());
            load.backlog.drain(..more).collect::<Vec<_>>()
        };
        jobs.into_iter().for_each(|job| {
            self.run(job);
        });
    }
}

/// The common part of all objects.
struct Base {
    callbacks: Arc<Callbacks>,
    context: usize,
    pool: Option<Arc<Pool>>,
    cancelled: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    finalization: Option<unsafe extern "C" fn(*mut Instance, *mut c_void)>,
    /// Its group is closing it: only its close function still knows it.
    leaving: AtomicBool,
    /// It was closed, or is a callback without an object that has begun: the context may be gone.
    released: AtomicBool,
}

/// Objects of a cleanup group.
trait Member: Send + Sync {
    fn base(&self) -> &Base;
    /// Stops the source of callbacks.
    fn stop(&self) {}
    /// The same when its group closes it, which waits for what has begun, or cancels it.
    fn finish(&self, _cancel: bool) {
        self.stop();
    }
}

#[derive(Default)]
struct Group(Mutex<Vec<(RawHandle, Arc<dyn Member>)>>);

impl Group {
    /// Adds a member. Those that are over make room when the list is full.
    fn add(&self, handle: RawHandle, member: Arc<dyn Member>) {
        let mut members = self.0.lock();
        if members.len() == members.capacity() {
            members.retain(|(_, member)| !member.base().is_over());
            let more = members.len().max(4);
            members.reserve(more);
        }
        members.push((handle, member));
    }
}

impl Base {
    fn new(
        environment: In<'_, Environment>,
        context: *mut c_void,
    ) -> Result<(Base, Option<Arc<Group>>), u32> {
        callbacks::start_threads()?;
        let environment = environment.read();
        let named = |handle: RawHandle| (handle != RawHandle::NULL).then_some(handle);
        let pool =
            environment.and_then(|environment| named(environment.pool)).map(callbacks::get).transpose()?;
        let group =
            environment.and_then(|environment| named(environment.group)).map(callbacks::get).transpose()?;
        let base = Base {
            callbacks: Arc::default(),
            context: context.expose_provenance(),
            pool,
            cancelled: environment.and_then(|environment| environment.cancelled),
            finalization: environment.and_then(|environment| environment.finalization),
            leaving: AtomicBool::new(false),
            released: AtomicBool::new(false),
        };
        Ok((base, group))
    }

    fn context(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.context)
    }

    /// Queues a callback.
    fn submit(&self, call: impl FnOnce(*mut Instance, *mut c_void) + Send + 'static) {
        let (context, finalization) = (self.context, self.finalization);
        let call = move || {
            let mut instance = Instance::default();
            let context = with_exposed_provenance_mut(context);
            call(&mut instance, context);
            if let Some(finalization) = finalization {
                // SAFETY: the program's callback, of this type, with the context of the object.
                unsafe { finalization(&mut instance, context) };
            }
            instance.at_return.into_iter().for_each(|action| action());
        };
        let run = |job| match &self.pool {
            Some(pool) => pool.run(job),
            None => pool::run(job).is_ok(),
        };
        self.callbacks.submit_to(call, run);
    }

    /// Notes that the program has no use for it any more; false if it was noted before.
    fn release(&self) -> bool {
        !self.released.swap(true, Ordering::SeqCst)
    }

    /// Whether it is released, and its last callback has returned.
    fn is_over(&self) -> bool {
        self.released.load(Ordering::SeqCst) && self.callbacks.is_idle()
    }

    fn wait(&self, cancel: i32) {
        if cancel != 0 {
            self.callbacks.cancel();
        }
        self.callbacks.wait();
    }
}

/// Opens a handle to an object, and makes it a member of the group.
fn open<T: Member + Any>(object: Arc<T>, group: Option<Arc<Group>>) -> Result<RawHandle, u32> {
    let handle = callbacks::open(object.clone())?;
    if let Some(group) = group {
        group.add(handle, object);
    }
    Ok(handle)
}

/// The callbacks of an object. They get its handle, which is known only after the object was created.
struct Caller {
    base: Arc<Base>,
    handle: Arc<Mutex<RawHandle>>,
}

impl Caller {
    fn submit(&self, call: impl FnOnce(*mut Instance, *mut c_void, RawHandle) + Send + 'static) {
        let handle = *self.handle.lock();
        self.base.submit(move |instance, context| call(instance, context, handle));
    }
}

/// Opens a handle to the object that `make` creates with a caller of its callbacks.
fn create<T: Member + Any>(
    environment: In<'_, Environment>,
    context: *mut c_void,
    make: impl FnOnce(Arc<Base>, Caller) -> Result<T, u32>,
) -> RawHandle {
    guard_handle(|| {
        let (base, group) = Base::new(environment, context)?;
        let (base, name) = (Arc::new(base), Arc::new(Mutex::new(RawHandle::NULL)));
        let object = make(base.clone(), Caller { base, handle: name.clone() })?;
        let handle = open(Arc::new(object), group)?;
        *name.lock() = handle;
        Ok(handle)
    })
}

/// Runs `body` with the object, if there is one.
fn with<T: Any + Send + Sync>(handle: RawHandle, body: impl FnOnce(Arc<T>)) {
    guard((), || {
        if let Ok(object) = callbacks::get(handle) {
            body(object);
        }
    });
}

/// The object, unless its group is closing it.
fn member<T: Member + Any>(handle: RawHandle) -> Result<Arc<T>, u32> {
    let object = callbacks::get::<T>(handle)?;
    if object.base().leaving.load(Ordering::SeqCst) { Err(ERROR_INVALID_HANDLE) } else { Ok(object) }
}

/// Runs `body` with the object, unless its group is closing it.
fn with_member<T: Member + Any>(handle: RawHandle, body: impl FnOnce(Arc<T>)) {
    guard((), || {
        if let Ok(object) = member(handle) {
            body(object);
        }
    });
}

/// Closes the handle. Callbacks that are queued still run.
fn close<T: Member + Any>(handle: RawHandle) {
    guard((), || {
        if let Ok(object) = callbacks::take::<T>(handle) {
            object.stop();
            object.base().release();
        }
    });
}

/// `CreateThreadpool`: runs up to 500 callbacks at a time by default.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreateThreadpool(reserved: *mut c_void) -> RawHandle {
    guard_handle(|| {
        if !reserved.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let load = Load { most: 500, running: 0, backlog: VecDeque::new() };
        callbacks::open(Arc::new(Pool(Mutex::new(load))))
    })
}

/// `SetThreadpoolThreadMaximum`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadpoolThreadMaximum(pool: RawHandle, most: u32) {
    with::<Pool>(pool, |pool| pool.set_most(most as usize));
}

/// `SetThreadpoolThreadMinimum`: the number is ignored, as threads are started on demand.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadpoolThreadMinimum(pool: RawHandle, _least: u32) -> i32 {
    guard_bool(|| callbacks::get::<Pool>(pool).map(drop))
}

/// `CloseThreadpool`: objects that use the pool continue to work.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseThreadpool(pool: RawHandle) {
    guard((), || drop(callbacks::take::<Pool>(pool)));
}

/// `CallbackMayRunLong`: always TRUE, as threads are started on demand.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CallbackMayRunLong(_instance: *mut Instance) -> i32 {
    1
}

/// `PTP_WORK_CALLBACK`.
type WorkCallback = unsafe extern "C" fn(*mut Instance, *mut c_void, RawHandle);

/// A FILETIME as a number; negative times are relative.
fn time(time: In<'_, FileTime>) -> Option<i64> {
    time.read().map(|time| i64::from(time.high as i32) << 32 | i64::from(time.low))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bare(Base);

    impl Member for Bare {
        fn base(&self) -> &Base {
            &self.0
        }
    }

    #[test]
    fn members_of_a_cleanup_group_that_are_over_make_room() {
        let group = Group::default();
        for _ in 0..1_000 {
            let (base, _) = Base::new(In::NULL, std::ptr::null_mut()).unwrap();
            base.release();
            group.add(RawHandle::NULL, Arc::new(Bare(base)));
        }
        let capacity = group.0.lock().capacity();
        assert!(capacity <= 8, "{capacity}");
    }
}
