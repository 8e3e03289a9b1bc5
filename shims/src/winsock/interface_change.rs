//! `NotifyIpInterfaceChange`: callbacks when an interface comes, goes or changes, or one of its addresses does.
//!
//! One request at a time waits until the kernel has told of a change, on a file that is bound to the pool of threads; when it has ended,
//! what is different from what the program was told of is told.

use super::changes::{Changes, Subject, drain_netlink, netlink};
use super::interface::{interfaces, is_of};
use super::interface_table::result;
use crate::arguments::Out;
use crate::error::*;
use crate::io::queue::Packet;
use crate::io::{File, Overlapped, pool};
use crate::object::{RawHandle, callbacks};
use libc::{AF_INET, AF_INET6, AF_UNSPEC};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::{Arc, Weak};

/// `MIB_IPINTERFACE_ROW`. As on Windows, a callback gets no more of it than what names the interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct IpInterfaceRow {
    pub family: u16,
    pub luid: u64,
    pub index: u32,
    pub rest: [u32; 37],
}

const _: () = assert!(size_of::<IpInterfaceRow>() == 168);

/// `MIB_NOTIFICATION_TYPE`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the names are Windows'
pub enum Notification {
    Parameter,
    Add,
    Delete,
    Initial,
}

/// `PIPINTERFACE_CHANGE_CALLBACK`.
type InterfaceCallback = unsafe extern "C" fn(*mut c_void, *mut IpInterfaceRow, Notification);

/// An interface as one family sees it.
#[derive(Debug, PartialEq)]
struct Seen {
    luid: u64,
    is_up: bool,
    addresses: Vec<(SocketAddr, u8)>,
}

/// By family and index.
type All = BTreeMap<(u16, u32), Seen>;

/// The interfaces that there are, or the error with which that could not be seen.
fn present(family: i32) -> Result<All, u32> {
    let families = [AF_INET, AF_INET6].into_iter().filter(|one| family == AF_UNSPEC || family == *one);
    let interfaces = interfaces()?;
    let seen = |family: i32| {
        interfaces.iter().map(move |interface| {
            let mut addresses = interface.addresses.clone();
            addresses.retain(|(address, _)| is_of(*address, family));
            addresses.sort();
            let seen = Seen { luid: interface.luid(), is_up: interface.is_up(), addresses };
            ((family as u16, interface.index), seen)
        })
    };
    Ok(families.flat_map(seen).collect())
}

/// What is different.
fn differences(before: &All, now: &All) -> Vec<(IpInterfaceRow, Notification)> {
    let row = |(key, seen): (&(u16, u32), &Seen)| IpInterfaceRow {
        family: key.0,
        luid: seen.luid,
        index: key.1,
        rest: [0; 37],
    };
    let gone = before.iter().filter(|(key, _)| !now.contains_key(key));
    let gone = gone.map(|entry| (row(entry), Notification::Delete));
    let others = now.iter().filter_map(|(key, seen)| match before.get(key) {
        None => Some((row((key, seen)), Notification::Add)),
        Some(former) if former != seen => Some((row((key, seen)), Notification::Parameter)),
        Some(_) => None,
    });
    gone.chain(others).collect()
}

/// What the kernel tells of interfaces and their addresses.
struct Interfaces {
    netlink: OwnedFd,
    /// How often it has told of some change: not what there is, as two changes may come to nothing between two looks.
    told: Mutex<u64>,
}

impl Interfaces {
    fn new() -> io::Result<Interfaces> {
        let kinds = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        Ok(Interfaces { netlink: netlink(kinds)?, told: Mutex::default() })
    }
}

impl Subject for Interfaces {
    fn descriptor(&self) -> &OwnedFd {
        &self.netlink
    }

    fn drain(&self) {
        let mut told = self.told.lock();
        *told += u64::from(drain_netlink(&self.netlink));
    }

    fn look(&self) -> String {
        self.told.lock().to_string()
    }
}

/// A program's wish to be told.
struct Watch {
    family: i32,
    callback: InterfaceCallback,
    context: usize,
    file: Arc<File>,
    changes: Arc<Changes>,
    /// That of the request which waits.
    overlapped: Overlapped,
    key: usize,
    state: Mutex<State>,
}

/// Locked during callbacks, so that none runs once it is over.
struct State {
    /// What the program knows of.
    seen: All,
    /// The program is still to be told that this has begun.
    begins: bool,
    over: bool,
}

impl State {
    /// Takes another look; what is different then. After one that failed, nothing is known to be.
    fn update(&mut self, now: Result<All, u32>) -> Vec<(IpInterfaceRow, Notification)> {
        let Ok(now) = now else { return Vec::new() };
        let different = differences(&self.seen, &now);
        self.seen = now;
        different
    }
}

impl Watch {
    fn new(
        family: i32,
        callback: InterfaceCallback,
        context: *mut c_void,
        begins: bool,
    ) -> Result<Arc<Watch>, u32> {
        let failed = |error| io_to_win32(&error);
        let queue = pool::queue().map_err(failed)?;
        // Before the first look, so that nothing is missed: the kernel tells of a change once it can be seen.
        let changes = Changes::of(Box::new(Interfaces::new().map_err(failed)?));
        let state = Mutex::new(State { seen: present(family)?, begins, over: false });
        let file = File::sharing().map_err(failed)?;
        file.keep_source(changes.fd(), changes.clone()).map_err(failed)?;
        let canceller: Weak<Changes> = Arc::downgrade(&changes);
        file.add_canceller(canceller);
        let context = context.expose_provenance();
        let watch = Arc::new_cyclic(|watch: &Weak<Watch>| {
            let watch = watch.clone();
            let receive = move |_: Packet| {
                if let Some(watch) = watch.upgrade() {
                    // The pool runs: this is one of its threads.
                    let _ = pool::run(Box::new(move || watch.tell()));
                }
            };
            let (key, overlapped) = (pool::key_of(Arc::new(receive)), Overlapped::default());
            Watch { family, callback, context, file, changes, overlapped, key, state }
        });
        watch.file.bind(&queue, watch.key)?;
        Ok(watch)
    }

    /// Waits for the next change. What the kernel has told of since the last one ends the request at once.
    fn wait(&self) {
        let request = (&raw const self.overlapped).cast_mut();
        // SAFETY: it lives as long as the watch, which ends only after the request.
        let begun = unsafe { self.changes.begin(&self.file, request, None) };
        debug_assert_eq!(begun, Ok(()), "without a routine");
    }

    /// Tells the program what is different.
    fn tell(&self) {
        let mut state = self.state.lock();
        if state.over {
            return;
        }
        let call = |row: *mut IpInterfaceRow, what| {
            // SAFETY: the program's callback, of this type, with its own context and a row of this call's.
            unsafe { (self.callback)(with_exposed_provenance_mut(self.context), row, what) }
        };
        if std::mem::take(&mut state.begins) {
            call(null_mut(), Notification::Initial);
        }
        for (mut row, what) in state.update(present(self.family)) {
            call(&raw mut row, what);
        }
        self.wait();
    }

    /// Ends it: no callback runs when this has returned.
    fn end(&self) {
        self.state.lock().over = true;
        self.file.cancel_all();
        // SAFETY: that of the last request, if there was one.
        let ended = unsafe { crate::io::result(&self.file, &self.overlapped, true) };
        debug_assert_ne!(ended, crate::io::STATUS_PENDING);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        pool::unbind(self.key);
    }
}

/// `NotifyIpInterfaceChange`: the error is the result.
///
/// # Safety
/// The callback may be called on any thread, with `context`, until the notification is cancelled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_NotifyIpInterfaceChange(
    family: u16,
    callback: Option<InterfaceCallback>,
    context: *mut c_void,
    initial: u8,
    handle: Out<'_, RawHandle>,
) -> u32 {
    result(|| {
        let handle = handle.required(ERROR_INVALID_PARAMETER)?;
        handle.put(RawHandle::NULL);
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        if ![AF_UNSPEC, AF_INET, AF_INET6].contains(&family.into()) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let watch = Watch::new(family.into(), callback, context, initial != 0)?;
        let opened = callbacks::open(watch.clone())?;
        handle.put(opened);
        if initial == 0 {
            watch.wait();
            return Ok(());
        }
        pool::run(Box::new(move || watch.tell())).map_err(|error| {
            handle.put(RawHandle::NULL);
            drop(callbacks::take::<Watch>(opened));
            io_to_win32(&error)
        })
    })
}

/// `CancelMibChangeNotify2`: when it returns, no callback runs any more. Not for a callback itself.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CancelMibChangeNotify2(handle: RawHandle) -> u32 {
    result(|| {
        callbacks::take::<Watch>(handle).map_err(|_| ERROR_INVALID_PARAMETER)?.end();
        Ok(())
    })
}

#[cfg(test)]
mod tests;
