//! Hostile and broken peers: floods of connections, silent, slow and dead ones. Proper peers are served meanwhile, and what is
//! kept for the others is bounded in number and time.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::FromRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};
use softiwarp::completion::Status;
use softiwarp::queue_pair::{Cause, Work};
use softiwarp::socket::{Connection, Ended, Event};
use softiwarp::startup;
use softiwarp::wire::{Header, SendKind};
use support::device::*;

/// Lets the process have as many descriptors as it may.
fn many_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there while the calls last.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max.min(100_000);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
}

/// Whether the other side has ended the connection.
fn is_over(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn serve(
    near: &Device,
    far: &Device,
    address: SocketAddr,
    number: u32,
) -> (Arc<Connection>, Arc<Connection>) {
    let both = [near, far];
    let ends = (near.end(number), far.end(number));
    ends.1.pair.lock().post_receive(7, &[]).unwrap();
    let ours = near.connect(address, OFFER, b"in earnest", &ends.0);
    let (theirs, asked) = event(&both, far);
    assert!(
        matches!(&asked, Event::Asked { private_data, .. } if private_data == b"in earnest"),
        "{asked:?}"
    );
    theirs.accept(&OFFER, b"", Arc::clone(&ends.1.pair)).unwrap();
    assert!(matches!(event(&both, near).1, Event::Established { .. }));
    post(&ours, 1, Work::Send(SendKind::default()), &[]);
    assert_eq!(seen(&completions(&both, &ends.1.received, 1)), [(7, Status::Success)]);
    (ours, theirs)
}

#[test]
fn a_flood_of_silent_peers_keeps_nobody_out() {
    many_descriptors();
    let (near, far) = (Device::new(), Device::new());
    let (_listener, address) = far.listen("127.0.0.1:0");
    let before = serve(&near, &far, address, 1);
    let mut strangers = Vec::new();
    for _ in 0..1300 {
        strangers.push(TcpStream::connect(address).unwrap());
        far.poller.drive(Some(Duration::ZERO));
    }
    let last = Instant::now();
    let after = serve(&near, &far, address, 2);
    // Those that came first had to go; the last may still ask.
    assert!(strangers[..128].iter_mut().all(is_over));
    // It has five seconds.
    let is_late = is_over(strangers.last_mut().unwrap());
    assert!(!is_late || last.elapsed() > Duration::from_secs(4));
    let left = strangers.iter_mut().filter_map(|one| (!is_over(one)).then_some(())).count();
    assert!(left <= 1024, "{left}");
    drop((before, after));
}

#[test]
fn requests_that_nobody_answers_are_no_more_than_the_backlog() {
    let device = Device::new();
    let (_listener, address) = device.listen("127.0.0.1:0");
    let request = startup::request(&OFFER, b"again").unwrap();
    let rest = || while device.poller.drive(Some(Duration::from_millis(1))) {};
    let mut strangers = Vec::new();
    // The system's queue has room for those who come behind the first 16.
    for _ in 0..30 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&request).unwrap();
        strangers.push(stream);
        rest();
    }
    for left in (1..=30).rev() {
        rest();
        assert_eq!(device.told.0.lock().len(), left.min(16));
        let (connection, event) = event(&[&device], &device);
        assert!(matches!(event, Event::Asked { .. }));
        connection.refuse(b"").unwrap();
    }
}

#[test]
fn peers_that_ask_and_leave_are_no_more_than_the_backlog() {
    let device = Device::new();
    let (_listener, address) = device.listen("127.0.0.1:0");
    let request = startup::request(&OFFER, b"never mind").unwrap();
    for _ in 0..5000 {
        // Where the system's queue is full it is not waited for.
        let peer = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        peer.set_nonblocking(true).unwrap();
        let _ = peer.connect(&address.into());
        let _ = (&peer).write(&request);
        drop(peer);
        device.poller.drive(Some(Duration::ZERO));
    }
    let asked =
        |told: &[(_, Event)]| told.iter().filter(|(_, event)| matches!(event, Event::Asked { .. })).count();
    let count = asked(&device.told.0.lock());
    assert!((1..=16).contains(&count), "{count}");
    // Who answers has the next ones.
    let peer = std::thread::spawn(move || {
        let mut peer = TcpStream::connect(address).unwrap();
        peer.write_all(&startup::request(&OFFER, b"in earnest").unwrap()).unwrap();
        peer
    });
    until(&[&device], || {
        let told: Vec<_> = device.told.0.lock().drain(..).collect();
        for (connection, event) in &told {
            if matches!(event, Event::Asked { private_data, .. } if private_data == b"in earnest") {
                connection.refuse(b"").unwrap();
                return Some(());
            }
            assert!(connection.refuse(b"").is_err(), "the peer has left");
        }
        None
    });
    drop(peer.join());
}

#[test]
fn a_request_that_comes_byte_by_byte_is_served_and_half_of_one_ends_in_time() {
    let device = Device::new();
    let (_listener, address) = device.listen("127.0.0.1:0");
    let request = startup::request(&OFFER, b"slow").unwrap();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(&request[..20]).unwrap();
    let begin = Instant::now();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.set_nodelay(true).unwrap();
    for byte in request {
        slow.write_all(&[byte]).unwrap();
        device.poller.drive(Some(Duration::from_millis(1)));
    }
    let (connection, asked) = event(&[&device], &device);
    assert!(matches!(asked, Event::Asked { private_data, .. } if private_data == b"slow"));
    connection.refuse(b"").unwrap();
    until(&[&device], || is_over(&mut half).then_some(()));
    assert!(begin.elapsed() >= Duration::from_secs(4), "it had its time");
}

/// A peer that goes on to send, and reads nothing: what waits for it is bounded by what was posted, and others go on.
#[test]
fn answers_to_a_peer_that_never_reads_do_not_grow() {
    let one = connected("127.0.0.1:0", OFFER);
    let other = connected("127.0.0.1:0", OFFER);
    let far = [&one.devices.1, &other.devices.0, &other.devices.1];
    let block = support::Block::new(&one.devices.1.domain, 1 << 20, support::ALL);
    let own = support::Block::new(&one.devices.0.domain, 1 << 20, support::ALL);
    // The near side is never driven: it takes no answer.
    for id in 0..8 {
        let work = Work::Read { token: block.token(), offset: block.at(0) };
        post(&one.connections.0, id, work, &[own.piece(0, 1 << 20)]);
    }
    for round in 0..20 {
        other.ends.1.pair.lock().post_receive(round, &[]).unwrap();
        post(&other.connections.0, round, Work::Send(SendKind::default()), &[]);
        assert_eq!(seen(&completions(&far, &other.ends.1.received, 1)), [(round, Status::Success)]);
    }
    // The other end goes, and its answers with it.
    one.connections.1.disconnect();
    let ended = event(&far, &one.devices.1).1;
    assert!(matches!(ended, Event::Ended(_)), "{ended:?}");
}

/// The socket of a connection of this process.
fn socket_of(connection: &Connection) -> Socket {
    let ends = (connection.local_address().unwrap(), Some(connection.peer_address()));
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let fd: i32 = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        // SAFETY: a new descriptor, or none. What it is for is found out before it is used.
        let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            continue;
        }
        // SAFETY: the descriptor was just made, and has no other owner.
        let copy = unsafe { Socket::from_raw_fd(copy) };
        let address = |at: std::io::Result<SockAddr>| at.ok().and_then(|at| at.as_socket());
        if (address(copy.local_addr()), address(copy.peer_addr())) == ends {
            return copy;
        }
    }
    panic!("no socket");
}

#[test]
fn a_peer_that_takes_nothing_loses_its_connection_after_two_minutes_and_a_dead_one_is_noticed() {
    let one = connected("127.0.0.1:0", OFFER);
    let two_minutes = Some(Duration::from_secs(120));
    for connection in [&one.connections.0, &one.connections.1] {
        let socket = socket_of(connection);
        assert_eq!(socket.tcp_user_timeout().unwrap(), two_minutes, "who is stopped for a minute survives");
        assert!(socket.keepalive().unwrap());
    }
    // It is as if the time were over.
    socket_of(&one.connections.0).set_tcp_user_timeout(Some(Duration::from_millis(300))).unwrap();
    let far = support::Block::new(&one.devices.1.domain, 1 << 20, support::ALL);
    let near = support::Block::new(&one.devices.0.domain, 1 << 20, support::ALL);
    for id in 0..64 {
        let work = Work::Write { token: far.token(), offset: far.at(0) };
        post(&one.connections.0, id, work, &[near.piece(0, 1 << 20)]);
    }
    let ended = event(&[&one.devices.0], &one.devices.0).1;
    assert_eq!(ended, Event::Ended(Ended::Disconnected(Some(Cause::Lost))));
    let done = completions(&[], &one.ends.0.sent, 64);
    assert_eq!(done.last().unwrap().status, Status::Flushed);
}

#[test]
fn a_peer_that_does_not_answer_the_call_is_unreachable_in_time() {
    let device = Device::new();
    let end = device.end(1);
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap();
    // The system answers no more calls when nobody takes those that there are.
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let caller = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            caller.set_nonblocking(true).unwrap();
            let _ = caller.connect(&address);
            caller
        })
        .collect();
    device.connect(address.as_socket().unwrap(), OFFER, b"", &end);
    assert_eq!(event(&[&device], &device).1, Event::Ended(Ended::TimedOut));
    drop(callers);
}

#[test]
fn who_was_promised_a_first_frame_waits_for_it() {
    let device = Device::new();
    let end = device.end(1);
    let (_listener, address) = device.listen("127.0.0.1:0");
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&startup::request(&OFFER, b"").unwrap()).unwrap();
    let (connection, _) = event(&[&device], &device);
    connection.accept(&OFFER, b"", Arc::clone(&end.pair)).unwrap();
    peer.read_exact(&mut [0; 24]).unwrap();
    post(&connection, 1, Work::Send(SendKind::default()), &[]);
    // The time after which it would send to a peer that has promised nothing.
    for _ in 0..4 {
        device.poller.drive(Some(Duration::from_millis(50)));
    }
    peer.set_nonblocking(true).unwrap();
    assert_eq!(peer.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    peer.set_nonblocking(false).unwrap();
    let mut first = vec![0, 14];
    Header::Write { token: 1, offset: 0, last: true }.put(&mut first);
    first.extend([0; 4]);
    peer.write_all(&first).unwrap();
    assert_eq!(seen(&completions(&[&device], &end.sent, 1)), [(1, Status::Success)]);
}
