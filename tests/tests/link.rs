//! Connections whose peer or whose link is lost.
//!
//! Both ends are processes of their own: one can be killed, and none keeps the devices from being made anew.

use ndcompat::connector::Offer;
use ndcompat::{Status, provider};
use ndcompat_tests::lab::{Device, Wire};
use ndcompat_tests::{End, Operation, listen};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// When all must be over. Devices await an acknowledgement for seconds, several times; InfiniBand's connection manager
/// asks a silent peer sixteen times, more than a minute in all, before it takes a disconnection for done.
const BOUND: Duration = Duration::from_secs(150);

/// The wire, for one test at a time.
fn wire() -> MutexGuard<'static, Wire> {
    static WIRE: OnceLock<Mutex<Wire>> = OnceLock::new();
    WIRE.get_or_init(|| Mutex::new(Wire::new())).lock().unwrap_or_else(PoisonError::into_inner)
}

// ---------------------------------------------------------------------------------------------------------------------
// What the other processes do. They say on standard output how far they are.

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

/// Accepts one connection, then does nothing.
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

/// Connects, lets the test break something, and sees what comes of it.
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
        "send" => end.send(8, 0..64, 0).unwrap(),
        "disconnect" => {
            let mut disconnect = end.operation();
            // SAFETY: waited for.
            unsafe { end.connector.disconnect(disconnect.ov()).unwrap() };
            wait_for(&mut disconnect, begin, "Disconnect");
        }
        other => panic!("{other}"),
    }
    // rxe tells of a broken connection by the completion of what was sent, and by nothing else: so take them all.
    let mut canceled = false;
    while notice.status() == Status::PENDING || !canceled {
        assert!(begin.elapsed() < BOUND, "the end of the connection goes unnoticed");
        if let Some(completion) = end.try_completion() {
            println!("request {}: {}", completion.request_context, completion.status);
            canceled |= (completion.request_context, completion.status) == (7, Status::CANCELED);
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

/// Another process of this program.
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

    /// Waits until the process says how far it is.
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

    /// Lets the process go on, and passes on what it says until it ends. Says whether it ended well.
    fn finish(mut self) -> bool {
        writeln!(self.input).unwrap();
        for line in self.output.lines().map(Result::unwrap).filter(|line| !line.is_empty()) {
            println!("  {line}");
        }
        self.child.wait().unwrap().success()
    }
}

/// Connects two processes over the wire, does `harm`, and lets the survivor go on with `then`.
fn after(harm: impl FnOnce(&Wire, &mut Process), then: &str) {
    let wire = wire();
    let mut peer = Process::start("peer", &wire.ends[1], "", "");
    let at = peer.stage();
    let mut survivor = Process::start("survivor", &wire.ends[0], &at, then);
    assert_eq!(survivor.stage(), "connected");
    harm(&wire, &mut peer);
    let survived = survivor.finish();
    peer.kill();
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

#[test]
fn sending_on_a_lost_link_ends() {
    after(|wire, _| wire.ends[0].lose_link(), "send");
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
