//! The table of tokens: regions and windows.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::grant::Grant;
use super::{Access, Denied, Rights, Span};

/// How many of the 2^24 indices may be in use: few enough that a free one is found soon, and that one is hard to guess.
const ENTRIES_MAX: usize = 1 << 20;
const KEY_BITS: u32 = 8;

/// Why an operation on memory failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// An invalid argument.
    Invalid,
    /// It belongs to another protection domain.
    Domain,
    /// Windows are bound to it.
    Busy,
    /// No entry is left, or the system returned no random number.
    Exhausted,
}

impl std::fmt::Display for MemoryError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            MemoryError::Invalid => "invalid argument",
            MemoryError::Domain => "of another protection domain",
            MemoryError::Busy => "windows are bound to the region",
            MemoryError::Exhausted => "no token is left",
        })
    }
}

impl std::error::Error for MemoryError {}

/// Hashes indices that are random or counted: they only have to be spread over the bits that the table uses.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, _: &[u8]) {}

    fn write_u32(&mut self, index: u32) {
        self.write_u64(index.into());
    }

    fn write_u64(&mut self, index: u64) {
        self.0 = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The region, or the window, of an index.
struct Entry {
    domain: u64,
    /// `None`: a window that is not bound.
    grant: Option<Arc<Grant>>,
}

type Entries = HashMap<u32, Entry, BuildHasherDefault<Spread>>;

/// All memory that a device may access.
#[derive(Default)]
pub struct Memory {
    entries: RwLock<Entries>,
    domains: AtomicU64,
}

/// A protection domain: its queue pairs may access what is registered in it.
#[derive(Clone)]
pub struct Domain {
    memory: Arc<Memory>,
    number: u64,
}

/// Registered memory. Dropping it deregisters the memory, even if windows are bound to it.
pub struct Region {
    memory: Arc<Memory>,
    grant: Arc<Grant>,
}

/// A window of type 2: a work request of a queue pair binds it to a part of a region, for the peer of that queue pair only.
pub struct Window {
    domain: Domain,
    token: u32,
}

/// The parameters of a bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The window's new token: its index, with any key.
    pub token: u32,
    /// The token of the region.
    pub region: u32,
    /// Its start, which is also the offset of its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub length: usize,
    /// The peer's rights.
    pub rights: Rights,
}

fn random() -> Result<u32, MemoryError> {
    getrandom::u32().map_err(|_| MemoryError::Exhausted)
}

impl Memory {
    /// An empty table.
    pub fn new() -> Arc<Memory> {
        Arc::default()
    }

    /// A new protection domain.
    pub fn domain(self: &Arc<Memory>) -> Domain {
        Domain { memory: Arc::clone(self), number: self.domains.fetch_add(1, Ordering::Relaxed) }
    }

    /// Adds an entry of a domain under an unused token.
    fn enter(&self, domain: u64, make: impl FnOnce(u32) -> Option<Arc<Grant>>) -> Result<u32, MemoryError> {
        let mut entries = self.entries.write();
        if entries.len() >= ENTRIES_MAX {
            return Err(MemoryError::Exhausted);
        }
        loop {
            let token = random()?;
            let index = token >> KEY_BITS;
            // siw, and possibly others, expect tokens not to be 0.
            if index != 0 && !entries.contains_key(&index) {
                entries.insert(index, Entry { domain, grant: make(token) });
                return Ok(token);
            }
        }
    }
}

impl Domain {
    /// The token table that the domain is part of.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Registers `length` bytes from `start` on, whose first has the offset `first`.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] for length 0, a range that exceeds the address space, or remote without local write access;
    /// [`MemoryError::Exhausted`].
    ///
    /// # Safety
    /// Until the region is deregistered the memory must stay mapped, and writable if a right includes writing. No Rust
    /// reference to any part of it may exist: the device and its peers access it at any time.
    pub unsafe fn register(
        &self,
        start: *mut u8,
        length: usize,
        first: u64,
        rights: Rights,
    ) -> Result<Region, MemoryError> {
        let memory = NonNull::new(start).filter(|_| length != 0).ok_or(MemoryError::Invalid)?;
        let ends =
            (start as usize).checked_add(length).is_some() && first.checked_add(length as u64).is_some();
        if !ends || isize::try_from(length).is_err() || rights.remote_write && !rights.local_write {
            return Err(MemoryError::Invalid);
        }
        let mut made = None;
        self.memory.enter(self.number, |token| {
            let grant =
                Arc::new(Grant::new((token, self.number, None), (first, memory, length), rights, None));
            made = Some(Arc::clone(&grant));
            Some(grant)
        })?;
        made.map(|grant| Region { memory: Arc::clone(&self.memory), grant }).ok_or(MemoryError::Exhausted)
    }

    /// Creates a window, not bound.
    ///
    /// # Errors
    /// [`MemoryError::Exhausted`].
    pub fn window(&self) -> Result<Window, MemoryError> {
        Ok(Window { domain: self.clone(), token: self.memory.enter(self.number, |_| None)? })
    }

    /// The memory under `token` from `offset` on, if `access` to all of it is allowed.
    ///
    /// # Errors
    /// Why it is denied.
    pub fn find(&self, token: u32, offset: u64, length: usize, access: Access) -> Result<Span, Denied> {
        let entries = self.memory.entries.read();
        let grant = entries.get(&(token >> KEY_BITS)).and_then(|entry| entry.grant.as_ref());
        let grant = grant.filter(|grant| grant.token == token).ok_or(Denied::Token)?;
        grant.check(self.number, offset, length, access)
    }

    /// Binds the window that has the index of `binding.token`, for the peer of a queue pair.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] if there is no such window, it is already bound, or the region lacks the range or the rights;
    /// [`MemoryError::Domain`].
    pub fn bind(&self, binding: &Binding, queue_pair: u32) -> Result<(), MemoryError> {
        let mut entries = self.memory.entries.write();
        let region = match entries.get(&(binding.region >> KEY_BITS)) {
            Some(Entry { grant: Some(grant), .. })
                if grant.token == binding.region && grant.region.is_none() =>
            {
                Arc::clone(grant)
            }
            _ => return Err(MemoryError::Invalid),
        };
        if region.domain != self.number {
            return Err(MemoryError::Domain);
        }
        let rights = binding.rights;
        if !region.rights.bind || rights.remote_write && !region.rights.local_write || binding.length == 0 {
            return Err(MemoryError::Invalid);
        }
        let at = region.part(binding.offset, binding.length).map_err(|_| MemoryError::Invalid)?;
        let at = at.hold().and_then(|held| NonNull::new(held.pointer())).ok_or(MemoryError::Invalid)?;
        match entries.get_mut(&(binding.token >> KEY_BITS)) {
            Some(Entry { domain, grant: None }) if *domain != self.number => Err(MemoryError::Domain),
            Some(Entry { grant: free @ None, .. }) => {
                region.windows.fetch_add(1, Ordering::Relaxed);
                *free = Some(Arc::new(Grant::new(
                    (binding.token, self.number, Some(queue_pair)),
                    (binding.offset, at, binding.length),
                    rights,
                    Some(region),
                )));
                Ok(())
            }
            _ => Err(MemoryError::Invalid),
        }
    }

    /// Unbinds the window with this token, which must be bound for this queue pair. Waits until it is not in use.
    ///
    /// # Errors
    /// [`Denied::Token`] if there is none; [`Denied::Stream`] if it is bound for another queue pair; [`Denied::Rights`] for a
    /// region, which cannot be invalidated.
    pub fn invalidate(&self, token: u32, queue_pair: u32) -> Result<(), Denied> {
        let mut entries = self.memory.entries.write();
        let entry = entries.get_mut(&(token >> KEY_BITS)).ok_or(Denied::Token)?;
        let grant = entry.grant.as_ref().filter(|grant| grant.token == token).ok_or(Denied::Token)?;
        if grant.domain != self.number {
            return Err(Denied::Stream);
        }
        if grant.region.is_none() {
            return Err(Denied::Rights);
        }
        if grant.queue_pair != Some(queue_pair) {
            return Err(Denied::Stream);
        }
        let grant = unbind(entry);
        drop(entries);
        if let Some(grant) = grant {
            grant.end();
        }
        Ok(())
    }
}

/// Removes the grant from a window's entry. The caller must still end it, which waits.
fn unbind(entry: &mut Entry) -> Option<Arc<Grant>> {
    let grant = entry.grant.take()?;
    if let Some(region) = &grant.region {
        region.windows.fetch_sub(1, Ordering::Relaxed);
    }
    Some(grant)
}

impl Region {
    /// Its token, for this device and for peers.
    pub fn token(&self) -> u32 {
        self.grant.token
    }

    /// Deregisters the memory. Waits for an access under way, which makes at most one system call that does not block.
    ///
    /// # Errors
    /// [`MemoryError::Busy`], with the region, if windows are bound to it.
    pub fn deregister(self) -> Result<(), (MemoryError, Region)> {
        let entries = self.memory.entries.write();
        if self.grant.windows.load(Ordering::Relaxed) != 0 {
            drop(entries);
            return Err((MemoryError::Busy, self));
        }
        drop(entries);
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut entries = self.memory.entries.write();
        entries.remove(&(self.grant.token >> KEY_BITS));
        let mut ended = Vec::new();
        if self.grant.windows.load(Ordering::Relaxed) != 0 {
            let bound = |grant: &Arc<Grant>| {
                grant.region.as_ref().is_some_and(|region| Arc::ptr_eq(region, &self.grant))
            };
            for entry in entries.values_mut() {
                if entry.grant.as_ref().is_some_and(bound) {
                    ended.extend(unbind(entry));
                }
            }
        }
        drop(entries);
        for window in ended {
            window.end();
        }
        self.grant.end();
    }
}

impl Window {
    /// The token that it was created with: its index and a first key.
    pub fn token(&self) -> u32 {
        self.token
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let mut entries = self.domain.memory.entries.write();
        let grant = entries.remove(&(self.token >> KEY_BITS)).and_then(|mut entry| unbind(&mut entry));
        drop(entries);
        if let Some(grant) = grant {
            grant.end();
        }
    }
}
