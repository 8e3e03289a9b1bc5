//! The names of events, mutexes, semaphores and timers: one namespace for all kinds, within the process. Sections, which have names
//! known to all processes, are in it, too.
//!
//! A name exists as long as its object has a handle or is waited for.

use super::Object;
use crate::error::*;
use crate::memory::section::Section;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Once, Weak};

/// What has a name. An object is not referred to but to be handed out: under the lock, the last reference must not go.
enum Entry {
    /// An event, a mutex, a semaphore or a timer.
    Object(Box<dyn Reference>),
    /// Sections: each call that created or opened one has made another.
    Sections(Vec<Weak<Section>>),
}

/// A weak reference to an object, and the kind that it is.
trait Reference: Send {
    fn find(&self) -> Option<Object>;
    fn lives(&self) -> bool;
}

impl<T: Send + Sync> Reference for (Weak<T>, fn(Arc<T>) -> Object) {
    fn find(&self) -> Option<Object> {
        self.0.upgrade().map(self.1)
    }

    fn lives(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Entry {
    fn lives(&self) -> bool {
        match self {
            Entry::Object(object) => object.lives(),
            Entry::Sections(sections) => sections.iter().any(|section| section.strong_count() > 0),
        }
    }

    /// The object, unless it has gone; `ERROR_INVALID_HANDLE` for a section.
    fn object(&self) -> Result<Option<Object>, u32> {
        match self {
            Entry::Object(object) => Ok(object.find()),
            Entry::Sections(_) if self.lives() => Err(ERROR_INVALID_HANDLE),
            Entry::Sections(_) => Ok(None),
        }
    }
}

static NAMES: Mutex<BTreeMap<String, Entry>> = Mutex::new(BTreeMap::new());

/// The longest name, in units, without the NUL.
const LONGEST: usize = 259;

/// The key of a name: `Local\` is the default namespace.
fn normal(name: &str) -> Result<&str, u32> {
    if name.chars().count() > LONGEST {
        return Err(ERROR_FILENAME_EXCED_RANGE);
    }
    let name = name.strip_prefix("Local\\").unwrap_or(name);
    let plain = name.strip_prefix("Global\\").unwrap_or(name);
    if plain.contains('\\') { Err(ERROR_PATH_NOT_FOUND) } else { Ok(name) }
}

/// The object of a name, if `pick` accepts its kind, or a new one from `make`; and whether it existed. Without a name, or with an
/// empty one, it is always new.
pub(super) fn create<T>(
    name: Option<String>,
    pick: fn(Object) -> Option<Arc<T>>,
    wrap: fn(Arc<T>) -> Object,
    make: impl FnOnce() -> Arc<T>,
) -> Result<(Arc<T>, bool), u32>
where
    T: Send + Sync + 'static,
{
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok((make(), false)) };
    let name = normal(&name)?;
    let mut names = NAMES.lock();
    if let Some(object) = names.get(name).map(Entry::object).transpose()?.flatten() {
        drop(names);
        return pick(object).map(|object| (object, true)).ok_or(ERROR_INVALID_HANDLE);
    }
    names.retain(|_, entry| entry.lives());
    let object = make();
    names.insert(name.to_string(), Entry::Object(Box::new((Arc::downgrade(&object), wrap))));
    Ok((object, false))
}

/// Gives a section's name to it, so that nothing else has it in this process; the error if something has. That the section's name is
/// known to other processes is not told here.
pub(crate) fn enter_section(name: &str, section: &Arc<Section>) -> Result<(), u32> {
    let name = normal(name)?;
    let mut names = NAMES.lock();
    names.retain(|_, entry| entry.lives());
    match names.entry(name.to_string()).or_insert_with(|| Entry::Sections(Vec::new())) {
        Entry::Object(_) => Err(ERROR_INVALID_HANDLE),
        Entry::Sections(sections) => {
            sections.retain(|section| section.strong_count() > 0);
            sections.push(Arc::downgrade(section));
            Ok(())
        }
    }
}

/// The object of a name, if it is of the kind that `pick` accepts.
pub(super) fn open<T>(name: Option<String>, pick: fn(Object) -> Option<Arc<T>>) -> Result<Arc<T>, u32> {
    let name = name.ok_or(ERROR_INVALID_PARAMETER)?;
    if name.is_empty() {
        return Err(ERROR_INVALID_NAME);
    }
    let name = normal(&name)?;
    let found = NAMES.lock().get(name).map(Entry::object).transpose()?.flatten();
    let Some(found) = found else {
        tell_of_other_processes(name);
        return Err(ERROR_FILE_NOT_FOUND);
    };
    pick(found).ok_or(ERROR_INVALID_HANDLE)
}

/// Who looks for an object of another process is told, once, that there is no such thing here.
fn tell_of_other_processes(name: &str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::logging::start();
        tracing::warn!(target: "ndcompat::objects", "this process has no event, mutex, semaphore or timer named '{name}'; those \
            of other processes are not seen (docs/win32.md)");
    });
}
