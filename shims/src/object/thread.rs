//! Thread objects; starting and ending threads.

use super::{Object, RawHandle, handle};
use crate::error::*;
use crate::io::apc::{Apc, Apcs};
use crate::io::signal::{Signal, wait_any};
use crate::io::sys::{Deadline, futex_wait, futex_wake, thread_id};
use crate::io::thread_end::{self, Step, at_end};
use crate::time::{FileTime, own_thread_times, system_time, thread_stat};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError, Weak};

/// A thread object.
pub(crate) struct Thread {
    /// The kernel's id of the thread; 0 until it runs.
    id: AtomicU32,
    /// The exit code, valid once it has ended; 0 for threads not created here.
    exit_code: AtomicU32,
    ended: Arc<Signal>,
    /// Set when the thread may run: `CREATE_SUSPENDED` delays that until `ResumeThread`.
    resumed: Arc<Signal>,
    /// The suspend count: 1 after `CREATE_SUSPENDED`, else 0.
    suspended: AtomicU32,
    /// Its asynchronous procedure calls; set once it runs.
    apcs: OnceLock<Arc<Apcs>>,
    /// Those that were queued before; `None` once it runs.
    early: Mutex<Option<Vec<Apc>>>,
    /// A handle that is closed when the thread ends, or NULL.
    own_handle: AtomicUsize,
    /// The name from `SetThreadDescription`.
    description: Mutex<String>,
    /// When it was created, if it was created here.
    created: Option<FileTime>,
    /// Creation, end, time in the kernel and in user mode, once it has ended.
    times: OnceLock<[FileTime; 4]>,
}

impl Thread {
    fn new(suspended: bool, created: Option<FileTime>) -> Arc<Thread> {
        Arc::new(Thread {
            id: AtomicU32::new(0),
            exit_code: AtomicU32::new(0),
            ended: Signal::new(false, false),
            resumed: Signal::new(false, !suspended),
            suspended: AtomicU32::new(suspended.into()),
            apcs: OnceLock::new(),
            early: Mutex::new(Some(Vec::new())),
            own_handle: AtomicUsize::new(0),
            description: Mutex::new(String::new()),
            created,
            times: OnceLock::new(),
        })
    }

    /// Set when the thread has ended.
    pub(super) fn ended(&self) -> &Arc<Signal> {
        &self.ended
    }

    /// The kernel's number of the thread.
    pub(crate) fn number(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// The exit code, if the thread has ended.
    pub(crate) fn exit_code(&self) -> Option<u32> {
        wait_any(std::slice::from_ref(&self.ended), Deadline::Now)?;
        Some(self.exit_code.load(Ordering::Acquire))
    }

    /// Resumes a thread that was created suspended. Returns the previous suspend count.
    pub(crate) fn resume(&self) -> u32 {
        let before = self.suspended.swap(0, Ordering::AcqRel);
        self.resumed.set();
        before
    }

    /// When it was created, if it was created here.
    pub(crate) fn created(&self) -> Option<FileTime> {
        self.created
    }

    /// Creation, end, time in the kernel and in user mode of a thread that has ended.
    pub(crate) fn final_times(&self) -> Option<[FileTime; 4]> {
        self.times.get().copied()
    }

    /// Keeps the times of this thread, the calling one, which ends.
    fn keep_times(&self) {
        let ended = system_time();
        let created =
            self.created.or_else(|| Some(thread_stat(Some(self.number()))?.creation())).unwrap_or(ended);
        let [kernel, user] = own_thread_times();
        let _ = self.times.set([created, ended, kernel, user]);
    }

    /// It runs, and has a number.
    fn take_number(self: &Arc<Thread>, number: u32) {
        if self.id.swap(number, Ordering::Relaxed) != number {
            threads().insert(number, Arc::downgrade(self));
        }
    }

    /// Its description, empty if there is none.
    pub(crate) fn description(&self) -> String {
        self.description.lock().clone()
    }

    /// Sets its description.
    pub(crate) fn describe(&self, description: String) {
        *self.description.lock() = description;
    }

    /// Queues a call for the thread's next alertable wait. False if it has ended.
    pub(crate) fn queue_apc(&self, apc: Apc) -> bool {
        if let Some(early) = self.early.lock().as_mut() {
            early.push(apc);
            return true;
        }
        self.apcs.get().is_some_and(|apcs| apcs.queue(apc))
    }

    /// The calling thread takes its calls from here on.
    fn take_calls(&self) {
        let apcs = Apcs::current();
        let mut early = self.early.lock();
        early.take().into_iter().flatten().for_each(|apc| _ = apcs.queue(apc));
        let _ = self.apcs.set(apcs);
    }
}

/// The calling thread ends.
fn end() {
    let Some(thread) = OWN.with(|own| own.borrow_mut().take()) else { return };
    threads().remove(&thread.number());
    if let Some(apcs) = thread.apcs.get() {
        apcs.close();
    }
    let handle = thread.own_handle.load(Ordering::Relaxed);
    if handle != 0 {
        drop(handle::close(RawHandle(handle)));
    }
    thread.keep_times();
    thread.ended.set();
}

/// Running threads with an object, by id. The lock is `std`'s: a thread that begins may touch no thread-local with a destructor.
fn threads() -> MutexGuard<'static, BTreeMap<u32, Weak<Thread>>> {
    static THREADS: std::sync::Mutex<BTreeMap<u32, Weak<Thread>>> = std::sync::Mutex::new(BTreeMap::new());
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread with this id: one that was created here, or has called a function that needs its object.
pub(crate) fn of_number(number: u32) -> Option<Arc<Thread>> {
    threads().get(&number)?.upgrade()
}

thread_local! {
    /// The calling thread's object, until it ends.
    static OWN: ManuallyDrop<RefCell<Option<Arc<Thread>>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

fn own(make: impl FnOnce() -> Arc<Thread>) -> Arc<Thread> {
    if let Some(thread) = OWN.with(|own| own.borrow().clone()) {
        return thread;
    }
    let thread = make();
    thread.take_number(thread_id());
    thread.take_calls();
    OWN.with(|own| *own.borrow_mut() = Some(thread.clone()));
    at_end(Step::Object, end);
    thread
}

/// The calling thread, whoever created it.
pub(crate) fn current() -> Arc<Thread> {
    own(|| Thread::new(false, None))
}

/// `LPTHREAD_START_ROUTINE`. It may end by `ExitThread`, which unwinds its frames.
pub(crate) type Start = unsafe extern "C-unwind" fn(*mut c_void) -> u32;

struct Launch {
    thread: Arc<Thread>,
    start: Start,
    parameter: *mut c_void,
    /// 1 once the thread's number is known.
    ready: Arc<AtomicU32>,
}

/// Prepares the new thread. No value with a destructor may be alive in frames below the start routine, because `pthread_exit`
/// unwinds them.
extern "C-unwind" fn run(launch: *mut c_void) -> *mut c_void {
    let (start, parameter) = enter(launch.cast());
    // SAFETY: who created the thread promised that the routine may run with the parameter here.
    let code = unsafe { start(parameter) };
    leave(code);
    thread_end::routine_returned();
    std::ptr::null_mut()
}

fn enter(launch: *mut Launch) -> (Start, *mut c_void) {
    // SAFETY: made by `Box::into_raw` in `create` for this thread alone.
    let launch = unsafe { Box::from_raw(launch) };
    // Who creates a thread in a library that is being loaded holds the dynamic loader's lock, and goes on when this thread is known.
    // Until then no thread-local may be touched: the first use of one, or its destructor's registration, takes that lock.
    // What the thread begins with comes first: afterwards its creator may give it something else.
    crate::processor::priority::begin_thread();
    launch.thread.take_number(rustix::thread::gettid().as_raw_nonzero().get() as u32);
    launch.ready.store(1, Ordering::Release);
    futex_wake(&launch.ready);
    let thread = own(|| launch.thread.clone());
    wait_any(std::slice::from_ref(&thread.resumed), Deadline::Never);
    // Calls that were queued before it ran.
    Apcs::current().run();
    (launch.start, launch.parameter)
}

fn leave(code: u32) {
    current().exit_code.store(code, Ordering::Release);
}

/// Ends the calling thread.
///
/// # Safety
/// The frames of the calling thread must allow forced unwinding, as those of C and C++ do.
pub(crate) unsafe fn exit(code: u32) -> ! {
    leave(code);
    // SAFETY: the frames of the thread allow forced unwinding, as the caller promises; this one holds nothing.
    unsafe { pthread_exit(std::ptr::null_mut()) }
}

unsafe extern "C-unwind" {
    // The `libc` crate declares it as never unwinding.
    fn pthread_exit(value: *mut c_void) -> !;
}

/// Starts a thread; returns its handle and id. With `closes_handle` the handle is closed when the thread ends.
pub(crate) fn create(
    stack: usize,
    start: Start,
    parameter: *mut c_void,
    suspended: bool,
    closes_handle: bool,
) -> Result<(RawHandle, u32), u32> {
    if !thread_end::is_possible() {
        return Err(ERROR_NO_SYSTEM_RESOURCES);
    }
    let thread = Thread::new(suspended, Some(system_time()));
    let handle = super::open(Object::Thread(thread.clone()))?;
    if closes_handle {
        thread.own_handle.store(handle.0, Ordering::Relaxed);
    }
    let ready = Arc::new(AtomicU32::new(0));
    let launch = Launch { thread: thread.clone(), start, parameter, ready: ready.clone() };
    let launch = Box::into_raw(Box::new(launch));
    if let Err(errno) = spawn(stack, launch.cast()) {
        // SAFETY: no thread was started, so the box is still ours.
        drop(unsafe { Box::from_raw(launch) });
        drop(handle::close(handle));
        return Err(errno_to_win32(errno));
    }
    while ready.load(Ordering::Acquire) == 0 {
        futex_wait(&ready, 0, Deadline::Never);
    }
    Ok((handle, thread.number()))
}

/// Starts a detached thread at `run`.
fn spawn(stack: usize, launch: *mut c_void) -> Result<(), i32> {
    // SAFETY: a function of the same ABI, that differs only in being allowed to unwind, which `pthread_exit` does.
    let entry = unsafe {
        std::mem::transmute::<
            extern "C-unwind" fn(*mut c_void) -> *mut c_void,
            extern "C" fn(*mut c_void) -> *mut c_void,
        >(run)
    };
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut id = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: initialises the attributes.
    unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    // SAFETY: initialised by `pthread_attr_init` just before.
    unsafe { libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED) };
    if stack > 0 {
        // Windows' sizes are often too small for a Linux stack, so they are never below the default.
        let mut default = 0;
        // SAFETY: reads the attributes.
        unsafe { libc::pthread_attr_getstacksize(attributes.as_ptr(), &mut default) };
        let stack = stack.next_multiple_of(65536).max(default);
        // SAFETY: changes the attributes.
        unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack) };
    }
    // SAFETY: the entry takes what it is launched with, and it alone.
    let errno = unsafe { libc::pthread_create(id.as_mut_ptr(), attributes.as_ptr(), entry, launch) };
    // SAFETY: not used any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if errno == 0 { Ok(()) } else { Err(errno) }
}

#[cfg(test)]
mod tests {
    use crate::api::thread::ndw_CreateThread;
    use std::process::Command;

    /// What a plug-in may do: it starts a thread when it is loaded.
    const PLUG_IN: &str = "
        #include <stdlib.h>
        int ran, created;
        static unsigned thread(void *parameter) { (void)parameter; __atomic_store_n(&ran, 1, __ATOMIC_RELEASE); return 0; }
        __attribute__((constructor)) static void load(void)
        {
            void *(*create)(void *, unsigned long, unsigned (*)(void *), void *, unsigned, unsigned *) =
                (void *(*)(void *, unsigned long, unsigned (*)(void *), void *, unsigned, unsigned *))strtoul(getenv(\"CREATE\"), 0, 10);
            unsigned id = 0;
            created = create(0, 0, thread, 0, 0, &id) != 0 && id != 0;
        }
        int has_run(void) { return created && __atomic_load_n(&ran, __ATOMIC_ACQUIRE); }";

    #[test]
    fn a_library_that_is_being_loaded_may_create_threads() {
        crate::alone::run("object::thread::tests::a_thread_of_a_constructor");
    }

    #[test]
    #[ignore = "the test above runs it"]
    fn a_thread_of_a_constructor() {
        let folder = std::env::temp_dir().join(format!("ndcompat-thread-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [source, library] = ["plug_in.c", "plug_in.so"].map(|name| folder.join(name));
        std::fs::write(&source, PLUG_IN).unwrap();
        let made =
            Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).args([&library, &source]).status();
        if !made.is_ok_and(|made| made.success()) {
            std::fs::remove_dir_all(folder).unwrap();
            return crate::alone::skipped("no C compiler");
        }
        // SAFETY: the environment is this test's alone; the alarm ends a process that hangs.
        unsafe {
            std::env::set_var("CREATE", (ndw_CreateThread as *const () as usize).to_string());
            libc::alarm(60);
        }
        let plug_in = crate::library::Library::load(library.to_str().unwrap()).unwrap();
        let has_run = plug_in.function(c"has_run").unwrap();
        // SAFETY: it is declared so above.
        let has_run: extern "C" fn() -> i32 = unsafe { std::mem::transmute(has_run) };
        while has_run() == 0 {
            std::thread::yield_now();
        }
        // The thread may still be about to return.
        std::mem::forget(plug_in);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
