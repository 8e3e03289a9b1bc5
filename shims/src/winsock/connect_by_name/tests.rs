use super::*;
use crate::text::w;
use crate::winsock::calls::tests::{closed_under, deaf};
use crate::winsock::socket::ndw_closesocket;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::{null, null_mut};

const LOCAL: &str = "127.0.0.1:0";

fn socket(family: c_int) -> OwnedFd {
    crate::winsock::startup::start();
    system::socket(family, libc::SOCK_STREAM, 0).unwrap()
}

/// A socket for both families; `None` without IPv6.
fn dual() -> Option<OwnedFd> {
    crate::winsock::startup::start();
    let fd = system::socket(libc::AF_INET6, libc::SOCK_STREAM, 0).ok()?;
    system::set_option::<c_int>(fd.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0).ok()?;
    Some(fd)
}

/// An address that nobody listens on, nor will as long as the test's process runs.
fn nobody() -> SocketAddr {
    let fd = socket(libc::AF_INET).into_raw_fd();
    let (mut address, mut size) = (sockaddr_storage::zeroed(), size_of::<sockaddr_storage>());
    let place = (&raw mut address).cast::<sockaddr>();
    // SAFETY: there is so much room.
    unsafe { write_sockaddr(LOCAL.parse().unwrap(), place, &mut size) }.unwrap();
    // SAFETY: an address of that size.
    assert_eq!(unsafe { libc::bind(fd, place, size as u32) }, 0);
    address = system::local_address(fd).unwrap();
    // SAFETY: as the kernel has it.
    unsafe { read_sockaddr((&raw const address).cast(), size) }.unwrap()
}

/// What a call that tells both addresses has come to.
type Result2 = Result<[SocketAddr; 2], u32>;

/// The result of a call that is given room for addresses of the socket's family.
fn told_both(fd: &OwnedFd, call: impl FnOnce([*mut sockaddr; 2], [InOut<'_, u32>; 2]) -> i32) -> Result2 {
    let mut rooms = [sockaddr_storage::zeroed(); 2];
    let mut lengths = [size_of::<sockaddr_storage>() as u32; 2];
    let places = rooms.each_mut().map(|room| std::ptr::from_mut(room).cast::<sockaddr>());
    let [local, remote] = &mut lengths;
    set_last_error(0);
    if call(places, [local.into(), remote.into()]) != 1 {
        return Err(last_error());
    }
    let family = int_option(fd.as_raw_fd(), libc::SO_DOMAIN).unwrap();
    assert_eq!(lengths.map(|length| length as usize), [sockaddr_size(family).unwrap(); 2]);
    // SAFETY: as long as was told.
    Ok([0, 1].map(|at| unsafe { read_sockaddr(places[at], lengths[at] as usize) }.unwrap()))
}

fn by_name(fd: &OwnedFd, node: &str, service: &str, timeout: Option<libc::timeval>) -> Result2 {
    let (node, service) = (w(node), w(service));
    let timeout = timeout.as_ref().map_or(In::NULL, In::from);
    told_both(fd, |[local, remote], [local_length, remote_length]| {
        let (socket, node, service) =
            (fd.as_raw_fd() as Socket, Text::terminated(&node), Text::terminated(&service));
        // SAFETY: the lengths are those of the rooms.
        unsafe {
            ndw_WSAConnectByNameW(
                socket,
                node,
                service,
                local_length,
                local,
                remote_length,
                remote,
                timeout,
                null(),
            )
        }
    })
}

/// A `SOCKET_ADDRESS_LIST` in memory.
#[repr(C)]
struct List {
    head: AddressList,
    entries: [SocketAddress; 4],
    addresses: [sockaddr_storage; 4],
}

impl List {
    fn new(targets: &[SocketAddr]) -> Box<List> {
        let none = SocketAddress { address: null(), length: 0 };
        let mut list = Box::new(List {
            head: AddressList { count: targets.len() as c_int, padding: 0 },
            entries: [none; 4],
            addresses: [sockaddr_storage::zeroed(); 4],
        });
        for (at, target) in targets.iter().enumerate() {
            let (place, mut length) =
                ((&raw mut list.addresses[at]).cast::<sockaddr>(), size_of::<sockaddr_storage>());
            // SAFETY: there is so much room.
            unsafe { write_sockaddr(*target, place, &mut length) }.unwrap();
            list.entries[at] = SocketAddress { address: place, length: length as c_int };
        }
        list
    }
}

fn by_list(fd: &OwnedFd, targets: &[SocketAddr], timeout: Option<libc::timeval>) -> Result2 {
    let list = List::new(targets);
    let timeout = timeout.as_ref().map_or(In::NULL, In::from);
    told_both(fd, |[local, remote], [local_length, remote_length]| {
        let (socket, list) = (fd.as_raw_fd() as Socket, (&raw const *list).cast());
        // SAFETY: a list whose addresses have their lengths; the lengths are those of the rooms.
        unsafe {
            ndw_WSAConnectByList(socket, list, local_length, local, remote_length, remote, timeout, null())
        }
    })
}

fn mapped(address: SocketAddr) -> SocketAddr {
    let SocketAddr::V4(four) = address else { panic!("{address}") };
    SocketAddr::new(four.ip().to_ipv6_mapped().into(), four.port())
}

#[test]
fn a_name_and_a_service_are_connected_to_and_both_addresses_told() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let target = listener.local_addr().unwrap();
    let port = target.port().to_string();
    for blocking in [true, false] {
        let fd = socket(libc::AF_INET);
        system::set_blocking(fd.as_raw_fd(), blocking).unwrap();
        let [local, remote] = by_name(&fd, "127.0.0.1", &port, None).unwrap();
        assert_eq!((listener.accept().unwrap().1, remote), (local, target));
        // It waits, and the socket stays as it was.
        assert_eq!(system::is_blocking(fd.as_raw_fd()), blocking);
        assert_eq!(by_name(&fd, "127.0.0.1", &port, None), Err(WSAEISCONN));
    }
    let Some(fd) = dual() else { return crate::alone::skipped("there is no IPv6") };
    let [local, remote] = by_name(&fd, "127.0.0.1", &port, None).unwrap();
    assert_eq!((mapped(listener.accept().unwrap().1), remote), (local, mapped(target)));
    // One of IPv6 alone finds nothing for it.
    let fd = socket(libc::AF_INET6);
    system::set_option::<c_int>(fd.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1).unwrap();
    assert_eq!(by_name(&fd, "127.0.0.1", &port, None), Err(WSAHOST_NOT_FOUND));
}

#[test]
fn the_first_of_a_list_that_can_be_reached_is_connected_to() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let target = listener.local_addr().unwrap();
    let without_port = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let six = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), target.port());
    for targets in [&[target][..], &[nobody(), target], &[without_port, six, nobody(), target]] {
        let fd = socket(libc::AF_INET);
        let [local, remote] = by_list(&fd, targets, None).unwrap();
        assert_eq!((listener.accept().unwrap().1, remote), (local, target), "{targets:?}");
    }
    // The error is that of the last one, and the socket can be used again.
    let fd = socket(libc::AF_INET);
    assert_eq!(by_list(&fd, &[without_port, nobody()], None), Err(WSAECONNREFUSED));
    assert_eq!(by_list(&fd, &[nobody(), without_port], None), Err(WSAEADDRNOTAVAIL));
    assert_eq!(by_list(&fd, &[nobody(), six], None), Err(WSAEAFNOSUPPORT));
    assert_eq!(by_list(&fd, &[target], None).map(|[_, remote]| remote), Ok(target));
    let Some(fd) = dual() else { return crate::alone::skipped("there is no IPv6") };
    let Ok(own) = TcpListener::bind("[::1]:0") else {
        return crate::alone::skipped("the loopback interface has no address of IPv6");
    };
    // What is of IPv4 comes last, whatever its place: after it the socket would not be taken back.
    let there = own.local_addr().unwrap();
    assert_eq!(by_list(&fd, &[mapped(nobody()), there], None).map(|[_, remote]| remote), Ok(there));
    drop(own);
    let targets = [mapped(nobody()), there, mapped(target)];
    let fd = dual().unwrap();
    assert_eq!(by_list(&fd, &targets, None).map(|[_, remote]| remote), Ok(mapped(target)));
}

#[test]
fn who_does_not_answer_in_time_is_given_up() {
    let ((silent, _connections), listener) = (deaf(), TcpListener::bind(LOCAL).unwrap());
    let [silent, target] = [silent.local_addr(), listener.local_addr()].map(Result::unwrap);
    let fd = socket(libc::AF_INET);
    let time = Some(libc::timeval { tv_sec: 0, tv_usec: 20_000 });
    assert_eq!(by_name(&fd, "127.0.0.1", &silent.port().to_string(), time), Err(WSAETIMEDOUT));
    assert_eq!(by_list(&fd, &[silent, target], time), Err(WSAETIMEDOUT));
    assert!(system::is_blocking(fd.as_raw_fd()));
    // Another can be asked.
    assert_eq!(by_list(&fd, &[target], None).map(|[_, remote]| remote), Ok(target));
}

#[test]
fn closing_a_socket_ends_its_connect_by_list() {
    let (silent, _connections) = deaf();
    let list = List::new(&[silent.local_addr().unwrap()]);
    let fd = socket(libc::AF_INET).into_raw_fd();
    let at = (&raw const *list).expose_provenance();
    let connect = || {
        let list = std::ptr::with_exposed_provenance(at);
        let (none, room) = (null_mut(), InOut::NULL);
        // SAFETY: a list whose addresses have their lengths.
        unsafe { ndw_WSAConnectByList(fd as Socket, list, room, none, InOut::NULL, none, In::NULL, null()) }
    };
    assert_eq!(closed_under(fd, connect), (0, WSAEINTR));
}

#[test]
fn what_cannot_be_connected_by_name_or_list_says_why() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let target = listener.local_addr().unwrap();
    let (list, fd) = (List::new(&[target]), socket(libc::AF_INET));
    let list: *const AddressList = (&raw const *list).cast();
    let (mut room, mut length) = (sockaddr_storage::zeroed(), 15);
    let room = (&raw mut room).cast::<sockaddr>();
    let (none, no_length) = (null_mut(), || InOut::NULL);
    let port = target.port().to_string() + "\0";
    let (node, service) =
        (Text::from(c"127.0.0.1"), std::ffi::CStr::from_bytes_with_nul(port.as_bytes()).unwrap());
    let reserved = (&raw const length).cast();
    let datagrams = system::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).unwrap();
    let number = |fd: &OwnedFd| fd.as_raw_fd() as Socket;
    let empty = AddressList { count: 0, padding: 0 };
    let late = libc::timeval { tv_sec: -1, tv_usec: 0 };
    let code = |done: i32| if done == 1 { 0 } else { last_error() };
    // SAFETY: texts and lists are whole or NULL, and no more room is told than there is.
    unsafe {
        for (socket, expected) in [
            (Socket::MAX, WSAENOTSOCK),
            (0xFFFF, WSAENOTSOCK),
            (number(&datagrams), WSAEINVAL),
            (listener.as_raw_fd() as Socket, WSAEINVAL),
        ] {
            let done =
                ndw_WSAConnectByList(socket, list, no_length(), none, no_length(), none, In::NULL, null());
            assert_eq!(code(done), expected, "{socket}");
        }
        for list in [null(), &raw const empty] {
            let done = ndw_WSAConnectByList(
                number(&fd),
                list,
                no_length(),
                none,
                no_length(),
                none,
                In::NULL,
                null(),
            );
            assert_eq!(code(done), WSAEINVAL);
        }
        let fails = |node, service: Option<_>, length, room, time: Option<&libc::timeval>, reserved| {
            let (service, time) = (service.map_or(Text::NULL, Text::from), time.map_or(In::NULL, In::from));
            let done = ndw_WSAConnectByNameA(
                number(&fd),
                node,
                service,
                length,
                room,
                no_length(),
                none,
                time,
                reserved,
            );
            code(done)
        };
        assert_eq!(fails(Text::NULL, Some(service), no_length(), none, None, null()), WSAEINVAL);
        assert_eq!(fails(node, None, no_length(), none, None, null()), WSAEINVAL);
        assert_eq!(fails(node, Some(service), no_length(), none, None, reserved), WSAEINVAL);
        assert_eq!(fails(node, Some(service), no_length(), none, Some(&late), null()), WSAEINVAL);
        assert_eq!(fails(node, Some(service), no_length(), room, None, null()), WSAEFAULT);
        assert_eq!(fails(node, Some(service), (&mut length).into(), room, None, null()), WSAEFAULT);
        assert_eq!(fails(node, Some(c"none such"), no_length(), none, None, null()), WSATYPE_NOT_FOUND);
        // Nobody has been connected to, and who wants no addresses gets none.
        assert_eq!(fails(node, Some(service), no_length(), none, None, null()), 0);
        assert_eq!(ndw_closesocket(fd.into_raw_fd() as Socket), 0);
    }
}
