//! The other providers of the catalogue: libraries that are loaded when they are asked for the first time, and unloaded
//! by `NdFlushProviders` once they say that nobody uses them.

use crate::address;
use crate::com::HResult;
use crate::guid::{Guid, IID_IND2Provider};
use crate::provider::{DllGetClassObject, Methods};
use ndcompat::verbs::SockAddr;
use ndcompat::{Result, Status};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use win32::library::Library;
use win32::process::expand;
use win32::winsock::catalogue::{self, Provider, Spi};

type GetClassObject = unsafe extern "C" fn(*const Guid, *const Guid, *mut *mut c_void) -> HResult;
type CanUnloadNow = unsafe extern "C" fn() -> HResult;

/// How often a list of addresses may have grown before it is taken for broken.
const ATTEMPTS: usize = 8;

/// A provider that is loaded.
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
    /// Loads a provider; `None` if it cannot be, or is this library under another name.
    fn load(provider: Provider) -> Option<Arc<Loaded>> {
        if let Some(known) = loaded().iter().find(|known| known.provider == provider) {
            return Some(known.clone());
        }
        // Not under the lock: its initialisers may do anything. Loaded twice, it is counted twice.
        let library = Library::load(&expand(&provider.library)).ok()?;
        let get_class_object = library.function(c"DllGetClassObject")?;
        let can_unload_now = library.function(c"DllCanUnloadNow")?;
        if ptr::eq(get_class_object.as_ptr(), DllGetClassObject as *const c_void) {
            return None;
        }
        // SAFETY: functions of these names have these types.
        let (get_class_object, can_unload_now) = unsafe {
            (
                std::mem::transmute::<NonNull<c_void>, GetClassObject>(get_class_object),
                std::mem::transmute::<NonNull<c_void>, CanUnloadNow>(can_unload_now),
            )
        };
        let new = Arc::new(Loaded { provider, get_class_object, can_unload_now, _library: library });
        loaded().push(new.clone());
        Some(new)
    }

    fn instance(self: Arc<Loaded>) -> Option<Instance> {
        let class = ptr::from_ref(&self.provider.id).cast::<Guid>();
        let mut object = ptr::null_mut();
        // SAFETY: both structures of a GUID are the same; the result is writable.
        let status = unsafe { (self.get_class_object)(class, &IID_IND2Provider, &mut object) };
        let object = NonNull::new(object.cast()).filter(|_| status >= 0)?;
        Some(Instance { object, _loaded: self })
    }
}

/// An `IND2Provider` of another library.
pub(crate) struct Instance {
    object: NonNull<*const Methods>,
    /// Keeps the library while its object is used.
    _loaded: Arc<Loaded>,
}

impl Instance {
    fn methods(&self) -> &Methods {
        // SAFETY: an interface pointer points to the address of its table.
        unsafe { &**self.object.as_ptr() }
    }

    fn this(&self) -> *mut c_void {
        self.object.as_ptr().cast()
    }

    /// The addresses it answers for; none if it fails to tell.
    pub(crate) fn addresses(&self) -> Vec<SockAddr> {
        let mut list: Vec<u64> = Vec::new();
        for _ in 0..ATTEMPTS {
            let mut length = (list.len() * size_of::<u64>()) as u32;
            let out = if list.is_empty() { ptr::null_mut() } else { list.as_mut_ptr().cast() };
            // SAFETY: the list has that many bytes.
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
        // SAFETY: the address is as long as said, the results are writable.
        unsafe {
            if (self.methods().resolve_address)(self.this(), raw.as_ptr().cast(), length, &mut id) < 0 {
                return Status::INVALID_ADDRESS.0;
            }
            (self.methods().open_adapter)(self.this(), iid, id, out)
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's.
        unsafe { (self.methods().unknown.release)(self.this()) };
    }
}

/// The other ND v2 providers. Those of ND v1 are left alone.
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

/// Opens the adapter of `address` with the first provider that can; otherwise the last failure counts, and `status` if
/// there is none.
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
        // SAFETY: passed on to the caller.
        status = unsafe { provider.open_adapter(iid, address, out) };
        if status >= 0 {
            break;
        }
    }
    status
}

/// Unloads the providers that nobody uses.
pub(crate) fn flush() {
    let is_used = |known: &mut Arc<Loaded>| {
        // SAFETY: the library is loaded. Its objects, and calls into it, are what the two conditions are about.
        Arc::strong_count(known) > 1 || unsafe { (known.can_unload_now)() } != Status::SUCCESS.0
    };
    let unused: Vec<_> = loaded().extract_if(.., |known| !is_used(known)).collect();
    // Not under the lock: finalisers may do anything, too.
    drop(unused);
}
