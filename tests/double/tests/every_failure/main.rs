//! Every call of libibverbs, librdmacm and the system that can fail does so once, in a program that uses everything: open,
//! connect, transfer, windows, shared receive queue, disconnect, release. Each time the method returns a status, no request stays
//! pending, everything can be released, nothing leaks, and the program then succeeds in the same process.

mod program;
mod waiting;

use double::{call_that_failed, fail_call, failed_call, forget_objects, imitate_rxe, objects, turn};
use ndcompat::Status;
use program::life;
use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use support::library::DllCanUnloadNow;
use waiting::Waiting;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

fn entries(folder: &str) -> usize {
    read_dir(folder).expect("procfs").count()
}

/// The numbers of descriptors and threads of this process.
type Counts = (usize, usize);

fn counts_now() -> Counts {
    // Not those of a test that waits for its turn: its own, and that which watches it, which have its name.
    let is_of_a_test = |name: &str| ["waiting_", "in_a_new_"].iter().any(|test| name.starts_with(test));
    let names = read_dir("/proc/self/task").expect("procfs").flatten();
    let names = names.filter_map(|thread| read_to_string(thread.path().join("comm")).ok());
    (entries("/proc/self/fd"), names.filter(|name| !is_of_a_test(name)).count())
}

/// The counts, as soon as they are no more than `most`, or after [`LIMIT`].
fn counts(most: Counts) -> Counts {
    let deadline = Instant::now() + LIMIT;
    loop {
        let now = counts_now();
        if (now.0 <= most.0 && now.1 <= most.1) || Instant::now() > deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The counts, once they no longer change.
fn steady_counts() -> Counts {
    let mut before = counts_now();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = counts_now();
        if now == before {
            return now;
        }
        before = now;
    }
}

/// Runs `work`, and aborts the process if that takes too long: a call that does not return cannot be interrupted otherwise.
fn watched(work: impl FnOnce()) {
    let (done, waits) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if waits.recv_timeout(4 * LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a life hangs, after {:?}", failed_call());
            std::process::abort();
        }
    });
    work();
    drop(done);
}

/// Runs the program while a call of `function` fails, the one with this number. Returns whether there was such a call; adds the
/// functions called to `known`.
fn disturbed(waiting: Waiting, function: &str, number: usize, known: &mut Functions) -> bool {
    fail_call(function, number);
    let ended = life(waiting);
    let (failed, calls) = call_that_failed();
    for name in calls.into_keys() {
        known.entry(name.to_owned()).or_default();
    }
    if failed.is_none() {
        assert_eq!(ended, Ok(()), "although nothing failed");
        return false;
    }
    if let Err((method, status)) = ended {
        assert!(is_told(method, status), "{function} (call {number}): {method} answers {status:?}");
    }
    if cannot_be_undone(function) {
        forget_objects();
    }
    let deadline = Instant::now() + LIMIT;
    while objects() != [0; 4] {
        std::thread::sleep(Duration::from_millis(1));
        let left = objects();
        assert!(Instant::now() < deadline, "{function} (call {number}) leaves {left:?}, {ended:?}");
    }
    // SAFETY: no arguments.
    assert_eq!(unsafe { DllCanUnloadNow() }, Status::SUCCESS, "{function} (call {number}), {ended:?}");
    assert_eq!(life(waiting), Ok(()), "after {function} (call {number})");
    true
}

/// The functions that the program calls, and how many calls of each have failed, once that has been tried.
type Functions = BTreeMap<String, Option<usize>>;

/// Lets each call of each function fail, by `fails`, which returns whether there was such a call.
fn each(mut fails: impl FnMut(&str, usize, &mut Functions) -> bool) -> Functions {
    let mut functions = Functions::new();
    assert!(!fails("", 0, &mut functions));
    // A failure may lead to calls of further functions. Those that leave objects and descriptors behind come last.
    let last = |name: &&String| cannot_be_undone(name);
    while let Some(function) =
        functions.iter().filter(|(_, tried)| tried.is_none()).map(|(name, _)| name).min_by_key(last)
    {
        let function = function.clone();
        let mut number = 0;
        while fails(&function, number, &mut functions) {
            number += 1;
        }
        functions.insert(function, Some(number));
    }
    functions
}

fn report(waiting: &str, functions: &Functions) {
    let calls: usize = functions.values().flatten().sum();
    println!("{waiting}: {calls} calls of {} functions failed: {functions:?}", functions.len());
    assert!(calls > 100, "a walk that goes somewhere");
}

/// Asserts that a call of each of these has failed.
fn have_failed(functions: &Functions, names: &[&str]) {
    for name in names {
        assert!(functions.get(*name).is_some_and(|calls| *calls > Some(0)), "{name} never failed");
    }
}

/// Whether its failure leaves an object that cannot be destroyed.
fn cannot_be_undone(function: &str) -> bool {
    ["destroy", "dealloc", "dereg"].iter().any(|word| function.contains(word))
}

/// Whether the status is documented for the method or tells of short resources.
fn is_told(method: &str, status: Status) -> bool {
    const STATUSES: &str = include_str!("../../../statuses");
    if !method.contains("::") || [Status::NO_MEMORY, Status::INSUFFICIENT_RESOURCES].contains(&status) {
        return true;
    }
    let told = format!("{method} {} ", status.name().unwrap_or_default());
    STATUSES.lines().any(|line| format!("{line} ").starts_with(&told))
}

/// Fails each call in turn, in one process.
fn walk(waiting: Waiting) {
    let _turn = turn();
    if waiting == Waiting::Event {
        imitate_rxe();
    }
    for _ in 0..2 {
        assert_eq!(life(waiting), Ok(()));
    }
    let first = steady_counts();
    let functions = each(|function, number, functions| {
        let failed = disturbed(waiting, function, number, functions);
        if failed && !cannot_be_undone(function) {
            let now = counts(first);
            assert!(
                now.0 <= first.0 && now.1 <= first.1,
                "{function} (call {number}): {now:?}, not {first:?}"
            );
        }
        failed
    });
    report(&format!("{waiting:?}"), &functions);
    have_failed(&functions, &["socket", "bind", "eventfd"]);
    if waiting == Waiting::Event {
        have_failed(&functions, &["timerfd_create", "timerfd_settime"]);
    }
}

#[test]
fn waiting_for_events() {
    watched(|| walk(Waiting::Event));
}

#[test]
fn waiting_on_a_port() {
    watched(|| walk(Waiting::Port));
}

#[test]
fn waiting_nowhere() {
    watched(|| walk(Waiting::Background));
}

/// The environment variable that tells a child process which call is to fail: a function, and the number of the call.
const CALL: &str = "DOUBLE_FAILING_CALL";

/// Fails each call in a process of its own, for what a process does only once, such as starting threads.
#[test]
fn in_a_new_process() {
    if let Ok(call) = std::env::var(CALL) {
        let _turn = turn();
        let (function, number) = call.split_once(' ').expect("a function and a number");
        let mut functions = Functions::new();
        let failed =
            disturbed(Waiting::Background, function, number.parse().expect("a number"), &mut functions);
        let called: Vec<_> = functions.into_keys().collect();
        println!("called: {}\nfailed: {failed}", called.join(" "));
        return;
    }
    watched(|| {
        // Starting a process takes calls that another test may have told to fail.
        let _turn = turn();
        let program = std::env::current_exe().expect("the program's own path");
        let functions = each(|function, number, functions| {
            let output = Command::new(&program)
                .args(["--exact", "in_a_new_process", "--nocapture"])
                .env(CALL, format!("{function} {number}"))
                .output()
                .expect("the process starts");
            let said = String::from_utf8_lossy(&output.stdout);
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{function}, call {number}: {said}\n{complaint}");
            let line = |start| said.lines().find_map(|line| line.strip_prefix(start)).expect("what it says");
            for name in line("called: ").split(' ') {
                functions.entry(name.to_owned()).or_default();
            }
            line("failed: ") == "true"
        });
        report("new processes", &functions);
        have_failed(&functions, &["pthread_create", "epoll_create1"]);
    });
}
