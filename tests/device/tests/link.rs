//! Connections whose peer or whose link is lost.
//!
//! Both ends are child processes, so that one can be killed, and none keeps the devices from being recreated.

use ndcompat::connector::Offer;
use ndcompat::types::RequestFlags;
use ndcompat::{Status, provider};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use support::lab::{Device, Wire};
use support::{End, Operation, listen};

/// The time limit. Devices retransmit several times, with seconds between; InfiniBand's connection manager repeats a disconnect
/// request to a silent peer sixteen times, for more than a minute.
const BOUND: Duration = Duration::from_secs(300);

/// After which a silent connection is asked by a message whether its peer lives. A killed peer's kernel says so once, on
/// InfiniBand and RoCE by a datagram that it does not repeat; if that is lost, only a request tells (docs/differences.md).
const SILENT: Duration = Duration::from_secs(20);

/// The wire, for one test at a time.
fn wire() -> MutexGuard<'static, Wire> {
    static WIRE: OnceLock<Mutex<Wire>> = OnceLock::new();
    WIRE.get_or_init(|| Mutex::new(Wire::new())).lock().unwrap_or_else(PoisonError::into_inner)
}

// --------------------------------------------------------------------------------------------------------------------- The child
// processes. They report their progress on standard output.

fn say(line: &str) {
    println!("\nstage {line}");
    std::io::stdout().flush().unwrap();
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name}: this is the other process of the tests here"))
}

/// An end at `address` with a receive outstanding.
fn end_at(address: SocketAddr) -> End {
    let id = provider::resolve_address(address.into()).unwrap();
    let end = End::new(&provider::open_adapter(id).unwrap(), 1);
    end.receive(7, 0..64).unwrap();
    end
}

/// Accepts one connection, then stays idle.
#[test]
#[ignore = "the other process of these tests"]
fn peer() {
    let address: SocketAddr = variable("NDCOMPAT_TEST_AT").parse().unwrap();
    let end = end_at(address);
    let (listener, at) = listen(&end.adapter, &end.file, address.into());
    say(&at.to_string());
    let (mut request, mut accept) = (end.operation(), end.operation());
    // SAFETY: both are waited for.
    unsafe {
        listener.connection_request(&end.connector, request.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        end.connector.accept(&end.queue_pair, Offer::default(), accept.ov()).unwrap();
    }
    assert_eq!(accept.wait(), Status::SUCCESS);
    std::thread::sleep(Duration::from_secs(600));
}

/// Connects, lets the test break something, and checks the consequences.
#[test]
#[ignore = "the other process of these tests"]
fn survivor() {
    let address: SocketAddr = variable("NDCOMPAT_TEST_AT").parse().unwrap();
    let end = end_at(address);
    let to: SocketAddr = variable("NDCOMPAT_TEST_TO").parse().unwrap();
    let (mut connect, mut complete, mut notice) = (end.operation(), end.operation(), end.operation());
    end.connector.bind(address.into()).unwrap();
    // SAFETY: all are waited for.
    unsafe {
        end.connector.connect(&end.queue_pair, to.into(), Offer::default(), connect.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS);
        end.connector.complete_connect(complete.ov()).unwrap();
        assert_eq!(complete.wait(), Status::SUCCESS);
        end.connector.notify_disconnect(notice.ov()).unwrap();
    }
    say("connected");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let begin = Instant::now();
    match variable("NDCOMPAT_TEST_THEN").as_str() {
        "wait" => {}
        "send" => end.send(8, 0..64, RequestFlags::empty()).unwrap(),
        // It does not get so far that its target matters. SAFETY: the memory lives as long as the end.
        "write" => unsafe {
            end.queue_pair.write(8, &[end.memory.sge(0..64)], 0x1000, 0x1234, RequestFlags::empty()).unwrap()
        },
        "disconnect" => {
            let mut disconnect = end.operation();
            // SAFETY: waited for.
            unsafe { end.connector.disconnect(disconnect.ov()).unwrap() };
            wait_for(&mut disconnect, begin, "Disconnect");
        }
        "cancel" => {
            let mut disconnect = end.operation();
            // SAFETY: waited for.
            unsafe { end.connector.disconnect(disconnect.ov()).unwrap() };
            // Over iWARP the kernel answers.
            assert!(support::is_iwarp() || disconnect.status() == Status::PENDING);
            end.connector.cancel();
            wait_for(&mut disconnect, begin, "Disconnect");
            assert!(support::is_iwarp() || disconnect.status() == Status::CANCELED);
        }
        other => panic!("{other}"),
    }
    // rxe reports a broken connection only by the completion of what was sent, so all are taken. An end with a NotifyDisconnect
    // keeps its receives until it has disconnected, too.
    let mut disconnected = ["disconnect", "cancel"].contains(&&*variable("NDCOMPAT_TEST_THEN"));
    let mut canceled = false;
    let mut asked = variable("NDCOMPAT_TEST_THEN") != "wait" || support::is_siw();
    while notice.status() == Status::PENDING || !canceled {
        assert!(begin.elapsed() < BOUND, "the end of the connection goes unnoticed");
        if let Some(completion) = end.try_completion() {
            println!("request {}: {}", completion.request_context, completion.status);
            // A program that has another way to its peer takes that for an error of its own (on siw it is one, docs/differences.md).
            assert!(support::is_iwarp() || completion.status != Status::ACCESS_VIOLATION);
            canceled |= (completion.request_context, completion.status) == (7, Status::CANCELED);
        }
        if !asked && begin.elapsed() > SILENT && notice.status() == Status::PENDING {
            println!("no word of it: a message");
            end.send(8, 0..64, RequestFlags::empty()).unwrap();
            asked = true;
        }
        if !disconnected && notice.status() != Status::PENDING {
            assert_eq!(end.disconnect(), Status::SUCCESS);
            disconnected = true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("NotifyDisconnect: {}", notice.status());
    println!("all over after {:?}", begin.elapsed());
}

fn wait_for(operation: &mut Operation, begin: Instant, what: &str) {
    while operation.status() == Status::PENDING {
        assert!(begin.elapsed() < BOUND, "{what} stays pending");
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{what}: {} after {:?}", operation.status(), begin.elapsed());
}

// ---------------------------------------------------------------------------------------------------------------------
// The tests

/// A child process.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: &str, at: &Device, to: &str, then: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([role, "--exact", "--ignored", "--nocapture"])
            .env("NDCOMPAT_TEST_AT", SocketAddr::new(at.address.ip(), 0).to_string())
            .env("NDCOMPAT_TEST_TO", to)
            .env("NDCOMPAT_TEST_THEN", then)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Process { child, input, output }
    }

    /// Waits for the child's next progress report.
    fn stage(&mut self) -> String {
        let mut lines = self.output.by_ref().lines();
        let stage = lines.find_map(|line| line.unwrap().strip_prefix("stage ").map(str::to_owned));
        stage.expect("the process comes so far")
    }

    /// Ends the process by `SIGKILL`.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the process by `SIGSTOP`: its kernel keeps its connections.
    fn stop(&mut self) {
        // SAFETY: takes numbers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGSTOP) }, 0);
    }

    /// Lets the child continue, and prints its output until it ends. Returns whether it succeeded.
    fn finish(mut self) -> bool {
        writeln!(self.input).unwrap();
        for line in self.output.lines().map(Result::unwrap).filter(|line| !line.is_empty()) {
            println!("  {line}");
        }
        self.child.wait().unwrap().success()
    }
}

/// Connects two processes over the wire, calls `harm`, and lets the survivor continue with `then`.
fn after(harm: impl FnOnce(&Wire, &mut Process), then: &str) {
    let wire = wire();
    let mut peer = Process::start("peer", &wire.ends[1], "", "");
    let at = peer.stage();
    let mut survivor = Process::start("survivor", &wire.ends[0], &at, then);
    assert_eq!(survivor.stage(), "connected");
    harm(&wire, &mut peer);
    let survived = survivor.finish();
    peer.kill();
    wire.ends[0].has_address(true);
    wire.restore();
    assert!(survived, "the survivor failed");
}

#[test]
fn a_killed_peer_is_noticed() {
    after(|_, peer| peer.kill(), "wait");
}

#[test]
fn sending_to_a_killed_peer_ends() {
    after(|_, peer| peer.kill(), "send");
}

#[test]
fn disconnecting_from_a_killed_peer_ends() {
    after(|_, peer| peer.kill(), "disconnect");
}

/// Over iWARP it is TCP that gives up, whatever was sent.
#[test]
fn writing_on_a_lost_link_ends() {
    if support::is_iwarp() {
        return;
    }
    after(|wire, _| wire.ends[0].lose_link(), "write");
}

#[test]
fn a_disconnect_from_a_stopped_peer_can_be_cancelled() {
    after(|_, peer| peer.stop(), "cancel");
}

#[test]
fn sending_on_a_lost_link_ends() {
    after(|wire, _| wire.ends[0].lose_link(), "send");
}

/// TCP keeps the connections of iWARP until the address comes back, for a quarter of an hour.
#[test]
fn sending_from_an_address_that_is_gone_ends() {
    if support::is_iwarp() {
        return;
    }
    after(|wire, _| wire.ends[0].has_address(false), "send");
}

#[test]
fn disconnecting_on_a_lost_link_ends() {
    after(|wire, _| wire.ends[0].lose_link(), "disconnect");
}

#[test]
fn sending_to_a_peer_with_a_lost_link_ends() {
    after(|wire, _| wire.ends[1].lose_link(), "send");
}

#[test]
fn disconnecting_from_a_peer_with_a_lost_link_ends() {
    after(|wire, _| wire.ends[1].lose_link(), "disconnect");
}
