//! Where the descriptions are: folders of `*.provider` files, one provider each.
//!
//! A folder is read anew each time. A file comes and goes as a whole (it is made under another name first), so readers
//! and writers of several processes need no lock.

use super::description::{Mistake, Provider};
use super::protocol::Guid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names the folders to use instead of the usual ones, separated by colons.
pub const VARIABLE: &str = "NDCOMPAT_PROVIDERS";
const SYSTEM: &str = "/etc/ndcompat/providers.d";
/// More is no description.
const MAX_SIZE: u64 = 65536;

/// A provider and the file that describes it.
#[derive(Debug)]
pub struct Described {
    /// The provider.
    pub provider: Provider,
    /// The file.
    pub file: PathBuf,
}

/// A file that was left out, and why.
#[derive(Debug)]
pub struct Fault {
    /// The file, or the folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub mistake: Mistake,
}

/// The folders, in the order in which they count: the first file with an identifier wins.
///
/// A program that runs with more rights than its user has looks at the system's only.
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
    // SAFETY: takes nothing.
    if is_privileged() || unsafe { libc::geteuid() } == 0 { Some(SYSTEM.into()) } else { user() }
}

fn is_privileged() -> bool {
    // SAFETY: takes no pointer.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// All providers that the files of `folders` describe, each identifier once, and the files that cannot be used.
pub fn read(folders: &[PathBuf]) -> (Vec<Described>, Vec<Fault>) {
    let (mut found, mut faults): (Vec<Described>, _) = (Vec::new(), Vec::new());
    for folder in folders {
        let files = match files(folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                faults.push(Fault { path: folder.clone(), mistake: unreadable(&error) });
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

/// The descriptions in `folder`, in the order of their names.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_description = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "provider");
    let mut paths: Vec<_> = paths.into_iter().filter(is_description).collect();
    paths.sort();
    Ok(paths)
}

fn unreadable(error: &io::Error) -> Mistake {
    Mistake { line: 0, reason: error.to_string() }
}

fn read_file(path: &Path) -> Result<Provider, Mistake> {
    // A pipe would keep the reader waiting.
    if !fs::metadata(path).map_err(|error| unreadable(&error))?.is_file() {
        return Err(Mistake { line: 0, reason: "no file".to_owned() });
    }
    let mut text = String::new();
    let size = File::open(path)
        .and_then(|file| file.take(MAX_SIZE + 1).read_to_string(&mut text))
        .map_err(|error| unreadable(&error))?;
    if size as u64 > MAX_SIZE {
        return Err(Mistake { line: 0, reason: "too long".to_owned() });
    }
    Provider::parse(&text)
}

/// The file that a provider is installed as.
pub fn file_name(id: Guid) -> String {
    let id = id.to_string().to_lowercase();
    format!("{}.provider", id.trim_matches(['{', '}']))
}

/// Writes a new description to `folder`; `AlreadyExists` when the file is there.
pub fn add(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    // A link, unlike a renaming, leaves alone what another process has made meanwhile.
    write(folder, text, |draft| fs::hard_link(draft, folder.join(name)))
}

/// Writes another description over `file`.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    write(folder, text, |draft| fs::rename(draft, file))
}

/// Writes `text` to a file of another name in `folder`, and lets `publish` give it its own.
fn write(folder: &Path, text: &str, publish: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let draft = folder.join(format!(".{}-{number}.draft", std::process::id()));
    // One that a killed process of the same number has left is in nobody's use.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
    let published =
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| publish(&draft));
    let _ = fs::remove_file(&draft);
    published
}
