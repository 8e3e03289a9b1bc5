//! The other providers of the catalogue: libraries that are loaded at their first use, and unloaded by `NdFlushProviders`
//! if their `DllCanUnloadNow` allows it.

use crate::address;
use crate::com::{HResult, vtable};
use crate::guid::Guid;
use crate::interfaces::{IID_IND2Provider, IND2ProviderVtbl};
use crate::provider::DllGetClassObject;
use ndcompat::SockAddr;
use ndcompat::{Result, Status};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use win32::library::Library;
use win32::winsock::catalogue::{self, Provider, Spi};

type GetClassObject = unsafe extern "C" fn(*const Guid, *const Guid, *mut *mut c_void) -> HResult;
type CanUnloadNow = unsafe extern "C" fn() -> HResult;

/// How many times a provider is asked for its address list while the list grows.
const ATTEMPTS: usize = 8;

/// A loaded provider.
struct Loaded {
    provider: Provider,
    get_class_object: GetClassObject,
    can_unload_now: CanUnloadNow,
    _library: Library,
}

fn loaded() -> MutexGuard<'static, Vec<Arc<Loaded>>> {
    static LOADED: Mutex<Vec<Arc<Loaded>>> = Mutex::new(Vec::new());
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Loaded {
    /// Loads a provider; `None` if that fails, or if it is this library under another name.
    fn load(provider: Provider) -> Option<Arc<Loaded>> {
        if let Some(known) = loaded().iter().find(|known| known.provider == provider) {
            return Some(known.clone());
        }
        // Called without the lock, as the library's initializers may call in here. A library loaded twice is only counted
        // twice.
        let broken = |reason: &dyn std::fmt::Display| {
            let (id, library) = (provider.id.to_string(), &provider.library);
            tracing::warn!(target: "ndcompat::providers", id, "the provider {library} cannot be used: {reason}");
        };
        let library = Library::load(&provider.library)
            .inspect_err(|code| broken(&format_args!("it cannot be loaded (Windows error {code})")))
            .ok()?;
        let function = |name: &std::ffi::CStr| {
            let found = library.function(name);
            found.is_none().then(|| broken(&format_args!("it has no {}", name.to_string_lossy())));
            found
        };
        let get_class_object = function(c"DllGetClassObject")?;
        let can_unload_now = function(c"DllCanUnloadNow")?;
        if ptr::eq(get_class_object.as_ptr(), DllGetClassObject as *const c_void) {
            return None;
        }
        // SAFETY: functions of this name have this type in COM libraries.
        let get_class_object =
            unsafe { std::mem::transmute::<NonNull<c_void>, GetClassObject>(get_class_object) };
        // SAFETY: functions of this name have this type in COM libraries.
        let can_unload_now = unsafe { std::mem::transmute::<NonNull<c_void>, CanUnloadNow>(can_unload_now) };
        let new = Arc::new(Loaded { provider, get_class_object, can_unload_now, _library: library });
        loaded().push(new.clone());
        Some(new)
    }

    fn instance(self: Arc<Loaded>) -> Option<Instance> {
        let class = ptr::from_ref(&self.provider.id).cast::<Guid>();
        let mut object = ptr::null_mut();
        // SAFETY: `DllGetClassObject` takes two GUIDs and a pointer to the result.
        let status = unsafe { (self.get_class_object)(class, &IID_IND2Provider, &mut object) };
        let object = NonNull::new(object.cast()).filter(|_| status >= 0)?;
        Some(Instance { object, _loaded: self })
    }
}

/// An `IND2Provider` of another library.
pub(crate) struct Instance {
    object: NonNull<*const IND2ProviderVtbl>,
    /// Keeps the library while its object is used.
    _loaded: Arc<Loaded>,
}

impl Instance {
    fn methods(&self) -> &IND2ProviderVtbl {
        // SAFETY: `DllGetClassObject` has returned this interface; `self` owns the reference.
        unsafe { vtable(self.object.cast()) }
    }

    fn this(&self) -> *mut c_void {
        self.object.as_ptr().cast()
    }

    /// The addresses of the provider; none if it fails.
    pub(crate) fn addresses(&self) -> Vec<SockAddr> {
        let mut list: Vec<u64> = Vec::new();
        for _ in 0..ATTEMPTS {
            let mut length = (list.len() * size_of::<u64>()) as u32;
            let out = if list.is_empty() { ptr::null_mut() } else { list.as_mut_ptr().cast() };
            // SAFETY: the list has `length` bytes.
            match Status(unsafe { (self.methods().query_address_list)(self.this(), out, &mut length) }) {
                Status::BUFFER_OVERFLOW => list = vec![0; (length as usize).div_ceil(size_of::<u64>())],
                Status::SUCCESS if !list.is_empty() => {
                    // SAFETY: the provider has written the list.
                    return unsafe { address::read_list(list.as_ptr().cast()) };
                }
                _ => break,
            }
        }
        Vec::new()
    }

    fn owns(&self, address: SockAddr) -> bool {
        self.addresses().iter().any(|own| own.same_ip(address))
    }

    /// # Safety
    /// `iid` and `out` must be valid.
    unsafe fn open_adapter(&self, iid: *const Guid, address: SockAddr, out: *mut *mut c_void) -> HResult {
        let (raw, length) = address.to_raw();
        let mut id = 0;
        // SAFETY: the address has the length passed, and the result is writable.
        if unsafe { (self.methods().resolve_address)(self.this(), raw.as_ptr().cast(), length, &mut id) } < 0
        {
            return Status::INVALID_ADDRESS.0;
        }
        // SAFETY: the caller says that `iid` and `out` are valid.
        unsafe { (self.methods().open_adapter)(self.this(), iid, id, out) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: `self` owns the reference.
        unsafe { (self.methods().base.release)(self.this()) };
    }
}

/// The other ND v2 providers. ND v1 providers are not loaded.
pub(crate) fn instances() -> impl Iterator<Item = Instance> {
    catalogue::providers()
        .into_iter()
        .filter(|provider| provider.id != catalogue::BUILT_IN)
        .filter(|provider| provider.protocols.iter().any(|protocol| protocol.spi() == Some(Spi::V2)))
        .filter_map(|provider| Loaded::load(provider)?.instance())
}

/// Whether another provider has this address.
pub(crate) fn check(address: SockAddr) -> Result<()> {
    let found = instances().any(|provider| provider.owns(address));
    if found { Ok(()) } else { Err(Status::INVALID_ADDRESS) }
}

/// Opens the adapter of `address` with the first provider that succeeds. Otherwise returns the last error, or `status`
/// without other providers.
///
/// # Safety
/// `iid` and `out` must be valid.
pub(crate) unsafe fn open_adapter(
    iid: *const Guid,
    address: SockAddr,
    out: *mut *mut c_void,
    mut status: HResult,
) -> HResult {
    for provider in instances().filter(|provider| provider.owns(address)) {
        // SAFETY: the caller says that `iid` and `out` are valid; the library of the provider stays loaded.
        status = unsafe { provider.open_adapter(iid, address, out) };
        if status >= 0 {
            break;
        }
    }
    status
}

/// Unloads the providers that are not in use.
pub(crate) fn flush() {
    let is_used = |known: &mut Arc<Loaded>| {
        // SAFETY: the function is code of the library, which `known` keeps loaded.
        Arc::strong_count(known) > 1 || unsafe { (known.can_unload_now)() } != Status::SUCCESS.0
    };
    let unused: Vec<_> = loaded().extract_if(.., |known| !is_used(known)).collect();
    // Dropped without the lock, as the library's finalizers may call in here.
    drop(unused);
}
