//! `IND2Provider`, and the exported functions of a provider library.

use crate::adapter::Adapter;
use crate::address;
use crate::com::{Guid, HResult, Interface, Object, Out, Pointer, Table, This, boundary};
use crate::interfaces::{
    IClassFactory, IClassFactoryVtbl, IID_IClassFactory, IID_IND2Provider, IID_IUnknown, IND2Provider,
    IND2ProviderVtbl,
};
use crate::object::no_objects;
use ndcompat::{Status, provider};
use std::ffi::c_void;
use std::ptr;

pub(crate) struct Provider;

impl Interface for Provider {
    type Vtbl = IND2ProviderVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2Provider];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<Provider> = Table::new();
        &TABLE
    }
}

impl IND2Provider for Provider {
    unsafe fn query_address_list(_this: This<Self>, list: Pointer, length: *mut u32) -> HResult {
        // SAFETY: C callers pass a buffer of `*length` bytes and its length, or null.
        unsafe { address::query_list(provider::addresses(), list, length) }
    }

    unsafe fn resolve_address(
        _this: This<Self>,
        address: *const c_void,
        length: u32,
        id: *mut u64,
    ) -> HResult {
        // SAFETY: C callers pass a valid pointer to the id, or null.
        let Some(id) = (unsafe { id.as_mut() }) else { return Status::INVALID_PARAMETER_3.0 };
        // SAFETY: C callers pass an address of `length` bytes, or null.
        let address = unsafe { address::read(address, length as usize) };
        match address.and_then(provider::resolve_address) {
            Ok(found) => {
                *id = found;
                Status::SUCCESS.0
            }
            Err(status) => status.0,
        }
    }

    unsafe fn open_adapter(this: This<Self>, iid: *const Guid, id: u64, out: Out) -> HResult {
        // Adapters hold a reference to their provider, which programs observe in the result of `Release`.
        let open = || Ok(Adapter::new(provider::open_adapter(id)?, Some(Box::new(this.reference()))));
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, open) }
    }
}

/// `IClassFactory`, which also creates the provider.
struct ClassFactory;

impl Interface for ClassFactory {
    type Vtbl = IClassFactoryVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IClassFactory];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<ClassFactory> = Table::new();
        &TABLE
    }
}

/// `CLASS_E_NOAGGREGATION`
const NO_AGGREGATION: HResult = 0x8004_0110_u32 as i32;
/// `CLASS_E_CLASSNOTAVAILABLE`
const CLASS_NOT_AVAILABLE: HResult = 0x8004_0111_u32 as i32;
/// `S_FALSE`
const FALSE: HResult = 1;

impl IClassFactory for ClassFactory {
    unsafe fn create_instance(_this: This<Self>, outer: Pointer, iid: *const Guid, out: Out) -> HResult {
        if !outer.is_null() {
            // SAFETY: C callers pass a valid result pointer, or null.
            if let Some(out) = unsafe { out.as_mut() } {
                *out = ptr::null_mut();
            }
            return NO_AGGREGATION;
        }
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, || Ok(Provider)) }
    }

    /// Does nothing, as the library is never unloaded.
    unsafe fn lock_server(_this: This<Self>, _lock: i32) -> HResult {
        Status::SUCCESS.0
    }
}

/// Returns `IND2Provider` or an `IClassFactory` for it. The class id is ignored, as the library has one class.
///
/// # Safety
/// The pointers must be valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DllGetClassObject(_class: *const Guid, iid: *const Guid, out: Out) -> HResult {
    boundary(|| {
        ndcompat::logging::start();
        // SAFETY: the caller passes a valid result pointer, or null.
        let Some(result) = (unsafe { out.as_mut() }) else { return Status::POINTER.0 };
        *result = ptr::null_mut();
        // SAFETY: the caller passes a pointer to a GUID, or null.
        let Some(asked) = (unsafe { iid.as_ref() }) else { return Status::POINTER.0 };
        if *asked == IID_IClassFactory || *asked == IID_IUnknown {
            // SAFETY: both pointers were checked above.
            unsafe { Object::hand_out(iid, out, || Ok(ClassFactory)) }
        } else if *asked == IID_IND2Provider {
            // SAFETY: both pointers were checked above.
            unsafe { Object::hand_out(iid, out, || Ok(Provider)) }
        } else {
            CLASS_NOT_AVAILABLE
        }
    })
}

/// `S_OK` when no object of the library exists, `S_FALSE` otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn DllCanUnloadNow() -> HResult {
    if no_objects() { Status::SUCCESS.0 } else { FALSE }
}
