//! The built library, loaded as a provider: its entry points and Windows functions.

#![allow(non_snake_case)] // the names are Windows'

use crate::guid::Guid;
use ndcompat::Status;
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use win32::io::Overlapped;
use win32::object::RawHandle;

/// `WAIT_TIMEOUT`
pub const WAIT_TIMEOUT: u32 = 258;
/// `INFINITE`
pub const INFINITE: u32 = u32::MAX;

/// Where the library is: `NDCOMPAT_LIBRARY`, or what `ci/build` made in the build folder of this program.
fn path() -> PathBuf {
    if let Some(path) = std::env::var_os("NDCOMPAT_LIBRARY") {
        return path.into();
    }
    let program = std::env::current_exe().expect("the program's own path");
    let built = |folder: &std::path::Path| folder.join("ndcompat/lib/libndcompat.so.0");
    program
        .ancestors()
        .map(built)
        .find(|library| library.exists())
        .expect("no libndcompat.so.0: run ci/build first")
}

/// The address of a symbol of the library.
fn symbol(name: &str) -> *mut c_void {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| {
        let path = CString::new(path().as_os_str().as_bytes()).expect("a path");
        // SAFETY: a library without surprises in its constructors.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        // SAFETY: the message is a string until the next call.
        assert!(!library.is_null(), "{:?}", unsafe { CStr::from_ptr(libc::dlerror() as *const c_char) });
        library as usize
    });
    let name = CString::new(name).expect("a symbol");
    // SAFETY: the library stays loaded.
    let address = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) };
    assert!(!address.is_null(), "the library has no {name:?}");
    address
}

macro_rules! functions {
    ($($exported:literal fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`")]
        ///
        /// # Safety
        /// As Windows requires of the arguments.
        pub unsafe fn $name($($argument: $type),*) -> $result {
            static ADDRESS: OnceLock<usize> = OnceLock::new();
            let address = *ADDRESS.get_or_init(|| symbol($exported) as usize);
            // SAFETY: the symbol is a function of this type; its caller passes what it asks for.
            unsafe {
                let function: unsafe extern "C" fn($($type),*) -> $result = std::mem::transmute(address);
                function($($argument),*)
            }
        }
    )*};
}

/// `LPOVERLAPPED_COMPLETION_ROUTINE`
pub type Callback = unsafe extern "C" fn(status: u32, bytes: u32, ov: *mut Overlapped);

/// `WAITORTIMERCALLBACK`
pub type WaitCallback = unsafe extern "C" fn(context: *mut c_void, timed_out: u8);

/// `OVERLAPPED_ENTRY`
#[repr(C)]
#[derive(Debug)]
pub struct OverlappedEntry {
    /// The key of the file.
    pub key: usize,
    /// The request.
    pub overlapped: *mut Overlapped,
    /// Its status.
    pub internal: usize,
    /// Its byte count.
    pub bytes: u32,
}

impl OverlappedEntry {
    /// No packet.
    pub const EMPTY: OverlappedEntry =
        OverlappedEntry { key: usize::MAX, overlapped: std::ptr::null_mut(), internal: 0, bytes: 0 };
}

functions! {
    "DllGetClassObject" fn DllGetClassObject(
        class: *const Guid, iid: *const Guid, out: *mut *mut c_void
    ) -> Status;
    "DllCanUnloadNow" fn DllCanUnloadNow() -> Status;
    "NdStartup" fn NdStartup() -> Status;
    "NdCheckAddress" fn NdCheckAddress(address: *const c_void, length: usize) -> Status;
    "ndw_CreateEventW" fn CreateEventW(
        security: *mut c_void, manual: i32, set: i32, name: *const c_void
    ) -> RawHandle;
    "ndw_SetEvent" fn SetEvent(event: RawHandle) -> i32;
    "ndw_WaitForSingleObject" fn WaitForSingleObject(handle: RawHandle, milliseconds: u32) -> u32;
    "ndw_WaitForMultipleObjects" fn WaitForMultipleObjects(
        count: u32, handles: *const RawHandle, all: i32, milliseconds: u32
    ) -> u32;
    "ndw_RegisterWaitForSingleObject" fn RegisterWaitForSingleObject(
        wait: *mut RawHandle, object: RawHandle, callback: WaitCallback, context: *mut c_void, milliseconds: u32,
        flags: u32
    ) -> i32;
    "ndw_UnregisterWaitEx" fn UnregisterWaitEx(wait: RawHandle, event: RawHandle) -> i32;
    "ndw_CloseHandle" fn CloseHandle(handle: RawHandle) -> i32;
    "ndw_GetLastError" fn GetLastError() -> u32;
    "ndw_CancelIoEx" fn CancelIoEx(file: RawHandle, ov: *mut Overlapped) -> i32;
    "ndw_BindIoCompletionCallback" fn BindIoCompletionCallback(
        file: RawHandle, callback: Callback, flags: u32
    ) -> i32;
    "ndw_CreateIoCompletionPort" fn CreateIoCompletionPort(
        file: RawHandle, port: RawHandle, key: usize, threads: u32
    ) -> RawHandle;
    "ndw_PostQueuedCompletionStatus" fn PostQueuedCompletionStatus(
        port: RawHandle, bytes: u32, key: usize, ov: *mut Overlapped
    ) -> i32;
    "ndw_GetOverlappedResultEx" fn GetOverlappedResultEx(
        file: RawHandle, ov: *mut Overlapped, bytes: *mut u32, milliseconds: u32, alertable: i32
    ) -> i32;
    "ndw_GetQueuedCompletionStatusEx" fn GetQueuedCompletionStatusEx(
        port: RawHandle, entries: *mut OverlappedEntry, room: u32, count: *mut u32, milliseconds: u32, alertable: i32
    ) -> i32;
    "ndw_GetQueuedCompletionStatus" fn GetQueuedCompletionStatus(
        port: RawHandle, bytes: *mut u32, key: *mut usize, ov: *mut *mut Overlapped, milliseconds: u32
    ) -> i32;
}

/// A new event.
pub fn event(manual: bool) -> RawHandle {
    // SAFETY: the arguments are plain.
    let event = unsafe { CreateEventW(std::ptr::null_mut(), manual.into(), 0, std::ptr::null()) };
    assert_ne!(event, RawHandle::NULL);
    event
}

/// Whether `event` is set. This resets an auto-reset event.
pub fn take(event: RawHandle) -> bool {
    // SAFETY: an open handle.
    unsafe { WaitForSingleObject(event, 0) == 0 }
}

/// A completion port.
pub struct Port(RawHandle);

impl Port {
    /// A port without files.
    pub fn new() -> Port {
        Port::on(RawHandle::INVALID, 0)
    }

    /// Its handle.
    pub fn handle(&self) -> RawHandle {
        self.0
    }

    /// A port to which `file` is bound with `key`.
    pub fn on(file: RawHandle, key: usize) -> Port {
        // SAFETY: the arguments are plain.
        let port = unsafe { CreateIoCompletionPort(file, RawHandle::NULL, key, 0) };
        assert_ne!(port, RawHandle::NULL);
        Port(port)
    }

    /// The key and the `OVERLAPPED` of the next packet; `None` if none arrives in time.
    pub fn packet(&self, milliseconds: u32) -> Option<(usize, *mut Overlapped)> {
        let (mut bytes, mut key, mut ov) = (0, 0, std::ptr::null_mut());
        // SAFETY: the results are this function's own. A failed request gives FALSE and its OVERLAPPED.
        unsafe { GetQueuedCompletionStatus(self.0, &mut bytes, &mut key, &mut ov, milliseconds) };
        (!ov.is_null()).then_some((key, ov))
    }
}

impl Default for Port {
    fn default() -> Port {
        Port::new()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: the handle is this port's.
        unsafe { CloseHandle(self.0) };
    }
}
