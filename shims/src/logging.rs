//! The library's log. `NDCOMPAT_LOG` selects its levels, `NDCOMPAT_LOG_FILE` the file.
//!
//! Everything reports through [`tracing`]. A Rust program that has a subscriber of its own gets all of it; for the others,
//! [`start`] installs one that writes lines to standard error or to a file. Nothing goes to standard output.
//!
//! A line is one `write`, without a lock, so a child of `fork` may go on logging.

use crate::broken_pipe::without_sigpipe;
use crate::process::is_privileged;
use std::ffi::OsString;
use std::fmt::{self, Write};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, Once, TryLockError};
use std::time::{Duration, Instant};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, SubscriberExt};

/// The levels: `LEVEL[,MODULE=LEVEL]...`.
pub const VARIABLE: &str = "NDCOMPAT_LOG";
/// The file to which lines are appended.
pub const FILE_VARIABLE: &str = "NDCOMPAT_LOG_FILE";
/// The modules that lines are from.
pub const MODULES: [&str; 9] =
    ["connection", "device", "logging", "memory", "objects", "providers", "queue", "session", "verbs"];
/// The prefix of module names such as `connection`.
const PREFIX: &str = "ndcompat::";
/// The most lines a second from one call site,
const LINES: u32 = 10;
const PERIOD: Duration = Duration::from_secs(1);
/// for warnings and errors. Finer levels are not limited.
const LIMITED: Level = Level::WARN;

/// Installs the subscriber, once in a process, unless the program has one. The entry points of the library for C call it.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A privileged program must not trust its environment.
        let variable = |name| if is_privileged() { None } else { std::env::var_os(name) };
        install(variable(VARIABLE), variable(FILE_VARIABLE));
    });
}

fn install(levels: Option<OsString>, file: Option<OsString>) {
    let text = levels.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    let mistake = mistake(&text);
    let mut levels = parse(&text).unwrap_or_else(|_| default_levels());
    if mistake.is_some() {
        // Also where only the module with the mistake was to speak.
        levels = levels.with_target("ndcompat::logging", LevelFilter::WARN);
    }
    let file = file.filter(|name| !name.is_empty()).map(|name| (open(Path::new(&name)), name));
    let (output, unopened) = match file {
        None => (None, None),
        Some((Ok(file), _)) => (Some(file), None),
        Some((Err(error), name)) => (None, Some((error, name))),
    };
    let lines = Output { file: output, limits: Mutex::default() };
    let subscriber = tracing_subscriber::registry().with(lines).with(levels);
    // The program has a subscriber of its own.
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        return;
    }
    if let Some(mistake) = mistake {
        tracing::warn!(target: "ndcompat::logging", "{VARIABLE}={text}: {mistake}");
    }
    if let Some((error, name)) = unopened {
        let name = name.to_string_lossy();
        tracing::warn!(target: "ndcompat::logging", "{FILE_VARIABLE}={name}: {error}; logging to standard error");
    }
}

fn default_levels() -> Targets {
    Targets::new().with_default(LevelFilter::WARN)
}

/// What is wrong with a value of [`VARIABLE`], if anything is, and what it is taken for.
pub fn mistake(text: &str) -> Option<String> {
    if let Err(word) = parse(text) {
        return Some(format!(
            "'{word}' is neither off, error, warn, info, debug nor trace, nor MODULE=LEVEL; taken as warn"
        ));
    }
    let modules = words(text).filter_map(|word| Some(word.split_once('=')?.0));
    let unknown: Vec<_> =
        modules.filter(|module| !selects(module)).map(|module| format!("'{module}'")).collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "no module is named {}; taken as if it were not there; modules are {}",
            unknown.join(", "),
            MODULES.join(", ")
        )
    })
}

/// Whether the name selects a module; its beginning does, too.
fn selects(name: &str) -> bool {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    name == "ndcompat" || MODULES.iter().any(|module| module.starts_with(name))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// The levels in `text`, or the first invalid word.
fn parse(text: &str) -> Result<Targets, String> {
    let mut levels = default_levels();
    for word in words(text) {
        let (module, level) =
            word.split_once('=').map_or((None, word), |(module, level)| (Some(module), level));
        // `Targets` would accept numbers and an empty level, too.
        if level.is_empty() || !level.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(word.to_owned());
        }
        let level: LevelFilter = level.parse().map_err(|_| word.to_owned())?;
        levels = match module {
            None => levels.with_default(level),
            Some(module) if module.starts_with("ndcompat") => levels.with_target(module, level),
            Some(module) => levels.with_target(format!("{PREFIX}{module}"), level),
        };
    }
    Ok(levels)
}

/// A log file that several processes may append to.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// `2026-01-31T12:00:00.123456Z ndcompat[PID] WARN connection: message field=value`
fn line(event: &Event<'_>) -> Result<String, fmt::Error> {
    let metadata = event.metadata();
    let module = metadata.target().strip_prefix(PREFIX).unwrap_or(metadata.target());
    let mut line = String::new();
    SystemTime.format_time(&mut Writer::new(&mut line))?;
    write!(line, " ndcompat[{}] {} {module}: ", std::process::id(), metadata.level())?;
    DefaultFields::new().format_fields(Writer::new(&mut line), event)?;
    line.push('\n');
    Ok(line)
}

/// Where lines go.
struct Output {
    /// Standard error, if none.
    file: Option<File>,
    limits: Mutex<Vec<Limit>>,
}

/// The recent lines of one call site.
struct Limit {
    place: tracing::callsite::Identifier,
    since: Instant,
    lines: u32,
}

impl Output {
    /// Whether the call site may log another line, so that a program that retries in a loop does not fill the disk.
    fn may_speak(&self, metadata: &Metadata<'_>) -> bool {
        if *metadata.level() > LIMITED {
            return true;
        }
        let mut limits = match self.limits.try_lock() {
            Ok(limits) => limits,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Not worth waiting for; in the child of a fork the owner of the lock may not exist.
            Err(TryLockError::WouldBlock) => return true,
        };
        let now = Instant::now();
        let at = limits.iter().position(|limit| limit.place == metadata.callsite());
        let at = at.unwrap_or_else(|| {
            limits.push(Limit { place: metadata.callsite(), since: now, lines: 0 });
            limits.len() - 1
        });
        let limit = &mut limits[at];
        if now - limit.since >= PERIOD {
            (limit.since, limit.lines) = (now, 0);
        }
        limit.lines += 1;
        limit.lines <= LINES
    }

    fn write(&self, line: &str) {
        // SAFETY: the bytes are readable. The result does not matter: there is nobody to tell.
        without_sigpipe(|| unsafe { libc::write(self.fd(), line.as_ptr().cast(), line.len()) });
    }

    fn fd(&self) -> i32 {
        self.file.as_ref().map_or(libc::STDERR_FILENO, AsRawFd::as_raw_fd)
    }
}

/// The layer of `tracing_subscriber::fmt` would keep its lines in thread-local storage, which is gone when a destructor of another
/// thread-local calls the library.
impl<S: Subscriber> Layer<S> for Output {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !self.may_speak(event.metadata()) {
            return;
        }
        if let Ok(line) = line(event) {
            self.write(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::FromRawFd;

    fn enables(text: &str, target: &str) -> Option<Level> {
        let levels = parse(text).unwrap();
        let all = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
        all.into_iter().find(|level| levels.would_enable(target, level))
    }

    #[test]
    fn levels_are_for_all_or_for_a_module() {
        assert_eq!(enables("", "ndcompat::connection"), Some(Level::WARN));
        assert_eq!(enables("off", "ndcompat::connection"), None);
        assert_eq!(enables("INFO", "ndcompat::connection"), Some(Level::INFO));
        assert_eq!(enables("error, connection=trace", "ndcompat::connection"), Some(Level::TRACE));
        assert_eq!(enables("error,connection=trace", "ndcompat::memory"), Some(Level::ERROR));
        assert_eq!(enables("connection=off", "ndcompat::memory"), Some(Level::WARN));
        assert_eq!(enables("ndcompat::memory=debug", "ndcompat::memory"), Some(Level::DEBUG));
    }

    #[test]
    fn what_is_no_level_is_named() {
        for wrong in ["loud", "connection=", "connection=3", "3", "warn=connection"] {
            assert_eq!(parse(&format!("info,{wrong}")).unwrap_err(), wrong);
        }
    }

    #[test]
    fn a_module_that_is_none_is_named_with_those_that_are() {
        for right in ["", "info", "ndcompat=info", "connection=debug", "ndcompat::memory=off,conn=debug"] {
            assert_eq!(mistake(right), None, "{right}");
        }
        let said = mistake("ndcompat=info,banana=debug, mememory=off").unwrap();
        assert!(said.contains("no module is named 'banana', 'mememory'"), "{said}");
        assert!(said.ends_with(&MODULES.join(", ")), "{said}");
        assert!(mistake("ndcompat::banana=debug").is_some() && mistake("loud").unwrap().contains("'loud'"));
        assert_eq!(enables("info,banana=debug", "ndcompat::memory"), Some(Level::INFO));
    }

    /// A pipe: the reading end, and the other as an output.
    fn pipe() -> (File, Output) {
        let mut ends = [0; 2];
        // SAFETY: there is room for two descriptors.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        // SAFETY: descriptors that were just opened, and are nobody else's.
        let [read, write] = ends.map(|fd| unsafe { File::from_raw_fd(fd) });
        (read, Output { file: Some(write), limits: Mutex::default() })
    }

    #[test]
    fn a_pipe_without_a_reader_ends_nothing() {
        let (read, output) = pipe();
        drop(read);
        // The test's runtime ignores the signal; a C program does not.
        // SAFETY: the default action, as in a C program.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        output.write("nobody reads this\n");
        // SAFETY: puts back what was there.
        unsafe { libc::signal(libc::SIGPIPE, before) };
    }

    #[test]
    fn a_place_that_warns_in_a_loop_is_silenced_for_a_while() {
        let (mut read, output) = pipe();
        let subscriber = tracing_subscriber::registry().with(output);
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..1000 {
                tracing::warn!(target: "ndcompat::connection", number, "again");
            }
            for number in 0..20 {
                tracing::info!(target: "ndcompat::connection", number, "all of it");
            }
        });
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        // The loop may have lasted longer than the period, on a machine that is very busy.
        assert!((10..500).contains(&count("again")), "{}", count("again"));
        assert_eq!(count("all of it"), 20);
        let first = text.lines().next().unwrap();
        assert!(
            first.ends_with(&format!("Z ndcompat[{}]  WARN connection: again number=0", std::process::id()))
                || first.ends_with(&format!(
                    "Z ndcompat[{}] WARN connection: again number=0",
                    std::process::id()
                )),
            "{first}"
        );
    }

    #[test]
    fn a_file_gets_lines_at_its_end() {
        let path = std::env::temp_dir().join(format!("ndcompat-log-{}", std::process::id()));
        std::fs::write(&path, "before\n").unwrap();
        let output = Output { file: Some(open(&path).unwrap()), limits: Mutex::default() };
        output.write("after\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
        std::fs::remove_file(&path).unwrap();
    }
}
