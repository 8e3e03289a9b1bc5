//! Ports that TCP still holds after the end of a connection. Over iWARP they cannot be used, and another one must be chosen.
//!
//! In a program of its own, because it restricts the machine's ephemeral ports to three.

use ndcompat::SockAddr;
use ndcompat::connector::Offer;
use ndcompat::{Adapter, Status};
use rustix::net::{AddressFamily, SocketType};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use support::{End, adapter, address, is_emulator, is_iwarp, is_siw, listen, shows};

/// The tests change the machine's range of ephemeral ports, so they run one at a time.
static PORTS: Mutex<()> = Mutex::new(());

/// The machine's range of ephemeral ports, restored on drop.
struct PortRange {
    before: String,
}

impl PortRange {
    const FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

    fn set(ports: RangeInclusive<u16>) -> PortRange {
        let before = std::fs::read_to_string(PortRange::FILE).unwrap();
        std::fs::write(PortRange::FILE, format!("{} {}", ports.start(), ports.end())).unwrap();
        PortRange { before }
    }
}

impl Drop for PortRange {
    fn drop(&mut self) {
        // A failure affects only later tests on this machine.
        let _ = std::fs::write(PortRange::FILE, &self.before);
    }
}

/// Connects by TCP and closes first, which leaves the port in TIME_WAIT. Returns the local and the remote address.
fn tcp_connection() -> (SockAddr, SockAddr) {
    let listener = TcpListener::bind(SocketAddr::from(address())).unwrap();
    let to = listener.local_addr().unwrap();
    let client = TcpStream::connect(to).unwrap();
    let from = client.local_addr().unwrap();
    let (mut server, _) = listener.accept().unwrap();
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap(), 0, "the other side has closed");
    (from.into(), to.into())
}

/// As `tcp_connection`, and the next `free` ports after the local one are free. A listener's port is often next to it.
fn tcp_connection_before(free: u16) -> (SockAddr, SockAddr) {
    for _ in 0..100 {
        let (from, to) = tcp_connection();
        let next = from.port() + 1..=from.port() + free;
        if !next.contains(&to.port()) && next.clone().all(is_free) {
            return (from, to);
        }
    }
    panic!("no {free} free ports in a row");
}

/// Whether nothing of TCP has the port, not even a connection that has ended: Rust's listeners would share it with that.
fn is_free(port: u16) -> bool {
    let at = SocketAddr::from(address().with_port(port));
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &at).is_ok()
}

/// As many ports in a row that nothing of TCP has.
fn free_ports(count: u16) -> RangeInclusive<u16> {
    for _ in 0..100 {
        let first = TcpListener::bind(SocketAddr::from(address())).unwrap().local_addr().unwrap().port();
        let ports = first..=first + count - 1;
        if ports.clone().all(is_free) {
            return ports;
        }
    }
    panic!("no {count} free ports in a row");
}

/// Connects `active`, which is bound, with a listener at `to`. Returns the status and the local address afterwards.
fn connect(adapter: &Arc<Adapter>, active: &End, to: SockAddr) -> (Status, SockAddr) {
    let passive = End::new(adapter, 2);
    let (listener, to) = listen(adapter, &passive.file, to);
    let (mut request, mut accept) = (passive.operation(), passive.operation());
    let (mut connect, mut complete) = (active.operation(), active.operation());
    // SAFETY: all are waited for, or cancelled when their ends go.
    let status = unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, to, Offer::default(), connect.ov()).unwrap();
        while connect.status() == Status::PENDING && request.status() == Status::PENDING {
            std::thread::yield_now();
        }
        if request.status() == Status::SUCCESS {
            passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        }
        let status = connect.wait();
        if status == Status::SUCCESS {
            active.connector.complete_connect(complete.ov()).unwrap();
            assert_eq!((complete.wait(), accept.wait()), (Status::SUCCESS, Status::SUCCESS));
        }
        status
    };
    listener.close();
    (status, active.connector.local_address().unwrap())
}

#[test]
fn a_port_that_the_program_chose_is_taken() {
    let _alone = PORTS.lock();
    let adapter = adapter();
    let (from, to) = tcp_connection();
    let active = End::new(&adapter, 1);
    let bound = active.connector.bind(from);
    if is_emulator() {
        // Binding an address binds a socket.
        return shows("IND2Connector::Bind", bound.unwrap_err(), Status::SHARING_VIOLATION);
    }
    bound.unwrap();
    let (status, own) = connect(&adapter, &active, to);
    if is_siw() {
        shows("IND2Connector::Connect", status, Status::ADDRESS_ALREADY_EXISTS);
    } else {
        assert_eq!(status, Status::SUCCESS, "TCP's ports are not those of RoCE");
    }
    assert_eq!(own, from);
}

#[test]
fn another_port_is_tried_if_the_program_left_the_choice() {
    if is_emulator() {
        return; // it chooses none that is taken: the next test
    }
    let _alone = PORTS.lock();
    let adapter = adapter();
    let (from, to) = tcp_connection_before(2);
    let range = PortRange::set(from.port()..=from.port() + 2);
    let (active, _) = [(), (), ()]
        .map(|()| {
            let end = End::new(&adapter, 1);
            end.connector.bind(address()).unwrap();
            let own = end.connector.local_address().unwrap();
            (end, own)
        })
        .into_iter()
        .find(|&(_, own)| own == from)
        .expect("one of three has it");
    let (status, own) = connect(&adapter, &active, to);
    drop(range);
    assert_eq!(status, Status::SUCCESS);
    assert!(own.same_ip(from));
    assert_eq!(own != from, is_siw(), "{from}, {own}");
}

/// The emulator chooses a port by binding a socket.
#[test]
fn a_port_that_tcp_holds_is_not_chosen() {
    if !is_emulator() {
        return;
    }
    let _alone = PORTS.lock();
    let adapter = adapter();
    let (from, _) = tcp_connection_before(2);
    let range = PortRange::set(from.port()..=from.port() + 2);
    let ends = [(), (), ()].map(|()| End::new(&adapter, 1));
    let bound = ends.each_ref().map(|end| end.connector.bind(address()));
    let listener = adapter.create_listener(&ends[0].file).unwrap();
    let listening = listener.bind(address());
    drop(range);
    assert_eq!(bound[..2], [Ok(()), Ok(())], "two of three are free");
    shows("IND2Connector::Bind", bound[2].unwrap_err(), Status::TOO_MANY_ADDRESSES);
    shows("IND2Listener::Bind", listening.unwrap_err(), Status::TOO_MANY_ADDRESSES);
}

#[test]
fn another_port_is_tried_if_connecting_has_chosen_that_one() {
    let _alone = PORTS.lock();
    let adapter = adapter();
    let (from, to) = tcp_connection_before(1);
    // Of two ports TCP holds one, and the other one once it has been used.
    let range = PortRange::set(from.port()..=from.port() + 1);
    let active = End::new(&adapter, 1);
    active.connector.bind(address()).unwrap();
    let (status, own) = connect(&adapter, &active, to);
    drop(range);
    assert_eq!(status, Status::SUCCESS);
    assert!(own.same_ip(from) && own.port() != 0);
    assert!(own != from || !is_siw(), "{from}, {own}");
}

#[test]
fn a_listener_gets_a_port_that_tcp_has_free() {
    let _alone = PORTS.lock();
    let adapter = adapter();
    let end = End::new(&adapter, 1);
    // TCP holds all but one of four ports.
    let range = PortRange::set(free_ports(4));
    let taken = [(), (), ()].map(|()| TcpListener::bind(SocketAddr::from(address())).unwrap());
    let listener = adapter.create_listener(&end.file).unwrap();
    listener.bind(address()).unwrap();
    let bound = listener.local_address().unwrap();
    let listening = listener.listen(0);
    drop(range);
    assert_eq!((listening, listener.local_address()), (Ok(()), Ok(bound)));
    let is_taken = taken.iter().any(|other| other.local_addr().unwrap().port() == bound.port());
    assert!(!is_taken || !is_siw(), "{bound}");
}

#[test]
fn a_port_that_a_listener_was_given_is_not_given_to_others() {
    let _alone = PORTS.lock();
    let adapter = adapter();
    let end = End::new(&adapter, 1);
    let listener = adapter.create_listener(&end.file).unwrap();
    listener.bind(address()).unwrap();
    let bound = listener.local_address().unwrap();
    // The only ephemeral port.
    let range = PortRange::set(bound.port()..=bound.port());
    let other = TcpListener::bind(SocketAddr::from(address()));
    drop(range);
    assert_eq!(other.map(drop).is_err(), is_iwarp());
    assert_eq!(listener.listen(0), Ok(()));
    // From now on the device holds it.
    assert_eq!(TcpListener::bind(SocketAddr::from(bound)).is_err(), is_iwarp());
}

/// Also on all addresses at once, and while a child has the listener's descriptors.
#[test]
fn a_port_of_all_addresses_is_reserved_in_a_child_too() {
    let _alone = PORTS.lock();
    let adapter = adapter();
    let end = End::new(&adapter, 1);
    let anywhere = SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let listener = adapter.create_listener(&end.file).unwrap();
    listener.bind(anywhere).unwrap();
    let bound = listener.local_address().unwrap();
    // SAFETY: the child calls `pause` alone, and is killed.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: no arguments.
            unsafe { libc::pause() };
        }
    }
    let range = PortRange::set(bound.port()..=bound.port());
    let taken = TcpListener::bind(SocketAddr::from(address())).is_err();
    drop(range);
    let listening = listener.listen(0);
    // SAFETY: the child is this process's, and is waited for once.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    assert_eq!((taken, listening), (is_iwarp(), Ok(())));
}
