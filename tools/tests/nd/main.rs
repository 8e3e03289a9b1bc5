//! `nd` as its users run it, on the device in user space, and without any device.

mod copy;
mod info;
mod stops;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

/// `nd` where there is no device but that in user space.
fn nd(arguments: &[&str]) -> Command {
    let mut nd = Command::cargo_bin("nd").unwrap();
    nd.env("NDCOMPAT_EMULATOR", "on").env_remove("NDCOMPAT_LOG").args(arguments);
    nd.timeout(std::time::Duration::from_secs(60));
    nd
}

/// What `nd` says as JSON, on one line.
fn json(arguments: &[&str]) -> Value {
    let output = nd(arguments).arg("--json").assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output)))
}

/// A `nd serve`, where it listens, and what it says. It is ended with this.
struct Server(Child, String, BufReader<ChildStdout>);

impl Server {
    fn start(arguments: &[&str]) -> Server {
        Server::run("127.0.0.1:0", arguments)
    }

    fn run(address: &str, arguments: &[&str]) -> Server {
        Server::with_environment(address, arguments, &[])
    }

    fn with_environment(address: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_nd"))
            .args(["--json", "serve", "--bind", address])
            .args(arguments)
            .env("NDCOMPAT_EMULATOR", "on")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server(child, String::new(), output);
        server.1 = server.says()["listening"].as_str().unwrap().to_owned();
        server
    }

    /// The next line that it says.
    fn says(&mut self) -> Value {
        let mut line = String::new();
        self.2.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn port(&self) -> &str {
        self.1.rsplit_once(':').unwrap().1
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_peer_that_is_absent_is_named_with_its_status() {
    let failed = nd(&["ping", "127.0.0.1:9"]).assert().code(1);
    failed.stderr(
        contains("connecting with 127.0.0.1:9: ND_CONNECTION_REFUSED")
            .and(contains("nd serve"))
            .and(contains("nobody listens there").and(contains("code=-111")))
            .and(contains("beneath: RDMA_CM_EVENT_REJECTED: ECONNREFUSED (111)")),
    );
    let output = nd(&["ping", "127.0.0.1:9", "--json"]).assert().code(1).get_output().stdout.clone();
    let error: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(error["status"], "ND_CONNECTION_REFUSED");
    assert!(error["advice"].as_str().unwrap().contains("nd serve"));
    assert_eq!((&error["errno"], &error["errno_name"]), (&111.into(), &"ECONNREFUSED".into()));
    assert_eq!(error["call"], "RDMA_CM_EVENT_REJECTED");
}

#[test]
fn the_errno_of_a_call_is_told_and_none_where_no_call_has_failed() {
    // The descriptors do not suffice for a server.
    let script = format!("ulimit -n 12; exec {} serve --bind 127.0.0.1:0 --json", env!("CARGO_BIN_EXE_nd"));
    let mut short = Command::new("bash");
    let failed = short
        .env("NDCOMPAT_EMULATOR", "on")
        .args(["-c", &script])
        .timeout(std::time::Duration::from_secs(60));
    let output = failed.assert().code(1).stderr(contains("EMFILE (24)").and(contains("NDCOMPAT_LOG=debug")));
    let error: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!((&error["errno"], &error["errno_name"]), (&24.into(), &"EMFILE".into()), "{error}");
    let refused = nd(&["serve", "--bind", "192.0.2.123"]).assert().code(1);
    refused.stderr(contains("beneath").not().and(contains("NDCOMPAT_LOG").not()));
}

#[test]
fn addresses_and_sizes_that_are_none_are_refused() {
    nd(&["ping", "no-such-host.invalid"]).assert().code(1).stderr(contains("no-such-host.invalid"));
    nd(&["info", "192.0.2.123"]).assert().code(1).stderr(contains("192.0.2.123 is no adapter's"));
    nd(&["serve", "--bind", "192.0.2.123"]).assert().code(1).stderr(contains("ND_INVALID_ADDRESS"));
    for bad in [
        &["perf", "127.0.0.1", "-s", "0"][..],
        &["perf"],
        &["perf", "--depth", "0", "x"],
        &["ping", "-c", "0", "x"],
        &["typo"],
    ] {
        nd(bad).assert().code(2);
    }
    let pieces =
        nd(&["copy", "/etc/hostname", "127.0.0.1:", "--piece", "1024M", "--depth", "2"]).assert().code(1);
    pieces.stderr(contains("2 times 1073741824 bytes are more than 1073741824"));
    nd(&["copy", "/etc", "127.0.0.1:"]).assert().code(1).stderr(contains("/etc is a folder"));
    for place in ["127.0.0.1:99999", "127.0.0.1:x", ":7650", "[::1", "[::1]7650", "1:2:3"] {
        nd(&["ping", place]).assert().code(2).stderr(contains("invalid value"));
        nd(&["serve", "--bind", place]).assert().code(2);
    }
    nd(&["copy", "/dev/null", "nowhere"]).assert().code(2).stderr(contains("HOST:"));
    nd(&["copy", "/dev/null", ":name"]).assert().code(2).stderr(contains("names no host"));
    nd(&["copy", "/dev/null", "127.0.0.1:", "--port", "0"]).assert().code(2);
    nd(&["copy", "/dev/null", "127.0.0.1:"]).assert().code(1).stderr(contains("only plain files"));
    let meant = nd(&["ping", "::1:7699", "--timeout", "5"]).assert().code(1);
    meant.stderr(contains("with a port it is [::1]:7699"));
    let picture = nd(&["perf", "--loopback", "127.0.0.1", "--svg", "/no/such/folder/x.svg"]).assert().code(1);
    picture.stderr(contains("/no/such/folder/x.svg")).stdout("");
    nd(&["copy", "/no/such/file", "127.0.0.1:"]).assert().code(1).stderr(contains("/no/such/file"));
    let many =
        nd(&["perf", "--loopback", "127.0.0.1", "-b", "-q", "256", "--depth", "1024"]).assert().code(1);
    many.stderr(contains("results at a time are more than"));
}

#[test]
fn a_wrong_command_line_is_told_as_json_too() {
    for (bad, named) in [
        (&["--json", "ping", "127.0.0.1:99999"][..], "'99999' is no port"),
        (&["--json", "ping", "127.0.0.1:0"], "nobody listens at port 0"),
        (&["--json", "perf", "127.0.0.1", "--timeout", "0"], "no peer answers in 0 seconds"),
        (
            &["--json", "copy", "/etc/hostname", "127.0.0.1:", "--timeout", "0"],
            "no peer answers in 0 seconds",
        ),
        (&["ping", "--json"], "<HOST[:PORT]>"),
        (&["typo", "--json"], "unrecognized subcommand 'typo'"),
        (&["--json"], "requires a subcommand"),
        (&["perf", "--json", "--loopback", "--size", "0"], "'0' is no number of bytes"),
    ] {
        let output = nd(bad).assert().code(2).stderr(contains(named)).get_output().stdout.clone();
        let error: Value = serde_json::from_slice(&output).unwrap();
        assert!(error["error"].as_str().unwrap().contains(named) && error["status"].is_null(), "{error}");
        assert!(error["advice"].as_str().unwrap().contains("--help"), "{error}");
    }
    nd(&["typo"]).assert().code(2).stdout("");
    nd(&["--json", "--version"]).assert().success().stdout(contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_server_tells_what_has_failed_as_json_too() {
    // It ends then, so that what it does not say is not waited for.
    let mut server = Server::start(&["--connections", "1"]);
    nd(&["copy", "/etc/hostname", "127.0.0.1:x", "--port", server.port()]).assert().code(1);
    let failure = server.says();
    assert!(failure["error"].as_str().unwrap().contains("without --receive"), "{failure}");
    assert!(failure["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{failure}");
}

#[test]
fn a_server_of_some_connections_ends_with_how_they_went() {
    // The first of two, which is over when the other comes, and the last.
    for failing in [0, 1, 2] {
        let mut server = Server::start(&["--connections", "2"]);
        for number in 1..=2 {
            if number == failing {
                nd(&["copy", "/etc/hostname", "127.0.0.1:x", "--port", server.port()]).assert().code(1);
                server.says();
            } else {
                nd(&["ping", &server.1, "-c", "1"]).assert().success();
            }
        }
        assert_eq!(server.0.wait().unwrap().code(), Some(i32::from(failing != 0)), "{failing}");
    }
}

#[test]
fn a_server_goes_on_after_a_thread_that_could_not_be_made() {
    // Where the stacks of threads are so large, the limit below leaves room for everything else.
    let mut server = Server::with_environment("127.0.0.1:0", &[], &[("RUST_MIN_STACK", "1073741824")]);
    let limit = |bytes: u64| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        let pid = server.0.id() as i32;
        // SAFETY: the limits are a local.
        assert_eq!(unsafe { libc::prlimit(pid, libc::RLIMIT_AS, &limit, std::ptr::null_mut()) }, 0);
    };
    let pages = std::fs::read_to_string(format!("/proc/{}/statm", server.0.id())).unwrap();
    let pages: u64 = pages.split_whitespace().next().unwrap().parse().unwrap();
    // SAFETY: it only returns a number.
    let used = pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    limit(used + (512 << 20));
    nd(&["ping", &server.1, "-c", "1"]).assert().code(1).stderr(contains("ND_CONNECTION_REFUSED"));
    limit(libc::RLIM_INFINITY);
    let failure = server.says();
    assert!(failure["error"].as_str().unwrap().starts_with("making a thread: "), "{failure}");
    nd(&["ping", &server.1, "-c", "1"]).assert().success();
}

#[test]
fn a_port_that_is_taken_is_told() {
    let server = Server::start(&[]);
    let failed = nd(&["serve", "--bind", &server.1]).assert().code(1);
    failed.stderr(contains("listening on").and(contains("ND_SHARING_VIOLATION")));
}

#[test]
fn a_server_without_an_address_of_its_own_serves_all_of_the_adapters() {
    let server = Server::run("0.0.0.0:0", &[]);
    let addresses = json(&["info"])["adapters"][0]["addresses"].as_array().unwrap().clone();
    let addresses: Vec<_> =
        addresses.iter().filter_map(Value::as_str).filter(|one| !one.contains(':')).collect();
    assert!(addresses.contains(&"127.0.0.1"));
    for address in addresses {
        nd(&["ping", &format!("{address}:{}", server.port()), "-c", "1"]).assert().success();
    }
}

#[test]
fn ping_counts_what_comes_back() {
    let server = Server::start(&[]);
    let ping = json(&["ping", &server.1, "-c", "3", "-i", "0", "-s", "1K"]);
    assert_eq!((&ping["round_trip_us"]["count"], &ping["size"]), (&3.into(), &1024.into()));
    assert!(ping["round_trip_us"]["min"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_client_connects_from_the_address_that_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    std::fs::create_dir(&to).unwrap();
    std::fs::write(&file, "text").unwrap();
    let server = Server::start(&["--receive", to.to_str().unwrap(), "--overwrite"]);
    let copy = ["copy", file.to_str().unwrap(), "127.0.0.1:", "--port", server.port()];
    // A port that was free a moment ago; somebody else may take it.
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ping = ["ping", &server.1, "-c", "1"];
    for command in [&ping[..], &["perf", &server.1, "-w", "event", "-d", "0.01"], &copy] {
        let connects = (0..8).any(|_| {
            let own = free();
            let output = nd(&[command, &["--json", "--bind", &own]].concat()).output().unwrap();
            let said: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(output.status.success() || said["status"] == "ND_SHARING_VIOLATION", "{said}");
            output.status.success() && said["from"] == own
        });
        assert!(connects, "{command:?}");
    }
    for command in [&ping[..], &copy] {
        let foreign = nd(&[command, &["--bind", "192.0.2.1"]].concat()).assert().code(1);
        foreign.stderr(contains("opening the adapter of 192.0.2.1:0: ND_INVALID_ADDRESS"));
    }
}

#[test]
fn perf_measures_every_operation_however_it_waits() {
    for operation in ["send", "write", "read"] {
        for wait in ["poll", "event", "descriptor", "port"] {
            let options = ["--loopback", "127.0.0.1", "-o", operation, "-w", wait, "-d", "0.05"];
            let perf = json(&[&["perf"], &options[..]].concat());
            let result = &perf["results"][0];
            assert!(result["requests"].as_u64().unwrap() > 0, "{operation} {wait}: {perf}");
        }
        let options = [
            "--loopback",
            "127.0.0.1",
            "-o",
            operation,
            "-w",
            "event",
            "-d",
            "0.05",
            "-b",
            "-q",
            "2",
            "-s",
            "64,16K",
        ];
        let perf = json(&[&["perf"], &options[..]].concat());
        let shortest = json(&["perf", "--loopback", "127.0.0.1", "-o", operation, "-w", "event", "-d", "0"]);
        assert_eq!(shortest["results"][0]["requests"], 1, "{shortest}");
        for result in perf["results"].as_array().unwrap() {
            let rate = result["bytes_per_second"].as_f64().unwrap();
            let requests = result["requests_per_second"].as_f64().unwrap();
            assert!((rate / requests - result["size"].as_f64().unwrap()).abs() < 0.001, "{result}");
            assert!(requests > 0.0);
        }
    }
}

#[test]
fn perf_draws_what_it_has_measured() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("p.svg");
    let options =
        ["perf", "--loopback", "127.0.0.1", "-w", "event", "-d", "0.05", "--svg", picture.to_str().unwrap()];
    nd(&options).assert().success().stdout(contains("p99.9").and(contains("█")));
    assert!(std::fs::read_to_string(picture).unwrap().starts_with("<svg"));
}

#[test]
fn what_was_measured_is_shown_even_if_it_cannot_be_drawn() {
    let options = ["perf", "--loopback", "127.0.0.1", "-w", "event", "-d", "0.05", "--svg", "/dev/full"];
    let text = nd(&options).assert().code(1).stderr(contains("writing /dev/full: No space left on device"));
    text.stdout(contains("p99.9"));
    let output = nd(&options).arg("--json").assert().code(1).get_output().clone();
    let perf: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(perf["results"][0]["requests"].as_u64().unwrap() > 0, "{perf}");
    assert!(
        perf["error"].as_str().unwrap().contains("/dev/full") && perf["errno_name"] == "ENOSPC",
        "{perf}"
    );
    assert!(String::from_utf8(output.stderr).unwrap().contains("writing /dev/full"));
    // Told before anything is measured.
    let nowhere = ["perf", "--loopback", "127.0.0.1", "-d", "3600", "--svg", "/none/of/these.svg", "--json"];
    let output = nd(&nowhere).assert().code(1).get_output().stdout.clone();
    let perf: Value = serde_json::from_slice(&output).unwrap();
    assert!(perf["results"].is_null() && perf["errno_name"] == "ENOENT", "{perf}");
}

#[test]
fn a_picture_stays_until_there_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("p.svg");
    std::fs::write(&picture, "before").unwrap();
    let server = Server::start(&[]);
    let perf = |size| {
        ["perf", &server.1, "-w", "event", "-d", "0.01", "-s", size, "--svg", picture.to_str().unwrap()]
    };
    // Longer than any message may be on a connection of the server's.
    nd(&perf("1G")).args(["-b", "-o", "send"]).assert().code(1);
    assert_eq!(std::fs::read_to_string(&picture).unwrap(), "before");
    // The first size was measured, the second was not.
    let output =
        nd(&perf("64,1G")).args(["-b", "-o", "send", "--json"]).assert().code(1).get_output().stdout.clone();
    let perf: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(perf["results"].as_array().unwrap().len(), 1, "{perf}");
    assert!(perf["error"].as_str().unwrap().contains("with 1073741824 bytes"), "{perf}");
}

#[test]
fn a_module_of_the_log_that_is_none_is_told_with_those_that_are() {
    let shown = nd(&["env"]).env("NDCOMPAT_LOG", "ndcompat=info,banana=debug").assert().success();
    shown.stderr(contains("no module is named 'banana'").and(contains("connection, device")));
}

#[test]
fn the_environment_is_shown_with_its_values() {
    nd(&["env"]).assert().success().stdout(contains("NDCOMPAT_EMULATOR=on").and(contains("not valid").not()));
    let all = json(&["env"])["variables"].as_array().unwrap().clone();
    assert!(all.iter().any(|one| one["value"] == "on") && all.iter().all(|one| one["mistake"].is_null()));
}

#[test]
fn values_that_the_library_refuses_are_marked_and_no_others() {
    for (name, value, is_valid) in [
        ("NDCOMPAT_EMULATOR", "banana", false),
        ("NDCOMPAT_EMULATOR_GONE", "/none/of/these", false),
        ("NDCOMPAT_EMULATOR_GONE", "/none", true),
        ("NDCOMPAT_EMULATOR_RNR_TIMEOUT", "+5", false),
        ("NDCOMPAT_EMULATOR_RNR_TIMEOUT", "60000", true),
        ("NDCOMPAT_MEMORY_WINDOWS", "3", false),
        ("NDCOMPAT_MEMORY_WINDOWS", "emulated", true),
    ] {
        let info = nd(&["info"]).env(name, value).output().unwrap();
        assert_eq!(info.status.success(), is_valid, "{name}={value}: {info:?}");
        let shown = nd(&["env"]).env(name, value).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(
            shown.contains(&format!("{name}={value}\n    not valid: it must be ")),
            !is_valid,
            "{shown}"
        );
        let shown = nd(&["env", "--json"]).env(name, value).output().unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let mut all = shown["variables"].as_array().unwrap().iter();
        let mistake = &all.find(|one| one["name"] == name).unwrap()["mistake"];
        assert_eq!(mistake.as_str().is_some_and(|text| text.contains("no adapter")), !is_valid, "{shown}");
    }
}

#[test]
fn pages_and_completions_are_made_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    nd(&["generate", folder.path().to_str().unwrap()]).assert().success();
    for file in [
        "man/man1/nd.1",
        "man/man1/nd-perf.1",
        "bash-completion/completions/nd",
        "zsh/site-functions/_nd",
        "fish/vendor_completions.d/nd.fish",
    ] {
        assert!(std::fs::metadata(folder.path().join(file)).unwrap().len() > 100, "{file}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for arguments in [&["info"][..], &["info", "--json"], &["--help"], &["--version"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_nd"))
            .args(arguments)
            .env("NDCOMPAT_EMULATOR", "on")
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("writing the output: "), "{arguments:?}: {said}");
    }
}

#[test]
fn a_server_of_no_connections_is_refused() {
    nd(&["serve", "--connections", "0"]).assert().code(2).stderr(contains("--connections"));
}
