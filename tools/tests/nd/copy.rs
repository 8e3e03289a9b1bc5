//! `nd copy`, and the names of its files.

use crate::{Server, json, nd, stops};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use std::io::BufRead;

#[test]
fn a_file_arrives_whole_and_replaces_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::create_dir(&to).unwrap();
    let server = Server::start(&["--receive", to.to_str().unwrap()]);
    let copy = |arguments: &[&str]| {
        nd(&[&["copy", from.to_str().unwrap(), "127.0.0.1:", "--port", server.port()], arguments].concat())
    };
    for (number, length) in [0usize, 1, 4096, 4097, 100_000].into_iter().enumerate() {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
        std::fs::write(&from, &bytes).unwrap();
        let name = format!("127.0.0.1:{number}");
        let target =
            ["copy", from.to_str().unwrap(), &name, "--port", server.port(), "--piece", "4K", "--depth", "3"];
        assert_eq!(json(&target)["bytes"], length);
        assert_eq!(std::fs::read(to.join(number.to_string())).unwrap(), bytes);
    }
    copy(&[]).assert().success();
    copy(&[]).assert().code(1).stderr(contains("there is a 'from' already"));
    let left: Vec<_> = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with("nd-part")), "{left:?}");
    nd(&["copy", from.to_str().unwrap(), "127.0.0.1:a/b", "--port", server.port()]).assert().code(2);
    // It says that it has no bytes, and has some.
    let growing = nd(&["copy", "/proc/self/status", "127.0.0.1:x", "--port", server.port()]).assert().code(1);
    growing.stderr(contains("more than the 0 bytes that it had at the beginning"));
    assert!(!to.join("x").exists());
}

#[test]
fn the_name_of_a_peers_file_moves_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["--receive", folder.path().to_str().unwrap()]);
    let name = "\u{1b}[31m\u{7f}\u{9b}2J\u{202e}größe";
    let to = format!("127.0.0.1:{name}");
    let copied = nd(&["copy", "/etc/hostname", &to, "--port", server.port(), "--json"]).assert().success();
    let copied = String::from_utf8(copied.get_output().stdout.clone()).unwrap();
    let mut received = String::new();
    server.2.read_line(&mut received).unwrap();
    for (line, key) in [(copied, "name"), (received, "received")] {
        let escaped = r#""\u001b[31m\u007f\u009b2J\u202egröße""#;
        assert!(line.contains(escaped), "{}", line.escape_debug());
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()[key], name);
    }
    assert!(folder.path().join(name).exists());
}

#[test]
fn a_name_that_is_no_text_is_not_changed_in_silence() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let (to, from) = (folder.path().join("to"), folder.path().join(std::ffi::OsStr::from_bytes(b"a\xff")));
    std::fs::create_dir(&to).unwrap();
    std::fs::write(&from, "text").unwrap();
    let server = Server::start(&["--receive", to.to_str().unwrap()]);
    let copy = |to: &str| {
        let mut copy = nd(&["copy", "--port", server.port()]);
        copy.arg(&from).arg(to).assert()
    };
    copy("127.0.0.1:").code(1).stderr(contains("is no UTF-8").and(contains("HOST:NAME")));
    copy("127.0.0.1:a").success();
    let names: Vec<_> = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a"]);
}

#[test]
fn a_peer_makes_no_hidden_file_unless_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let receive = ["--receive", folder.path().to_str().unwrap()];
    let copy = |server: &Server| {
        nd(&["copy", "/etc/hostname", "127.0.0.1:.bash_profile", "--port", server.port()]).assert()
    };
    let refused = copy(&Server::start(&receive)).code(1);
    refused.stderr(contains("the peer says: '.bash_profile' begins with a dot").and(contains("--hidden")));
    assert!(!folder.path().join(".bash_profile").exists());
    copy(&Server::start(&[&receive[..], &["--hidden"]].concat())).success();
    assert!(folder.path().join(".bash_profile").exists());
}

#[test]
fn a_name_that_may_be_meant_as_the_port_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["--receive", folder.path().to_str().unwrap()]);
    let copy = |to: &str, port: &str| nd(&["copy", "/etc/hostname", to, "--port", port]);
    let hint = "'7651' is the name of the file there; if it was meant as the port: --port 7651";
    copy("127.0.0.1:7651", server.port()).assert().success().stderr(contains(hint));
    copy("127.0.0.1:7651", "1").assert().code(1).stderr(contains(hint));
    copy("127.0.0.1:7651.raw", server.port()).assert().success().stderr("");
}

#[test]
fn nothing_is_left_of_a_file_whose_receiver_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    let mut server = Server::start(&["--receive", to.to_str().unwrap()]);
    let sender = stops::begin_endless_copy(folder.path(), &server, &["--depth", "1"]);
    server.0.kill().unwrap();
    server.0.wait().unwrap();
    let output = sender.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let left: Vec<_> = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn files_are_refused_unless_they_are_asked_for() {
    let server = Server::start(&[]);
    let failed = nd(&["copy", "/etc/hostname", "127.0.0.1:x", "--port", server.port()]).assert().code(1);
    failed.stderr(contains("ND_CONNECTION_REFUSED")).stderr(
        contains("the peer says: \"nd serve takes files only").and(contains("is `nd serve` running").not()),
    );
}
