//! A peer in a process of its own that is stopped and killed at random moments.

use crate::traffic::{ROOM, WINDOW, connect, end_at, fill, receive_window, received, sent};
use crate::{BOUND, random, times, wire};
use fastrand::Rng;
use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::{Completion, RequestFlags, RequestType};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::lab::Wire;
use support::{End, is_siw, listen};

/// Accepts one connection and echoes messages, until it is killed or the connection ends.
#[test]
#[ignore = "the other process of these tests"]
fn peer() {
    let address: SocketAddr = std::env::var("NDCOMPAT_TEST_AT").expect("an address").parse().unwrap();
    let mut end = end_at(address, 2);
    let (listener, at) = listen(&end.adapter, &end.file, address.into());
    println!("\nstage {at}");
    std::io::stdout().flush().unwrap();
    let (mut request, mut accept) = (end.operation(), end.operation());
    receive_window(&end).unwrap();
    // SAFETY: both are waited for.
    unsafe {
        listener.connection_request(&end.connector, request.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        end.connector.accept(&end.queue_pair, Offer::default(), accept.ov()).unwrap();
    }
    assert_eq!(accept.wait(), Status::SUCCESS);
    loop {
        let result = end.notified_completion();
        if result.status != Status::SUCCESS {
            return;
        }
        if result.request_type == RequestType::Receive {
            let (number, length) = (result.request_context as usize, result.bytes_transferred as usize);
            let message = end.memory.bytes[received(number)..received(number) + length].to_vec();
            fill(&mut end, sent(number), &message);
            let room = received(number)..received(number) + ROOM;
            if end.receive(number as u64, room).is_err()
                || end
                    .send(number as u64, sent(number)..sent(number) + length, RequestFlags::empty())
                    .is_err()
            {
                return;
            }
        }
    }
}

/// A child process that runs [`peer`], killed on drop.
pub struct Peer {
    child: Child,
    pub at: SocketAddr,
}

impl Peer {
    pub fn start(wire: &Wire) -> Peer {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["peers::peer", "--exact", "--ignored", "--nocapture"])
            .env("NDCOMPAT_TEST_AT", SocketAddr::new(wire.ends[1].address.ip(), 0).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at = lines.find_map(|line| Some(line.unwrap().strip_prefix("stage ")?.parse().unwrap()));
        Peer { child, at: at.expect("the peer listens") }
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The requests posted on a queue pair without a result.
#[derive(Default)]
struct Outstanding {
    sends: usize,
    receives: usize,
}

impl Outstanding {
    /// Takes a result. The status of a failed one is added to `statuses`.
    fn take(&mut self, end: &End, statuses: &mut Vec<Status>) -> Option<(u64, RequestType, u32)> {
        let result = end.try_completion()?;
        match result.request_type {
            RequestType::Send => self.sends = self.sends.checked_sub(1).expect("no result too many"),
            RequestType::Receive => self.receives = self.receives.checked_sub(1).expect("no result too many"),
            other => panic!("{other:?}"),
        }
        if result.status != Status::SUCCESS {
            assert!(tells_of_an_end(&result), "{:?}: {}", result.request_type, result.status);
            statuses.push(result.status);
            return None;
        }
        Some((result.request_context, result.request_type, result.bytes_transferred))
    }
}

/// Whether a request may fail in this way when the peer has died. A message that is half way then fails on rxe with an error of
/// the peer, whose memory is removed before its queue pair, and on siw with a local error.
fn tells_of_an_end(result: &Completion) -> bool {
    let half_way = if is_siw() { Status::ACCESS_VIOLATION } else { Status::DATA_ERROR };
    let sent = result.request_type == RequestType::Send;
    [Status::CANCELED, Status::IO_TIMEOUT].contains(&result.status) || (sent && result.status == half_way)
}

/// Exchanges messages with a peer that is stopped and killed meanwhile. Returns how long it took after the kill until all
/// requests had completed, and the statuses of failed ones.
fn lose_a_peer(wire: &Wire, random: &mut Rng) -> (Duration, Vec<Status>) {
    let peer = Peer::start(wire);
    let from = SocketAddr::new(wire.ends[0].address.ip(), 0);
    let mut end = end_at(from, 1);
    receive_window(&end).unwrap();
    connect(&end, from, peer.at).expect("a connection");
    let mut notice = end.operation();
    // SAFETY: waited for below.
    unsafe { end.connector.notify_disconnect(notice.ov()).unwrap() };
    let mut out = Outstanding { sends: 0, receives: WINDOW };
    let (stop, stopped) = (random.bool(), Duration::from_millis(random.u64(0..100)));
    let (mut kill, mut killed) = (Instant::now() + Duration::from_millis(random.u64(0..150)), None);
    let (mut messages, mut busy) = (vec![Vec::new(); WINDOW], [false; WINDOW]);
    let (mut statuses, mut continued, mut disconnected) = (Vec::new(), !stop, false);
    let deadline = Instant::now() + BOUND;
    while out.sends + out.receives > 0 || notice.status() == Status::PENDING {
        assert!(
            Instant::now() < deadline,
            "{} sends and {} receives stay, the notice is {}",
            out.sends,
            out.receives,
            notice.status()
        );
        if killed.is_none() && Instant::now() > kill {
            if continued {
                peer.signal(libc::SIGKILL);
                killed = Some(Instant::now());
            } else {
                peer.signal(libc::SIGSTOP);
                std::thread::sleep(stopped);
                // A stopped peer may be killed without being continued.
                if random.bool() {
                    peer.signal(libc::SIGCONT);
                }
                kill = Instant::now() + Duration::from_millis(random.u64(0..50));
                continued = true;
            }
        }
        let over = disconnected || !statuses.is_empty() || notice.status() != Status::PENDING;
        if over && !disconnected {
            end.disconnect();
            disconnected = true;
        }
        if let Some((number, RequestType::Receive, length)) = out.take(&end, &mut statuses) {
            // Echoes come in the order of sending.
            let (number, at) = (number as usize, received(number as usize));
            assert!(
                end.memory.bytes[at..at + length as usize] == messages[number][..],
                "the contents differ"
            );
            busy[number] = false;
            if !over && end.receive(number as u64, at..at + ROOM).is_ok() {
                out.receives += 1;
            }
        }
        for number in 0..WINDOW {
            // A window is sent once the previous one has been echoed, so that each echo arrives in the receive of its number.
            if over || busy[number] || busy.iter().any(|&busy| busy) && number == 0 {
                break;
            }
            if out.sends > 0 && number == 0 {
                break;
            }
            let mut message = vec![0; random.usize(1..=ROOM)];
            random.fill(&mut message);
            fill(&mut end, sent(number), &message);
            if end
                .send(number as u64, sent(number)..sent(number) + message.len(), RequestFlags::empty())
                .is_err()
            {
                break;
            }
            messages[number] = message;
            (busy[number], out.sends) = (true, out.sends + 1);
        }
        std::thread::yield_now();
    }
    (killed.map_or(Duration::ZERO, |killed| killed.elapsed()), statuses)
}

#[test]
fn peers_that_are_stopped_and_killed_lose_nothing_but_the_connection() {
    let (wire, mut random) = (wire(), random());
    let (begin, mut longest, mut seen) = (Instant::now(), Duration::ZERO, Vec::<(Status, u32)>::new());
    let kills = times(10);
    for _ in 0..kills {
        let (took, statuses) = lose_a_peer(&wire, &mut random);
        longest = longest.max(took);
        for status in statuses {
            match seen.iter_mut().find(|(known, _)| *known == status) {
                Some((_, count)) => *count += 1,
                None => seen.push((status, 1)),
            }
        }
    }
    println!("{kills} peers killed in {:?}, all over after {longest:?} at most, {seen:?}", begin.elapsed());
}
