//! Terminals that are read: a wait for such a file ends when there is input.

use crate::io::signal::Signal;
use crate::io::{Attachment, File as OverlappedFile, Source};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::isatty;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

/// What watches a terminal.
pub(super) struct Input {
    file: Arc<OverlappedFile>,
    attachment: Attachment,
    arrivals: Arc<Arrivals>,
}

/// Sets the signal when input comes.
struct Arrivals {
    signal: Arc<Signal>,
    terminal: RawFd,
}

impl Arrivals {
    fn look(&self) {
        // SAFETY: it is open for as long as the `Input` is there.
        let terminal = unsafe { BorrowedFd::borrow_raw(self.terminal) };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Not the C library's, which is a cancellation point.
        if poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&now)).is_ok_and(|count| count > 0) {
            self.signal.set();
        }
    }
}

impl Source for Arrivals {
    fn ready(&self) {
        self.look();
    }

    // As long as nobody reads what is there, nothing is new.
    fn needs_each_once(&self) -> bool {
        true
    }
}

impl Input {
    /// `None` if it is no terminal, or cannot be watched. The descriptor must stay open until this is dropped.
    pub(super) fn of(file: &File) -> Option<Input> {
        if !isatty(file) {
            return None;
        }
        // It stays set for all who wait: each wait begins with a new look.
        let arrivals = Arc::new(Arrivals { signal: Signal::new(false, false), terminal: file.as_raw_fd() });
        let file = OverlappedFile::new().ok()?;
        file.keep_source(arrivals.terminal, arrivals.clone()).ok()?;
        let attachment = file.attach(&arrivals.signal);
        Some(Input { file, attachment, arrivals })
    }

    /// The signal, which is set if there is input now, and when some comes.
    pub(super) fn signal(&self) -> &Arc<Signal> {
        // In this order: what comes meanwhile sets it.
        self.arrivals.signal.reset();
        self.arrivals.look();
        &self.arrivals.signal
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.file.detach(&self.arrivals.signal, &self.attachment);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DiskFile, Wanted};
    use crate::api::registered_wait::{ndw_RegisterWaitForSingleObject, ndw_UnregisterWaitEx};
    use crate::io::signal::wait_any;
    use crate::io::sys::Deadline;
    use crate::object::{Object, RawHandle, handle, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::ffi::c_void;
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};

    const READ: u32 = 0x8000_0000;
    const WRITE: u32 = 0x4000_0000;

    /// A new terminal: its other end and its name.
    fn terminal() -> (File, String) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        (File::from(master), name)
    }

    fn opened(name: &str, access: u32) -> DiskFile {
        DiskFile::open(name.as_ref(), Wanted { access, disposition: 3, flags: 0 }).unwrap().0
    }

    #[test]
    fn opening_a_terminal_makes_it_nobodys_controlling_one() {
        crate::alone::run("files::disk::input::tests::the_leader_of_a_session_opens_a_terminal");
    }

    #[test]
    #[ignore = "leads a session; the test above runs it"]
    fn the_leader_of_a_session_opens_a_terminal() {
        let (_master, name) = terminal();
        // The first terminal that it opens would be its controlling one.
        assert!(rustix::process::setsid().is_ok());
        let controlling = || File::open("/dev/tty").map(drop).map_err(|error| error.raw_os_error());
        assert_eq!(controlling(), Err(Some(libc::ENXIO)));
        for access in [READ, WRITE, READ | WRITE, 0] {
            drop(opened(&name, access));
            assert_eq!(controlling(), Err(Some(libc::ENXIO)), "{access:#x}");
        }
    }

    #[test]
    fn a_wait_for_a_terminal_ends_when_there_is_input() {
        let (mut master, name) = terminal();
        let file = opened(&name, READ);
        let has_input = || wait_any(&[file.signal()], Deadline::Now).is_some();
        let read = || assert_eq!(file.read(&mut [0; 10], None), Ok(2));
        assert!(!has_input());
        master.write_all(b"a\n").unwrap();
        assert!(wait_any(&[file.signal()], Deadline::Never).is_some());
        assert!(has_input(), "it has not been read");
        read();
        assert!(!has_input());
        // And for one who waits already.
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| wait_any(&[file.signal()], Deadline::Never).is_some());
            master.write_all(b"b\n").unwrap();
            assert!(waits.join().unwrap());
        });
        read();
        assert!(!has_input());
        // A file that is written to can be written to.
        let output = opened(&name, WRITE);
        for _ in 0..2 {
            assert!(wait_any(&[output.signal()], Deadline::Now).is_some());
        }
    }

    #[test]
    fn input_ends_the_waits_of_all_threads() {
        let (mut master, name) = terminal();
        let file = opened(&name, READ);
        let signal = file.signal();
        master.write_all(b"a\n").unwrap();
        assert!(wait_any(std::slice::from_ref(&signal), Deadline::Never).is_some());
        assert!(wait_any(&[signal], Deadline::Now).is_some(), "of another that has begun to wait");
    }

    /// What a registered wait does with a terminal.
    struct Reader {
        file: Arc<DiskFile>,
        counts: Sender<Result<usize, u32>>,
    }

    unsafe extern "C" fn read_one_line(reader: *mut c_void, _: u8) {
        // SAFETY: the test's, which outlives the wait. No two calls are made at once.
        let reader = unsafe { &*reader.cast::<Reader>() };
        // A call may come late, when all is read.
        if wait_any(&[reader.file.signal()], Deadline::Now).is_some() {
            reader.counts.send(reader.file.read(&mut [0; 10], None)).unwrap();
        }
    }

    #[test]
    fn a_registered_wait_comes_again_for_input_that_was_left() {
        let (mut master, name) = terminal();
        let (counts, read) = channel();
        let reader = Reader { file: Arc::new(opened(&name, READ)), counts };
        let terminal = open(Object::Disk(reader.file.clone())).unwrap();
        let (mut wait, context) = (RawHandle::NULL, (&raw const reader).cast_mut().cast());
        let signal = reader.file.signal();
        master.write_all(b"a\nb\n").unwrap();
        assert!(wait_any(&[signal], Deadline::Never).is_some(), "nothing is new any more");
        // SAFETY: the reader outlives the wait.
        let registered = unsafe {
            ndw_RegisterWaitForSingleObject(&mut wait, terminal, Some(read_one_line), context, u32::MAX, 0)
        };
        assert_eq!(registered, 1);
        assert_eq!([(); 2].map(|()| read.recv().unwrap()), [Ok(2); 2]);
        assert_eq!(ndw_UnregisterWaitEx(wait, RawHandle::INVALID), 1);
        assert!(handle::close(terminal).is_some());
    }
}
