//! Reading and writing, and where.

use super::DiskFile;
use crate::broken_pipe::without_sigpipe;
use crate::error::*;
use crate::files::error_of;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// What one call of the system reads at most. Tests know it from a file that is shorter than 2 GiB.
const MOST: usize = if cfg!(test) { 4096 } else { 0x7FFF_F000 };

impl DiskFile {
    /// Reads at a given or at the present position; returns the number of bytes. `ERROR_HANDLE_EOF` only with a given position.
    ///
    /// # Errors
    /// `ERROR_ACCESS_DENIED` without the right, `ERROR_HANDLE_EOF`, or what the system says.
    pub fn read(&self, buffer: &mut [u8], at: Option<u64>) -> Result<usize, u32> {
        if self.directory {
            return Err(ERROR_INVALID_FUNCTION);
        }
        if !self.reads {
            return Err(ERROR_ACCESS_DENIED);
        }
        let position = at.filter(|_| self.regular);
        let mut read = 0;
        loop {
            let last = buffer.len().min(read + MOST);
            let part = &mut buffer[read..last];
            let more = match position {
                Some(at) => self.file.read_at(part, at.saturating_add(read as u64)),
                None => io::Read::read(&mut &*self.file, part),
            };
            match more {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Some was read; the next call will report the error.
                Err(error) if read == 0 => return Err(error_of(&error)),
                Err(_) | Ok(0) => break,
                Ok(more) => read += more,
            }
            // What is no file gives what it has.
            if !self.regular || read == buffer.len() {
                break;
            }
        }
        match position {
            _ if read != 0 || buffer.is_empty() => Ok(read),
            Some(_) => Err(ERROR_HANDLE_EOF),
            // The other end of the pipe was closed.
            None if self.kind()? == 3 => Err(ERROR_BROKEN_PIPE),
            None => Ok(0),
        }
    }

    /// Writes everything at a given or at the present position; `u64::MAX` appends.
    ///
    /// # Errors
    /// `ERROR_ACCESS_DENIED` without the right, or what the system says.
    pub fn write(&self, mut buffer: &[u8], at: Option<u64>) -> Result<usize, u32> {
        if !self.writes {
            return Err(ERROR_ACCESS_DENIED);
        }
        let mut position = at.filter(|_| self.regular && !self.appends);
        if position == Some(u64::MAX) {
            match self.append(buffer) {
                Ok(written) => return Ok(written),
                Err(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EPERM) => {
                    position = Some(self.metadata()?.len());
                }
                Err(errno) => return Err(error_of(&io::Error::from_raw_os_error(errno))),
            }
        }
        let length = buffer.len();
        while !buffer.is_empty() {
            let written = match position {
                Some(at) => self.file.write_at(buffer, at),
                None if self.regular => io::Write::write(&mut &*self.file, buffer),
                None => without_sigpipe(|| io::Write::write(&mut &*self.file, buffer)),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Some was written; the next call will report the error.
                Err(_) if buffer.len() < length => return Ok(length - buffer.len()),
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => return Err(ERROR_NO_DATA),
                Err(error) => return Err(error_of(&error)),
                Ok(written) => {
                    buffer = &buffer[written..];
                    position = position.map(|at| at + written as u64);
                }
            }
        }
        Ok(length)
    }

    /// Writes behind whatever others write meanwhile; the errno if nothing was written.
    fn append(&self, buffer: &[u8]) -> Result<usize, i32> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = &buffer[done..];
            let part = libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
            // SAFETY: the kernel reads what the one part names, which is the rest of the buffer.
            let written = unsafe { libc::pwritev2(self.file.as_raw_fd(), &part, 1, 0, libc::RWF_APPEND) };
            match io::Error::last_os_error().raw_os_error() {
                _ if written > 0 => done += written as usize,
                _ if written == 0 => break,
                Some(libc::EINTR) => {}
                Some(errno) if done == 0 => return Err(errno),
                // The next call will report it.
                _ => break,
            }
        }
        Ok(done)
    }

    /// Moves the position relative to the beginning, the present position or the end. Returns the new one.
    ///
    /// # Errors
    /// `ERROR_INVALID_PARAMETER` for an unknown method, `ERROR_NEGATIVE_SEEK`, or what the system says.
    pub fn seek(&self, distance: i64, method: u32) -> Result<u64, u32> {
        let whence = match method {
            0 => libc::SEEK_SET,
            1 => libc::SEEK_CUR,
            2 => libc::SEEK_END,
            _ => return Err(ERROR_INVALID_PARAMETER),
        };
        // SAFETY: takes no pointer.
        let position = unsafe { libc::lseek(self.file.as_raw_fd(), distance, whence) };
        match io::Error::last_os_error().raw_os_error() {
            _ if position >= 0 => Ok(position as u64),
            Some(libc::EINVAL) => Err(ERROR_NEGATIVE_SEEK),
            Some(libc::ESPIPE) => Err(ERROR_INVALID_FUNCTION),
            code => Err(errno_to_win32(code.unwrap_or(libc::EINVAL))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Wanted;
    use super::*;

    fn file(name: &str) -> (DiskFile, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("ndcompat-{name}-{}", std::process::id()));
        let wanted = Wanted { access: 0xC000_0000, disposition: 2, flags: 0 };
        (DiskFile::open(&path, wanted).unwrap().0, path)
    }

    #[test]
    fn a_read_is_full_however_little_the_system_reads_at_once() {
        let (file, path) = file("full");
        let content: Vec<u8> = (0..3 * MOST + 10).map(|at| (at / 7) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut buffer = vec![0; content.len()];
        for at in [Some(0), None] {
            buffer.fill(0);
            assert_eq!((file.read(&mut buffer, at), &buffer), (Ok(content.len()), &content));
        }
        assert_eq!(file.read(&mut buffer, None), Ok(0));
        // Up to the end, and no error for a part.
        assert_eq!(file.read(&mut buffer, Some(MOST as u64)), Ok(2 * MOST + 10));
        assert_eq!(file.read(&mut buffer, Some(content.len() as u64)), Err(ERROR_HANDLE_EOF));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_several_append_is_all_there() {
        let (one, path) = file("append");
        let again = Wanted { access: 0x4000_0000, disposition: 3, flags: 0 };
        let (other, _) = DiskFile::open(&path, again).unwrap();
        let both = std::sync::Barrier::new(2);
        let write = |file: &DiskFile, text: &[u8]| {
            both.wait();
            (0..20_000).for_each(|_| assert_eq!(file.write(text, Some(u64::MAX)), Ok(text.len())));
        };
        std::thread::scope(|scope| {
            scope.spawn(|| write(&one, b"abcd"));
            write(&other, b"efgh");
        });
        let found = std::fs::read(&path).unwrap();
        assert_eq!(found.len(), 160_000);
        assert_eq!(found.chunks(4).filter(|part| *part == b"abcd").count(), 20_000);
        std::fs::remove_file(path).unwrap();
    }
}
