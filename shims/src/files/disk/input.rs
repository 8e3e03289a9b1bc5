//! Terminals that are read: a wait for such a file ends when there is input.

use crate::io::signal::Signal;
use crate::io::{Attachment, File as OverlappedFile, Source};
use rustix::termios::isatty;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
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
        let mut poll = libc::pollfd { fd: self.terminal, events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure of ours, and no time to wait.
        if unsafe { libc::poll(&mut poll, 1, 0) } > 0 {
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
        let arrivals = Arc::new(Arrivals { signal: Signal::new(true, false), terminal: file.as_raw_fd() });
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
    use crate::io::signal::wait_any;
    use crate::io::sys::Deadline;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Write;

    #[test]
    fn a_wait_for_a_terminal_ends_when_there_is_input() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let mut master = std::fs::File::from(master);
        let wanted = |access| Wanted { access, disposition: 3, flags: 0 };
        let (file, _) = DiskFile::open(name.as_ref(), wanted(0x8000_0000)).unwrap();
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
        let (output, _) = DiskFile::open(name.as_ref(), wanted(0x4000_0000)).unwrap();
        assert!(wait_any(&[output.signal()], Deadline::Now).is_some());
    }
}
