//! COM objects: reference counts, `QueryInterface`, and the boundary that no panic crosses.

use crate::guid::{Guid, IID_IUnknown};
use ndcompat::Status;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// What methods return: a status as C sees it.
pub(crate) type HResult = i32;

/// The first three methods of every interface.
#[repr(C)]
pub(crate) struct UnknownMethods {
    pub query_interface: unsafe extern "C" fn(*mut c_void, *const Guid, *mut *mut c_void) -> HResult,
    pub add_ref: unsafe extern "C" fn(*mut c_void) -> u32,
    pub release: unsafe extern "C" fn(*mut c_void) -> u32,
}

/// A virtual table as C++ compilers on Linux lay it out: two words before the first method, which `dynamic_cast` and
/// `typeid` look at. Empty ones keep those from reading stray memory.
#[repr(C)]
pub(crate) struct Table<M> {
    offset_to_top: usize,
    type_info: usize,
    pub methods: M,
}

impl<M> Table<M> {
    pub(crate) const fn new(methods: M) -> Table<M> {
        Table { offset_to_top: 0, type_info: 0, methods }
    }
}

/// What stands behind an interface pointer.
pub(crate) trait Interface: Sized + Send + Sync + 'static {
    /// The methods, in the order of their slots.
    type Methods: 'static;
    /// The virtual table.
    const TABLE: &'static Table<Self::Methods>;
    /// The ids `QueryInterface` answers to, besides `IUnknown`.
    const IDS: &'static [&'static Guid];

    /// The last reference was released: end what is pending before `Release` returns.
    fn released(&self) {}
}

/// A COM object: what an interface pointer points to.
#[repr(C)]
pub(crate) struct Object<I: Interface> {
    methods: *const I::Methods,
    references: AtomicU32,
    inner: I,
}

/// How many objects exist in the process; as long as there are any, the library must not be unloaded.
static OBJECTS: AtomicUsize = AtomicUsize::new(0);

/// Whether no object exists.
pub(crate) fn no_objects() -> bool {
    OBJECTS.load(Ordering::Acquire) == 0
}

impl<I: Interface> Object<I> {
    /// A new object with one reference, which belongs to the caller.
    pub(crate) fn create(inner: I) -> *mut c_void {
        OBJECTS.fetch_add(1, Ordering::AcqRel);
        let object = Object { methods: &I::TABLE.methods, references: AtomicU32::new(1), inner };
        Box::into_raw(Box::new(object)).cast()
    }

    /// Gives a new object to the caller of a `Create` method, if it asks for an interface the object has.
    ///
    /// # Safety
    /// `iid` and `out` must be valid or null.
    pub(crate) unsafe fn hand_out(
        iid: *const Guid,
        out: *mut *mut c_void,
        make: impl FnOnce() -> ndcompat::Result<I>,
    ) -> HResult {
        // SAFETY: passed on to the caller.
        let (Some(iid), Some(out)) = (unsafe { iid.as_ref() }, unsafe { out.as_mut() }) else {
            return Status::INVALID_PARAMETER.0;
        };
        *out = ptr::null_mut();
        if !Self::answers_to(iid) {
            return Status::NO_INTERFACE.0;
        }
        match make() {
            Ok(inner) => {
                *out = Self::create(inner);
                Status::SUCCESS.0
            }
            Err(status) => status.0,
        }
    }

    fn answers_to(iid: &Guid) -> bool {
        *iid == IID_IUnknown || I::IDS.contains(&iid)
    }

    /// # Safety
    /// `this` must be a live object of this type.
    #[inline(always)]
    pub(crate) unsafe fn inner<'a>(this: *mut c_void) -> &'a I {
        // SAFETY: the caller's promise.
        unsafe { &(*this.cast::<Object<I>>()).inner }
    }

    /// The first three methods, for [`Interface::TABLE`].
    pub(crate) const UNKNOWN: UnknownMethods = UnknownMethods {
        query_interface: Self::query_interface,
        add_ref: Self::add_ref,
        release: Self::release,
    };

    unsafe extern "C" fn query_interface(
        this: *mut c_void,
        iid: *const Guid,
        out: *mut *mut c_void,
    ) -> HResult {
        // SAFETY: C callers pass valid pointers or null.
        let Some(out) = (unsafe { out.as_mut() }) else { return Status::POINTER.0 };
        *out = ptr::null_mut();
        // SAFETY: as above.
        match unsafe { iid.as_ref() } {
            Some(iid) if Self::answers_to(iid) => {
                // SAFETY: `this` is this object, or the caller broke COM's rules.
                unsafe { Self::add_ref(this) };
                *out = this;
                Status::SUCCESS.0
            }
            _ => Status::NO_INTERFACE.0,
        }
    }

    pub(crate) unsafe extern "C" fn add_ref(this: *mut c_void) -> u32 {
        // SAFETY: `this` is this object, or the caller broke COM's rules.
        unsafe { (*this.cast::<Object<I>>()).references.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    pub(crate) unsafe extern "C" fn release(this: *mut c_void) -> u32 {
        // SAFETY: `this` is this object, and the caller gives up one of its references.
        let left = unsafe { (*this.cast::<Object<I>>()).references.fetch_sub(1, Ordering::AcqRel) - 1 };
        if left == 0 {
            boundary(|| {
                // SAFETY: that was the last reference.
                let object = unsafe { Box::from_raw(this.cast::<Object<I>>()) };
                object.inner.released();
                drop(object);
                OBJECTS.fetch_sub(1, Ordering::AcqRel);
                Status::SUCCESS.0
            });
        }
        left
    }

    /// Finds the object behind an interface pointer that a caller passed as `IUnknown`.
    ///
    /// Ours are known by their table. A stranger, such as a wrapper of the caller's own, is asked for the interface.
    ///
    /// # Safety
    /// `unknown` must be null or an interface pointer.
    pub(crate) unsafe fn find(unknown: *mut c_void) -> Option<Found<I>> {
        let unknown = NonNull::new(unknown)?;
        // SAFETY: the caller's promise.
        if unsafe { Self::is_ours(unknown) } {
            // SAFETY: checked.
            unsafe { Self::add_ref(unknown.as_ptr()) };
            return Some(Found(unknown.cast()));
        }
        let mut answer = ptr::null_mut();
        // SAFETY: every interface pointer leads to a table that begins with these three.
        let status = unsafe {
            let methods = *unknown.as_ptr().cast::<*const UnknownMethods>();
            ((*methods).query_interface)(unknown.as_ptr(), I::IDS[0], &mut answer)
        };
        let answer = NonNull::new(answer).filter(|_| status >= 0)?;
        // SAFETY: `QueryInterface` answered with an interface pointer, and a reference that is ours to release.
        unsafe {
            if Self::is_ours(answer) {
                return Some(Found(answer.cast()));
            }
            let methods = *answer.as_ptr().cast::<*const UnknownMethods>();
            ((*methods).release)(answer.as_ptr());
        }
        None
    }

    /// # Safety
    /// `pointer` must be an interface pointer.
    unsafe fn is_ours(pointer: NonNull<c_void>) -> bool {
        // SAFETY: an interface pointer points to the address of its table.
        unsafe { *pointer.as_ptr().cast::<*const I::Methods>() == &raw const I::TABLE.methods }
    }
}

/// An object found by [`Object::find`], referenced while this lives.
pub(crate) struct Found<I: Interface>(NonNull<Object<I>>);

impl<I: Interface> std::ops::Deref for Found<I> {
    type Target = I;

    fn deref(&self) -> &I {
        // SAFETY: referenced.
        unsafe { &self.0.as_ref().inner }
    }
}

impl<I: Interface> Drop for Found<I> {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's.
        unsafe { Object::<I>::release(self.0.as_ptr().cast()) };
    }
}

/// A reference that one object of ours holds on another.
pub(crate) struct Hold<I: Interface>(NonNull<Object<I>>);

// SAFETY: the object is Send and Sync, and its count atomic.
unsafe impl<I: Interface> Send for Hold<I> {}
// SAFETY: as above.
unsafe impl<I: Interface> Sync for Hold<I> {}

impl<I: Interface> Hold<I> {
    /// # Safety
    /// `this` must be a live object of this type.
    pub(crate) unsafe fn new(this: *mut c_void) -> Hold<I> {
        // SAFETY: the caller's promise.
        unsafe {
            Object::<I>::add_ref(this);
            Hold(NonNull::new_unchecked(this.cast()))
        }
    }
}

impl<I: Interface> Drop for Hold<I> {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's.
        unsafe { Object::<I>::release(self.0.as_ptr().cast()) };
    }
}

/// Runs what a C caller asked for; a panic ends here, as `ND_INTERNAL_ERROR`.
///
/// The data path does without: its functions cannot panic, and if one did, `extern "C"` would end the process rather
/// than unwind into C.
pub(crate) fn boundary(body: impl FnOnce() -> HResult) -> HResult {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Status::INTERNAL_ERROR.0)
}

/// The status of a call that has nothing to return.
#[inline(always)]
pub(crate) fn status(result: ndcompat::Result<()>) -> HResult {
    Status::of(result).0
}

/// The status of a call that has started an overlapped request.
pub(crate) fn pending(result: ndcompat::Result<()>) -> HResult {
    result.err().unwrap_or(Status::PENDING).0
}
