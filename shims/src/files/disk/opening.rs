//! Opening files, and files of descriptors that are there.

use super::DiskFile;
use crate::error::*;
use crate::files::{ATTRIBUTE_READONLY, error_at, error_of, is_device};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const GENERIC_READ: u32 = 0x8000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
const FILE_READ_DATA: u32 = 0x1;
const FILE_WRITE_DATA: u32 = 0x2;
const FILE_APPEND_DATA: u32 = 0x4;

const CREATE_NEW: u32 = 1;
const CREATE_ALWAYS: u32 = 2;
const OPEN_EXISTING: u32 = 3;
const OPEN_ALWAYS: u32 = 4;
const TRUNCATE_EXISTING: u32 = 5;

const FLAG_WRITE_THROUGH: u32 = 0x8000_0000;
const FLAG_OVERLAPPED: u32 = 0x4000_0000;
const FLAG_NO_BUFFERING: u32 = 0x2000_0000;
const FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
const FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// How often the file may come or go while it is being opened.
const TRIES: u32 = 8;

/// Why a file was not opened.
enum Failure {
    /// The system's word.
    System(i32),
    /// A Win32 error.
    Code(u32),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        error.raw_os_error().map_or_else(|| Failure::Code(error_of(&error)), Failure::System)
    }
}

impl Failure {
    fn code(self, path: &Path) -> u32 {
        match self {
            Failure::Code(code) => code,
            Failure::System(libc::EEXIST) => ERROR_FILE_EXISTS,
            Failure::System(errno) => error_at(&io::Error::from_raw_os_error(errno), path),
        }
    }
}

/// The arguments of `CreateFile`.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// `dwDesiredAccess`.
    pub access: u32,
    /// `dwCreationDisposition`.
    pub disposition: u32,
    /// `dwFlagsAndAttributes`.
    pub flags: u32,
}

impl DiskFile {
    /// The file of a descriptor that stays the program's; `None` if it is closed.
    pub fn borrowed(fd: i32) -> Option<DiskFile> {
        // SAFETY: takes no pointer; a closed descriptor is an error.
        let modes = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if modes < 0 {
            return None;
        }
        // SAFETY: an open descriptor, which nothing here closes.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let found = file.metadata().ok()?;
        let mode = modes & libc::O_ACCMODE;
        let file = ManuallyDrop::into_inner(file);
        let mut file = DiskFile::with(file, &found, mode != libc::O_WRONLY, mode != libc::O_RDONLY);
        (file.lent, file.borrowed) = (AtomicBool::new(true), true);
        file.appends = modes & libc::O_APPEND != 0;
        Some(file)
    }

    /// Its descriptor, which is the caller's from now on. What is to be removed when it is closed loses its name at once: of the
    /// descriptor's end nobody will hear.
    pub fn lend(&self) -> i32 {
        self.lent.store(true, Ordering::Relaxed);
        if self.goes.swap(false, Ordering::Relaxed) {
            self.remove();
        }
        self.file.as_raw_fd()
    }

    /// A file for a descriptor that the process was started with; `None` if it is closed.
    pub fn standard(fd: i32) -> Option<DiskFile> {
        // SAFETY: takes no pointer; a closed descriptor is an error.
        let modes = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        // SAFETY: takes no pointer; a closed descriptor is an error.
        let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
        if modes < 0 || copy < 0 {
            return None;
        }
        // SAFETY: a descriptor that was just made.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(copy) });
        let mode = modes & libc::O_ACCMODE;
        let mut file = DiskFile::of(file, mode != libc::O_WRONLY, mode != libc::O_RDONLY).ok()?;
        file.appends = modes & libc::O_APPEND != 0;
        Some(file)
    }

    /// A new pipe's reader and writer. It has room for `size` bytes if the system allows so many.
    ///
    /// # Errors
    /// What the system says as a Win32 error.
    pub fn pipe(size: u32) -> Result<[DiskFile; 2], u32> {
        let (reader, writer) = io::pipe().map_err(|error| error_of(&error))?;
        if let Ok(size @ 1..) = i32::try_from(size) {
            // SAFETY: takes no pointer. A pipe of the usual size will do as well.
            unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, size) };
        }
        let [reader, writer] = [OwnedFd::from(reader), OwnedFd::from(writer)].map(File::from);
        let failed = |error: io::Error| error_of(&error);
        Ok([
            DiskFile::of(reader, true, false).map_err(failed)?,
            DiskFile::of(writer, false, true).map_err(failed)?,
        ])
    }

    /// Opens or creates a file; returns whether it existed. Share modes have no counterpart on Linux.
    ///
    /// # Errors
    /// What the system says as a Win32 error; `ERROR_INVALID_PARAMETER` for a disposition that there is not, `ERROR_NOT_SUPPORTED` for a
    /// link that is to be opened itself.
    pub fn open(path: &Path, wanted: Wanted) -> Result<(DiskFile, bool), u32> {
        if wanted.access & MAXIMUM_ALLOWED == 0 {
            return DiskFile::open_for(path, wanted);
        }
        let with = |right| Wanted { access: wanted.access & !MAXIMUM_ALLOWED | right, ..wanted };
        match DiskFile::open_for(path, with(GENERIC_ALL)) {
            Err(ERROR_ACCESS_DENIED) => {
                let mut less = [GENERIC_READ, GENERIC_WRITE].into_iter();
                less.find_map(|right| DiskFile::open_for(path, with(right)).ok()).ok_or(ERROR_ACCESS_DENIED)
            }
            result => result,
        }
    }

    /// The same for rights that are named.
    fn open_for(path: &Path, wanted: Wanted) -> Result<(DiskFile, bool), u32> {
        let writes = wanted.access & (GENERIC_WRITE | GENERIC_ALL | FILE_WRITE_DATA) != 0;
        match wanted.disposition {
            CREATE_NEW | CREATE_ALWAYS | OPEN_EXISTING | OPEN_ALWAYS => {}
            TRUNCATE_EXISTING if writes => {}
            _ => return Err(ERROR_INVALID_PARAMETER),
        }
        // What is no link is opened as without the flag.
        let itself = wanted.flags & FLAG_OPEN_REPARSE_POINT != 0;
        if itself && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            return Err(ERROR_NOT_SUPPORTED);
        }
        // Between the look at the file and its opening, others may make or remove it.
        for _ in 0..TRIES {
            let found = std::fs::metadata(path).ok();
            let existed = found.is_some();
            let creates = wanted.disposition != OPEN_EXISTING && wanted.disposition != TRUNCATE_EXISTING;
            match DiskFile::open_as(path, wanted, found, true) {
                Err(Failure::System(libc::ENOENT)) if existed && creates => {}
                Err(Failure::System(libc::EEXIST)) if !existed && wanted.disposition != CREATE_NEW => {}
                result => return result.map_err(|failure| failure.code(path)),
            }
        }
        // A link to a file that is not there: it is created.
        DiskFile::open_as(path, wanted, None, false).map_err(|failure| failure.code(path))
    }

    /// The same of a file that was `found`, or else is created; if that has changed meanwhile, `ENOENT` or `EEXIST`. Without `exactly`, it
    /// may have been created meanwhile.
    fn open_as(
        path: &Path,
        wanted: Wanted,
        found: Option<Metadata>,
        exactly: bool,
    ) -> Result<(DiskFile, bool), Failure> {
        let has = |right| wanted.access & right != 0;
        let reads = has(GENERIC_READ | GENERIC_EXECUTE | GENERIC_ALL | FILE_READ_DATA);
        let writes = has(GENERIC_WRITE | GENERIC_ALL | FILE_WRITE_DATA);
        let appends = has(FILE_APPEND_DATA) && !writes;
        let flag = |flag| wanted.flags & flag != 0;
        let creates = matches!(wanted.disposition, CREATE_NEW | CREATE_ALWAYS | OPEN_ALWAYS);
        let truncates = matches!(wanted.disposition, CREATE_ALWAYS | TRUNCATE_EXISTING);
        let existed = found.is_some();
        if existed && wanted.disposition == CREATE_NEW {
            return Err(Failure::Code(ERROR_FILE_EXISTS));
        }
        if found.is_some_and(|found| found.is_dir()) {
            if !flag(FLAG_BACKUP_SEMANTICS) || creates && wanted.disposition != OPEN_ALWAYS || truncates {
                return Err(Failure::Code(ERROR_ACCESS_DENIED));
            }
            let mut options = OpenOptions::new();
            let file = options.read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)?;
            let mut folder = DiskFile::of(file, false, false)?;
            folder.goes = AtomicBool::new(flag(FLAG_DELETE_ON_CLOSE));
            return Ok((folder, true));
        }
        // A terminal becomes nobody's controlling one by being opened.
        let mut custom = libc::O_NOCTTY;
        if flag(FLAG_WRITE_THROUGH) {
            custom |= libc::O_DSYNC;
        }
        let changes = writes || appends || creates && !existed || truncates;
        if !reads && !changes {
            // No access to the contents: O_PATH, which needs no permission on the file.
            custom |= libc::O_PATH;
        }
        if appends {
            // Not by `OpenOptions::append`, which does not go with truncating.
            custom |= libc::O_APPEND;
        }
        let mut options = OpenOptions::new();
        // Truncating needs write access on Linux, whatever access was asked for.
        options.read(reads || !changes).write(changes).custom_flags(custom);
        options.mode(if wanted.flags & ATTRIBUTE_READONLY != 0 { 0o444 } else { 0o666 });
        match (creates && !existed, exactly) {
            // Without an access, an `OPEN_ALWAYS` of what is not there creates it all the same.
            (true, true) => options.create_new(true),
            (true, false) => options.create(true).truncate(truncates),
            _ => options.truncate(truncates),
        };
        let mut file = DiskFile::of(options.open(path)?, reads, writes || appends)?;
        file.appends = appends;
        (file.overlaps, file.unbuffered) = (flag(FLAG_OVERLAPPED), flag(FLAG_NO_BUFFERING));
        if flag(FLAG_DELETE_ON_CLOSE) {
            file.goes = AtomicBool::new(!is_device(&file.file.metadata()?));
        }
        Ok((file, existed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn of_several_that_create_a_file_one_finds_it_new() {
        let path = std::env::temp_dir().join(format!("ndcompat-new-{}", std::process::id()));
        let both = Barrier::new(2);
        let create = |disposition| {
            let wanted = Wanted { access: GENERIC_WRITE, disposition, flags: 0 };
            both.wait();
            let existed = DiskFile::open(&path, wanted).unwrap().1;
            both.wait();
            existed
        };
        for round in 0..1000 {
            let disposition = if round % 2 == 0 { CREATE_ALWAYS } else { OPEN_ALWAYS };
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(|| create(disposition));
                (create(disposition), other.join().unwrap())
            });
            assert!(one != other, "{round}: {one}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_link_to_nothing_is_followed_by_what_creates() {
        let folder = std::env::temp_dir().join(format!("ndcompat-link-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let [link, target] = ["link", "target"].map(|name| folder.join(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let wanted = Wanted { access: GENERIC_WRITE, disposition: OPEN_ALWAYS, flags: 0 };
        assert!(DiskFile::open(&link, wanted).is_ok_and(|(_, existed)| !existed) && target.is_file());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_is_not_opened_itself() {
        let folder = std::env::temp_dir().join(format!("ndcompat-itself-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let [link, file] = ["link", "file"].map(|name| folder.join(name));
        std::fs::write(&file, b"x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let wanted = |flags| Wanted { access: GENERIC_READ, disposition: OPEN_EXISTING, flags };
        let code = |path, flags| DiskFile::open(path, wanted(flags)).err();
        assert_eq!(code(&link, FLAG_OPEN_REPARSE_POINT), Some(ERROR_NOT_SUPPORTED));
        assert_eq!((code(&link, 0), code(&file, FLAG_OPEN_REPARSE_POINT)), (None, None));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_is_appended_to_may_be_made_anew() {
        let folder = std::env::temp_dir().join(format!("ndcompat-append-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let [file, link, target] = ["file", "link", "target"].map(|name| folder.join(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let wanted = Wanted { access: FILE_APPEND_DATA, disposition: CREATE_ALWAYS, flags: 0 };
        for path in [&file, &link] {
            for was_there in [false, true] {
                let (file, existed) = DiskFile::open(path, wanted).unwrap();
                assert_eq!((existed, file.write(b"one", Some(0))), (was_there, Ok(3)));
                assert_eq!(file.write(b"two", Some(0)), Ok(3));
                assert_eq!(std::fs::read(path).unwrap(), b"onetwo");
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn all_that_is_allowed_may_be_to_write() {
        crate::alone::run("files::disk::opening::tests::a_file_to_write_to");
    }

    #[test]
    #[ignore = "forks; the test above runs it"]
    fn a_file_to_write_to() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("ndcompat-writable-{}", std::process::id()));
        std::fs::write(&path, b"x").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o222)).unwrap();
        let child = crate::alone::child(|| {
            // Root may do anything.
            // SAFETY: takes no pointer. Who is not root stays who it is.
            unsafe { libc::setuid(65534) };
            let wanted = Wanted { access: MAXIMUM_ALLOWED, disposition: OPEN_EXISTING, flags: 0 };
            match DiskFile::open(&path, wanted) {
                Ok((file, true)) => i32::from(file.reads() || file.write(b"y", None) != Ok(1)),
                _ => 2,
            }
        });
        let mut status = 0;
        // SAFETY: room for the status.
        assert_eq!((unsafe { libc::waitpid(child, &mut status, 0) }, status), (child, 0));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_folder_goes_when_it_is_closed_if_that_was_asked() {
        let path = std::env::temp_dir().join(format!("ndcompat-folder-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let flags = FLAG_BACKUP_SEMANTICS | FLAG_DELETE_ON_CLOSE;
        let wanted = Wanted { access: 0x1_0000, disposition: OPEN_EXISTING, flags };
        drop(DiskFile::open(&path, wanted).unwrap());
        assert!(!path.exists());
    }
}
