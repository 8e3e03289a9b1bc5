//! Peers that stop answering, and commands that are interrupted.

use crate::{Server, nd};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The time limit of what must come.
const LIMIT: Duration = Duration::from_secs(180);

/// Starts `nd`, to be interrupted, even if SIGINT is ignored here, as shells have it in the background.
fn begin(arguments: &[&str]) -> Child {
    begin_with(arguments, Stdio::piped())
}

fn begin_with(arguments: &[&str], error: Stdio) -> Child {
    let mut nd = std::process::Command::new(env!("CARGO_BIN_EXE_nd"));
    nd.args(arguments).env("NDCOMPAT_EMULATOR", "on").stdout(Stdio::piped()).stderr(error);
    let heed = || {
        // SAFETY: it may be called between `fork` and `exec`.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: it calls nothing else.
    unsafe { nd.pre_exec(heed) };
    nd.spawn().unwrap()
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: numbers; the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Waits until the child has a handler for SIGINT.
fn await_handler(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    let handles = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("it runs");
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (libc::SIGINT - 1) != 0
    };
    await_of(child, handles);
}

/// Waits for something of a child that runs.
fn await_of(child: &mut Child, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            let error = child.stderr.as_mut().map(|error| std::io::Read::read_to_string(error, &mut said));
            panic!("it has ended, {status}: {error:?} {said}");
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("not within {LIMIT:?}");
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_interrupted_ping_tells_what_has_come_back() {
    // Between two messages, and while the peer does not answer.
    for (interval, stops) in [("3600", false), ("0", true)] {
        let server = Server::start(&[]);
        let mut ping = begin(&["ping", &server.1, "-c", "1000000000", "-i", interval, "--timeout", "3600"]);
        let mut output = BufReader::new(ping.stdout.take().unwrap());
        let mut lines = std::iter::from_fn(|| {
            let mut line = String::new();
            (output.read_line(&mut line).unwrap() > 0).then_some(line)
        });
        assert!(lines.any(|line| line.starts_with("1: ")));
        if stops {
            signal(&server.0, libc::SIGSTOP);
        }
        signal(&ping, libc::SIGINT);
        assert!(lines.last().unwrap().starts_with("min "));
        assert_eq!(ping.wait_with_output().unwrap().status.code(), Some(0));
    }
}

/// Starts to copy a file that is so long that it does not end. The standard error is given.
fn copy_endlessly(folder: &std::path::Path, server: &Server, arguments: &[&str], error: Stdio) -> Child {
    let from = folder.join("from");
    // It has no blocks, so that it may be long; but no longer than what the receiver has room for.
    let system = rustix::fs::statvfs(folder).unwrap();
    let room = system.f_bavail * system.f_frsize;
    std::fs::File::create(&from).unwrap().set_len((64 << 30).min(room / 2)).unwrap();
    let copy = ["copy", from.to_str().unwrap(), "127.0.0.1:file", "--port", server.port(), "--piece", "64K"];
    begin_with(&[&copy, arguments].concat(), error)
}

/// Starts to copy a file that is so long that it does not end, and waits until some of it has arrived in the folder.
pub fn begin_endless_copy(folder: &std::path::Path, server: &Server, arguments: &[&str]) -> Child {
    let mut sender = copy_endlessly(folder, server, arguments, Stdio::piped());
    // In a file that has no name yet or a temporary one.
    let descriptors = format!("/proc/{}/fd", server.0.id());
    let is_there = |entry: std::fs::DirEntry| {
        let file = std::fs::read_link(entry.path()).is_ok_and(|file| file.starts_with(folder.join("to")));
        file && std::fs::metadata(entry.path()).is_ok_and(|file| file.is_file() && file.len() > 0)
    };
    await_of(&mut sender, || std::fs::read_dir(&descriptors).unwrap().flatten().any(is_there));
    sender
}

/// How a child ends.
fn end_of(mut child: Child) -> std::process::Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it does not end: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_measurement_ends_when_its_peer_has_stopped() {
    let ends = |operation: &str, wait: &str, bandwidth: bool| {
        let server = Server::start(&[]);
        // Connecting, too, may take no longer than this, on a machine that is busy.
        let mut perf = vec!["perf", &server.1, "-d", "3600", "-o", operation, "-w", wait, "--timeout", "15"];
        perf.extend(bandwidth.then_some("-b"));
        let mut perf = begin(&perf);
        await_handler(&mut perf);
        signal(&server.0, libc::SIGSTOP);
        let output = end_of(perf);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the peer has been silent for 15 seconds: ND_IO_TIMEOUT"), "{said}");
    };
    std::thread::scope(|scope| {
        for (operation, wait) in
            [("send", "poll"), ("write", "event"), ("read", "descriptor"), ("send", "port")]
        {
            for bandwidth in [false, true] {
                scope.spawn(move || ends(operation, wait, bandwidth));
            }
        }
    });
}

#[test]
fn a_copy_ends_when_its_receiver_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    let server = Server::start(&["--receive", to.to_str().unwrap()]);
    let copy = begin_endless_copy(folder.path(), &server, &["--timeout", "15"]);
    signal(&server.0, libc::SIGSTOP);
    let output = end_of(copy);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("silent for 15 seconds: ND_IO_TIMEOUT"), "{said}");
}

#[test]
fn a_server_ends_the_connections_of_peers_that_have_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    let mut server = Server::start(&["--idle", "5", "--receive", to.to_str().unwrap()]);
    let address = server.1.clone();
    let ping = ["ping", &address, "-c", "1000000000", "-i", "0"];
    let memory = ["perf", &address, "-o", "write", "-d", "5"];
    for peer in [Some(&ping[..]), Some(&memory), None] {
        let mut stopped = match peer {
            Some(arguments) => begin(arguments),
            None => begin_endless_copy(folder.path(), &server, &[]),
        };
        if peer.is_some() {
            await_handler(&mut stopped);
        }
        signal(&stopped, libc::SIGSTOP);
        let failure = server.says();
        assert_eq!(failure["status"], "ND_IO_TIMEOUT", "{failure}");
        stopped.kill().unwrap();
        stopped.wait().unwrap();
    }
    // A peer says how long it may be silent: this one does, for longer than the server would let it.
    nd(&["ping", &server.1, "-c", "2", "-i", "6"]).assert().success();
}

/// Whether the thread of a server's only connection sleeps. One that polls is ready to run, also while others run.
fn is_connection_asleep(server: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{server}/task")).unwrap().flatten();
    let mut lines = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let line = lines.find(|line| line.contains("(nd-connection)")).expect("there is a connection");
    line.rsplit_once(')').unwrap().1.trim_start().starts_with('S')
}

#[test]
fn a_peer_that_has_asked_to_poll_and_then_does_nothing_takes_no_processor() {
    for operation in ["send", "write"] {
        let mut server = Server::start(&["--idle", "3600"]);
        let mut perf = begin(&["perf", &server.1, "-o", operation, "-w", "poll", "-d", "3600"]);
        await_handler(&mut perf);
        signal(&perf, libc::SIGSTOP);
        // It may sleep for a moment while it takes what has come before.
        let (server_id, mut looks) = (server.0.id(), 0);
        await_of(&mut server.0, || {
            std::thread::sleep(Duration::from_millis(10));
            looks = if is_connection_asleep(server_id) { looks + 1 } else { 0 };
            looks == 50
        });
        perf.kill().unwrap();
        perf.wait().unwrap();
    }
}

#[test]
fn a_peer_that_wants_to_be_silent_for_long_is_refused() {
    let mut server = Server::start(&["--idle-max", "5"]);
    for long in
        [&["perf", &server.1.clone(), "-o", "write", "-d", "6"][..], &["ping", &server.1.clone(), "-i", "6"]]
    {
        let refused = nd(long).assert().code(1);
        refused.stderr(predicates::str::contains("nobody be silent for 6s, but for 5s (--idle-max)"));
        assert!(server.says()["error"].as_str().unwrap().contains("--idle-max"));
    }
    nd(&["ping", &server.1, "-c", "1", "-i", "5"]).assert().success();
    // Of a measurement of sends, the server sees each.
    let mut sends = begin(&["perf", &server.1, "-w", "event", "-d", "3600"]);
    await_handler(&mut sends);
    signal(&sends, libc::SIGINT);
    assert!(end_of(sends).stderr.is_empty());
}

/// A terminal, of which this end reads what a program writes to the other.
fn terminal() -> Option<(std::fs::File, std::fs::File)> {
    let open =
        |path: &str| std::fs::File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path);
    let own = open("/dev/ptmx").ok()?;
    let mut name = [0; 64];
    // SAFETY: the descriptor is open; the name has the length that is told, and ends with a zero.
    let name = unsafe {
        assert_eq!(libc::unlockpt(own.as_raw_fd()), 0);
        assert_eq!(libc::ptsname_r(own.as_raw_fd(), name.as_mut_ptr(), name.len()), 0);
        std::ffi::CStr::from_ptr(name.as_ptr())
    };
    Some((own, open(name.to_str().unwrap()).ok()?))
}

#[test]
fn an_error_stands_on_a_line_without_progress() {
    // There may be no terminals in a container.
    let Some((mut own, other)) = terminal() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    let mut server = Server::start(&["--receive", to.to_str().unwrap()]);
    let mut sender = copy_endlessly(folder.path(), &server, &[], other.into());
    let mut shown = Vec::new();
    let mut part = [0; 4096];
    // At the end there is an error: nobody has the other end any more.
    while let Ok(bytes @ 1..) = std::io::Read::read(&mut own, &mut part) {
        shown.extend(&part[..bytes]);
        if String::from_utf8_lossy(&shown).contains("MB/s") {
            let _ = server.0.kill();
        }
    }
    assert_eq!(sender.wait().unwrap().code(), Some(1));
    let shown = String::from_utf8(shown).unwrap();
    let said = shown.rsplit_once("MB/s").expect("progress is shown").1;
    assert!(said.starts_with(" \r\u{1b}[Knd: "), "{said:?}");
}

#[test]
fn an_interrupted_measurement_is_one_as_far_as_it_went() {
    let server = Server::start(&[]);
    let ping = ["ping", &server.1, "-c", "1000000000", "-i", "0", "--json"];
    let perf = |wait| ["perf", &server.1, "-d", "3600", "-s", "64,128", "-w", wait, "--json"];
    let mut commands = vec![ping.to_vec()];
    commands.extend(["poll", "event", "descriptor", "port"].map(|wait| perf(wait).to_vec()));
    for command in commands {
        // It may be too early for any result. Then it has more time.
        let is_measured = (0..14).any(|round| {
            let mut child = begin(&command);
            await_handler(&mut child);
            std::thread::sleep(Duration::from_millis((1 << round) - 1));
            signal(&child, libc::SIGINT);
            let output = child.wait_with_output().unwrap();
            let said: Value = serde_json::from_slice(&output.stdout).unwrap();
            let count = match said["results"].as_array() {
                None => said["round_trip_us"]["count"].as_u64().unwrap(),
                Some(results) => results.iter().map(|result| result["requests"].as_u64().unwrap()).sum(),
            };
            assert!(said["interrupted"] == true && said["error"].is_null(), "{said}");
            assert_eq!(output.status.code(), Some(i32::from(count == 0)), "{said}");
            count > 0
        });
        assert!(is_measured, "{command:?}");
    }
}
