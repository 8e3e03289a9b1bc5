//! The COM interfaces of the built library, obtained from `DllGetClassObject` and called through their vtables.
//!
//! Their methods are listed in the library's `interfaces.rs`, which is compared with the headers. Here are the callers.

pub use crate::guid::Guid;

use crate::library::DllGetClassObject;
use ndcompat::Status;
use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// The return type of methods.
pub type HResult = Status;
/// An interface pointer, or memory of any kind.
pub type Pointer = *mut c_void;
/// An out parameter for an interface pointer.
pub type Out = *mut *mut c_void;

/// A COM interface.
pub trait Interface {
    /// Its id.
    const IID: Guid;
}

/// A vtable.
pub trait Vtbl {
    /// The interface that it belongs to.
    type Of;
}

/// A reference to an object; dropping it releases it.
pub struct Com<I: Interface>(NonNull<I>);

// SAFETY: all methods of all interfaces are thread-safe.
unsafe impl<I: Interface> Send for Com<I> {}
// SAFETY: the methods of all interfaces may be called from several threads at once.
unsafe impl<I: Interface> Sync for Com<I> {}

/// The object that `make` creates. `make` is called with the interface's id and the out parameter.
///
/// # Errors
/// The status of `make`.
pub fn create<I: Interface>(
    make: impl FnOnce(*const Guid, *mut *mut c_void) -> Status,
) -> Result<Com<I>, Status> {
    let mut out = ptr::dangling_mut();
    let status = make(&I::IID, &mut out);
    if status == Status::SUCCESS {
        return Ok(Com(NonNull::new(out.cast()).expect("a success without an object")));
    }
    assert!(out.is_null(), "{status}, and the result was left as it was");
    Err(status)
}

impl<I: Interface> Com<I> {
    /// Takes ownership of a reference.
    ///
    /// # Safety
    /// `raw` is a reference to this interface, or to one derived from it.
    pub unsafe fn from_raw(raw: *mut c_void) -> Com<I> {
        Com(NonNull::new(raw.cast()).expect("a reference"))
    }

    /// Releases this reference; returns how many are left.
    pub fn release(self) -> u32 {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the reference is this one's, and not used again.
        unsafe { this.unknown().release() }
    }

    /// The pointer, to be passed to methods.
    pub fn as_ptr(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    /// As `IUnknown`.
    pub fn unknown(&self) -> &Unknown {
        // SAFETY: every interface begins with the methods of IUnknown.
        unsafe { self.0.cast().as_ref() }
    }

    /// Asks the object for another interface.
    ///
    /// # Errors
    /// `ND_NO_INTERFACE` if it has none.
    pub fn cast<J: Interface>(&self) -> Result<Com<J>, Status> {
        // SAFETY: `create` passes an id and a place for the object, and `self` keeps the one that is asked.
        create(|iid, out| unsafe { self.unknown().query_interface(iid, out) })
    }
}

impl<I: Interface> Deref for Com<I> {
    type Target = I;

    fn deref(&self) -> &I {
        // SAFETY: the object lives while it is referenced.
        unsafe { self.0.as_ref() }
    }
}

impl<I: Interface> Drop for Com<I> {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's.
        unsafe { self.unknown().release() };
    }
}

impl<I: Interface> fmt::Debug for Com<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

/// The provider, from `DllGetClassObject`.
pub fn provider() -> Com<Provider> {
    // SAFETY: `create` passes an id and a place for the object; the class is a local.
    create(|iid, out| unsafe { DllGetClassObject(&Guid::new(0), iid, out) }).expect("a provider")
}

/// Declares each interface with its vtable and a caller for each method.
macro_rules! interfaces {
    ($(
        $(#[$doc:meta])*
        $name:ident($vtbl:ident $(: $base:ident)?) $iid:ident = $value:literal {
            $($(#[$how:ident])? fn $method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
        }
    )*) => {$(
        #[doc = concat!("The id of `", stringify!($name), "`.")]
        #[allow(non_upper_case_globals)]
        pub const $iid: Guid = Guid::new($value);

        #[doc = concat!("The methods of [`", stringify!($name), "`].")]
        #[repr(C)]
        pub struct $vtbl {
            $(base: $base,)?
            $($method: unsafe extern "C" fn(*const $name, $($type),*) -> $result,)*
        }

        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            vtbl: *const $vtbl,
        }

        impl $crate::com::Interface for $name {
            const IID: Guid = $iid;
        }

        impl $crate::com::Vtbl for $vtbl {
            type Of = $name;
        }

        $(impl std::ops::Deref for $name {
            type Target = <$base as $crate::com::Vtbl>::Of;

            fn deref(&self) -> &Self::Target {
                // SAFETY: the table begins with that of the base.
                unsafe { &*std::ptr::from_ref(self).cast() }
            }
        })?

        impl $name {
            $(
                #[doc = concat!("`", stringify!($method), "`, spelt as the SPI does not.")]
                ///
                /// # Safety
                /// What the SPI asks of the arguments.
                #[allow(clippy::too_many_arguments)] // the SPI's signatures
                pub unsafe fn $method(&self, $($argument: $type),*) -> $result {
                    // SAFETY: an object's table lives as long as the object.
                    let vtbl = unsafe { &*self.vtbl };
                    // SAFETY: the object lives; the caller passes what the method asks for.
                    unsafe { (vtbl.$method)(self, $($argument),*) }
                }
            )*
        }
    )*};
}
pub(crate) use interfaces;

pub use crate::interfaces::{
    IClassFactory as ClassFactory, IND2Adapter as Adapter, IND2CompletionQueue as CompletionQueue,
    IND2Connector as Connector, IND2Listener as Listener, IND2MemoryRegion as MemoryRegion,
    IND2MemoryWindow as MemoryWindow, IND2Overlapped as Overlapping, IND2Provider as Provider,
    IND2QueuePair as QueuePair, IND2SharedReceiveQueue as SharedReceiveQueue,
    INDCompatAdapter as ExtendedAdapter, INDCompatConnector as ExtendedConnector,
    INDCompatListener as ExtendedListener, INDCompatSharedEndpoint as SharedEndpoint, IUnknown as Unknown,
};
