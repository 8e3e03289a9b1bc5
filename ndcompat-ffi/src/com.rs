//! COM interfaces: virtual tables generated from traits of methods, and the boundary that no panic crosses.

pub(crate) use crate::guid::Guid;
use ndcompat::Status;
use std::ffi::c_void;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use win32::cancellation::put_off;

/// An `HRESULT`, as methods return it: a [`Status`] as C sees it.
pub(crate) type HResult = i32;
/// An interface pointer, or a pointer to memory of any type.
pub(crate) type Pointer = *mut c_void;
/// The pointer to the result of a method that creates an object.
pub(crate) type Out = *mut *mut c_void;

/// The virtual table of objects of type `I`: its methods within the boundary.
pub(crate) trait VtableOf<I>: Sized {
    const METHODS: Self;
}

/// Defines for each interface its id (exported, as C programs link against it), a trait of its methods, and its virtual
/// table.
macro_rules! interfaces {
    ($(
        $(#[$doc:meta])*
        $name:ident($vtbl:ident $(: $base:ident)?) $iid:ident = $value:literal {
            $($(#[$how:ident])? fn $method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
        }
    )*) => {
        $(
            #[doc = concat!("The id of `", stringify!($name), "`.")]
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            pub static $iid: Guid = Guid::new($value);

            $(#[$doc])*
            ///
            /// # Safety
            /// For each method, the requirements of the SPI on the arguments.
            #[allow(clippy::too_many_arguments, clippy::missing_safety_doc)] // the SPI's signatures; above
            pub(crate) trait $name: $crate::com::Interface {
                $(unsafe fn $method(this: $crate::com::This<Self>, $($argument: $type),*) -> $result;)*
            }

            $(#[$doc])*
            #[repr(C)]
            pub(crate) struct $vtbl {
                $(pub base: $base,)?
                $(pub $method: unsafe extern "C" fn(*mut c_void, $($type),*) -> $result,)*
            }

            impl<I: $name> $crate::com::VtableOf<I> for $vtbl
            where
                $($base: $crate::com::VtableOf<I>)?
            {
                const METHODS: $vtbl = $vtbl {
                    $(base: <$base as $crate::com::VtableOf<I>>::METHODS,)?
                    $($method: {
                        unsafe extern "C" fn entry<I: $name>(
                            this: *mut c_void,
                            $($argument: $type),*
                        ) -> $result {
                            // SAFETY: C callers pass the object itself.
                            let this = unsafe { $crate::com::This::<I>::new(this) };
                            // SAFETY: C callers keep to the SPI's requirements on the arguments; methods check for null.
                            let call = || unsafe { I::$method(this, $($argument),*) };
                            $crate::com::call!($($how)? call)
                        }
                        entry::<I>
                    },)*
                };
            }
        )*

        /// Every interface.
        #[cfg(test)]
        pub(crate) fn all() -> Vec<$crate::com::Facts> {
            vec![$($crate::com::Facts {
                name: stringify!($name),
                vtbl: stringify!($vtbl),
                base: concat!($(stringify!($base))?),
                id: &$iid,
                entries: size_of::<$vtbl>() / size_of::<usize>(),
                methods: vec![
                    $((stringify!($method), std::mem::offset_of!($vtbl, $method) / size_of::<usize>())),*
                ],
            }),*]
        }
    };
}
pub(crate) use interfaces;

/// Calls a method within the [`boundary`]; without it if the method is `bare`, within its quick form if it is `quick`.
macro_rules! call {
    (bare $call:ident) => {
        $call()
    };
    (quick $call:ident) => {
        $crate::com::boundary_quick($call)
    };
    ($call:ident) => {
        $crate::com::boundary($call)
    };
}
pub(crate) use call;

/// An interface as data, to compare it with the headers.
#[cfg(test)]
pub(crate) struct Facts {
    pub name: &'static str,
    pub vtbl: &'static str,
    /// The virtual table of the interface that it extends, if any.
    pub base: &'static str,
    pub id: &'static Guid,
    /// How many entries its virtual table has.
    pub entries: usize,
    /// Its own methods, each with its index in the virtual table.
    pub methods: Vec<(&'static str, usize)>,
}

/// A virtual table as C++ compilers on Linux lay it out: before the first method are two words that `dynamic_cast` and
/// `typeid` read. Here they are 0.
#[repr(C)]
pub(crate) struct Table<I: Interface> {
    offset_to_top: usize,
    type_info: usize,
    pub methods: I::Vtbl,
}

impl<I: Interface> Table<I> {
    pub(crate) const fn new() -> Table<I> {
        Table { offset_to_top: 0, type_info: 0, methods: I::Vtbl::METHODS }
    }
}

/// The implementation behind an interface pointer. Dropped when the last reference is released; then it must end its pending
/// requests.
pub(crate) trait Interface: Sized + Send + Sync + 'static {
    /// The virtual table of the most derived interface.
    type Vtbl: VtableOf<Self>;
    /// The ids that `QueryInterface` accepts, in addition to that of `IUnknown`.
    const IDS: &'static [&'static Guid];

    /// The virtual table. Its address identifies objects of this type.
    fn table() -> &'static Table<Self>;
}

/// A COM object: what an interface pointer points to.
#[repr(C)]
pub(crate) struct Object<I: Interface> {
    pub methods: *const I::Vtbl,
    pub references: AtomicU32,
    pub inner: I,
}

/// The object that a method is called on, which is alive during the call.
pub(crate) struct This<I: Interface> {
    pub pointer: NonNull<Object<I>>,
}

impl<I: Interface> Clone for This<I> {
    fn clone(&self) -> This<I> {
        *self
    }
}

impl<I: Interface> Copy for This<I> {}

impl<I: Interface> This<I> {
    /// From the pointer of a C caller.
    ///
    /// # Safety
    /// `this` must be an object of this type, alive for as long as the result is used.
    #[inline(always)]
    pub(crate) unsafe fn new(this: *mut c_void) -> This<I> {
        // SAFETY: the caller passes an object, so the pointer is not null.
        This { pointer: unsafe { NonNull::new_unchecked(this.cast()) } }
    }

    #[inline(always)]
    pub(crate) fn object(&self) -> &Object<I> {
        // SAFETY: the object is alive while this is used, as `new` asks.
        unsafe { self.pointer.as_ref() }
    }
}

impl<I: Interface> Deref for This<I> {
    type Target = I;

    #[inline(always)]
    fn deref(&self) -> &I {
        &self.object().inner
    }
}

/// The virtual table behind an interface pointer.
///
/// # Safety
/// `object` must be an interface pointer whose table begins with `V`, and the object be alive while the result is used.
pub(crate) unsafe fn vtable<'a, V>(object: NonNull<c_void>) -> &'a V {
    // SAFETY: an object begins with the address of its virtual table.
    let table = unsafe { *object.cast::<*const V>().as_ptr() };
    // SAFETY: the virtual table lives as long as the object.
    unsafe { &*table }
}

/// Runs the body of an entry point. A panic is returned as `ND_INTERNAL_ERROR`, and thread cancellation is disabled
/// meanwhile.
pub(crate) fn boundary(body: impl FnOnce() -> HResult) -> HResult {
    put_off(|| boundary_quick(body))
}

/// As [`boundary`], for a body that calls no cancellation point of the C library.
#[inline(always)]
pub(crate) fn boundary_quick(body: impl FnOnce() -> HResult) -> HResult {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Status::INTERNAL_ERROR.0)
}

/// The status of a call without a value.
#[inline(always)]
pub(crate) fn status(result: ndcompat::Result<()>) -> HResult {
    Status::of(result).0
}

/// The status of a call that begins an overlapped request.
pub(crate) fn pending(result: ndcompat::Result<()>) -> HResult {
    result.err().unwrap_or(Status::PENDING).0
}
