//! `IND2Provider`, and the entry points of a provider library.

use crate::adapter::Adapter;
use crate::address;
use crate::com::{HResult, Hold, Interface, Object, Table, UnknownMethods, boundary, no_objects};
use crate::guid::{Guid, IID_IClassFactory, IID_IND2Provider, IID_IUnknown};
use ndcompat::{Status, provider};
use std::ffi::c_void;
use std::ptr;

pub(crate) struct Provider;

#[repr(C)]
pub(crate) struct Methods {
    pub unknown: UnknownMethods,
    pub query_address_list: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> HResult,
    pub resolve_address: unsafe extern "C" fn(*mut c_void, *const c_void, u32, *mut u64) -> HResult,
    pub open_adapter: unsafe extern "C" fn(*mut c_void, *const Guid, u64, *mut *mut c_void) -> HResult,
}

impl Interface for Provider {
    type Methods = Methods;
    const TABLE: &'static Table<Methods> = &Table::new(Methods {
        unknown: Object::<Self>::UNKNOWN,
        query_address_list,
        resolve_address,
        open_adapter,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2Provider];
}

unsafe extern "C" fn query_address_list(_this: *mut c_void, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the buffer is the caller's promise.
    boundary(|| unsafe { address::query_list(provider::addresses(), out, length) })
}

unsafe extern "C" fn resolve_address(
    _this: *mut c_void,
    address: *const c_void,
    length: u32,
    out: *mut u64,
) -> HResult {
    // SAFETY: the pointers are valid or null.
    boundary(|| unsafe {
        let Some(out) = out.as_mut() else { return Status::INVALID_PARAMETER_3.0 };
        match address::read(address, length as usize).and_then(provider::resolve_address) {
            Ok(id) => {
                *out = id;
                Status::SUCCESS.0
            }
            Err(status) => status.0,
        }
    })
}

unsafe extern "C" fn open_adapter(
    this: *mut c_void,
    iid: *const Guid,
    id: u64,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the object itself; the pointers are valid or null.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || {
            Ok(Adapter { engine: provider::open_adapter(id)?, _provider: Some(Hold::new(this)) })
        })
    })
}

/// `IClassFactory`, for those who do not ask for the provider directly.
struct ClassFactory;

#[repr(C)]
struct ClassFactoryMethods {
    unknown: UnknownMethods,
    create_instance: unsafe extern "C" fn(*mut c_void, *mut c_void, *const Guid, *mut *mut c_void) -> HResult,
    lock_server: unsafe extern "C" fn(*mut c_void, i32) -> HResult,
}

impl Interface for ClassFactory {
    type Methods = ClassFactoryMethods;
    const TABLE: &'static Table<ClassFactoryMethods> =
        &Table::new(ClassFactoryMethods { unknown: Object::<Self>::UNKNOWN, create_instance, lock_server });
    const IDS: &'static [&'static Guid] = &[&IID_IClassFactory];
}

/// `CLASS_E_NOAGGREGATION`
const NO_AGGREGATION: HResult = 0x8004_0110_u32 as i32;
/// `CLASS_E_CLASSNOTAVAILABLE`
const CLASS_NOT_AVAILABLE: HResult = 0x8004_0111_u32 as i32;
/// `S_FALSE`
const FALSE: HResult = 1;

unsafe extern "C" fn create_instance(
    _this: *mut c_void,
    outer: *mut c_void,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    if !outer.is_null() {
        // SAFETY: the pointer is valid or null.
        if let Some(out) = unsafe { out.as_mut() } {
            *out = ptr::null_mut();
        }
        return NO_AGGREGATION;
    }
    // SAFETY: the pointers are valid or null.
    boundary(|| unsafe { Object::hand_out(iid, out, || Ok(Provider)) })
}

/// Nothing to do: the library stays loaded anyhow.
unsafe extern "C" fn lock_server(_this: *mut c_void, _lock: i32) -> HResult {
    Status::SUCCESS.0
}

/// The provider, as `IND2Provider` itself or through an `IClassFactory`. The class id does not matter: the library has
/// one class.
///
/// # Safety
/// The pointers must be valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DllGetClassObject(
    _class: *const Guid,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: passed on to the caller.
    boundary(|| unsafe {
        let (Some(asked), Some(result)) = (iid.as_ref(), out.as_mut()) else { return Status::POINTER.0 };
        *result = ptr::null_mut();
        if *asked == IID_IClassFactory || *asked == IID_IUnknown {
            Object::hand_out(iid, out, || Ok(ClassFactory))
        } else if *asked == IID_IND2Provider {
            Object::hand_out(iid, out, || Ok(Provider))
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
