//! Hostile peers on plain verbs, each in a process of its own: wrong tokens, bounds exceeded by one byte, messages that are too
//! long, odd private data, floods, connections that are never established, and peers that vanish at each step. The server
//! survives all of them, no byte outside the memory that they were given changes, the next honest client is served, and
//! descriptors and threads do not leak.

mod raw;

use ndcompat::Status;
use ndcompat::verbs::bindings::*;
use ndcompat::verbs::{EventChannel, EventKind, Id, LocalAddress, SockAddr, Transport};
use raw::{Endpoint, expect, local, next_event, resolve};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::client::{BYTES, Client, Ov, TIME_LIMIT, listen_on, open};
use support::com::{Com, Listener};
use support::library::CancelIoEx;

/// The environment variable that tells a child its role and the server's address.
const ROLE: &str = "NDCOMPAT_HOSTILE_PEER";
const SERVER: &str = "NDCOMPAT_HOSTILE_SERVER";
/// Bytes that the server's receive takes.
const RECEIVED: usize = 64;
/// How many requests a flood has; the listener's backlog is less.
const FLOOD: usize = 40;

const PEERS: [&str; 19] = [
    "says nothing",
    "says as much as it can",
    "says garbage",
    "uses a wrong token",
    "uses a token beside its own",
    "writes a byte before",
    "writes a byte behind",
    "reads a byte behind",
    "writes around the end of memory",
    "sends a byte too many",
    "sends far too much",
    "sends when nothing is posted",
    "never says that it is ready",
    "writes garbage to the port",
    "floods",
    "vanishes before it asks",
    "vanishes when it has asked",
    "vanishes when it is connected",
    "vanishes while it sends",
];

fn vanish() -> ! {
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("killed")
}

/// The address and the token of the server's memory, from its private data.
fn told(said: &[u8]) -> (u64, u32) {
    let (address, token) = (said[..8].try_into().unwrap(), said[8..12].try_into().unwrap());
    (u64::from_ne_bytes(address), u32::from_be_bytes(token))
}

/// Asks for a connection. Another port is tried if TCP has the chosen one in TIME_WAIT.
fn ask(
    local: &LocalAddress,
    channel: &Arc<EventChannel>,
    end: &Endpoint,
    server: SockAddr,
    data: &[u8],
) -> io::Result<Id> {
    loop {
        let id = resolve(local, channel, server);
        match id.connect(end.param(data)) {
            Ok(()) => return Ok(id),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The peer, in its own process.
fn peer(role: &str, server: SockAddr) {
    let local = local();
    let iwarp = local.context.transport() == Transport::Iwarp;
    if role == "writes garbage to the port" {
        // iWARP runs over TCP; elsewhere there is no TCP listener.
        let to = SocketAddr::new(server.ip(), server.port());
        for garbage in [&b""[..], b"MPA ID Req Frame\x40\xff\xff\xff", &[0xff; 5000]] {
            if let Ok(mut stream) = TcpStream::connect_timeout(&to, Duration::from_secs(2)) {
                let _ = stream.write_all(garbage);
            }
        }
        return;
    }
    let channel = EventChannel::create(local.context.library()).unwrap();
    let data: Vec<u8> = match role {
        "says nothing" => Vec::new(),
        "says as much as it can" => vec![7; if iwarp { 255 } else { 56 }],
        "says garbage" => (0..56).map(|i: u8| i.wrapping_mul(151) ^ 0xA5).collect(),
        _ => b"hello".to_vec(),
    };
    if role == "floods" {
        let asked: Vec<_> = (0..FLOOD)
            .map(|_| {
                let channel = EventChannel::create(local.context.library()).unwrap();
                let end = Endpoint::new(&local);
                let id = ask(&local, &channel, &end, server, b"flood").unwrap();
                (id, end, channel)
            })
            .collect();
        drop(next_event(&asked[0].2));
        std::mem::forget(asked);
        vanish();
    }
    let end = Endpoint::new(&local);
    if role == "vanishes before it asks" {
        let _id = resolve(&local, &channel, server);
        vanish();
    }
    let Ok(id) = ask(&local, &channel, &end, server, &data) else {
        assert_eq!(role, "says as much as it can", "more than this transport allows");
        return;
    };
    if role == "vanishes when it has asked" {
        vanish();
    }
    let answer = next_event(&channel);
    if role == "says as much as it can" && answer.kind() == EventKind::Rejected {
        // More than the device allows, which refuses it.
        return;
    }
    let kinds = [EventKind::Established, EventKind::ConnectResponse];
    assert!(kinds.contains(&answer.kind()), "{:?} {}", answer.kind(), answer.status());
    let (address, token) = told(answer.private_data());
    drop(answer);
    if role == "never says that it is ready" {
        return;
    }
    if !iwarp {
        end.to_rts(&id, local.context.transport());
        id.establish().unwrap();
    }
    let last = address + BYTES as u64;
    let (opcode, length, remote) = match role {
        "uses a wrong token" => (IBV_WR_RDMA_WRITE, 16, (address + 128, !token)),
        "uses a token beside its own" => (IBV_WR_RDMA_WRITE, 16, (address + 128, token ^ 1)),
        "writes a byte before" => (IBV_WR_RDMA_WRITE, 16, (address - 1, token)),
        "writes a byte behind" => (IBV_WR_RDMA_WRITE, 16, (last - 15, token)),
        "reads a byte behind" => (IBV_WR_RDMA_READ, 16, (last - 15, token)),
        "writes around the end of memory" => (IBV_WR_RDMA_WRITE, 16, (u64::MAX - 7, token)),
        "sends a byte too many" => (IBV_WR_SEND, RECEIVED + 1, (0, 0)),
        "sends far too much" => (IBV_WR_SEND, 8192, (0, 0)),
        "vanishes when it is connected" => vanish(),
        _ => (IBV_WR_SEND, 8, (0, 0)),
    };
    end.post_send(5, opcode, length, remote);
    match role {
        "vanishes while it sends" => vanish(),
        "sends when nothing is posted" => end.post_send(6, opcode, length, remote),
        "says nothing" | "says as much as it can" | "says garbage" => drop(end.expect(5, IBV_WC_SUCCESS)),
        // iWARP completes a write when it has been sent; the connection ends.
        _ if !iwarp => assert_ne!(end.completion().status, IBV_WC_SUCCESS, "{role}"),
        _ => drop(expect(&channel, EventKind::Disconnected)),
    }
    let _ = id.disconnect();
}

#[test]
fn the_peer() {
    if let Ok(role) = std::env::var(ROLE) {
        let server: SocketAddr = std::env::var(SERVER).unwrap().parse().unwrap();
        peer(&role, SockAddr::from(server));
    }
}

fn start(role: &str, server: SockAddr) -> Child {
    let server = SocketAddr::new(server.ip(), server.port());
    Command::new(std::env::current_exe().unwrap())
        .args(["the_peer", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env(SERVER, server.to_string())
        .spawn()
        .expect("the peer")
}

fn pending(requests: &[&Ov]) -> bool {
    requests.iter().any(|request| request.internal() == Status::PENDING)
}

/// Waits until `done`; fails if that takes too long.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIME_LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// An unused `OVERLAPPED`.
fn unused() -> Ov {
    let mut ov = Ov::new();
    // SAFETY: it is nobody else's.
    unsafe { (*ov.ptr()).internal = 0.into() };
    ov
}

/// A server's end, with its memory filled with a pattern.
fn server(adapter: &Com<support::com::Adapter>) -> Client {
    let mut client = Client::on(adapter);
    client.memory.fill(0x5A);
    client
}

/// Serves connection requests and their connections until the peer's process has ended.
fn serve(listener: &Com<Listener>, adapter: &Com<support::com::Adapter>, mut peer: Child, role: &str) {
    let mut gone = false;
    while !gone {
        let server = server(adapter);
        let [mut request, mut accept, mut left] = [unused(), unused(), unused()];
        // SAFETY: buffers have the lengths told, the objects live until the end of the block, and the requests have ended
        // before their OVERLAPPEDs go.
        unsafe {
            listener.get_connection_request(server.connector.as_ptr(), request.ptr());
            until("neither a request nor the end of the peer", || {
                gone = peer.try_wait().unwrap().is_some();
                gone || !pending(&[&request])
            });
            if !pending(&[&request]) && request.internal() == Status::SUCCESS {
                let mut said = [0_u8; 256];
                let mut length = said.len() as u32;
                let got = server.connector.get_private_data(said.as_mut_ptr().cast(), &mut length);
                assert!(got == Status::SUCCESS || got == Status::CONNECTION_INVALID, "{role}: {got}");
                if said.starts_with(b"flood") {
                    server.connector.reject(b"no".as_ptr().cast(), 2);
                } else {
                    if role == "vanishes when it has asked" {
                        // The answer is late.
                        until("it does not vanish", || peer.try_wait().unwrap().is_some());
                    }
                    if role != "sends when nothing is posted" {
                        server.receive(1, RECEIVED as u32);
                    }
                    let mut data = (server.memory.as_ptr() as u64).to_ne_bytes().to_vec();
                    data.extend(server.region.get_remote_token().to_ne_bytes());
                    server.accept(&data, &mut accept);
                    server.connector.notify_disconnect(left.ptr());
                    until("a peer never ends", || {
                        gone = peer.try_wait().unwrap().is_some();
                        gone
                    });
                }
            }
            CancelIoEx(server.file, std::ptr::null_mut());
            listener.cancel_overlapped_requests();
            until("a request never ends", || !pending(&[&request, &accept, &left]));
        }
        assert!(server.memory[RECEIVED..].iter().all(|&byte| byte == 0x5A), "{role}: memory has changed");
    }
    let status = peer.wait().unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGKILL);
    assert!(
        if role.contains("vanish") || role == "floods" { killed } else { status.success() },
        "{role}: {status}"
    );
}

/// An honest client of the same listener.
fn serve_honestly(listener: &Com<Listener>, at: SockAddr, adapter: &Com<support::com::Adapter>) {
    let (honest, mut server) = (Client::on(adapter), Client::on(adapter));
    let [mut connect, mut accept, mut complete] = [Ov::new(), Ov::new(), Ov::new()];
    assert_eq!(honest.bind(), Status::SUCCESS);
    assert_eq!(honest.connect(at, b"honest", &mut connect), Status::PENDING);
    // SAFETY: buffers have the lengths told, the objects live, and all requests are waited for.
    unsafe {
        loop {
            let mut request = Ov::new();
            listener.get_connection_request(server.connector.as_ptr(), request.ptr());
            until("no request comes from the honest client", || {
                assert!(pending(&[&connect]), "the honest client: {}", connect.internal());
                !pending(&[&request])
            });
            assert_eq!(request.wait(listener), Status::SUCCESS);
            let mut said = [0_u8; 256];
            let mut length = said.len() as u32;
            server.connector.get_private_data(said.as_mut_ptr().cast(), &mut length);
            if said.starts_with(b"honest") {
                break;
            }
            // A request that an earlier peer has left behind.
            server.connector.reject(std::ptr::null(), 0);
            server = Client::on(adapter);
        }
        assert_eq!(server.accept(b"", &mut accept), Status::PENDING);
        assert_eq!(connect.wait(&honest.connector), Status::SUCCESS);
        assert_eq!(honest.connector.complete_connect(complete.ptr()), Status::PENDING);
        assert_eq!(complete.wait(&honest.connector), Status::SUCCESS);
        assert_eq!(accept.wait(&server.connector), Status::SUCCESS);
    }
    support::client::messages_pass(&honest, &server);
    let mut ov = Ov::new();
    honest.disconnect(&mut ov);
    until("Disconnect never ends", || !pending(&[&ov]));
}

/// How many descriptors and threads this process has.
fn counts() -> (usize, usize) {
    let count = |folder: &str| std::fs::read_dir(folder).expect("procfs").count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[test]
fn a_server_outlives_hostile_peers_and_serves_the_next_client() {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let adapter = open();
    let file = support::client::file(&adapter);
    let (listener, at) = listen_on(&adapter, file);
    serve_honestly(&listener, at, &adapter);
    let before = counts();
    for role in PEERS {
        if role == "writes garbage to the port" && support::is_siw() && !support::siw_is_mended() {
            continue; // it would end the listener
        }
        println!("a peer that {role}");
        serve(&listener, &adapter, start(role, at), role);
        serve_honestly(&listener, at, &adapter);
    }
    until("descriptors or threads are left", || counts() <= before);
}
