//! The folders of `*.provider` files, one provider each.
//!
//! A folder is read each time. Files are replaced atomically (written under another name first), so readers and writers in
//! several processes need no lock.
//!
//! A description decides which code a program runs. So it is accepted only if the folder and the file belong to root or the
//! program's user, and neither group nor others may write to them.

use super::description::{Mistake, Provider};
use super::protocol::Guid;
use crate::process::is_privileged;
use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Overrides the default folders; separated by colons.
pub const VARIABLE: &str = "NDCOMPAT_PROVIDERS";
const SYSTEM: &str = "/etc/ndcompat/providers.d";
/// Larger files are refused.
const MAX_SIZE: u64 = 65536;

/// A provider and the file that describes it.
#[derive(Debug)]
pub struct Described {
    /// The provider.
    pub provider: Provider,
    /// The file.
    pub file: PathBuf,
}

/// A refused file, and the reason.
#[derive(Debug)]
pub struct Fault {
    /// The file, or the folder.
    pub path: PathBuf,
    /// The reason.
    pub mistake: Mistake,
}

/// The folders in order of precedence: the first file with an identifier wins.
///
/// A privileged program uses the system's folder only.
pub fn folders() -> Vec<PathBuf> {
    let system = PathBuf::from(SYSTEM);
    if is_privileged() {
        return vec![system];
    }
    if let Some(list) = std::env::var_os(VARIABLE) {
        return std::env::split_paths(&list).filter(|path| path.is_absolute()).collect();
    }
    user().into_iter().chain([system]).collect()
}

/// The paths in [`VARIABLE`] that are ignored, as they would mean another folder in each program.
pub fn relative() -> Vec<Fault> {
    let list = if is_privileged() { None } else { std::env::var_os(VARIABLE) };
    let paths = list.iter().flat_map(|list| std::env::split_paths(list).collect::<Vec<_>>());
    paths
        .filter(|path| !path.is_absolute() && !path.as_os_str().is_empty())
        .map(|path| Fault { path, mistake: Mistake::of_all("not an absolute path") })
        .collect()
}

/// The user's own folder.
fn user() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(config.join("ndcompat/providers.d"))
}

/// Where a provider is installed: for all users by root, else for this one.
pub fn home() -> Option<PathBuf> {
    if std::env::var_os(VARIABLE).is_some() {
        return folders().into_iter().next();
    }
    if is_privileged() || rustix::process::geteuid().is_root() { Some(SYSTEM.into()) } else { user() }
}

/// Why a file or folder is not trusted, if it is not.
///
/// The user is the effective one. In a privileged program it may be the attacker (file capabilities do not change the user), so
/// only root is trusted there.
fn distrust(found: &Metadata) -> Option<&'static str> {
    let user = rustix::process::geteuid().as_raw();
    let is_theirs = found.uid() == 0 || (found.uid() == user && !is_privileged());
    if !is_theirs {
        Some("its owner is neither root nor the user")
    } else if found.mode() & 0o022 != 0 {
        Some("its group or others may write to it")
    } else {
        None
    }
}

/// All providers in `folders`, each identifier once, and the refused files.
pub fn read(folders: &[PathBuf]) -> (Vec<Described>, Vec<Fault>) {
    let (mut found, mut faults): (Vec<Described>, _) = (Vec::new(), Vec::new());
    for folder in folders {
        let files = match files(folder) {
            Ok(files) => files,
            Err(mistake) => {
                faults.push(Fault { path: folder.clone(), mistake });
                continue;
            }
        };
        for file in files {
            match read_file(&file) {
                Ok(provider) if found.iter().any(|known| known.provider.id == provider.id) => {}
                Ok(provider) => found.push(Described { provider, file }),
                Err(mistake) => faults.push(Fault { path: file, mistake }),
            }
        }
    }
    (found, faults)
}

/// The descriptions in `folder`, in the order of their names; none if there is no such folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Mistake> {
    let found = match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(unreadable)?,
    };
    if let Some(reason) = distrust(&found) {
        return Err(Mistake::of_all(reason));
    }
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(unreadable)?;
    let is_description = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "provider");
    let mut paths: Vec<_> = paths.into_iter().filter(is_description).collect();
    paths.sort();
    Ok(paths)
}

fn unreadable(error: io::Error) -> Mistake {
    Mistake::of_all(&error.to_string())
}

fn read_file(path: &Path) -> Result<Provider, Mistake> {
    // O_NONBLOCK, as a pipe would block the reader. The opened file is checked, not its name, which may change.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(Mistake::of_all("no file"));
    }
    if let Some(reason) = distrust(&found) {
        return Err(Mistake::of_all(reason));
    }
    let mut text = String::new();
    let size = file.take(MAX_SIZE + 1).read_to_string(&mut text).map_err(unreadable)?;
    if size as u64 > MAX_SIZE {
        return Err(Mistake::of_all("too long"));
    }
    Provider::parse(&text)
}

/// Creates the folder for installed providers and its parents, readable by all, whatever the umask, and writable by the owner
/// only. An existing one must be trusted.
pub fn make(folder: &Path) -> io::Result<()> {
    match fs::metadata(folder) {
        Ok(found) => match distrust(&found) {
            Some(_) => Err(io::ErrorKind::PermissionDenied.into()),
            None => Ok(()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_all(folder.parent().ok_or(error)?)?;
            make_one(folder)
        }
        Err(error) => Err(error),
    }
}

/// Creates a folder and its parents; the owners of existing ones do not matter.
fn make_all(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_all(parent)?;
    }
    make_one(folder)
}

fn make_one(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(folder) {
        // Another process has created it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o755)),
    }
}

/// The path of an installed provider's file.
pub fn file_name(id: Guid) -> String {
    let id = id.to_string().to_lowercase();
    format!("{}.provider", id.trim_matches(['{', '}']))
}

/// Writes a new description to `folder`; `AlreadyExists` if the file exists.
pub fn add(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    // link(2), unlike rename(2), does not replace a file that another process has created meanwhile.
    write(folder, text, |draft| fs::hard_link(draft, folder.join(name)))
}

/// Replaces the description in `file`.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    write(folder, text, |draft| fs::rename(draft, file))
}

/// Writes `text` to a temporary file in `folder`, which `publish` links or renames.
fn write(folder: &Path, text: &str, publish: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let draft = folder.join(format!(".{}-{number}.draft", std::process::id()));
    // Removes the temporary file of a killed process with the same id.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&draft)?;
    // Readable by all, writable by the owner, whatever the umask.
    let published = file
        .set_permissions(Permissions::from_mode(0o644))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| publish(&draft));
    let _ = fs::remove_file(&draft);
    published
}
