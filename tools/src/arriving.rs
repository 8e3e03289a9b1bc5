//! A file that is being received. It gets its name once it is complete.

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The file. On file systems with `O_TMPFILE` it has no name until it is complete, so nothing is left of it if the process is
/// killed.
pub struct Arriving {
    file: File,
    target: PathBuf,
    /// A temporary name: for file systems without `O_TMPFILE`, and for the rename that replaces an existing file.
    part: Part,
    has_name: bool,
}

/// A temporary name, which is unlinked on drop.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Arriving {
    /// Creates a file for this name in the folder. [`finish`](Self::finish) gives it the name.
    pub fn begin(folder: &Path, name: &str) -> Result<Arriving> {
        let part = Part(folder.join(format!(".{name}.{}.nd-part", std::process::id())));
        let unnamed = open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from(0o666));
        let (file, has_name) = match unnamed {
            Ok(file) => (file.into(), false),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let file = File::create_new(&part.0);
                (file.with_context(|| format!("making {}", part.0.display()))?, true)
            }
            Err(error) => {
                return Err(error).with_context(|| format!("making a file in {}", folder.display()));
            }
        };
        Ok(Arriving { file, target: folder.join(name), part, has_name })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| format!("writing to {}", self.target.display()))
    }

    /// Gives the file its name. An existing file is replaced only with `overwrite`.
    pub fn finish(self, overwrite: bool) -> Result<()> {
        self.file.sync_all().with_context(|| format!("writing to {}", self.target.display()))?;
        let named = match (self.has_name, overwrite) {
            (false, false) => self.link(&self.target),
            // link(2) fails if the name exists, rename(2) replaces it.
            (false, true) => self.link(&self.part.0).and_then(|()| fs::rename(&self.part.0, &self.target)),
            (true, false) if self.target.exists() => Err(ErrorKind::AlreadyExists.into()),
            (true, _) => fs::rename(&self.part.0, &self.target),
        };
        named.with_context(|| format!("naming {}", self.target.display()))
    }

    /// Links the unnamed file to a name.
    fn link(&self, name: &Path) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(linkat(CWD, own, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}
