//! Pointer arguments from C. Each type has the layout of a pointer and carries the promise of a Windows annotation (`_In_opt_`,
//! `_Out_opt_` ...), so reading and writing it is safe, and entry points that take no other pointers are safe functions. No
//! alignment is assumed: ported programs pass the addresses of packed fields.
//!
//! Objects in the program's memory, such as locks, are passed as `Option<&T>`.

use crate::text::Unit;
use std::ffi::CStr;
use std::marker::PhantomData;

/// `_In_opt_`: NULL, or a value to read.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct In<'a, T>(*const T, PhantomData<&'a T>);

/// `_Out_opt_`: NULL, or memory for a result, which may be uninitialised.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

/// `_Inout_opt_`: NULL, or a value to read and to change.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct InOut<'a, T>(*mut T, PhantomData<&'a mut T>);

/// `_In_opt_z_`: NULL, or a NUL-terminated text.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<'a, T>(*const T, PhantomData<&'a [T]>);

impl<T: Copy> In<'_, T> {
    /// NULL.
    pub const NULL: Self = In(std::ptr::null(), PhantomData);

    /// The value, `None` for NULL.
    pub fn read(&self) -> Option<T> {
        // SAFETY: not NULL, hence a value by the type's promise.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

impl<T> Out<'_, T> {
    /// NULL.
    pub const NULL: Self = Out(std::ptr::null_mut(), PhantomData);

    /// Whether no result is wanted.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// `self`, or the error `code` if it is NULL.
    ///
    /// # Errors
    /// `code`.
    pub fn required<E>(self, code: E) -> Result<Self, E> {
        if self.is_null() { Err(code) } else { Ok(self) }
    }

    /// Writes the result, unless it is NULL.
    pub fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, hence writable by the type's promise.
            unsafe { self.0.write_unaligned(value) };
        }
    }
}

impl<T: Copy> InOut<'_, T> {
    /// NULL.
    pub const NULL: Self = InOut(std::ptr::null_mut(), PhantomData);

    /// The pointer, to be passed to the program.
    pub fn as_ptr(self) -> *mut T {
        self.0
    }

    /// The value, `None` for NULL.
    pub fn read(&self) -> Option<T> {
        // SAFETY: not NULL, hence a value by the type's promise.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Writes the new value, unless it is NULL.
    pub fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, hence writable by the type's promise.
            unsafe { self.0.write_unaligned(value) };
        }
    }
}

impl<'a, T: Unit> Text<'a, T> {
    /// NULL.
    pub const NULL: Self = Text(std::ptr::null(), PhantomData);

    /// The text as a string, `None` for NULL.
    pub fn read(self) -> Option<String> {
        self.units().map(T::string)
    }

    /// Its units without the NUL, `None` for NULL.
    pub fn units(self) -> Option<&'a [T]> {
        // SAFETY: NULL or terminated, and unchanged during the call, by the type's promise.
        unsafe { T::units(self.0) }
    }

    /// The pointer to its first unit.
    pub fn as_ptr(self) -> *const T {
        self.0
    }
}

impl<'a, T> From<&'a T> for In<'a, T> {
    fn from(value: &'a T) -> Self {
        In(value, PhantomData)
    }
}

impl<'a, T> From<&'a mut T> for Out<'a, T> {
    fn from(place: &'a mut T) -> Self {
        Out(place, PhantomData)
    }
}

impl<'a, T> From<&'a mut T> for InOut<'a, T> {
    fn from(place: &'a mut T) -> Self {
        InOut(place, PhantomData)
    }
}

impl<'a, T: Unit> Text<'a, T> {
    /// A text in memory of this library.
    ///
    /// # Panics If the last unit is not NUL.
    pub fn terminated(units: &'a [T]) -> Self {
        assert!(units.last() == Some(&T::default()), "no NUL behind the text");
        Text(units.as_ptr(), PhantomData)
    }
}

impl<'a> Text<'a, u8> {
    /// With its NUL, `None` for NULL.
    pub fn c_str(self) -> Option<&'a CStr> {
        // SAFETY: not NULL, hence terminated, and unchanged during the call, by the type's promise.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0.cast()) })
    }
}

impl<'a> From<&'a CStr> for Text<'a, u8> {
    fn from(text: &'a CStr) -> Self {
        Text(text.as_ptr().cast(), PhantomData)
    }
}
