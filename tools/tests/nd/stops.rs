//! Peers that stop answering, and commands that are interrupted.

use crate::{Server, nd};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The time limit of what must come.
const LIMIT: Duration = Duration::from_secs(60);

/// Starts `nd`, to be interrupted, even if SIGINT is ignored here, as shells have it in the background.
fn begin(arguments: &[&str]) -> Child {
    let mut nd = std::process::Command::new(env!("CARGO_BIN_EXE_nd"));
    nd.args(arguments).env("NDCOMPAT_EMULATOR", "on").stdout(Stdio::piped()).stderr(Stdio::piped());
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
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
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

/// Starts to copy a file that is so long that it does not end, and waits until some of it has arrived in the folder.
pub fn begin_endless_copy(folder: &std::path::Path, server: &Server, arguments: &[&str]) -> Child {
    let from = folder.join("from");
    // It has no blocks, so that it may be long.
    std::fs::File::create(&from).unwrap().set_len(64 << 30).unwrap();
    let copy = ["copy", from.to_str().unwrap(), "127.0.0.1:file", "--port", server.port(), "--piece", "64K"];
    let mut sender = begin(&[&copy, arguments].concat());
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
    for (operation, wait) in [("send", "poll"), ("write", "event"), ("read", "descriptor"), ("send", "port")]
    {
        for bandwidth in [false, true] {
            let server = Server::start(&[]);
            let mut perf =
                vec!["perf", &server.1, "-d", "3600", "-o", operation, "-w", wait, "--timeout", "2"];
            perf.extend(bandwidth.then_some("-b"));
            let mut perf = begin(&perf);
            await_handler(&mut perf);
            signal(&server.0, libc::SIGSTOP);
            let output = end_of(perf);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("the peer has been silent for 2 seconds: ND_IO_TIMEOUT"), "{said}");
        }
    }
}

#[test]
fn a_copy_ends_when_its_receiver_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    let server = Server::start(&["--receive", to.to_str().unwrap()]);
    let copy = begin_endless_copy(folder.path(), &server, &["--timeout", "2"]);
    signal(&server.0, libc::SIGSTOP);
    let output = end_of(copy);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("silent for 2 seconds: ND_IO_TIMEOUT"), "{said}");
}

#[test]
fn a_server_ends_the_connections_of_peers_that_have_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    let mut server = Server::start(&["--idle", "2", "--receive", to.to_str().unwrap()]);
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
    nd(&["ping", &server.1, "-c", "2", "-i", "3"]).assert().success();
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
