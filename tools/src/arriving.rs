//! A file that is being received. It gets its name once it is complete.

use anyhow::{Context, Result, bail};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, fstatvfs, linkat, open, renameat_with, syncfs};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The file. On file systems with `O_TMPFILE` it has no name until it is complete, so nothing is left of it if the process is
/// killed.
pub struct Arriving {
    file: File,
    folder: PathBuf,
    name: String,
    /// The temporary name, on file systems without `O_TMPFILE`.
    part: Option<Part>,
}

/// A temporary name, which is unlinked on drop.
struct Part(PathBuf);

impl Part {
    /// Takes a name in the folder that nothing has, by `make`. Of a process that was killed, there may be files of this process's id.
    fn take<T>(folder: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, Part)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let part = Part::named(folder, number);
            match make(&part) {
                Ok(made) => return Ok((made, Part(part))),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the file another name, which nothing may have.
    fn name(&self, target: &Path) -> io::Result<()> {
        match renameat_with(CWD, &self.0, CWD, target, RenameFlags::NOREPLACE) {
            // The file system, or the kernel, has no such thing. The temporary name goes with this.
            Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(&self.0, target),
            outcome => Ok(outcome?),
        }
    }

    fn named(folder: &Path, number: u32) -> PathBuf {
        folder.join(format!(".{}.{number}.nd-part", std::process::id()))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Arriving {
    /// Creates a file for this name in the folder, if there is room for its length. [`finish`](Self::finish) gives it the name.
    ///
    /// Errors name the file, but not the folder: they are told to the peer.
    pub fn begin(folder: &Path, name: &str, length: u64) -> Result<Arriving> {
        let unnamed = open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from(0o666));
        let arriving = match unnamed {
            Ok(file) => {
                Arriving { file: file.into(), folder: folder.to_owned(), name: name.to_owned(), part: None }
            }
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Arriving::begin_named(folder, name)?,
            Err(error) => return Err(error).with_context(|| making(name)),
        };
        arriving.has_room(length).with_context(|| format!("'{name}' has {length} bytes"))?;
        Ok(arriving)
    }

    /// Whether the file system has so many bytes now. They are not reserved: else a peer could fill the disk by a number alone.
    fn has_room(&self, length: u64) -> io::Result<()> {
        match fstatvfs(&self.file) {
            // One without blocks does not tell.
            Ok(system) if system.f_blocks > 0 && system.f_bavail.saturating_mul(system.f_frsize) < length => {
                Err(Errno::NOSPC.into())
            }
            _ => Ok(()),
        }
    }

    /// Creates a file that has a temporary name until it has its own.
    fn begin_named(folder: &Path, name: &str) -> Result<Arriving> {
        let made = Part::take(folder, |part| File::create_new(part));
        let (file, part) = made.with_context(|| making(name))?;
        Ok(Arriving { file, folder: folder.to_owned(), name: name.to_owned(), part: Some(part) })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| self.writing())
    }

    /// Gives the file its name. An existing file is replaced only with `overwrite`.
    pub fn finish(self, overwrite: bool) -> Result<()> {
        let target = self.folder.join(&self.name);
        self.file.sync_all().with_context(|| self.writing())?;
        let named = match (&self.part, overwrite) {
            (None, false) => self.link(&target),
            // link(2) fails if the name exists, rename(2) replaces it.
            (None, true) => Part::take(&self.folder, |part| self.link(part))
                .and_then(|((), part)| fs::rename(&part.0, &target)),
            (Some(part), false) => part.name(&target),
            (Some(part), true) => fs::rename(&part.0, &target),
        };
        match named {
            // Another copy of this name was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(exists(&self.name)),
            named => named.with_context(|| format!("naming '{}'", self.name))?,
        }
        self.sync_name().with_context(|| format!("storing the name '{}'", self.name))
    }

    /// Stores the folder, too: otherwise a loss of power may take the name, and with it the file.
    fn sync_name(&self) -> io::Result<()> {
        match File::open(&self.folder).and_then(|folder| folder.sync_all()) {
            // It may be written to, but not read; or its file system stores no folders by themselves.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {
                Ok(syncfs(&self.file)?)
            }
            outcome => outcome,
        }
    }

    fn writing(&self) -> String {
        format!("writing '{}'", self.name)
    }

    /// Links the unnamed file to a name.
    fn link(&self, name: &Path) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(linkat(CWD, own, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

fn making(name: &str) -> String {
    format!("making a file for '{name}'")
}

/// What to say if there is a file of this name.
pub fn exists(name: &str) -> String {
    format!(
        "there is a '{name}' already: copy under another name, or let it be replaced by nd serve --overwrite"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(folder: &Path, name: &str, text: &str) -> Arriving {
        let mut file = Arriving::begin(folder, name, text.len() as u64).unwrap();
        file.write(text.as_bytes()).unwrap();
        file
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn of_two_copies_of_a_name_the_first_to_end_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|text| arrived(folder.path(), "name", text));
        first.finish(false).unwrap();
        let refused = second.finish(false).unwrap_err();
        assert_eq!(format!("{refused:#}"), exists("name"));
        assert_eq!(fs::read(folder.path().join("name")).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["name"]);
    }

    /// As many copies as there may be, without `O_TMPFILE`, all of which end at once.
    #[test]
    fn of_many_copies_of_a_name_that_end_at_once_one_has_it() {
        for round in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let barrier = std::sync::Barrier::new(4);
            let named = std::thread::scope(|scope| {
                let copies = ["0", "1", "2", "3"].map(|text| {
                    let mut file = Arriving::begin_named(folder.path(), "name").unwrap();
                    file.write(text.as_bytes()).unwrap();
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        file.finish(false).is_ok()
                    })
                });
                copies.map(|copy| copy.join().unwrap())
            });
            assert_eq!(named.iter().filter(|&&named| named).count(), 1, "round {round}: {named:?}");
            let first = named.iter().position(|&named| named).unwrap();
            assert_eq!(fs::read_to_string(folder.path().join("name")).unwrap(), first.to_string());
            assert_eq!(names(folder.path()), ["name"]);
        }
    }

    #[test]
    fn of_two_copies_that_replace_a_name_the_last_to_end_has_it() {
        let folder = tempfile::tempdir().unwrap();
        // As long as a name may be; a temporary one is no longer.
        let name = "n".repeat(255);
        let [first, second] = ["first", "second"].map(|text| arrived(folder.path(), &name, text));
        second.finish(true).unwrap();
        first.finish(true).unwrap();
        assert_eq!(fs::read(folder.path().join(&name)).unwrap(), b"first");
        assert_eq!(names(folder.path()), [name]);
    }

    /// Whether it is on the disk then, only a loss of power could tell.
    #[test]
    fn the_folder_is_stored_after_the_name() {
        use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
        for overwrite in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let file = arrived(folder.path(), "name", "text");
            let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
            let wanted = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::OPEN;
            add_watch(&watch, folder.path(), wanted).unwrap();
            file.finish(overwrite).unwrap();
            let mut room = [std::mem::MaybeUninit::uninit(); 4096];
            let mut events = Reader::new(&watch, &mut room);
            let mut is_named = false;
            let mut is_opened = false;
            while let Ok(event) = events.next() {
                let is_name = event.file_name().is_some_and(|name| name == c"name");
                is_named |= is_name && !event.events().contains(ReadFlags::OPEN);
                // The folder itself: that has no name here.
                is_opened |=
                    is_named && event.file_name().is_none() && event.events().contains(ReadFlags::OPEN);
            }
            assert!(is_named && is_opened, "{overwrite}");
        }
    }

    #[test]
    fn a_temporary_name_that_is_taken_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..100 {
            File::create_new(Part::named(folder.path(), number)).unwrap();
        }
        let (_, own) = Part::take(folder.path(), |part| File::create_new(part)).unwrap();
        assert!(own.0.exists());
        arrived(folder.path(), "name", "text").finish(true).unwrap();
        drop(own);
        assert_eq!(names(folder.path()).len(), 101, "what others have left, and the file");
    }
}
