use super::super::INVALID_SOCKET;
use super::super::address::parse;
use super::super::socket::{ndw_WSASocketW, ndw_closesocket};
use super::*;
use crate::arguments::{In, Text};
use std::ptr::{null, null_mut};

/// Milliseconds, for what comes sooner unless it never does.
const LONG: u32 = 60_000;

fn new_socket(kind: i32) -> Socket {
    super::super::startup::start();
    ndw_WSASocketW(libc::AF_INET, kind, 0, In::NULL, 0, 1)
}

fn close(socket: Socket) -> i32 {
    // SAFETY: this test's own socket.
    unsafe { ndw_closesocket(socket) }
}

fn ioctl(socket: Socket, code: u32, input: &[u8], output: &mut [u8]) -> (i32, u32) {
    let mut returned = 77;
    // SAFETY: slices with their sizes.
    let result = unsafe {
        ndw_WSAIoctl(
            socket,
            code,
            input.as_ptr().cast(),
            input.len() as u32,
            output.as_mut_ptr().cast(),
            output.len() as u32,
            Out::from(&mut returned),
            null_mut(),
            None,
        )
    };
    (result, returned)
}

fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    // SAFETY: room for an IPv4 address.
    unsafe {
        write_sockaddr(parse(text, libc::AF_INET).unwrap(), bytes.as_mut_ptr().cast(), &mut 16).unwrap();
    }
    bytes
}

#[test]
fn the_route_to_a_local_address() {
    let socket = new_socket(libc::SOCK_STREAM);
    assert_ne!(socket, INVALID_SOCKET);
    let mut output = [0; 16];
    let input = bytes_of("127.0.0.1:54321");
    assert_eq!(ioctl(socket, SIO_ROUTING_INTERFACE_QUERY, &input, &mut output), (0, 16));
    assert_eq!(output[..], bytes_of("127.0.0.1")[..]);

    assert_eq!(ioctl(socket, SIO_ROUTING_INTERFACE_QUERY, &input, &mut output[..15]), (-1, 16));
    assert_eq!(last_error(), WSAEFAULT);
    assert_eq!(ioctl(socket, SIO_ROUTING_INTERFACE_QUERY, &bytes_of("0.0.0.0"), &mut output), (-1, 0));
    assert_eq!(last_error(), WSAEINVAL);
    assert_eq!(ioctl(socket, 0x1234, &input, &mut output), (-1, 0));
    assert_eq!(last_error(), WSAEOPNOTSUPP);

    assert_eq!(close(socket), 0);
    assert_eq!(ioctl(usize::MAX, SIO_ROUTING_INTERFACE_QUERY, &input, &mut output), (-1, 0));
    assert_eq!(last_error(), WSAENOTSOCK);
    assert_eq!(close(INVALID_SOCKET), -1);
}

#[test]
fn the_list_of_addresses_points_into_its_buffer() {
    let socket = new_socket(libc::SOCK_DGRAM);
    let (result, needed) = ioctl(socket, SIO_ADDRESS_LIST_QUERY, &[], &mut []);
    assert_eq!((result, last_error()), (-1, WSAEFAULT));
    let mut list = vec![0u8; needed as usize];
    assert_eq!(ioctl(socket, SIO_ADDRESS_LIST_QUERY, &[], &mut list), (0, needed));
    let count = i32::from_ne_bytes(list[..4].try_into().unwrap()) as usize;
    assert_eq!(needed as usize, 8 + count * (16 + 16));
    let first = usize::from_ne_bytes(list[8..16].try_into().unwrap());
    assert_eq!(first, list.as_ptr() as usize + 8 + count * 16);
    let loopback = bytes_of("127.0.0.1");
    assert!(list[8 + count * 16..].chunks(16).any(|address| address == loopback));
    assert_eq!(close(socket), 0);
}

#[test]
fn interfaces_are_listed_with_their_masks_and_flags() {
    let socket = new_socket(libc::SOCK_DGRAM);
    // What is too short is refused without a word on how much it takes.
    let mut list = vec![0u8; 75];
    let needed = loop {
        match ioctl(socket, SIO_GET_INTERFACE_LIST, &[], &mut list) {
            (0, needed) => break needed as usize,
            refused => assert_eq!((refused, last_error()), ((-1, 0), WSAEFAULT)),
        }
        list.resize(list.len() + 76, 0);
    };
    assert_eq!((list.len(), needed % 76), (needed + 75, 0));
    assert_eq!(ioctl(socket, SIO_GET_INTERFACE_LIST, &[], &mut []), (-1, 0));
    let loopback = list.chunks_exact(76).find(|info| info[4 + 4..][..4] == [127, 0, 0, 1]).unwrap();
    let (flags, addresses) = loopback.split_at(4);
    let flags = i32::from_ne_bytes(flags.try_into().unwrap());
    let wanted = libc::IFF_UP | libc::IFF_LOOPBACK;
    assert_eq!(flags & (wanted | libc::IFF_POINTOPOINT | libc::IFF_RUNNING), wanted);
    let ips = addresses.chunks(24).map(|address| (&address[..4], &address[4..8], &address[8..]));
    let family = [libc::AF_INET as u8, 0, 0, 0];
    // It cannot broadcast.
    for ((kind, ip, rest), expected) in ips.zip([[127, 0, 0, 1], [0, 0, 0, 0], [255, 0, 0, 0]]) {
        assert_eq!((kind, ip, rest), (&family[..], &expected[..], &[0; 16][..]));
    }
    assert_eq!(ioctl(socket, SIO_LOOPBACK_FAST_PATH, &[1, 0, 0, 0], &mut []), (0, 0));
    assert_eq!(close(socket), 0);
}

/// Puts the calling thread, and those that it starts, in a network of its own, where nothing is up. That takes rights which not everybody
/// has: false, and says so, if they are missing.
pub(in crate::winsock) fn leave_the_network() -> bool {
    // SAFETY: takes no pointer.
    let left = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
    if !left {
        crate::alone::skipped(&format!("no network of its own: {}", std::io::Error::last_os_error()));
    }
    left
}

/// Brings the loopback interface of the thread's network up or down, and with it its address.
pub(in crate::winsock) fn loopback(up: bool) {
    // SAFETY: plain data, for which zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as _;
    request.ifr_name[1] = b'o' as _;
    request.ifr_ifru.ifru_flags = if up { libc::IFF_UP as i16 } else { 0 };
    // SAFETY: the request is a local with the name of an interface, and the socket is this block's own.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        assert_eq!(libc::ioctl(fd, libc::SIOCSIFFLAGS, &request), 0);
        libc::close(fd);
    }
}

fn list_change(socket: Socket, overlapped: &Overlapped) -> (i32, u32) {
    let mut returned = 0;
    let target = (&raw const *overlapped).cast_mut();
    let code = SIO_ADDRESS_LIST_CHANGE;
    // SAFETY: an OVERLAPPED that outlives the request.
    let result = unsafe {
        ndw_WSAIoctl(socket, code, null(), 0, null_mut(), 0, Out::from(&mut returned), target, None)
    };
    (result, last_error())
}

#[test]
fn closing_a_socket_ends_the_wait_for_a_change_of_addresses() {
    let socket = new_socket(libc::SOCK_STREAM);
    let known = table::get(socket as i32).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| (ioctl(socket, SIO_ADDRESS_LIST_CHANGE, &[], &mut []).0, last_error()));
        let changes = known.addresses().unwrap();
        while !changes.is_awaited() {
            std::thread::yield_now();
        }
        assert_eq!(close(socket), 0);
        assert_eq!(waiting.join().unwrap(), (-1, WSAEINTR));
    });
}

#[test]
fn a_change_of_addresses_ends_a_request_on_a_port() {
    // All threads of the process that look at addresses are to see the same network.
    crate::alone::run("winsock::ioctl::tests::waits_for_a_change_of_addresses");
}

#[test]
#[ignore = "is in another network; the test above runs it"]
fn waits_for_a_change_of_addresses() {
    use crate::api::completion_port::{ndw_CreateIoCompletionPort, ndw_GetQueuedCompletionStatus};
    use crate::api::handle::close_handle;
    use crate::object::RawHandle;
    let overlapped = [Overlapped::default(), Overlapped::default()];
    let other_network = leave_the_network();
    let socket = new_socket(libc::SOCK_STREAM);
    let port = ndw_CreateIoCompletionPort(RawHandle(socket), RawHandle::NULL, 9, 0);
    assert_ne!(port, RawHandle::NULL);
    assert_eq!(ndw_CreateIoCompletionPort(RawHandle(socket), port, 9, 0), RawHandle::NULL, "bound once");
    let next = |wait| {
        let (mut bytes, mut key, mut which) = (77, 0, null_mut());
        // SAFETY: the targets are local variables.
        let found = ndw_GetQueuedCompletionStatus(
            port,
            Out::from(&mut bytes),
            Out::from(&mut key),
            Out::from(&mut which),
            wait,
        );
        (found, which.cast_const(), key)
    };
    if other_network {
        for up in [true, false] {
            assert_eq!(list_change(socket, &overlapped[0]), (-1, WSA_IO_PENDING));
            assert_eq!(next(0), (0, null(), 0));
            loopback(up);
            assert_eq!(next(LONG), (1, &raw const overlapped[0], 9));
        }
    }
    // Closing the socket ends what is pending.
    assert_eq!(list_change(socket, &overlapped[1]), (-1, WSA_IO_PENDING));
    assert_eq!(next(0), (0, null(), 0));
    assert_eq!(close(socket), 0);
    assert_eq!(next(LONG), (0, &raw const overlapped[1], 9));
    assert_eq!(last_error(), ERROR_OPERATION_ABORTED);
    assert_eq!(close_handle(port), 1);
}

#[test]
fn a_change_of_addresses_is_an_event_of_who_has_asked_for_it() {
    // All threads of the process that look at addresses are to see the same network.
    crate::alone::run("winsock::ioctl::tests::hears_of_a_change_of_addresses");
}

#[test]
#[ignore = "is in another network; the test above runs it"]
fn hears_of_a_change_of_addresses() {
    use crate::api::event::{ndw_CreateEventW, ndw_ResetEvent};
    use crate::api::wait::ndw_WaitForSingleObject;
    use crate::winsock::event::{NetworkEvents, ndw_WSAEnumNetworkEvents, ndw_WSAEventSelect};
    if !leave_the_network() {
        return;
    }
    let socket = new_socket(libc::SOCK_STREAM);
    let event = ndw_CreateEventW(null(), 1, 0, Text::NULL);
    assert_eq!(ndw_WSAEventSelect(socket, event, FD_ADDRESS_LIST_CHANGE), 0);
    for up in [true, false] {
        // Asked for anew each time.
        assert_eq!(ioctl(socket, SIO_ADDRESS_LIST_CHANGE, &[], &mut []), (-1, 0));
        assert_eq!((last_error(), ndw_WaitForSingleObject(event, 0)), (WSAEWOULDBLOCK, WAIT_TIMEOUT));
        loopback(up);
        assert_eq!(ndw_WaitForSingleObject(event, LONG), 0);
        let mut events = NetworkEvents { events: 0, errors: [77; 10] };
        assert_eq!(ndw_WSAEnumNetworkEvents(socket, event, (&mut events).into()), 0);
        assert_eq!((events.events, events.errors[9], events.errors[0]), (FD_ADDRESS_LIST_CHANGE, 0, 77));
        assert_eq!(ndw_ResetEvent(event), 1);
    }
    loopback(true);
    assert_eq!(ndw_WaitForSingleObject(event, 100), WAIT_TIMEOUT, "not asked for");
    assert_eq!(close(socket), 0);
}

#[test]
fn what_is_answered_at_once_completes_as_any_request_does() {
    use crate::api::event::{ndw_CreateEventW, ndw_ResetEvent};
    use crate::api::handle::close_handle;
    use crate::api::wait::ndw_WaitForSingleObject;
    let socket = new_socket(libc::SOCK_STREAM);
    let mut output = [0; 16];
    let input = bytes_of("127.0.0.1:54321");
    // SAFETY: slices with their sizes.
    unsafe {
        let event = ndw_CreateEventW(null(), 1, 0, Text::NULL);
        assert_eq!(ndw_ResetEvent(event), 1);
        let mut overlapped = Overlapped { event, ..Overlapped::default() };
        let result = ndw_WSAIoctl(
            socket,
            SIO_ROUTING_INTERFACE_QUERY,
            input.as_ptr().cast(),
            16,
            output.as_mut_ptr().cast(),
            16,
            Out::NULL,
            &mut overlapped,
            None,
        );
        assert_eq!(result, 0);
        assert_eq!(ndw_WaitForSingleObject(event, 0), 0);
        assert_eq!(*overlapped.internal_high.get_mut(), 16);
        assert_eq!(close_handle(event), 1);
    }
    assert_eq!(close(socket), 0);
}

#[test]
fn success_leaves_an_error_of_0() {
    let socket = new_socket(libc::SOCK_STREAM);
    let mut output = [0; 16];
    set_last_error(ERROR_GEN_FAILURE);
    assert_eq!(ioctl(socket, SIO_ROUTING_INTERFACE_QUERY, &bytes_of("127.0.0.1:1"), &mut output), (0, 16));
    assert_eq!(last_error(), ERROR_SUCCESS);
    let mut base = [0; 8];
    assert_eq!(ioctl(socket, SIO_BASE_HANDLE, &[], &mut base), (0, 8));
    assert_eq!(usize::from_ne_bytes(base), socket);
    assert_eq!(ioctl(socket, SIO_BASE_HANDLE, &[], &mut base[..7]), (-1, 0));
    assert_eq!(last_error(), WSAEFAULT);
    assert_eq!(close(socket), 0);
}

/// The errors with which [`note`] was called.
static NOTED: std::sync::Mutex<Vec<(u32, u32)>> = std::sync::Mutex::new(Vec::new());

unsafe extern "C" fn note(error: u32, bytes: u32, _overlapped: *mut Overlapped, _flags: u32) {
    NOTED.lock().unwrap().push((error, bytes));
}

fn ioctl_with_routine(socket: Socket, code: u32, overlapped: &Overlapped) -> i32 {
    let (input, mut output) = (bytes_of("127.0.0.1:54321"), [0; 16]);
    let target = (&raw const *overlapped).cast_mut();
    // SAFETY: slices with their sizes, and an OVERLAPPED that outlives the request. What is pending has no output.
    unsafe {
        ndw_WSAIoctl(
            socket,
            code,
            input.as_ptr().cast(),
            16,
            output.as_mut_ptr().cast(),
            16,
            Out::NULL,
            target,
            Some(note),
        )
    }
}

#[test]
fn a_routine_is_called_in_an_alertable_wait() {
    const WAIT_IO_COMPLETION: u32 = 0xC0;
    use crate::api::completion_port::ndw_CreateIoCompletionPort;
    use crate::api::handle::close_handle;
    use crate::api::thread::ndw_SleepEx;
    use crate::object::RawHandle;
    let socket = new_socket(libc::SOCK_STREAM);
    let overlapped = [Overlapped::default(), Overlapped::default()];
    assert_eq!(ioctl_with_routine(socket, SIO_ROUTING_INTERFACE_QUERY, &overlapped[0]), 0);
    assert_eq!(*NOTED.lock().unwrap(), [], "not before");
    assert_eq!(ndw_SleepEx(u32::MAX, 1), WAIT_IO_COMPLETION);
    assert_eq!(*NOTED.lock().unwrap(), [(0, 16)]);

    // One that is pending, and ends when the socket is closed.
    assert_eq!(ioctl_with_routine(socket, SIO_ADDRESS_LIST_CHANGE, &overlapped[1]), -1);
    assert_eq!(last_error(), WSA_IO_PENDING);
    assert_eq!(close(socket), 0);
    assert_eq!(ndw_SleepEx(u32::MAX, 1), WAIT_IO_COMPLETION);
    assert_eq!(NOTED.lock().unwrap().last(), Some(&(WSA_OPERATION_ABORTED, 0)));

    // A port and a routine exclude each other.
    let socket = new_socket(libc::SOCK_STREAM);
    let port = ndw_CreateIoCompletionPort(RawHandle(socket), RawHandle::NULL, 9, 0);
    for code in [SIO_ROUTING_INTERFACE_QUERY, SIO_ADDRESS_LIST_CHANGE] {
        assert_eq!(ioctl_with_routine(socket, code, &overlapped[0]), -1);
        assert_eq!(last_error(), WSAEINVAL);
    }
    assert_eq!((close(socket), close_handle(port)), (0, 1));
}
