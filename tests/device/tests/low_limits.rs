//! Processes with low limits on descriptors, locked memory or threads: each step of a connection fails with a status, in bounded
//! time, and as soon as the limit allows it the same process succeeds.

use ndcompat::types::RegionFlags;
use ndcompat::{Offer, Provider, Session, Status};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::process::Command;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(60);
/// After this many steps each limit must be high enough.
const STEPS: u64 = 64;
/// A user without any rights.
const NOBODY: u32 = 65534;

/// The outputs of both futures, or the first failure.
async fn both<A, B>(
    one: impl Future<Output = ndcompat::Result<A>>,
    other: impl Future<Output = ndcompat::Result<B>>,
) -> ndcompat::Result<(A, B)> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(move |context| {
        if first.is_none()
            && let Poll::Ready(done) = one.as_mut().poll(context)
        {
            first = Some(done?);
        }
        if second.is_none()
            && let Poll::Ready(done) = other.as_mut().poll(context)
        {
            second = Some(done?);
        }
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => Poll::Ready(Ok((first, second))),
            halves => {
                (first, second) = halves;
                Poll::Pending
            }
        }
    })
    .await
}

/// Opens the device, connects, sends a message, writes into memory, disconnects.
fn life() -> ndcompat::Result<()> {
    life_within(LIMIT)
}

/// The same. Gives up if there is neither a connection nor a failure for so long.
fn life_within(limit: Duration) -> ndcompat::Result<()> {
    let at = SocketAddr::new(std::env::var("NDCOMPAT_ADDR").expect("an address").parse().unwrap(), 0);
    let session = Session::new(&Provider::open(at)?)?;
    let within = |begin: Instant| assert!(begin.elapsed() < LIMIT, "it takes {:?}", begin.elapsed());
    let begin = Instant::now();
    let acceptor = session.listen(at)?;
    let to = acceptor.local_address()?;
    let (pair, other) = (session.queue_pair().build()?, session.queue_pair().build()?);
    let receiving = other.receive(session.buffer(64)?);
    let memory = session.shared_memory(4096, RegionFlags::ALLOW_REMOTE_WRITE)?;
    let accepting = async { acceptor.request().await?.accept(other, Offer::default()).await };
    let connecting = async { Ok(session.connect(pair, to, Offer::default()).await?) };
    let connected = session.wait_for(limit, both(connecting, accepting));
    assert!(connected.is_some() || support::is_emulator(), "neither a connection nor a failure");
    let (client, _server) = connected.unwrap_or(Err(Status::IO_TIMEOUT))?;
    let mut message = session.buffer(64)?;
    message[..5].copy_from_slice(b"hello");
    session.wait_for(LIMIT, client.send(message)).expect("it is sent in time").1?;
    let (received, done) = session.wait_for(LIMIT, receiving).expect("it arrives in time");
    assert_eq!((done?.bytes, &received[..5]), (64, &b"hello"[..]));
    let source = session.buffer(4096)?;
    session.wait_for(LIMIT, client.write(source, memory.remote(0))).expect("it is written in time").1?;
    session.wait_for(LIMIT, client.disconnect()).expect("it ends in time")?;
    within(begin);
    Ok(())
}

/// Sets both limits, which a privileged process may raise again.
fn limit(resource: libc::__rlimit_resource_t, to: u64) {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the result is writable.
    assert_eq!(unsafe { libc::getrlimit(resource, &mut limits) }, 0);
    limits.rlim_cur = to.min(limits.rlim_max);
    // SAFETY: reads the limits.
    assert_eq!(unsafe { libc::setrlimit(resource, &limits) }, 0);
}

fn count(folder: &str) -> u64 {
    std::fs::read_dir(folder).unwrap().count() as u64
}

/// Raises a limit until the program succeeds.
fn rising(name: &str, mut raise: impl FnMut(u64)) {
    let mut seen = Vec::new();
    for step in 0..STEPS {
        raise(step);
        let begin = Instant::now();
        // An end of the emulator that may have no more descriptors leaves its peer waiting, until the program gives up.
        match life_within(if support::is_emulator() { LIMIT / 10 } else { LIMIT }) {
            Ok(()) => {
                println!("{name}: {step} steps failed, with {seen:?}");
                return;
            }
            Err(status) => {
                // Both ends are in this process, so it may be the other one that fails.
                let peer = [Status::IO_TIMEOUT, Status::CONNECTION_ABORTED, Status::CONNECTION_REFUSED];
                let own = [Status::NO_MEMORY, Status::INSUFFICIENT_RESOURCES];
                assert!(own.contains(&status) || peer.contains(&status), "{name}, step {step}: {status}");
                assert!(begin.elapsed() < 2 * LIMIT, "{name}, step {step}: {:?}", begin.elapsed());
                if !seen.contains(&status) {
                    seen.push(status);
                }
            }
        }
    }
    panic!("{name}: it fails for ever, with {seen:?}");
}

fn become_nobody() {
    // SAFETY: takes a number.
    assert_eq!(unsafe { libc::setgid(NOBODY) }, 0);
    // SAFETY: takes a number.
    assert_eq!(unsafe { libc::setuid(NOBODY) }, 0);
}

#[test]
#[ignore = "the other process of these tests"]
fn few_descriptors() {
    // libibverbs loads its drivers once. If that fails, it has none for the rest of the process.
    life().expect("a life");
    let open = count("/proc/self/fd");
    rising("descriptors", |step| limit(libc::RLIMIT_NOFILE, open - 1 + step));
    limit(libc::RLIMIT_NOFILE, 1024);
    life().expect("a life");
    let before = count("/proc/self/fd");
    (0..3).for_each(|_| life().expect("a life"));
    // The emulator's TCP connections exist until their peers have closed them, too.
    let deadline = Instant::now() + LIMIT;
    while count("/proc/self/fd") > before {
        assert!(Instant::now() < deadline, "{before} descriptors became {}", count("/proc/self/fd"));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[ignore = "the other process of these tests"]
fn little_locked_memory() {
    become_nobody();
    rising("locked memory", |step| limit(libc::RLIMIT_MEMLOCK, step * 4096));
}

#[test]
#[ignore = "the other process of these tests"]
fn few_threads() {
    become_nobody();
    let threads = count("/proc/self/task");
    rising("threads", |step| limit(libc::RLIMIT_NPROC, threads + step));
}

#[test]
fn a_process_lives_as_soon_as_its_limits_allow() {
    for test in ["few_descriptors", "little_locked_memory", "few_threads"] {
        let begin = Instant::now();
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("NDCOMPAT_LOG", "error")
            .output()
            .unwrap();
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        println!("{test}, {:?}: {text}", begin.elapsed());
        assert!(output.status.success(), "{test}: {errors}");
    }
}
