//! When the emulator is offered, and how it is reported.

use ndcompat::provider;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{adapter, address, address6, is_emulator};

const LOOPBACK: &str = "127.0.0.1";

/// The output lines and the stderr of a child process with these variables.
fn seen(variables: &[(&str, &str)]) -> (Vec<String>, String) {
    let program = std::env::current_exe().expect("a program");
    let mut child = Command::new(program);
    child.args(["--exact", "shows_what_it_sees", "--nocapture"]).env("SHOW", "yes");
    child.env_remove("NDCOMPAT_EMULATOR").env_remove("NDCOMPAT_LOG").envs(variables.iter().copied());
    let output = child.stdin(Stdio::null()).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let lines = text(output.stdout);
    let lines = lines.lines().filter_map(|line| line.split_once("SEEN ")).map(|(_, seen)| seen.to_owned());
    let errors = text(output.stderr);
    (lines.collect(), errors.lines().filter(|line| line.contains("NDCOMPAT_EMULATOR")).collect())
}

#[test]
fn shows_what_it_sees() {
    if std::env::var_os("SHOW").is_none() {
        return;
    }
    ndcompat::logging::start();
    let all = match provider::addresses() {
        Ok(all) => all,
        Err(status) => return println!("SEEN {status:?}"),
    };
    let hardware = provider::addresses_of_hardware().unwrap();
    for address in all {
        let kind = if hardware.contains(&address) { "hardware" } else { "emulator" };
        println!("SEEN {kind} {}", address.ip());
        // Opens the first address of each family.
        provider::open_adapter_at(address).unwrap();
    }
}

fn emulated(lines: &[String]) -> bool {
    lines.contains(&format!("emulator {LOOPBACK}"))
}

#[test]
fn it_is_offered_where_nothing_else_is_and_says_so_once() {
    let (lines, said) = seen(&[]);
    assert_eq!(emulated(&lines), is_emulator(), "{lines:?}");
    let one = said.matches("using the emulator").count();
    assert_eq!(one, usize::from(is_emulator()), "{said}");
    assert_eq!(seen(&[("NDCOMPAT_EMULATOR", "auto")]).0, lines);
    assert_eq!(seen(&[("NDCOMPAT_LOG", "off")]), (lines, String::new()));
}

#[test]
fn it_can_be_had_beside_hardware_and_kept_away() {
    let (on, said) = seen(&[("NDCOMPAT_EMULATOR", "on")]);
    assert!(emulated(&on) && said.is_empty(), "{on:?}, {said}");
    let first_emulated = on.iter().position(|line| line.starts_with("emulator")).unwrap();
    let hardware_first = on[first_emulated..].iter().all(|line| line.starts_with("emulator"));
    assert!(hardware_first && (first_emulated == 0) == is_emulator(), "{on:?}");
    let mut once = on.clone();
    once.sort();
    once.dedup_by_key(|line| line.split_once(' ').unwrap().1.to_owned());
    assert_eq!(once.len(), on.len(), "an address is one device's");
    let (off, said) = seen(&[("NDCOMPAT_EMULATOR", "off")]);
    assert_eq!(off, on[..first_emulated], "{said}");
    assert!(said.is_empty(), "{said}");
}

#[test]
fn a_value_without_meaning_is_named() {
    let (lines, said) = seen(&[("NDCOMPAT_EMULATOR", "banana")]);
    assert_eq!(lines, ["ND_INVALID_PARAMETER"]);
    assert!(said.contains("NDCOMPAT_EMULATOR=banana"), "{said}");
    let (lines, said) = seen(&[("NDCOMPAT_EMULATOR", "on"), ("NDCOMPAT_EMULATOR_RNR_TIMEOUT", "4s")]);
    assert_eq!(lines, ["ND_INVALID_PARAMETER"]);
    assert!(said.contains("NDCOMPAT_EMULATOR_RNR_TIMEOUT=4s"), "{said}");
}

#[test]
fn it_is_gone_while_a_file_exists() {
    let folder = std::env::temp_dir();
    let file = folder.join(format!("ndcompat-gone-{}", std::process::id()));
    let gone = ("NDCOMPAT_EMULATOR_GONE", file.to_str().unwrap());
    let on = ("NDCOMPAT_EMULATOR", "on");
    assert!(emulated(&seen(&[on, gone]).0));
    std::fs::write(&file, "").unwrap();
    let lines = seen(&[on, gone]).0;
    std::fs::remove_file(&file).unwrap();
    assert!(!emulated(&lines), "{lines:?}");
    let (lines, said) = seen(&[on, ("NDCOMPAT_EMULATOR_GONE", "/none/of/these")]);
    assert_eq!(lines, ["ND_INVALID_PARAMETER"]);
    assert!(said.contains("NDCOMPAT_EMULATOR_GONE=/none/of/these"), "{said}");
}

#[test]
fn it_has_no_gaps() {
    if !is_emulator() {
        return;
    }
    use ndcompat::types::AdapterFlags;
    let adapter = adapter();
    let info = adapter.info().unwrap();
    assert!(info.adapter_flags.contains(AdapterFlags::CQ_RESIZE | AdapterFlags::LOOPBACK));
    assert_eq!((info.max_transfer_length, info.max_read_sge), (1 << 30, 16));
    assert_eq!(adapter.device_name(), "softiwarp0");
    let quirks: Vec<_> = adapter.quirks().into_iter().map(|(name, _)| name).collect();
    assert_eq!(quirks, ["iwarp"], "it deviates from nothing but InfiniBand's way to connect");
    assert_eq!(provider::resolve_address(address()), Ok(info.adapter_id));
}

#[test]
fn one_thread_serves_all_adapters_of_the_process() {
    let all = [adapter(), provider::open_adapter_at(address6()).unwrap()];
    let name =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    let count = || {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(name);
        threads.filter(|name| name == "softiwarp\n").count()
    };
    // Of two threads that open the device at once, one has made another that is about to go.
    let end = Instant::now() + Duration::from_secs(60);
    // And a thread has its name only once it runs.
    while count() != usize::from(is_emulator()) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(count(), usize::from(is_emulator()));
    drop(all);
}
