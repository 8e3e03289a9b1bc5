//! The names of events, mutexes, semaphores and timers: one namespace for all kinds, within the process. Sections, which have names
//! known to all processes, are in it, too.
//!
//! A name exists as long as its object has a handle or is waited for.

use super::Object;
use crate::error::*;
use crate::memory::section::Section;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Once};

/// A weak reference to an object.
pub(crate) type Find = Box<dyn Fn() -> Option<Object> + Send>;

static NAMES: Mutex<BTreeMap<String, Find>> = Mutex::new(BTreeMap::new());

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
    if let Some(object) = names.get(name).and_then(|find| find()) {
        return pick(object).map(|object| (object, true)).ok_or(ERROR_INVALID_HANDLE);
    }
    names.retain(|_, find| find().is_some());
    let object = make();
    let weak = Arc::downgrade(&object);
    names.insert(name.to_string(), Box::new(move || weak.upgrade().map(wrap)));
    Ok((object, false))
}

/// Gives a section's name to it, so that nothing else has it in this process; the error if something has. That the section's name is
/// known to other processes is not told here.
pub(crate) fn enter_section(name: &str, section: &Arc<Section>) -> Result<(), u32> {
    let name = normal(name)?;
    let mut names = NAMES.lock();
    if !matches!(names.get(name).and_then(|find| find()), None | Some(Object::Section(_))) {
        return Err(ERROR_INVALID_HANDLE);
    }
    names.retain(|_, find| find().is_some());
    let weak = Arc::downgrade(section);
    names.insert(name.to_string(), Box::new(move || weak.upgrade().map(Object::Section)));
    Ok(())
}

/// The object of a name, if it is of the kind that `pick` accepts.
pub(super) fn open<T>(name: Option<String>, pick: fn(Object) -> Option<Arc<T>>) -> Result<Arc<T>, u32> {
    let name = name.ok_or(ERROR_INVALID_PARAMETER)?;
    if name.is_empty() {
        return Err(ERROR_INVALID_NAME);
    }
    let name = normal(&name)?;
    let Some(found) = NAMES.lock().get(name).and_then(|find| find()) else {
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
