//! Modules: `LoadLibrary`, `GetProcAddress` and related functions, on the dynamic loader.
//!
//! An `HMODULE` is the loader's handle, which is the same for every user of a library. The DLLs of Windows whose
//! functions live in this runtime (kernel32, ntdll, ws2_32 and so on) are the library that holds the runtime.

use crate::arguments::{Out, Text};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::process::is_privileged;
use crate::text::{self, Unit, Wchar, narrow_and_wide};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `HMODULE`.
pub type Module = *mut c_void;

/// Flags of `LoadLibraryEx` that load a file as data, which shared objects do not support.
const AS_DATA: u32 = 0x2 | 0x20 | 0x40;
/// Names below this address are ordinals.
const ORDINALS: usize = 0x1_0000;

/// The DLLs of Windows that this runtime stands in for.
#[rustfmt::skip]
const SYSTEM_MODULES: &[&str] = &[
    "kernel32", "kernelbase", "ntdll", "ws2_32", "wsock32", "mswsock", "msvcrt", "ucrtbase", "advapi32", "iphlpapi", "psapi", "bcrypt",
    "bcryptprimitives", "winmm", "ole32", "combase", "rpcrt4", "dnsapi", "shell32", "user32", "dbghelp",
];

/// Reference counts of modules loaded by the program. Pointers of other modules are never followed.
fn modules() -> MutexGuard<'static, BTreeMap<usize, u32>> {
    static MODULES: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());
    MODULES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `dlopen`; `None` is the program itself.
fn open(path: Option<&str>, flags: c_int) -> Option<Module> {
    let path = path.map(CString::new).transpose().ok()?;
    let name = path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
    // SAFETY: NULL or a terminated name. Its initialisers are the caller's responsibility, as on Windows.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_NOW | libc::RTLD_LOCAL | flags) };
    (!handle.is_null()).then_some(handle)
}

/// Calls `dlclose`.
fn close(module: Module) {
    // SAFETY: every handle that comes here was opened once more than it was closed.
    unsafe { libc::dlclose(module) };
}

/// The path of the library, or of the program, that this runtime is linked into.
pub(crate) fn runtime_path() -> Option<String> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let address = runtime_path as fn() -> Option<String> as *const c_void;
    // SAFETY: an address of code, and room for the answer.
    if unsafe { libc::dladdr(address, found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: filled by the call.
    let found = unsafe { found.assume_init() };
    // SAFETY: a string that lives as long as the library.
    unsafe { text::string_from_narrow(found.dli_fname) }
}

/// Whether this is the name of a DLL that this runtime replaces.
fn is_system_module(name: &str) -> bool {
    let name = name.rsplit(['\\', '/']).next().unwrap_or(name).to_ascii_lowercase();
    let stem = name.strip_suffix(".dll").unwrap_or(&name);
    SYSTEM_MODULES.contains(&stem) || stem.starts_with("api-ms-win-") || stem.starts_with("ext-ms-win-")
}

/// Whether this is the base name of the program, which has no extension on Linux.
fn is_program(name: &str) -> bool {
    let name = name.to_lowercase();
    let stem = name.strip_suffix(".exe").unwrap_or(&name);
    let program = std::env::current_exe().ok();
    let program =
        program.as_deref().and_then(Path::file_name).map(|program| program.to_string_lossy().to_lowercase());
    program.is_some_and(|program| program == name || program == stem)
}

/// Opens the module that holds this runtime. Linked into the program statically, it has no file of its own.
fn open_runtime(flags: c_int) -> Option<Module> {
    runtime_path().and_then(|path| open(Some(&path), flags | libc::RTLD_NOLOAD)).or_else(|| open(None, flags))
}

/// The file names to try for a Windows name: the name itself, then Linux's form of it.
fn candidates(name: &str) -> Vec<String> {
    let path = name.replace('\\', "/");
    let (folder, file) =
        path.rsplit_once('/').map_or(("", &path[..]), |(_, file)| path.split_at(path.len() - file.len()));
    let stem = match file.len().checked_sub(4).and_then(|at| file.split_at_checked(at)) {
        Some((stem, extension)) if extension.eq_ignore_ascii_case(".dll") => Some(stem),
        // Without an extension, Windows would add ".dll".
        _ => (!file.contains('.')).then_some(file),
    };
    let linux =
        stem.into_iter().flat_map(|stem| [format!("{folder}{stem}.so"), format!("{folder}lib{stem}.so")]);
    std::iter::once(path.clone()).chain(linux).collect()
}

/// Where to look for a module that is not loaded: a base name in the program's folder first, as on Windows.
fn places(name: &str) -> Vec<String> {
    let names = candidates(name);
    // Who runs a privileged program may have linked it into a folder of his.
    let is_base = names.iter().all(|name| !name.contains('/')) && !is_privileged();
    let program = is_base.then(std::env::current_exe).and_then(Result::ok);
    let folder = program.as_deref().and_then(Path::parent).and_then(Path::to_str);
    let beside = folder.map(|folder| names.iter().map(move |name| format!("{folder}/{name}")));
    beside.into_iter().flatten().chain(names.iter().cloned()).collect()
}

/// Finds a module and opens it once more.
fn find(name: &str, flags: c_int) -> Option<Module> {
    let is_system = is_system_module(name);
    if is_system && !name.contains(['/', '\\']) || runtime_path().as_deref() == Some(name) {
        return open_runtime(flags);
    }
    if flags & libc::RTLD_NOLOAD != 0 && is_program(name) {
        return open(None, flags & !libc::RTLD_NOLOAD);
    }
    // What is loaded comes before what could be: a base name means the module that has it, wherever it was loaded from.
    let loaded = flags | libc::RTLD_NOLOAD;
    candidates(name)
        .iter()
        .find_map(|name| open(Some(name), loaded))
        .or_else(|| open(Some(&loaded_as(name, &loaded_paths())?), loaded))
        .or_else(|| places(name).iter().find_map(|name| open(Some(name), flags)))
        // The program may have a library of its own with such a name; Windows' folders are not there.
        .or_else(|| is_system.then(|| open_runtime(flags)).flatten())
}

/// The path of the first of these modules that a name without a folder means: base names are compared without case, in the
/// forms in which `LoadLibrary` looks for files. The loader knows a module by its path only, if it has no soname.
fn loaded_as(name: &str, paths: &[String]) -> Option<String> {
    if name.is_empty() || name.contains(['/', '\\']) {
        return None;
    }
    // Without an extension, Windows adds ".dll".
    let with_extension = (!name.contains('.')).then(|| format!("{name}.dll"));
    let wanted = [name].into_iter().chain(with_extension.as_deref()).flat_map(candidates);
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
    wanted
        .map(|name| name.to_lowercase())
        .find_map(|name| paths.iter().find(|path| base(path) == name))
        .cloned()
}

/// The paths of the modules that are loaded, without the program's own.
fn loaded_paths() -> Vec<String> {
    unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _size: usize, paths: *mut c_void) -> c_int {
        // SAFETY: the loader's record of a module, for the time of the call.
        let info = unsafe { &*info };
        // SAFETY: the list that `loaded_paths` passes, which nobody else uses meanwhile.
        let paths = unsafe { &mut *paths.cast::<Vec<String>>() };
        // SAFETY: a terminated string of the record's, or NULL.
        paths.extend(unsafe { text::string_from_narrow(info.dlpi_name) }.filter(|path| !path.is_empty()));
        0
    }
    let mut paths = Vec::new();
    // SAFETY: the function takes the list, and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut paths).cast()) };
    paths
}

fn load(name: Option<String>, flags: u32) -> Result<Module, u32> {
    let name = name.filter(|name| !name.is_empty()).ok_or(ERROR_INVALID_PARAMETER)?;
    if flags & AS_DATA != 0 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let module = find(&name, 0).ok_or_else(|| {
        let exists = places(&name).iter().any(|name| name.contains('/') && Path::new(name).is_file());
        if exists { ERROR_BAD_EXE_FORMAT } else { ERROR_MOD_NOT_FOUND }
    })?;
    *modules().entry(module as usize).or_default() += 1;
    Ok(module)
}

/// A module that is loaded already. Its handle is not to be freed.
fn loaded(name: Option<String>) -> Result<Module, u32> {
    let module = match name {
        None => open(None, 0),
        Some(name) => find(&name, libc::RTLD_NOLOAD),
    }
    .ok_or(ERROR_MOD_NOT_FOUND)?;
    modules().entry(module as usize).or_default();
    close(module);
    Ok(module)
}

/// `GET_MODULE_HANDLE_EX_FLAG_PIN`, `..._UNCHANGED_REFCOUNT`, `..._FROM_ADDRESS`.
const PIN: u32 = 1;
const UNCHANGED_REFCOUNT: u32 = 2;
const FROM_ADDRESS: u32 = 4;

/// Opens the module that an address is in once more.
fn find_around(address: *const c_void, flags: c_int) -> Option<Module> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: any address, and room for both answers.
    if unsafe { dladdr1(address, found.as_mut_ptr(), (&raw mut map).cast(), RTLD_DL_LINKMAP) } == 0 {
        return None;
    }
    // SAFETY: the loader's record of a loaded library.
    let map = unsafe { map.as_ref() }?;
    // SAFETY: a string of the record's.
    let name = unsafe { text::string_from_narrow(map.name) }.filter(|name| !name.is_empty());
    // The loader's entry of the program has an empty name.
    open(name.as_deref(), flags | if name.is_some() { libc::RTLD_NOLOAD } else { 0 })
}

/// A module that is loaded already: one reference more to it, unless that is not wanted.
fn reference(flags: u32, find: impl FnOnce(c_int) -> Option<Module>) -> Result<Module, u32> {
    if flags & !(PIN | UNCHANGED_REFCOUNT | FROM_ADDRESS) != 0 || flags & 3 == PIN | UNCHANGED_REFCOUNT {
        return Err(ERROR_INVALID_PARAMETER);
    }
    let pin = if flags & PIN != 0 { libc::RTLD_NODELETE } else { 0 };
    let module = find(pin).ok_or(ERROR_MOD_NOT_FOUND)?;
    let mut modules = modules();
    let loads = modules.entry(module as usize).or_default();
    if flags & (PIN | UNCHANGED_REFCOUNT) == 0 {
        *loads += 1;
    } else {
        drop(modules);
        close(module);
    }
    Ok(module)
}

fn unload(module: Module) -> Result<(), u32> {
    if module.is_null() {
        return Err(ERROR_INVALID_HANDLE);
    }
    let is_last = match modules().get_mut(&(module as usize)) {
        Some(loads @ 1..) => {
            *loads -= 1;
            *loads == 0
        }
        _ => return Err(ERROR_MOD_NOT_FOUND),
    };
    let path = if is_last { loaders_path(module) } else { Vec::new() };
    // Without the lock, as the module's destructors may call back.
    close(module);
    // Others may use it still; otherwise the handle means nothing from now on. The program itself stays.
    if let Some(path) = String::from_utf8(path).ok().filter(|path| !path.is_empty()) {
        match open(Some(&path), libc::RTLD_NOLOAD) {
            Some(module) => close(module),
            None => forget(module),
        }
    }
    Ok(())
}

/// Takes a module off the list that has been unloaded.
fn forget(module: Module) {
    let mut modules = modules();
    if modules.get(&(module as usize)) == Some(&0) {
        modules.remove(&(module as usize));
    }
}

/// The module a handle stands for, opened once more; NULL stands for the program.
fn borrow(module: Module) -> Result<Module, u32> {
    if module.is_null() {
        return open(None, 0).ok_or(ERROR_MOD_NOT_FOUND);
    }
    if modules().contains_key(&(module as usize)) { Ok(module) } else { Err(ERROR_MOD_NOT_FOUND) }
}

/// # Safety
/// `name` is an ordinal or a terminated string.
unsafe fn procedure(module: Module, name: *const c_char) -> Result<*mut c_void, u32> {
    let module = borrow(module)?;
    if (name as usize) < ORDINALS {
        return Err(ERROR_PROC_NOT_FOUND);
    }
    // SAFETY: no ordinal, hence a terminated string.
    let name = unsafe { CStr::from_ptr(name) };
    let [own, of_psapi] =
        [&b"ndw_"[..], b"ndw_K32"].map(|prefix| [prefix, name.to_bytes_with_nul()].concat());
    let symbol = |name: *const c_char| {
        // SAFETY: a handle of the loader and a terminated name.
        let found = unsafe { libc::dlsym(module, name) };
        (!found.is_null()).then_some(found)
    };
    // This runtime's functions have a prefix. The prefixed name is tried first, as the plain one may be a function of the C
    // library.
    symbol(own.as_ptr().cast())
        .or_else(|| symbol(name.as_ptr()))
        // What psapi.dll has, kernel32.dll has under another name.
        .or_else(|| symbol(of_psapi.as_ptr().cast()))
        .ok_or(ERROR_PROC_NOT_FOUND)
}

/// The path by which the loader knows a module; empty for the program, whose handle may be NULL.
fn loaders_path(module: Module) -> Vec<u8> {
    let mut map: *mut LinkMap = null_mut();
    if !module.is_null() {
        // SAFETY: a handle of the loader, and room for a pointer.
        unsafe { dlinfo(module, RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    }
    // SAFETY: NULL, or the loader's record of a loaded library.
    let map = unsafe { map.as_ref() };
    // SAFETY: NULL or a string of the record's.
    map.and_then(|map| unsafe { text::narrow(map.name) }).unwrap_or_default().to_vec()
}

/// The file a module was loaded from.
fn file_name(module: Module) -> Result<String, u32> {
    let path = |path: PathBuf| String::from_utf8_lossy(&path.into_os_string().into_vec()).into_owned();
    let name = if module.is_null() { Vec::new() } else { loaders_path(borrow(module)?) };
    if name.is_empty() {
        return std::env::current_exe().map(path).map_err(|_| ERROR_MOD_NOT_FOUND);
    }
    let name = PathBuf::from(OsString::from_vec(name));
    Ok(path(name.canonicalize().unwrap_or(name)))
}

/// Writes a file name to the caller's buffer; truncated, with `ERROR_INSUFFICIENT_BUFFER`, if it does not fit.
///
/// # Safety
/// `buffer` has room for `size` units.
unsafe fn answer<T: Copy + Default>(name: Result<Vec<T>, u32>, buffer: *mut T, size: u32) -> u32 {
    let name = match name {
        Ok(name) if !buffer.is_null() && size != 0 => name,
        other => {
            set_last_error(other.err().unwrap_or(ERROR_INSUFFICIENT_BUFFER));
            return 0;
        }
    };
    let kept = name.len().min(size as usize - 1);
    // SAFETY: one unit more than is kept fits.
    unsafe { text::store(&name[..kept], buffer, size as usize) };
    if kept < name.len() {
        set_last_error(ERROR_INSUFFICIENT_BUFFER);
        return size;
    }
    // Programs enlarge their buffer for as long as they find the other error here.
    set_last_error(ERROR_SUCCESS);
    kept as u32
}

/// The beginning of the loader's `struct link_map`.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
}

const RTLD_DI_LINKMAP: c_int = 2;
const RTLD_DL_LINKMAP: c_int = 2;

unsafe extern "C" {
    fn dlinfo(handle: Module, request: c_int, result: *mut c_void) -> c_int;
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}

/// A module that stays loaded until dropped, for Rust code.
pub struct Library(Module);

// SAFETY: the loader's functions take a handle on any thread.
unsafe impl Send for Library {}
// SAFETY: the loader's functions take a handle on several threads at a time.
unsafe impl Sync for Library {}

impl Library {
    /// Loads `name` as `LoadLibrary` does; the error is that of `GetLastError`.
    ///
    /// # Errors
    /// `ERROR_MOD_NOT_FOUND` and the others of `LoadLibrary`.
    pub fn load(name: &str) -> Result<Library, u32> {
        load(Some(name.to_owned()), 0).map(Library)
    }

    /// The address of a function, as `GetProcAddress` finds it.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a terminated name.
        unsafe { procedure(self.0, name.as_ptr()) }.ok().and_then(NonNull::new)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // Cannot fail: each `Library` holds one reference.
        let _ = unload(self.0);
    }
}

fn handle(result: Result<Module, u32>) -> Module {
    result.unwrap_or_else(|code| {
        set_last_error(code);
        null_mut()
    })
}

fn load_library<T: Unit>(name: Text<'_, T>) -> Module {
    handle(load(name.read(), 0))
}

fn load_library_ex<T: Unit>(name: Text<'_, T>, _file: *mut c_void, flags: u32) -> Module {
    handle(load(name.read(), flags))
}

fn get_module_handle<T: Unit>(name: Text<'_, T>) -> Module {
    handle(loaded(name.read()))
}

narrow_and_wide! {
    "`LoadLibrary`."
    ndw_LoadLibraryA ndw_LoadLibraryW = load_library(name: Text<'_, T>) -> Module;
    "`LoadLibraryEx`: the flags that say where to search are left to the loader's own rules."
    ndw_LoadLibraryExA ndw_LoadLibraryExW
        = load_library_ex(name: Text<'_, T>, file: *mut c_void, flags: u32) -> Module;
    "`GetModuleHandle`: NULL for the program."
    ndw_GetModuleHandleA ndw_GetModuleHandleW = get_module_handle(name: Text<'_, T>) -> Module;
}

/// `FreeLibrary`: only what was loaded can be freed, not what `GetModuleHandle` found.
///
/// # Safety
/// Nobody uses the library's code or data any more, if this is the last handle to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_FreeLibrary(module: Module) -> i32 {
    match unload(module) {
        Ok(()) => 1,
        Err(code) => {
            set_last_error(code);
            0
        }
    }
}

/// # Safety
/// `name` is NULL, a terminated string, or with `FROM_ADDRESS` any address.
unsafe fn get_module_handle_ex<T: Unit>(flags: u32, name: *const T, module: Out<'_, Module>) -> i32 {
    guard_bool(|| {
        let module = module.required(ERROR_INVALID_PARAMETER)?;
        module.put(null_mut());
        let found = reference(flags, |load| {
            if flags & FROM_ADDRESS != 0 {
                return find_around(name.cast(), load);
            }
            // SAFETY: NULL or terminated, as it is no address.
            match unsafe { T::read(name) } {
                None => open(None, load),
                Some(name) => find(&name, load | libc::RTLD_NOLOAD),
            }
        })?;
        module.put(found);
        Ok(())
    })
}

narrow_and_wide! {
    "`GetModuleHandleEx`."
    ndw_GetModuleHandleExA ndw_GetModuleHandleExW
        = unsafe get_module_handle_ex(flags: u32, name: *const T, module: Out<'_, Module>) -> i32;
}

/// `GetProcAddress`: by name; shared objects have no ordinals.
///
/// # Safety
/// `name` is an ordinal, or a terminated name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetProcAddress(module: Module, name: *const c_char) -> *mut c_void {
    // SAFETY: C's caller has an ordinal or a terminated name.
    handle(unsafe { procedure(module, name) })
}

/// `GetModuleFileNameW`.
///
/// # Safety
/// `buffer` is NULL or has room for `size` characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetModuleFileNameW(module: Module, buffer: *mut Wchar, size: u32) -> u32 {
    // SAFETY: C's caller has room for `size` characters.
    unsafe { answer(file_name(module).map(|name| text::to_wide(&name)), buffer, size) }
}

/// `GetModuleFileNameA`.
///
/// # Safety
/// `buffer` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetModuleFileNameA(module: Module, buffer: *mut c_char, size: u32) -> u32 {
    // SAFETY: C's caller has room for `size` characters.
    unsafe { answer(file_name(module).map(String::into_bytes), buffer.cast(), size) }
}

#[cfg(test)]
mod tests;
