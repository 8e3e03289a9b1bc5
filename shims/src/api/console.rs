//! `SetConsoleCtrlHandler`, `GenerateConsoleCtrlEvent`: signals as the events of a console.
//!
//! SIGINT is Ctrl+C, SIGQUIT is Ctrl+Break, SIGTERM and SIGHUP are CTRL_CLOSE_EVENT. Each event runs the handlers on a new
//! thread, the last one added first, until one returns TRUE. If none does, and after CTRL_CLOSE_EVENT in any case, the process
//! ends by the signal.

use crate::boundary::guard_bool;
use crate::error::*;
use crate::io::threads::ForkLock;
use std::io::{PipeWriter, Read, pipe};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

/// `PHANDLER_ROUTINE`.
pub type Handler = extern "C" fn(u32) -> i32;

const CTRL_C: u32 = 0;
const CTRL_BREAK: u32 = 1;
const CTRL_CLOSE: u32 = 2;

/// The signals that are turned into events.
const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

struct Console {
    handlers: Vec<Handler>,
    /// The write end of the signal handler's pipe, once the handler is installed.
    sink: Option<PipeWriter>,
}

impl Console {
    const NONE: Console = Console { handlers: Vec::new(), sink: None };
}

/// A forked child starts without handlers: signals are not events in it until it adds one.
static CONSOLE: ForkLock<Console> = ForkLock::new(Console::NONE, |console| {
    if console.sink.is_some() {
        SIGNALS.into_iter().filter(|&signal| action(signal) == on_signal_action()).for_each(set_default);
    }
    std::mem::replace(console, Console::NONE)
});

/// Copies for the signal handler, which cannot take locks: the descriptor of the sink, and the process that it belongs to.
static SINK: AtomicI32 = AtomicI32::new(-1);
static PROCESS: AtomicI32 = AtomicI32::new(0);

fn event_of(signal: i32) -> u32 {
    match signal {
        libc::SIGINT => CTRL_C,
        libc::SIGQUIT => CTRL_BREAK,
        _ => CTRL_CLOSE,
    }
}

/// The signal handler. It may interrupt anything, so it only writes the signal's number to the pipe.
extern "C" fn on_signal(signal: i32) {
    // SAFETY: takes no pointer, and may be called in a signal handler.
    if unsafe { libc::getpid() } != PROCESS.load(Ordering::Relaxed) {
        // A forked child: restores the default and raises the signal again, which is pending until this handler returns.
        set_default(signal);
        // SAFETY: takes no pointer, and may be called in a signal handler.
        unsafe { libc::raise(signal) };
        return;
    }
    // SAFETY: takes nothing.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: belongs to the calling thread.
    let errno = unsafe { &mut *errno };
    let (byte, former) = (signal as u8, *errno);
    // SAFETY: `write` may be called in a signal handler; it reads the byte.
    unsafe { libc::write(SINK.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    *errno = former;
}

fn on_signal_action() -> libc::sighandler_t {
    on_signal as *const () as libc::sighandler_t
}

fn set_default(signal: i32) {
    set_action(signal, libc::SIG_DFL);
}

fn set_action(signal: i32, action: libc::sighandler_t) {
    let mut new = MaybeUninit::<libc::sigaction>::zeroed();
    let place = new.as_mut_ptr();
    // SAFETY: `new` lives until the function ends, and zero is a value of each of the structure's integers.
    let new = unsafe { &mut *place };
    (new.sa_sigaction, new.sa_flags) = (action, libc::SA_RESTART);
    // SAFETY: reads the structure; its function may be called at any time.
    unsafe { libc::sigaction(signal, new, std::ptr::null_mut()) };
}

/// The present disposition of a signal.
fn action(signal: i32) -> libc::sighandler_t {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: fills the structure; nothing is changed.
    unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) };
    // SAFETY: integers, zero if the kernel has not filled them.
    unsafe { now.assume_init() }.sa_sigaction
}

/// Runs the handlers, and ends the process if none has handled the event.
fn handle(signal: i32) {
    let event = event_of(signal);
    // Without the lock: a handler may add or remove handlers, or never return.
    let handlers = CONSOLE.lock().handlers.clone();
    let handled = handlers.iter().rev().any(|handler| handler(event) != 0);
    if handled && event != CTRL_CLOSE {
        return;
    }
    set_default(signal);
    // SAFETY: takes no pointer.
    unsafe { libc::kill(std::process::id() as i32, signal) };
}

/// Starts to turn signals into events.
fn start() -> Result<PipeWriter, u32> {
    let (mut source, sink) = pipe().map_err(|_| ERROR_TOO_MANY_OPEN_FILES)?;
    let watch = move || {
        loop {
            let mut signal = [0];
            if source.read_exact(&mut signal).is_ok() {
                let signal = signal[0].into();
                if std::thread::Builder::new().spawn(move || handle(signal)).is_err() {
                    handle(signal);
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name("ndcompat-console".into()).spawn(watch);
    thread.map_err(|_| ERROR_NO_SYSTEM_RESOURCES)?;
    SINK.store(sink.as_raw_fd(), Ordering::Relaxed);
    PROCESS.store(std::process::id() as i32, Ordering::Relaxed);
    // Signals that were ignored at the start (nohup, a background job) stay ignored.
    SIGNALS
        .into_iter()
        .filter(|&signal| action(signal) != libc::SIG_IGN)
        .for_each(|signal| set_action(signal, on_signal_action()));
    Ok(sink)
}

/// `SetConsoleCtrlHandler`: adds a handler, or removes the one that was added last of several that are equal. NULL: Ctrl+C is ignored, here
/// and in new processes, or not any more.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetConsoleCtrlHandler(handler: Option<Handler>, add: i32) -> i32 {
    guard_bool(|| match (handler, add != 0) {
        (None, true) => {
            set_action(libc::SIGINT, libc::SIG_IGN);
            Ok(())
        }
        (None, false) => {
            let is_event = CONSOLE.lock().sink.is_some();
            let action = if is_event { on_signal_action() } else { libc::SIG_DFL };
            set_action(libc::SIGINT, action);
            Ok(())
        }
        (Some(handler), true) => {
            let mut console = CONSOLE.lock();
            if console.sink.is_none() {
                console.sink = Some(start()?);
            }
            console.handlers.push(handler);
            Ok(())
        }
        (Some(handler), false) => {
            let handlers = &mut CONSOLE.lock().handlers;
            let last = handlers.iter().rposition(|known| std::ptr::fn_addr_eq(*known, handler));
            handlers.remove(last.ok_or(ERROR_INVALID_PARAMETER)?);
            Ok(())
        }
    })
}

/// What kill(2) takes for a group; `own` is the caller's. -1 would be all processes there are, so that the group of a container's first
/// process can be meant only from within.
fn receiver(group: u32, own: i32) -> Result<i32, u32> {
    match i32::try_from(group) {
        Ok(group) if group == 0 || group == own => Ok(0),
        Ok(1) | Err(_) => Err(ERROR_INVALID_PARAMETER),
        Ok(group) => Ok(-group),
    }
}

/// `GenerateConsoleCtrlEvent`: to a process group, or with 0 to the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GenerateConsoleCtrlEvent(event: u32, group: u32) -> i32 {
    guard_bool(|| {
        let signal = match event {
            CTRL_C => libc::SIGINT,
            CTRL_BREAK => libc::SIGQUIT,
            _ => return Err(ERROR_INVALID_PARAMETER),
        };
        // SAFETY: takes nothing.
        let process = receiver(group, unsafe { libc::getpgrp() })?;
        // SAFETY: takes no pointer.
        match unsafe { libc::kill(process, signal) } {
            0 => Ok(()),
            _ => Err(ERROR_INVALID_PARAMETER),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, ExitStatus};
    use std::sync::atomic::AtomicU32;
    use std::time::{Duration, Instant};

    // Signals are the process's, so each case is a process, in a group of its own.

    fn run(name: &str) -> (ExitStatus, String) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "--ignored", "--nocapture", &format!("api::console::tests::{name}")])
            .process_group(0);
        // The tests may have been started to ignore them, in the background of a shell for example.
        let usual = || {
            SIGNALS.into_iter().for_each(set_default);
            Ok(())
        };
        // SAFETY: between fork and exec it calls sigaction only.
        unsafe { child.pre_exec(usual) };
        let output = child.output().unwrap();
        (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What the handlers have seen: a digit each.
    static SEEN: AtomicU32 = AtomicU32::new(0);

    fn saw(digit: u32) {
        SEEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |seen| Some(seen * 10 + digit)).unwrap();
    }

    extern "C" fn takes(event: u32) -> i32 {
        saw(1 + event);
        1
    }

    extern "C" fn passes(_event: u32) -> i32 {
        saw(9);
        0
    }

    fn raise(signal: i32) {
        // SAFETY: takes no pointer.
        unsafe { libc::kill(libc::getpid(), signal) };
    }

    fn wait_for(seen: u32) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while SEEN.load(Ordering::SeqCst) != seen {
            assert!(Instant::now() < deadline, "{}, not {seen}", SEEN.load(Ordering::SeqCst));
            std::thread::yield_now();
        }
    }

    /// For a process that the event must end.
    fn never() -> ! {
        std::thread::sleep(Duration::from_secs(60));
        panic!("the event has not ended the process")
    }

    #[test]
    fn handlers_run_last_in_first_out_until_one_takes_the_event() {
        let (status, said) = run("handlers_in_order");
        assert!(status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    #[ignore = "takes signals; the test above runs it"]
    fn handlers_in_order() {
        for handler in [takes, passes] {
            assert_eq!(ndw_SetConsoleCtrlHandler(Some(handler), 1), 1);
        }
        raise(libc::SIGINT);
        wait_for(91);
        raise(libc::SIGQUIT);
        wait_for(9192);
        assert_eq!(ndw_SetConsoleCtrlHandler(Some(passes), 0), 1);
        assert_eq!((ndw_SetConsoleCtrlHandler(Some(passes), 0), last_error()), (0, ERROR_INVALID_PARAMETER));
        assert_eq!(ndw_GenerateConsoleCtrlEvent(CTRL_C, 0), 1);
        wait_for(91921);
        // Without a handler, Ctrl+C can be ignored.
        assert_eq!(ndw_SetConsoleCtrlHandler(None, 1), 1);
        raise(libc::SIGINT);
        assert_eq!(action(libc::SIGINT), libc::SIG_IGN);
        assert_eq!(ndw_SetConsoleCtrlHandler(None, 0), 1);
        raise(libc::SIGINT);
        wait_for(919211);
        assert_eq!((ndw_GenerateConsoleCtrlEvent(2, 0), last_error()), (0, ERROR_INVALID_PARAMETER));
    }

    /// Runs `work` in a child made by `fork`; its status.
    fn in_a_child(work: fn()) -> ExitStatus {
        // SAFETY: the library's threads let the fork happen while they hold nothing; no other thread of this process uses it.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child if it hangs.
            unsafe { libc::alarm(60) };
            work();
            // SAFETY: leaves without unwinding into the test harness.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: the status is written to a place of ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        ExitStatus::from_raw(status)
    }

    #[test]
    fn an_event_for_the_first_processs_group_is_none_for_all_processes() {
        assert_eq!((receiver(0, 1), receiver(1, 1), receiver(7, 1)), (Ok(0), Ok(0), Ok(-7)));
        assert_eq!((receiver(1, 5), receiver(5, 5)), (Err(ERROR_INVALID_PARAMETER), Ok(0)));
        assert_eq!(receiver(u32::MAX, 5), Err(ERROR_INVALID_PARAMETER));
    }

    #[test]
    fn a_child_has_no_handlers_until_it_adds_one() {
        let (status, said) = run("handlers_and_a_child");
        assert!(status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    #[ignore = "takes signals; the test above runs it"]
    fn handlers_and_a_child() {
        assert_eq!(ndw_SetConsoleCtrlHandler(Some(takes), 1), 1);
        let killed = in_a_child(|| raise(libc::SIGINT));
        assert_eq!(killed.signal(), Some(libc::SIGINT));
        let with_its_own = in_a_child(|| {
            assert_eq!(ndw_SetConsoleCtrlHandler(Some(takes), 1), 1);
            raise(libc::SIGINT);
            wait_for(1);
        });
        assert!(with_its_own.success(), "{with_its_own}");
        assert_eq!(SEEN.load(Ordering::SeqCst), 0, "the parent hears nothing of it");
        raise(libc::SIGINT);
        wait_for(1);
    }

    #[test]
    fn an_event_that_nobody_takes_ends_the_process() {
        assert_eq!(run("nobody_takes_it").0.signal(), Some(libc::SIGINT));
    }

    #[test]
    #[ignore = "ends its process; the test above runs it"]
    fn nobody_takes_it() {
        assert_eq!(ndw_SetConsoleCtrlHandler(Some(passes), 1), 1);
        raise(libc::SIGINT);
        never();
    }

    #[test]
    fn closing_runs_the_handlers_and_ends_the_process() {
        let (status, said) = run("closing");
        assert_eq!(status.signal(), Some(libc::SIGTERM));
        assert!(said.contains("closing: 2"), "{said}");
    }

    extern "C" fn says(event: u32) -> i32 {
        println!("closing: {event}");
        1
    }

    #[test]
    #[ignore = "ends its process; the test above runs it"]
    fn closing() {
        assert_eq!(ndw_SetConsoleCtrlHandler(Some(says), 1), 1);
        raise(libc::SIGTERM);
        never();
    }
}
