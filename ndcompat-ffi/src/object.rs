//! COM objects: reference counts, `QueryInterface`, and telling objects of this library from others.

use crate::com::{Guid, HResult, Interface, Object, Out, Pointer, This, boundary, vtable};
use crate::interfaces::{IID_IUnknown, IUnknown, IUnknownVtbl};
use ndcompat::Status;
use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The number of objects that exist. The library must not be unloaded while there are any.
static OBJECTS: AtomicUsize = AtomicUsize::new(0);

/// Whether no object exists.
pub(crate) fn no_objects() -> bool {
    OBJECTS.load(Ordering::Acquire) == 0
}

impl<I: Interface> Object<I> {
    /// Creates an object with one reference, the caller's.
    pub(crate) fn create(inner: I) -> *mut c_void {
        OBJECTS.fetch_add(1, Ordering::AcqRel);
        let object = Object { methods: &I::table().methods, references: AtomicU32::new(1), inner };
        Box::into_raw(Box::new(object)).cast()
    }

    /// The common end of all `Create` methods: creates the object, if it has the interface `iid`, and stores it in `out`.
    ///
    /// # Safety
    /// `iid` and `out` must be valid or null.
    pub(crate) unsafe fn hand_out(
        iid: *const Guid,
        out: Out,
        make: impl FnOnce() -> ndcompat::Result<I>,
    ) -> HResult {
        // SAFETY: the caller passes a valid result pointer, or null.
        let Some(out) = (unsafe { out.as_mut() }) else { return Status::INVALID_PARAMETER.0 };
        *out = ptr::null_mut();
        // SAFETY: the caller passes a pointer to a GUID, or null.
        let Some(iid) = (unsafe { iid.as_ref() }) else { return Status::INVALID_PARAMETER.0 };
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

    /// The object behind an `IUnknown` that a caller passed, if it is of this type.
    ///
    /// Objects of this library are identified by their virtual table. Others, such as a program's wrapper, are queried for
    /// the interface.
    ///
    /// # Safety
    /// `unknown` must be null or an interface pointer.
    pub(crate) unsafe fn find(unknown: Pointer) -> Option<Reference<I>> {
        let unknown = NonNull::new(unknown)?;
        // SAFETY: the caller passes an interface pointer.
        if let Some(this) = unsafe { Self::ours(unknown) } {
            return Some(this.reference());
        }
        let mut answer = ptr::null_mut();
        // SAFETY: every table begins with that of `IUnknown`; the caller's object lives during the call.
        let vtbl: &IUnknownVtbl = unsafe { vtable(unknown) };
        // SAFETY: the caller's object lives during the call; id and result are valid.
        let status = unsafe { (vtbl.query_interface)(unknown.as_ptr(), I::IDS[0], &mut answer) };
        let answer = NonNull::new(answer).filter(|_| status >= 0)?;
        // SAFETY: `QueryInterface` has returned an interface pointer.
        if let Some(this) = unsafe { Self::ours(answer) } {
            // Owns the reference that `QueryInterface` has added.
            return Some(Reference(this));
        }
        // SAFETY: every table begins with that of `IUnknown`; the reference that `QueryInterface` has added keeps the object.
        let vtbl: &IUnknownVtbl = unsafe { vtable(answer) };
        // SAFETY: releases the reference that `QueryInterface` has added.
        unsafe { (vtbl.release)(answer.as_ptr()) };
        None
    }

    /// The object, if it is one of this library and type.
    ///
    /// # Safety
    /// `pointer` must be an interface pointer.
    unsafe fn ours(pointer: NonNull<c_void>) -> Option<This<I>> {
        // SAFETY: an object begins with the address of its virtual table.
        let vtbl = unsafe { *pointer.cast::<*const I::Vtbl>().as_ptr() };
        ptr::eq(vtbl, &I::table().methods).then_some(This { pointer: pointer.cast() })
    }
}

impl<I: Interface> This<I> {
    /// A reference to the object, which may outlive the call.
    pub(crate) fn reference(self) -> Reference<I> {
        self.object().references.fetch_add(1, Ordering::Relaxed);
        Reference(self)
    }
}

/// A reference to an object of this library; dropping it releases it.
pub(crate) struct Reference<I: Interface>(This<I>);

// SAFETY: the object is Send and Sync, and its count atomic.
unsafe impl<I: Interface> Send for Reference<I> {}
// SAFETY: the object is Send and Sync, and its count atomic.
unsafe impl<I: Interface> Sync for Reference<I> {}

impl<I: Interface> Deref for Reference<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.0
    }
}

impl<I: Interface> Drop for Reference<I> {
    fn drop(&mut self) {
        // SAFETY: `self` owns one reference, which is released once, here.
        unsafe { I::release(self.0) };
    }
}

impl<I: Interface> IUnknown for I {
    unsafe fn query_interface(this: This<I>, iid: *const Guid, out: Out) -> HResult {
        // SAFETY: C callers pass a valid result pointer, or null.
        let Some(out) = (unsafe { out.as_mut() }) else { return Status::POINTER.0 };
        *out = ptr::null_mut();
        // SAFETY: C callers pass a pointer to a GUID, or null.
        match unsafe { iid.as_ref() } {
            Some(iid) if Object::<I>::answers_to(iid) => {
                this.object().references.fetch_add(1, Ordering::Relaxed);
                *out = this.pointer.as_ptr().cast();
                Status::SUCCESS.0
            }
            _ => Status::NO_INTERFACE.0,
        }
    }

    unsafe fn add_ref(this: This<I>) -> u32 {
        this.object().references.fetch_add(1, Ordering::Relaxed) + 1
    }

    unsafe fn release(this: This<I>) -> u32 {
        let left = this.object().references.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == 0 {
            boundary(|| {
                // SAFETY: the object is a box of `create`, and this was the last reference.
                drop(unsafe { Box::from_raw(this.pointer.as_ptr()) });
                OBJECTS.fetch_sub(1, Ordering::AcqRel);
                Status::SUCCESS.0
            });
        }
        left
    }
}
