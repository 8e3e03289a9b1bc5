//! Random arguments, most of them valid.

use super::{BYTES, IDS, Life, Objects, one};
use ndcompat::RawSockAddr;
use ndcompat::types::{RequestFlags, Sge};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use support::chance::Chance;
use support::com::Guid;
use win32::object::RawHandle;

impl Life {
    /// A pointer to any object, or null.
    pub(super) fn any(&mut self) -> *mut c_void {
        let chance = &mut self.chance;
        let objects = &self.objects;
        match chance.u32(..12) {
            0 => null_mut(),
            1 => one(chance, &objects.adapters).as_ptr(),
            2 | 3 => one(chance, &objects.queues).as_ptr(),
            4 => one(chance, &objects.shared).as_ptr(),
            5 => one(chance, &objects.regions).as_ptr(),
            6 => one(chance, &objects.windows).as_ptr(),
            7 | 8 => one(chance, &objects.pairs).as_ptr(),
            9 | 10 => one(chance, &objects.connectors).as_ptr(),
            _ => one(chance, &objects.listeners).as_ptr(),
        }
    }

    /// A pointer to a matching object, in most cases.
    pub(super) fn mostly(&mut self, fitting: impl Fn(&mut Chance, &Objects) -> *mut c_void) -> *mut c_void {
        if self.chance.u32(..4) == 0 { self.any() } else { fitting(&mut self.chance, &self.objects) }
    }

    pub(super) fn queue(&mut self) -> *mut c_void {
        self.mostly(|chance, objects| one(chance, &objects.queues).as_ptr())
    }

    pub(super) fn pair(&mut self) -> *mut c_void {
        self.mostly(|chance, objects| one(chance, &objects.pairs).as_ptr())
    }

    pub(super) fn connector(&mut self) -> *mut c_void {
        self.mostly(|chance, objects| one(chance, &objects.connectors).as_ptr())
    }

    pub(super) fn file(&mut self) -> RawHandle {
        match self.chance.u32(..6) {
            0 => *one(&mut self.chance, &self.handles),
            _ => one(&mut self.chance, &self.files).0,
        }
    }

    pub(super) fn iid(&mut self, right: Guid) -> Guid {
        if self.chance.u32(..6) == 0 { *one(&mut self.chance, &IDS) } else { right }
    }

    /// A number that is small, at a limit, or too large.
    pub(super) fn number(&mut self) -> u32 {
        match self.chance.u32(..10) {
            0 => 0,
            1 => u32::MAX,
            2 => self.chance.u32(..),
            3 => 1 << self.chance.u32(..32),
            _ => self.chance.u32(1..=8),
        }
    }

    pub(super) fn flags(&mut self) -> RequestFlags {
        let known = self.chance.u32(..8) > 0;
        RequestFlags::from_bits_retain(if known { self.chance.u32(..64) } else { self.chance.u32(..) })
    }

    /// An SGE within the memory, with a token that may be valid.
    pub(super) fn sge(&mut self) -> Sge {
        let start = self.chance.usize(..BYTES);
        let length = self.chance.usize(..=BYTES - start);
        let token = match self.chance.u32(..4) {
            0 => self.chance.u32(..),
            // SAFETY: no arguments.
            _ => unsafe { one(&mut self.chance, &self.objects.regions).get_local_token() },
        };
        Sge { buffer: self.memory.as_ptr() as u64 + start as u64, length: length as u32, token }
    }

    /// A list of SGEs, and its claimed length.
    pub(super) fn sges(&mut self) -> (Vec<Sge>, u32) {
        let list: Vec<Sge> = (0..self.chance.usize(..20)).map(|_| self.sge()).collect();
        let count = list.len() as u32;
        (list, count)
    }

    pub(super) fn pointer(&mut self, list: &[Sge]) -> *const Sge {
        if self.chance.u32(..20) == 0 { null() } else { list.as_ptr() }
    }

    /// An address, possibly invalid, and its length.
    pub(super) fn address(&mut self) -> (RawSockAddr, u32) {
        let port = [0, 0, 7471, self.chance.u16(..)][self.chance.usize(..4)];
        let (mut raw, length) = support::address().with_port(port).to_raw();
        if self.chance.u32(..5) == 0 {
            let bytes = raw.as_mut_ptr().cast::<u8>();
            let at = self.chance.usize(..size_of::<RawSockAddr>());
            // SAFETY: in there.
            unsafe { bytes.add(at).write(self.chance.u8(..)) };
        }
        let length = if self.chance.u32(..6) == 0 { self.chance.u32(..=length) } else { length };
        (raw, length)
    }
}
