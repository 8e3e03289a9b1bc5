//! Modules: `LoadLibrary`, `GetProcAddress` and their kin over the dynamic loader.
//!
//! An `HMODULE` is the loader's handle, which is the same for every user of a library. The DLLs of Windows whose
//! functions live in this runtime (kernel32, ntdll, ws2_32 and so on) are the library that holds the runtime.

use crate::error::*;
use crate::text::{self, Wchar};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `HMODULE`.
pub type Module = *mut c_void;

/// Flags of `LoadLibraryEx` that load a file without its code, which a shared object does not offer.
const AS_DATA: u32 = 0x2 | 0x20 | 0x40;
/// Names below this address are ordinals.
const ORDINALS: usize = 0x1_0000;

/// The DLLs of Windows that this runtime stands in for.
const SYSTEM_MODULES: &[&str] =
    &["kernel32", "kernelbase", "ntdll", "ws2_32", "mswsock", "msvcrt", "ucrtbase", "advapi32"];

/// The modules whose handles were given out, with the number of loads to be undone. Others are not followed.
fn modules() -> MutexGuard<'static, BTreeMap<usize, u32>> {
    static MODULES: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());
    MODULES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the loader; `None` stands for the program itself.
fn open(path: Option<&str>, flags: c_int) -> Option<Module> {
    let path = path.map(CString::new).transpose().ok()?;
    let name = path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
    // SAFETY: NULL or a terminated name. Its initialisers are the caller's responsibility, as on Windows.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_NOW | libc::RTLD_LOCAL | flags) };
    (!handle.is_null()).then_some(handle)
}

/// Gives one reference back to the loader.
fn close(module: Module) {
    // SAFETY: every handle that comes here was opened once more than it was closed.
    unsafe { libc::dlclose(module) };
}

/// The path of the library, or of the program, that this runtime is linked into.
pub(crate) fn runtime_path() -> Option<String> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: filled when the result is not 0; the name then is a string that lives as long as the library.
    unsafe {
        let address = runtime_path as fn() -> Option<String> as *const c_void;
        if libc::dladdr(address, found.as_mut_ptr()) == 0 {
            return None;
        }
        text::string_from_narrow(found.assume_init().dli_fname)
    }
}

/// Whether a name stands for a DLL that this runtime replaces.
fn is_system_module(name: &str) -> bool {
    let name = name.rsplit(['\\', '/']).next().unwrap_or(name).to_ascii_lowercase();
    let stem = name.strip_suffix(".dll").unwrap_or(&name);
    SYSTEM_MODULES.contains(&stem) || stem.starts_with("api-ms-win-")
}

/// Opens the module that holds this runtime. Linked into the program statically, it has no file of its own.
fn open_runtime(flags: c_int) -> Option<Module> {
    runtime_path().and_then(|path| open(Some(&path), flags | libc::RTLD_NOLOAD)).or_else(|| open(None, flags))
}

/// The names under which a Windows name may be found: as it is, then as Linux would call the library.
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

/// Finds a module and opens it once more.
fn find(name: &str, flags: c_int) -> Option<Module> {
    if is_system_module(name) || runtime_path().as_deref() == Some(name) {
        return open_runtime(flags);
    }
    candidates(name).iter().find_map(|name| open(Some(name), flags))
}

fn load(name: Option<String>, flags: u32) -> Result<Module, u32> {
    let name = name.filter(|name| !name.is_empty()).ok_or(ERROR_INVALID_PARAMETER)?;
    if flags & AS_DATA != 0 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let module = find(&name, 0).ok_or_else(|| {
        let exists = candidates(&name).iter().any(|name| name.contains('/') && Path::new(name).is_file());
        if exists { ERROR_BAD_EXE_FORMAT } else { ERROR_MOD_NOT_FOUND }
    })?;
    *modules().entry(module as usize).or_default() += 1;
    Ok(module)
}

/// A module that is loaded already; the handle is not one to be freed.
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

fn unload(module: Module) -> Result<(), u32> {
    if module.is_null() {
        return Err(ERROR_INVALID_HANDLE);
    }
    match modules().get_mut(&(module as usize)) {
        Some(loads @ 1..) => *loads -= 1,
        _ => return Err(ERROR_MOD_NOT_FOUND),
    }
    // Not under the lock: its finalisers may come back here.
    close(module);
    Ok(())
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
    // SAFETY: a string by the contract.
    let name = unsafe { CStr::from_ptr(name) };
    let own = [b"ndw_", name.to_bytes_with_nul()].concat();
    let symbol = |name: *const c_char| {
        // SAFETY: a handle of the loader and a terminated name.
        let found = unsafe { libc::dlsym(module, name) };
        (!found.is_null()).then_some(found)
    };
    // A Windows function is in this runtime under its own name with a prefix, which comes first: the plain name
    // may be one of the C library's.
    symbol(own.as_ptr().cast()).or_else(|| symbol(name.as_ptr())).ok_or(ERROR_PROC_NOT_FOUND)
}

/// The file a module was loaded from.
fn file_name(module: Module) -> Result<String, u32> {
    let path = |path: PathBuf| String::from_utf8_lossy(&path.into_os_string().into_vec()).into_owned();
    let mut map: *mut LinkMap = null_mut();
    if !module.is_null() {
        let module = borrow(module)?;
        // SAFETY: a handle of the loader, and room for a pointer.
        unsafe { dlinfo(module, RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    }
    // SAFETY: NULL, or the loader's record of a loaded library.
    let name = unsafe { map.as_ref().and_then(|map| text::narrow(map.name)) }.unwrap_or_default();
    // The program's own record has no name.
    if name.is_empty() {
        return std::env::current_exe().map(path).map_err(|_| ERROR_MOD_NOT_FOUND);
    }
    let name = PathBuf::from(OsStr::from_bytes(name));
    Ok(path(name.canonicalize().unwrap_or(name)))
}

/// Hands a file name out: cut, with `ERROR_INSUFFICIENT_BUFFER`, when there is too little room.
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
    kept as u32
}

/// The beginning of the loader's `struct link_map`.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
}

const RTLD_DI_LINKMAP: c_int = 2;

unsafe extern "C" {
    fn dlinfo(handle: Module, request: c_int, result: *mut c_void) -> c_int;
}

/// A module that stays loaded while this lives, for Rust code.
pub struct Library(Module);

// SAFETY: the loader's functions take a handle on any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads `name` as `LoadLibrary` does; the error is that of `GetLastError`.
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
        // It was loaded once and is unloaded once.
        let _ = unload(self.0);
    }
}

fn handle(result: Result<Module, u32>) -> Module {
    result.unwrap_or_else(|code| {
        set_last_error(code);
        null_mut()
    })
}

/// `LoadLibraryW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LoadLibraryW(name: *const Wchar) -> Module {
    // SAFETY: the function's contract.
    handle(load(unsafe { text::string_from_wide(name) }, 0))
}

/// `LoadLibraryA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LoadLibraryA(name: *const c_char) -> Module {
    // SAFETY: the function's contract.
    handle(load(unsafe { text::string_from_narrow(name) }, 0))
}

/// `LoadLibraryExW`: the flags that say where to search are left to the loader's own rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LoadLibraryExW(name: *const Wchar, _file: *mut c_void, flags: u32) -> Module {
    // SAFETY: the function's contract.
    handle(load(unsafe { text::string_from_wide(name) }, flags))
}

/// `LoadLibraryExA`: the flags that say where to search are left to the loader's own rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LoadLibraryExA(name: *const c_char, _file: *mut c_void, flags: u32) -> Module {
    // SAFETY: the function's contract.
    handle(load(unsafe { text::string_from_narrow(name) }, flags))
}

/// `FreeLibrary`: only what was loaded can be freed, not what `GetModuleHandle` found.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FreeLibrary(module: Module) -> i32 {
    match unload(module) {
        Ok(()) => 1,
        Err(code) => {
            set_last_error(code);
            0
        }
    }
}

/// `GetModuleHandleW`: NULL for the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetModuleHandleW(name: *const Wchar) -> Module {
    // SAFETY: the function's contract.
    handle(loaded(unsafe { text::string_from_wide(name) }))
}

/// `GetModuleHandleA`: NULL for the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetModuleHandleA(name: *const c_char) -> Module {
    // SAFETY: the function's contract.
    handle(loaded(unsafe { text::string_from_narrow(name) }))
}

/// `GetProcAddress`: by name; shared objects have no ordinals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetProcAddress(module: Module, name: *const c_char) -> *mut c_void {
    // SAFETY: the function's contract.
    handle(unsafe { procedure(module, name) })
}

/// `GetModuleFileNameW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetModuleFileNameW(module: Module, buffer: *mut Wchar, size: u32) -> u32 {
    // SAFETY: the function's contract.
    unsafe { answer(file_name(module).map(|name| text::to_wide(&name)), buffer, size) }
}

/// `GetModuleFileNameA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetModuleFileNameA(module: Module, buffer: *mut c_char, size: u32) -> u32 {
    // SAFETY: the function's contract.
    unsafe { answer(file_name(module).map(String::into_bytes), buffer.cast(), size) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null;

    // SAFETY of every block below: terminated names, handles from this module, buffers of the sizes told.

    /// Other tests, which run meanwhile, load another library: the last `FreeLibrary` must find this one gone.
    #[test]
    fn a_library_is_loaded_used_and_freed() {
        // SAFETY: see above.
        unsafe {
            let module = ndw_LoadLibraryW(w("libm.so.6").as_ptr());
            assert!(!module.is_null());
            assert_eq!(ndw_LoadLibraryExA(c"libm.so.6".as_ptr(), null_mut(), 0), module);
            let cos = ndw_GetProcAddress(module, c"cos".as_ptr());
            let cos: extern "C" fn(f64) -> f64 = std::mem::transmute(cos);
            assert_eq!(cos(0.0), 1.0);

            assert!(ndw_GetProcAddress(module, c"no_such_function".as_ptr()).is_null());
            assert_eq!(last_error(), ERROR_PROC_NOT_FOUND);
            assert!(ndw_GetProcAddress(module, 17 as *const c_char).is_null());
            assert_eq!(ndw_GetModuleHandleA(c"libm.so.6".as_ptr()), module);

            assert_eq!((ndw_FreeLibrary(module), ndw_FreeLibrary(module)), (1, 1));
            assert_eq!(ndw_FreeLibrary(module), 0);
            assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
        }
    }

    #[test]
    fn a_library_for_rust() {
        let library = Library::load("libresolv.so.2").unwrap();
        assert!(library.function(c"__b64_ntop").is_some() && library.function(c"no_such_function").is_none());
        assert!(Library::load("no-such-library.dll").is_err());
    }

    #[test]
    fn what_cannot_be_loaded() {
        let text = std::env::current_dir().unwrap().join("Cargo.toml");
        // SAFETY: see above.
        unsafe {
            for (name, error) in [
                ("no-such-library.dll", ERROR_MOD_NOT_FOUND),
                ("", ERROR_INVALID_PARAMETER),
                (text.to_str().unwrap(), ERROR_BAD_EXE_FORMAT),
            ] {
                assert!(ndw_LoadLibraryW(w(name).as_ptr()).is_null());
                assert_eq!(last_error(), error, "{name}");
            }
            assert!(ndw_LoadLibraryA(null()).is_null());
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            assert!(ndw_LoadLibraryExW(w("libm.so.6").as_ptr(), null_mut(), 2).is_null());
            assert_eq!(last_error(), ERROR_NOT_SUPPORTED);
            assert!(ndw_GetModuleHandleW(w("no-such-library").as_ptr()).is_null());
            assert!(ndw_GetProcAddress(0x1234 as Module, c"cos".as_ptr()).is_null());
            assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
            assert_eq!(ndw_FreeLibrary(0x1234 as Module), 0);
            assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
            assert_eq!(ndw_FreeLibrary(null_mut()), 0);
            assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        }
    }

    #[test]
    fn windows_names_lead_to_linux_libraries() {
        assert_eq!(candidates("nd.dll"), ["nd.dll", "nd.so", "libnd.so"]);
        assert_eq!(candidates("C:\\x\\nd"), ["C:/x/nd", "C:/x/nd.so", "C:/x/libnd.so"]);
        assert_eq!(candidates("libnd.so.1"), ["libnd.so.1"]);
    }

    #[test]
    fn system_modules_are_this_runtime() {
        assert!(is_system_module("KERNEL32.DLL") && is_system_module("C:\\Windows\\System32\\ntdll"));
        assert!(is_system_module("api-ms-win-core-synch-l1-2-0.dll") && !is_system_module("kernel.dll"));
        // SAFETY: see above.
        unsafe {
            let module = ndw_GetModuleHandleW(w("ntdll.dll").as_ptr());
            assert!(!module.is_null());
            assert_eq!(ndw_LoadLibraryA(c"kernel32".as_ptr()), module);
            assert_eq!(ndw_FreeLibrary(module), 1);
        }
    }

    #[test]
    fn file_names() {
        let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let mut buffer = [0; 4096];
        // SAFETY: see above.
        unsafe {
            let length = ndw_GetModuleFileNameW(null_mut(), buffer.as_mut_ptr(), 4096);
            assert_eq!(text::from_wide(&buffer[..length as usize]), program);
            assert_eq!(ndw_GetModuleFileNameW(null_mut(), buffer.as_mut_ptr(), 5), 5);
            assert_eq!((last_error(), buffer[4]), (ERROR_INSUFFICIENT_BUFFER, 0));

            let module = ndw_LoadLibraryA(c"libresolv.so.2".as_ptr());
            let mut narrow = [0u8; 4096];
            let length = ndw_GetModuleFileNameA(module, narrow.as_mut_ptr().cast(), 4096);
            let name = std::str::from_utf8(&narrow[..length as usize]).unwrap();
            assert!(name.starts_with('/') && name.contains("libresolv"), "{name}");
            ndw_FreeLibrary(module);
            assert_eq!(ndw_GetModuleFileNameA(0x1234 as Module, narrow.as_mut_ptr().cast(), 4096), 0);
            assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
        }
    }
}
