use super::*;
use crate::winsock::table::CONNECTING;

#[test]
fn only_sockets_are_closed() {
    // SAFETY: a plain system call.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    // SAFETY: this test's own descriptor.
    assert_eq!(unsafe { ndw_closesocket(fd as Socket) }, -1);
    assert_eq!(last_error(), WSAENOTSOCK);
    // SAFETY: still ours.
    assert_eq!(unsafe { libc::close(fd) }, 0);
}

#[test]
fn marks_of_a_socket_that_was_closed_otherwise_are_not_the_next_ones() {
    super::super::startup::start();
    let fd = ndw_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
    table::get(fd).unwrap().mark(CONNECTING);
    assert!(table::is_marked(fd, CONNECTING));
    // Closes it, and another has its number.
    system::replace(fd, &system::socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap()).unwrap();
    assert!(!table::is_marked(fd, CONNECTING));
    // SAFETY: this test's own socket.
    assert_eq!(unsafe { ndw_closesocket(fd as Socket) }, 0);
}

#[test]
fn a_hint_for_listen_is_a_backlog_within_limits() {
    super::super::startup::start();
    let most =
        std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().parse::<u32>().unwrap();
    for (asked, backlog) in [(-1, 200), (-300, 300), (c_int::MIN, 65535), (5, 5)] {
        let fd = ndw_socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as _,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
            sin_zero: [0; 8],
        };
        let size = size_of_val(&address) as socklen_t;
        // SAFETY: an address of that size.
        assert_eq!(unsafe { libc::bind(fd, (&raw const address).cast(), size) }, 0);
        assert_eq!(ndw_listen(fd, asked), 0);
        let mut info = [0u32; 8];
        let mut room = size_of_val(&info) as socklen_t;
        // SAFETY: so many bytes of room. Of a listener `tcpi_sacked`, the last of these, is the backlog.
        let done = unsafe {
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut room)
        };
        assert_eq!((done, info[7]), (0, backlog.min(most)), "{asked}");
        // SAFETY: this test's own socket.
        assert_eq!(unsafe { ndw_closesocket(fd as Socket) }, 0);
    }
}

/// The error of `WSASocket`, or the family, type and protocol of what it made.
fn made(asked: [c_int; 3], info: In<'_, ProtocolInfo>) -> Result<[c_int; 3], u32> {
    set_last_error(ERROR_GEN_FAILURE);
    let [family, kind, protocol] = asked;
    let socket = ndw_WSASocketW(family, kind, protocol, info, 0, 0);
    if socket == INVALID_SOCKET {
        return Err(last_error());
    }
    assert_eq!(last_error(), ERROR_SUCCESS);
    let fd = socket as RawFd;
    let of =
        [libc::SO_DOMAIN, libc::SO_TYPE, libc::SO_PROTOCOL].map(|option| int_option(fd, option).unwrap());
    // SAFETY: this test's own socket.
    assert_eq!(unsafe { ndw_closesocket(socket) }, 0);
    Ok(of)
}

const UNKNOWN: c_int = 0xDEAD;
const TCP: [c_int; 3] = [libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP];
const UDP: [c_int; 3] = [libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDP];

#[test]
fn a_socket_that_cannot_be_says_why_as_on_windows() {
    use libc::*;
    super::super::startup::start();
    for (asked, code) in [
        ([UNKNOWN, SOCK_STREAM, IPPROTO_TCP], WSAEAFNOSUPPORT),
        ([-1, SOCK_STREAM, IPPROTO_TCP], WSAEAFNOSUPPORT),
        ([AF_INET, UNKNOWN, IPPROTO_TCP], WSAESOCKTNOSUPPORT),
        ([AF_INET, -1, IPPROTO_TCP], WSAESOCKTNOSUPPORT),
        ([AF_INET, SOCK_STREAM, UNKNOWN], WSAEPROTONOSUPPORT),
        ([AF_INET, SOCK_STREAM, -1], WSAEPROTONOSUPPORT),
        ([UNKNOWN, UNKNOWN, IPPROTO_TCP], WSAESOCKTNOSUPPORT),
        ([UNKNOWN, SOCK_STREAM, UNKNOWN], WSAEAFNOSUPPORT),
        ([AF_INET, UNKNOWN, UNKNOWN], WSAESOCKTNOSUPPORT),
        ([AF_INET, UNKNOWN, 0], WSAESOCKTNOSUPPORT),
        ([AF_INET, 0, UNKNOWN], WSAEPROTONOSUPPORT),
        ([AF_INET, SOCK_STREAM, IPPROTO_UDP], WSAEPROTONOSUPPORT),
        ([AF_INET, SOCK_DGRAM, IPPROTO_TCP], WSAEPROTONOSUPPORT),
        ([AF_UNSPEC, SOCK_STREAM, UNKNOWN], WSAEPROTONOSUPPORT),
        ([AF_UNSPEC, UNKNOWN, IPPROTO_UDP], WSAESOCKTNOSUPPORT),
        ([AF_UNSPEC, SOCK_STREAM, 0], WSAEINVAL),
        ([AF_UNSPEC, UNKNOWN, 0], WSAEINVAL),
        ([AF_UNSPEC, 0, UNKNOWN], WSAEPROTONOSUPPORT),
        ([AF_UNSPEC, 0, 0], WSAEINVAL),
    ] {
        assert_eq!(made(asked, In::NULL), Err(code), "{asked:?}");
    }
}

#[test]
fn what_is_not_told_follows_from_the_rest() {
    use libc::*;
    super::super::startup::start();
    for (asked, found) in [
        ([AF_INET, SOCK_STREAM, 0], TCP),
        ([AF_INET, SOCK_DGRAM, 0], UDP),
        ([AF_INET, 0, IPPROTO_TCP], TCP),
        ([AF_INET, 0, IPPROTO_UDP], UDP),
        ([AF_INET, 0, 0], TCP),
        ([AF_UNSPEC, SOCK_STREAM, IPPROTO_TCP], TCP),
        ([AF_UNSPEC, 0, IPPROTO_UDP], UDP),
    ] {
        assert_eq!(made(asked, In::NULL), Ok(found), "{asked:?}");
    }
    // Linux's own ways stay.
    let fd = ndw_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert!(fd >= 0 && !system::is_blocking(fd));
    // SAFETY: this test's own socket.
    assert_eq!(unsafe { ndw_closesocket(fd as Socket) }, 0);
}

#[test]
fn a_protocols_description_fills_in_what_is_not_told() {
    super::super::startup::start();
    let [family, kind, protocol] = UDP;
    let info = ProtocolInfo::of_socket(family, kind, protocol).unwrap();
    assert_eq!(made([0, 0, 0], In::from(&info)), Ok(UDP));
    assert_eq!(made([-1, -1, -1], In::from(&info)), Ok(UDP));
    assert_eq!(made(TCP, In::from(&info)), Ok(TCP));
    for nothing in [0, -1] {
        let info = ProtocolInfo { address_family: nothing, socket_type: nothing, protocol: nothing, ..info };
        assert_eq!(made([0, 0, libc::IPPROTO_UDP], In::from(&info)), Err(WSAEAFNOSUPPORT));
    }
}
