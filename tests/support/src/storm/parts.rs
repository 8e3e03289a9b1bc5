//! Objects and files, which are released in any order.

use crate::com::{Com, Interface};
use crate::library::CloseHandle;
use crate::watched::Way;
use fastrand::Rng;
use ndcompat::Status;
use std::ops::Deref;
use win32::object::RawHandle;

/// A file, closed on drop.
pub struct File(pub RawHandle, pub Way);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the handle is this one's.
        unsafe { CloseHandle(self.0) };
    }
}

/// Something that is to be released.
pub type Part = Box<dyn Send>;

/// An object that is there until it is taken.
pub struct Held<I: Interface>(Option<Com<I>>);

impl<I: Interface + 'static> Held<I> {
    /// The object that was made.
    pub fn new(made: Result<Com<I>, Status>) -> Held<I> {
        Held(Some(made.unwrap_or_else(|status| panic!("an object is not made: {status}"))))
    }

    /// Takes it, to be released.
    pub fn take(&mut self) -> Part {
        Box::new(self.0.take())
    }
}

impl<I: Interface> Deref for Held<I> {
    type Target = Com<I>;

    fn deref(&self) -> &Com<I> {
        self.0.as_ref().expect("an object that lives")
    }
}

/// Releases the parts in a random order, now and then on two threads.
pub fn release(mut parts: Vec<Part>, order: u64) {
    let mut chance = Rng::with_seed(order);
    chance.shuffle(&mut parts);
    let elsewhere =
        if chance.u32(..4) == 0 { parts.split_off(chance.usize(..parts.len())) } else { Vec::new() };
    std::thread::scope(|scope| {
        if !elsewhere.is_empty() {
            scope.spawn(move || elsewhere.into_iter().for_each(drop));
        }
        parts.into_iter().for_each(drop);
    });
}
