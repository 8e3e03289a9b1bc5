//! A process that may have few descriptors, and peers that have many. In a process of its own, as the limit is the process's; the peers
//! are another process.

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use softiwarp::queue_pair::Work;
use softiwarp::socket::{Event, Listener};
use softiwarp::startup;
use softiwarp::wire::SendKind;
use support::device::*;

const STRANGERS: usize = 400;
/// The address that they connect to, and what they send.
const TARGET: &str = "SOFTIWARP_TEST_TARGET";
const MARKERS: u8 = 0x80;

/// Sets how many descriptors the process may have; with none, as many as it is allowed.
fn limit(descriptors: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there while the call lasts.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    limit.rlim_cur = descriptors.unwrap_or(limit.rlim_max.min(100_000));
    // SAFETY: the structure is there while the call lasts.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

/// The peers: they connect, say that they have, and stay until they are told to go.
#[test]
#[ignore = "the other process of the test below"]
fn strangers() {
    let target = std::env::var(TARGET).unwrap();
    let (address, kind) = target.split_once(' ').unwrap();
    let address: SocketAddr = address.parse().unwrap();
    limit(None);
    let mut request = startup::request(&OFFER, b"").unwrap();
    request[16] |= MARKERS;
    let connect = || {
        let mut stream = TcpStream::connect(address).unwrap();
        if kind == "markers" {
            // It may have been turned away by now.
            let _ = stream.write_all(&request);
        }
        stream
    };
    let all: Vec<_> = (0..STRANGERS).map(|_| connect()).collect();
    println!("there");
    let _ = std::io::stdin().read(&mut [0]);
    drop(all);
}

/// Starts them; says when all have connected.
fn start(address: SocketAddr, kind: &str) -> (Child, mpsc::Receiver<()>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "strangers", "--ignored", "--nocapture"])
        .env(TARGET, format!("{address} {kind}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (there, told) = mpsc::channel();
    thread::spawn(move || {
        // To the end, so that what the test program says of itself has a reader.
        for line in lines.map_while(Result::ok) {
            if line.contains("there") {
                let _ = there.send(());
            }
        }
    });
    (child, told)
}

#[test]
fn strangers_leave_descriptors_to_the_program_and_to_peers() {
    limit(Some(200));
    for kind in ["silent", "markers"] {
        let (near, far) = (Device::new(), Device::new());
        let both = [&near, &far];
        // With a backlog that they need not wait for.
        let at = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::new(&far.poller, at, 512, far.handler()).unwrap();
        let address = listener.address().unwrap().unwrap();
        let (mut child, there) = start(address, kind);
        until(&both, || {
            File::open("/dev/null").expect("a descriptor for the program");
            there.try_recv().ok()
        });
        let ends = (near.end(1), far.end(2));
        ends.1.pair.lock().post_receive(7, &[]).unwrap();
        let ours = near.connect(address, OFFER, b"in earnest", &ends.0);
        let (theirs, asked) = event(&both, &far);
        assert!(matches!(&asked, Event::Asked { private_data, .. } if private_data == b"in earnest"));
        theirs.accept(&OFFER, b"", Arc::clone(&ends.1.pair)).unwrap();
        assert!(matches!(event(&both, &near).1, Event::Established { .. }));
        post(&ours, 1, Work::Send(SendKind::default()), &[]);
        completions(&both, &ends.1.received, 1);
        File::open("/dev/null").expect("a descriptor for the program");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
