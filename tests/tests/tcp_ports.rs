//! Ports that TCP keeps after the end of a connection: over iWARP they are in the way, until another is found.
//!
//! In a program of its own, because it leaves the machine no more than three ports to choose from.

use ndcompat::connector::Offer;
use ndcompat::verbs::SockAddr;
use ndcompat::{Adapter, Status};
use ndcompat_tests::{End, adapter, address, is_siw, listen, shows};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

/// Both tests choose which ports there are.
static PORTS: Mutex<()> = Mutex::new(());

/// What ports the machine chooses from; as before when dropped, whatever becomes of the test.
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
        // Should it fail, only this machine's later tests suffer.
        let _ = std::fs::write(PortRange::FILE, &self.before);
    }
}

/// Connects by TCP and closes first, so that the port stays taken: the address it was done from, and where to.
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

/// What comes of connecting `active`, which is bound, with a listener at `to`; its address afterwards.
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
    active.connector.bind(from).unwrap();
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
    let _alone = PORTS.lock();
    let adapter = adapter();
    let (from, to) = tcp_connection();
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

#[test]
fn another_port_is_tried_if_connecting_has_chosen_that_one() {
    let _alone = PORTS.lock();
    let adapter = adapter();
    let (from, to) = tcp_connection();
    // It has one of two; the other, once used, is TCP's, too.
    let range = PortRange::set(from.port()..=from.port() + 1);
    let active = End::new(&adapter, 1);
    active.connector.bind(address()).unwrap();
    let (status, own) = connect(&adapter, &active, to);
    drop(range);
    assert_eq!(status, Status::SUCCESS);
    assert!(own.same_ip(from) && own.port() != 0);
    assert!(own != from || !is_siw(), "{from}, {own}");
}
