//! A process that reaches a limit of the system. In a process of its own, as the limit is the process's.

mod support;

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use parking_lot::Mutex;
use softiwarp::socket::Event;
use softiwarp::startup;
use support::device::*;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn limit_descriptors(to: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there while the calls last.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        let before = std::mem::replace(&mut limit.rlim_cur, to);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
        before
    }
}

#[test]
fn without_descriptors_peers_wait_and_the_limit_is_named_once() {
    softiwarp::report::set(|text| SAID.lock().push(text.to_owned()));
    let device = Device::new();
    let (_listener, address) = device.listen("127.0.0.1:0");
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&startup::request(&OFFER, b"patient").unwrap()).unwrap();
    // All descriptors below the limit are in use.
    let last = std::fs::File::open("/dev/null").unwrap();
    let before = limit_descriptors(last.as_raw_fd() as u64 + 1);
    until(&[&device], || (!SAID.lock().is_empty()).then_some(()));
    // It tries again.
    for _ in 0..2 {
        while !device.poller.drive(Some(Duration::from_secs(1))) {}
    }
    assert!(device.told.0.lock().is_empty());
    limit_descriptors(before);
    let (_, asked) = event(&[&device], &device);
    assert!(
        matches!(asked, Event::Asked { private_data, .. } if private_data == b"patient"),
        "nobody is lost"
    );
    let said = SAID.lock();
    assert!(said.len() == 1 && said[0].contains("ulimit -n"), "{said:?}");
}
