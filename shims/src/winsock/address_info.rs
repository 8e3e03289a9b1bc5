//! `GetAddrInfoEx`: look-ups that are complete when the call returns, or go on after it; and numbers in network order.

pub mod pending;

use super::catalogue::Guid;
use super::resolve::{addresses, narrow, not_started, resolved, text_or_null, winsock_code};
use super::startup::started;
use super::system::Plain;
use super::{SOCKET_ERROR, Socket, outcome, table};
use crate::arguments::{In, InOut, Out, Text};
use crate::boundary::guard;
use crate::error::*;
use crate::io::Overlapped;
use crate::object::RawHandle;
use crate::text::{self, Unit, narrow_and_wide};
use libc::{addrinfo, c_int, sockaddr, sockaddr_storage, timeval};
use pending::LookupRoutine;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::time::Duration;

/// `ADDRINFOEXA` and `ADDRINFOEXW`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Windows'
pub struct AddrInfoEx<T> {
    pub flags: c_int,
    pub family: c_int,
    pub kind: c_int,
    pub protocol: c_int,
    pub address_length: usize,
    pub name: *mut T,
    pub address: *mut sockaddr,
    pub blob: *mut c_void,
    pub blob_length: usize,
    pub provider: *mut Guid,
    pub next: *mut AddrInfoEx<T>,
}

/// `NS_ALL` and `NS_DNS`.
const NAMESPACES: [u32; 2] = [0, 12];

/// An entry of the C library's, without a next one.
fn entry<T: Unit>(found: &addrinfo) -> AddrInfoEx<T> {
    let mut address = Box::new(sockaddr_storage::zeroed());
    let length = (found.ai_addrlen as usize).min(size_of::<sockaddr_storage>());
    let target = (&raw mut *address).cast::<u8>();
    // SAFETY: an address has its length, and the storage has room for every one.
    unsafe { target.copy_from_nonoverlapping(found.ai_addr.cast(), length) };
    // SAFETY: the C library's names are NULL or terminated.
    let name = unsafe { text::narrow(found.ai_canonname) };
    let name = name.map_or(null_mut(), |name| {
        let mut units = T::spell(&String::from_utf8_lossy(name));
        units.push(T::default());
        Box::into_raw(units.into_boxed_slice()).cast::<T>()
    });
    AddrInfoEx {
        flags: found.ai_flags,
        family: found.ai_family,
        kind: found.ai_socktype,
        protocol: found.ai_protocol,
        address_length: found.ai_addrlen as usize,
        name,
        address: Box::into_raw(address).cast(),
        blob: null_mut(),
        blob_length: 0,
        provider: null_mut(),
        next: null_mut(),
    }
}

/// A list of the program's kind.
pub(super) struct Chain<T: Unit>(*mut AddrInfoEx<T>);

impl<T: Unit> Chain<T> {
    const EMPTY: Chain<T> = Chain(null_mut());

    /// Passes the list to the program, which frees it.
    fn into_raw(self) -> *mut AddrInfoEx<T> {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl<T: Unit> Drop for Chain<T> {
    fn drop(&mut self) {
        // SAFETY: a list of `find`'s, which nobody else has.
        unsafe { free(self.0) };
    }
}

/// What to look up.
struct Question {
    node: Option<CString>,
    service: Option<CString>,
    /// Flags, family, kind, protocol.
    hints: Option<[c_int; 4]>,
}

impl Question {
    fn find<T: Unit>(&self) -> Result<Chain<T>, u32> {
        let hints = self.hints.map(|[ai_flags, ai_family, ai_socktype, ai_protocol]| addrinfo {
            ai_flags,
            ai_family,
            ai_socktype,
            ai_protocol,
            ..super::addrinfo::no_hints()
        });
        let list = addresses(text_or_null(&self.node), text_or_null(&self.service), hints);
        let list = list.map_err(winsock_code)?;
        let entries: Vec<_> = list.entries().map(entry::<T>).collect();
        // From the last entry to the first, as each points to the next one.
        let chain = |next, entry: AddrInfoEx<T>| Box::into_raw(Box::new(AddrInfoEx { next, ..entry }));
        Ok(Chain(entries.into_iter().rev().fold(null_mut(), chain)))
    }
}

/// # Safety
/// `overlapped` is NULL, or stays valid as does the place of the result, until the look-up has ended.
#[allow(clippy::too_many_arguments)] // those of the function
unsafe fn look_up<T: Unit + 'static>(
    node: Text<'_, T>,
    service: Text<'_, T>,
    namespace: u32,
    _provider: In<'_, Guid>,
    hints: In<'_, AddrInfoEx<T>>,
    result: InOut<'_, *mut AddrInfoEx<T>>,
    timeout: In<'_, timeval>,
    overlapped: *mut Overlapped,
    routine: Option<LookupRoutine>,
    cancel: Out<'_, RawHandle>,
) -> c_int {
    guard(WSANO_RECOVERY as c_int, || {
        let fail = |code: u32| {
            set_last_error(code);
            code as c_int
        };
        if !started() {
            return not_started();
        }
        if result.as_ptr().is_null() {
            return resolved(libc::EAI_FAIL);
        }
        result.put(null_mut());
        if !NAMESPACES.contains(&namespace) {
            return fail(WSASERVICE_NOT_FOUND);
        }
        let timeout = timeout.read().map(|time| {
            let part = |number: i64| u64::try_from(number).unwrap_or(0);
            Duration::from_secs(part(time.tv_sec)).saturating_add(Duration::from_micros(part(time.tv_usec)))
        });
        let hints = hints.read().map(|hints| [hints.flags, hints.family, hints.kind, hints.protocol]);
        let question = Question { node: narrow(node), service: narrow(service), hints };
        if overlapped.is_null() {
            return match question.find::<T>() {
                _ if routine.is_some() => fail(WSAEINVAL),
                Ok(chain) => {
                    result.put(chain.into_raw());
                    0
                }
                Err(code) => fail(code),
            };
        }
        let look_up = move || question.find::<T>();
        // SAFETY: C's caller keeps the OVERLAPPED and the place of the result until the end.
        let begun = unsafe { pending::begin(overlapped, routine, cancel, timeout, result.as_ptr(), look_up) };
        fail(begun.err().unwrap_or(WSA_IO_PENDING))
    })
}

/// # Safety
/// `list` is NULL or from `GetAddrInfoEx` of the same width, and nobody uses it any more.
unsafe fn free<T: Unit>(list: *mut AddrInfoEx<T>) {
    let mut next = list;
    while !next.is_null() {
        // SAFETY: an entry that `look_up` has boxed, and C's caller has done with.
        let entry = unsafe { Box::from_raw(next) };
        next = entry.next;
        // SAFETY: `entry` has boxed it.
        drop(unsafe { Box::from_raw(entry.address.cast::<sockaddr_storage>()) });
        // SAFETY: NULL or terminated, as `entry` has made it.
        if let Some(name) = unsafe { T::units(entry.name) } {
            let whole = std::ptr::slice_from_raw_parts_mut(entry.name, name.len() + 1);
            // SAFETY: `entry` has boxed it: a text with its NUL.
            drop(unsafe { Box::from_raw(whole) });
        }
    }
}

narrow_and_wide! {
    "`GetAddrInfoEx`: with an `OVERLAPPED` the look-up goes on after the call. Without one there is no time-out but the resolver's own."
    ndw_GetAddrInfoExA ndw_GetAddrInfoExW = unsafe look_up(
        node: Text<'_, T>,
        service: Text<'_, T>,
        namespace: u32,
        provider: In<'_, Guid>,
        hints: In<'_, AddrInfoEx<T>>,
        result: InOut<'_, *mut AddrInfoEx<T>>,
        timeout: In<'_, timeval>,
        overlapped: *mut Overlapped,
        routine: Option<LookupRoutine>,
        cancel: Out<'_, RawHandle>,
    ) -> c_int;
    "`FreeAddrInfoEx`."
    ndw_FreeAddrInfoEx ndw_FreeAddrInfoExW = unsafe free(list: *mut AddrInfoEx<T>) -> ();
}

/// A number in another order, for an existing socket.
fn ordered<T>(socket: Socket, value: T, result: Out<'_, T>) -> i32 {
    let convert = || {
        if !started() {
            return Err(WSANOTINITIALISED);
        }
        table::get(table::descriptor(socket)?)?;
        result.required(WSAEFAULT)?.put(value);
        Ok(())
    };
    guard(SOCKET_ERROR, || outcome(convert()))
}

/// `WSAHtonl` and `WSANtohl`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAHtonl(socket: Socket, value: u32, result: Out<'_, u32>) -> i32 {
    ordered(socket, value.to_be(), result)
}

/// `WSAHtons` and `WSANtohs`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAHtons(socket: Socket, value: u16, result: Out<'_, u16>) -> i32 {
    ordered(socket, value.to_be(), result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Wchar, w};

    fn found(node: &str, hints: &AddrInfoEx<Wchar>, namespace: u32) -> Result<*mut AddrInfoEx<Wchar>, u32> {
        super::super::startup::start();
        let (node, service, mut list) = (w(node), w("80"), null_mut());
        // SAFETY: no request goes on after the call.
        let code = unsafe {
            ndw_GetAddrInfoExW(
                Text::terminated(&node),
                Text::terminated(&service),
                namespace,
                In::NULL,
                In::from(hints),
                InOut::from(&mut list),
                In::NULL,
                null_mut(),
                None,
                Out::NULL,
            )
        };
        if code == 0 { Ok(list) } else { Err(code as u32) }
    }

    fn hints() -> AddrInfoEx<Wchar> {
        AddrInfoEx {
            flags: libc::AI_NUMERICHOST | libc::AI_CANONNAME,
            family: libc::AF_UNSPEC,
            kind: libc::SOCK_STREAM,
            protocol: 0,
            address_length: 0,
            name: null_mut(),
            address: null_mut(),
            blob: null_mut(),
            blob_length: 0,
            provider: null_mut(),
            next: null_mut(),
        }
    }

    #[test]
    fn a_look_up_gives_a_list_that_is_freed_as_a_whole() {
        let list = found("127.0.0.1", &hints(), 12).unwrap();
        // SAFETY: the list that was just made.
        unsafe {
            assert_eq!(((*list).family, (*list).kind), (libc::AF_INET, libc::SOCK_STREAM));
            assert_eq!(text::wide((*list).name), Some(&w("127.0.0.1")[..9]));
            let address = super::super::read_sockaddr((*list).address, (*list).address_length).unwrap();
            assert_eq!(address.to_string(), "127.0.0.1:80");
            ndw_FreeAddrInfoExW(list);
            ndw_FreeAddrInfoExW(null_mut());
        }
    }

    #[test]
    fn what_cannot_be_looked_up_says_why() {
        assert_eq!(found("127.0.0.1", &hints(), 13).err(), Some(WSASERVICE_NOT_FOUND));
        assert_eq!(found("no number", &hints(), 0).err(), Some(WSAHOST_NOT_FOUND));
        assert_eq!(
            found("127.0.0.1", &AddrInfoEx { family: 999, ..hints() }, 0).err(),
            Some(WSAEAFNOSUPPORT)
        );
    }

    unsafe extern "C" fn note(_error: u32, _bytes: u32, _overlapped: *mut Overlapped) {}

    /// Begins a look-up of 127.0.0.1 that goes on after the call.
    ///
    /// # Safety
    /// The request and the place of the list stay until the end.
    unsafe fn begin(
        list: InOut<'_, *mut AddrInfoEx<u8>>,
        request: *mut Overlapped,
        routine: Option<LookupRoutine>,
        cancel: Out<'_, RawHandle>,
    ) -> u32 {
        super::super::startup::start();
        let (node, time) = (Text::from(c"127.0.0.1"), timeval { tv_sec: 1000, tv_usec: 0 });
        // SAFETY: as this function asks.
        unsafe {
            ndw_GetAddrInfoExA(
                node,
                Text::NULL,
                0,
                In::NULL,
                In::NULL,
                list,
                In::from(&time),
                request,
                routine,
                cancel,
            ) as u32
        }
    }

    #[test]
    fn a_look_up_that_cannot_begin_says_why() {
        let mut list = null_mut();
        let mut request = Overlapped::default();
        let mut odd = Overlapped { event: RawHandle(0x7FFF_FFF0), ..Overlapped::default() };
        // SAFETY: nothing begins.
        unsafe {
            assert_eq!(begin(InOut::NULL, &mut request, None, Out::NULL), WSANO_RECOVERY);
            assert_eq!(begin(InOut::from(&mut list), null_mut(), Some(note), Out::NULL), WSAEINVAL);
            assert_eq!(begin(InOut::from(&mut list), &mut odd, Some(note), Out::NULL), WSAEINVAL);
            assert_eq!(begin(InOut::from(&mut list), &mut odd, None, Out::NULL), WSA_INVALID_HANDLE);
            assert_eq!(pending::ndw_GetAddrInfoExOverlappedResult(std::ptr::null()), WSAEINVAL as i32);
        }
        assert!(list.is_null());
        assert_eq!(pending::ndw_GetAddrInfoExCancel(InOut::NULL), WSA_INVALID_HANDLE as i32);
        let mut stale = RawHandle(0x7FFF_FFF0);
        assert_eq!(pending::ndw_GetAddrInfoExCancel(InOut::from(&mut stale)), WSA_INVALID_HANDLE as i32);
    }

    #[test]
    fn a_look_up_goes_on_after_the_call_and_tells_its_end_by_an_event() {
        use crate::api::event::ndw_CreateEventA;
        use crate::api::handle::close_handle;
        use crate::api::wait::ndw_WaitForSingleObject;
        let event = ndw_CreateEventA(std::ptr::null(), 1, 1, Text::NULL);
        let mut request = Overlapped { event, ..Overlapped::default() };
        let (mut list, mut cancel) = (null_mut(), RawHandle::NULL);
        let place = &raw mut list;
        // SAFETY: the request ends below, and the list is that of the look-up.
        unsafe {
            let begun = begin(InOut::from(&mut *place), &mut request, None, Out::from(&mut cancel));
            assert_eq!((begun, last_error()), (WSA_IO_PENDING, WSA_IO_PENDING));
            assert_eq!(ndw_WaitForSingleObject(event, u32::MAX), 0);
            assert_eq!(pending::ndw_GetAddrInfoExOverlappedResult(&request), 0);
            assert_eq!(request.offset, place.addr() as u64);
            let first = *place;
            assert_eq!((*first).family, libc::AF_INET);
            ndw_FreeAddrInfoEx(first);
        }
        let late = pending::ndw_GetAddrInfoExCancel(InOut::from(&mut cancel));
        assert_eq!(late, WSA_INVALID_HANDLE as i32, "the handle ends with the look-up");
        close_handle(event);
    }

    #[test]
    fn numbers_are_ordered_for_a_socket() {
        super::super::startup::start();
        let socket = super::super::socket::ndw_socket(libc::AF_INET, libc::SOCK_STREAM, 0) as Socket;
        let (mut long, mut short) = (0, 0);
        assert_eq!(ndw_WSAHtonl(socket, 0x0102_0304, Out::from(&mut long)), 0);
        assert_eq!(ndw_WSAHtons(socket, 0x0102, Out::from(&mut short)), 0);
        assert_eq!((long, short), (0x0403_0201, 0x0201));
        assert_eq!((ndw_WSAHtonl(socket, 1, Out::NULL), last_error()), (-1, WSAEFAULT));
        // SAFETY: this test's own socket.
        assert_eq!(unsafe { super::super::socket::ndw_closesocket(socket) }, 0);
        assert_eq!((ndw_WSAHtons(socket, 1, Out::from(&mut short)), last_error()), (-1, WSAENOTSOCK));
    }

    #[test]
    fn an_error_of_a_look_up_has_a_text_of_either_width() {
        use super::super::resolve::{ndw_gai_strerror, ndw_gai_strerrorW};
        let code = WSAHOST_NOT_FOUND as c_int;
        // SAFETY: both texts are terminated.
        unsafe {
            let narrow = text::string_from_narrow(ndw_gai_strerror(code)).unwrap();
            assert_eq!(narrow, "There is no such host");
            assert_eq!(text::string_from_wide(ndw_gai_strerrorW(code)), Some(narrow));
        }
        assert_eq!(ndw_gai_strerrorW(code), ndw_gai_strerrorW(code), "kept");
    }

    #[test]
    fn the_hosts_name_is_told_whole_or_not_at_all() {
        use super::super::resolve::{ndw_GetHostNameW, ndw_gethostname};
        super::super::startup::start();
        let (mut wide, mut narrow) = ([0; 256], [0; 256]);
        // SAFETY: room for so many characters.
        unsafe {
            assert_eq!(
                (ndw_GetHostNameW(wide.as_mut_ptr(), 256), ndw_gethostname(narrow.as_mut_ptr(), 256)),
                (0, 0)
            );
            let name = text::string_from_narrow(narrow.as_ptr()).unwrap();
            assert_eq!(text::string_from_wide(wide.as_ptr()), Some(name.clone()));
            let length = name.chars().count() as c_int;
            assert_eq!((ndw_GetHostNameW(wide.as_mut_ptr(), length), last_error()), (-1, WSAEFAULT));
            assert_eq!((ndw_GetHostNameW(null_mut(), 256), last_error()), (-1, WSAEFAULT));
            assert_eq!((ndw_GetHostNameW(wide.as_mut_ptr(), -1), last_error()), (-1, WSAEFAULT));
        }
    }
}
