//! Protection domains, regions and windows.

use std::ffi::{c_int, c_uint, c_void};
use std::io;

use verbs_sys::*;

use super::rnic::rnic_of;
use super::{created, functions};
use crate::memory::{Domain, MemoryError, Region, Rights, Window};

/// A protection domain.
#[repr(C)]
pub(super) struct Pd {
    raw: ibv_pd,
    pub domain: Domain,
}

#[repr(C)]
struct Mr {
    raw: ibv_mr,
    /// `Some` until it is deregistered.
    region: Option<Region>,
}

#[repr(C)]
struct Mw {
    raw: ibv_mw,
    window: Window,
}

impl Pd {
    /// The `Pd` of an `ibv_pd`.
    ///
    /// # Safety
    /// The domain is this device's, and is not destroyed while the result is used.
    pub(super) unsafe fn of<'a>(pd: *mut ibv_pd) -> &'a Pd {
        // SAFETY: made by `ibv_alloc_pd`, and not deallocated yet.
        unsafe { &*pd.cast::<Pd>() }
    }
}

/// Flags that a device may ignore (`IBV_ACCESS_OPTIONAL_RANGE`).
const OPTIONAL: c_uint = 0x3ff0_0000;

/// Flags that change nothing: a right that no peer can use, as iWARP has no atomic operations; the size of pages; and those that are
/// optional.
const IGNORED: c_uint = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_HUGETLB | OPTIONAL;

/// The access rights of `IBV_ACCESS_*` flags; `EINVAL` for one that would mean something else than what the device does.
pub(super) fn rights(access: c_uint) -> Result<Rights, c_int> {
    let all = [IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_MW_BIND];
    let [local_write, remote_read, remote_write, bind] = all.map(|flag| access & flag != 0);
    let known = all.iter().fold(IGNORED, |known, flag| known | flag);
    if access & !known == 0 {
        Ok(Rights { local_write, remote_read, remote_write, bind })
    } else {
        Err(libc::EINVAL)
    }
}

fn number(error: MemoryError) -> c_int {
    match error {
        MemoryError::Invalid => libc::EINVAL,
        MemoryError::Domain => libc::EPERM,
        MemoryError::Busy => libc::EBUSY,
        MemoryError::Exhausted => libc::ENOMEM,
    }
}

/// Checks the memory as a driver does that pins it: faults all pages in, for writing if `written`.
fn check(addr: *mut c_void, length: usize, written: bool) -> Result<(), c_int> {
    // SAFETY: asks for a number.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let start = addr as usize & !(page - 1);
    let end = (addr as usize).checked_add(length).and_then(|end| end.checked_next_multiple_of(page));
    let length = end.ok_or(libc::EINVAL)? - start;
    let advice = if written { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    loop {
        // SAFETY: makes pages of mappings that are there, and changes nothing of what they hold.
        if unsafe { libc::madvise(start as *mut c_void, length, advice) } == 0 {
            return Ok(());
        }
        return match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR | libc::EAGAIN) => continue,
            Some(libc::EINVAL) if is_unknown(advice) => present(start, length, page),
            // The mapping does not allow the access.
            Some(libc::EINVAL) => Err(libc::EACCES),
            _ => Err(libc::EFAULT),
        };
    }
}

/// Whether the kernel does not know MADV_POPULATE_*, which came with Linux 5.14.
fn is_unknown(advice: c_int) -> bool {
    // SAFETY: of no bytes.
    unsafe { libc::madvise(std::ptr::null_mut(), 0, advice) != 0 }
}

/// Checks that the whole range is mapped.
fn present(start: usize, length: usize, page: usize) -> Result<(), c_int> {
    let mut pages = vec![0_u8; length.div_ceil(page)];
    // SAFETY: there is room for what is said of each page.
    match unsafe { libc::mincore(start as *mut c_void, length, pages.as_mut_ptr()) } {
        0 => Ok(()),
        _ => Err(libc::EFAULT),
    }
}

/// # Safety
/// The domain is this device's and not destroyed; the memory stays mapped until it is deregistered.
unsafe fn register(
    pd: *mut ibv_pd,
    (addr, length): (*mut c_void, usize),
    first: u64,
    access: c_uint,
) -> Result<*mut ibv_mr, c_int> {
    // SAFETY: made by `ibv_alloc_pd`, and deallocated after all that was made of it, as verbs ask.
    let own = unsafe { Pd::of(pd) };
    let rights = rights(access)?;
    if length == 0 {
        return Err(libc::EINVAL);
    }
    check(addr, length, rights.local_write)?;
    // SAFETY: the memory is there, and stays until it is deregistered, as verbs ask.
    let region = unsafe { own.domain.register(addr.cast(), length, first, rights) }.map_err(number)?;
    let token = region.token();
    let raw = ibv_mr { context: own.raw.context, pd, addr, length, handle: 0, lkey: token, rkey: token };
    Ok(Box::into_raw(Box::new(Mr { raw, region: Some(region) })).cast())
}

/// `context->ops.alloc_mw`
///
/// # Safety
/// The domain lives and is this device's.
pub(super) unsafe extern "C" fn alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> *mut ibv_mw {
    // SAFETY: made by `ibv_alloc_pd`, and deallocated after all that was made of it, as verbs ask.
    let own = unsafe { Pd::of(pd) };
    created(if kind == IBV_MW_TYPE_2 {
        own.domain.window().map_err(number).map(|window| {
            let raw = ibv_mw { context: own.raw.context, pd, rkey: window.token(), handle: 0, type_: kind };
            Box::into_raw(Box::new(Mw { raw, window })).cast()
        })
    } else {
        Err(libc::EOPNOTSUPP)
    })
}

/// `context->ops.dealloc_mw`
///
/// # Safety
/// The window is from [`alloc_mw`], and is not used any more.
pub(super) unsafe extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    // SAFETY: made above, destroyed once.
    let Mw { window, .. } = *unsafe { Box::from_raw(mw.cast::<Mw>()) };
    drop(window);
    0
}

/// `context->ops.bind_mw`, for windows of type 1, which the device does not have.
///
/// # Safety
/// None: the arguments are ignored.
pub(super) unsafe extern "C" fn bind_mw(
    _qp: *mut ibv_qp,
    _mw: *mut ibv_mw,
    _bind: *mut ibv_mw_bind,
) -> c_int {
    libc::EOPNOTSUPP
}

functions! {
    fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
        // SAFETY: opened by this device, and closed after all that was made on it, as verbs ask.
        created(unsafe { rnic_of(context) }.map(|rnic| {
            let raw = ibv_pd { context, handle: 0 };
            Box::into_raw(Box::new(Pd { raw, domain: rnic.memory.domain() })).cast()
        }))
    }

    fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
        // SAFETY: made above, destroyed once.
        drop(unsafe { Box::from_raw(pd.cast::<Pd>()) });
        0
    }

    fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr {
        // SAFETY: the memory stays until it is deregistered, as verbs ask.
        created(unsafe { register(pd, (addr, length), addr as u64, access as c_uint) })
    }

    fn ibv_reg_mr_iova2(
        pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint
    ) -> *mut ibv_mr {
        // SAFETY: the memory stays until it is deregistered, as verbs ask.
        created(unsafe { register(pd, (addr, length), iova, access) })
    }

    fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int {
        // SAFETY: made by `register`; nobody uses a region that is being deregistered, as verbs ask.
        let own = unsafe { &mut *mr.cast::<Mr>() };
        if let Some(Err((error, region))) = own.region.take().map(Region::deregister) {
            own.region = Some(region);
            return number(error);
        }
        // SAFETY: made above, destroyed once.
        drop(unsafe { Box::from_raw(mr.cast::<Mr>()) });
        0
    }
}
