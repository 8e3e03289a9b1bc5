//! Error messages: what was tried, the name of the status, advice.

use crate::errno;
use crate::output::{self, plain};
use anyhow::Result;
use ndcompat::{Cause, ConnectError, Status};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Advice for a status, if there is any.
pub fn advice(status: Status) -> Option<&'static str> {
    Some(match status {
        Status::INVALID_ADDRESS => {
            "this address, or the interface on the way to it, has no RDMA here: `nd info` lists the addresses that have, `nd doctor` says why not"
        }
        Status::CONNECTION_REFUSED => {
            "is `nd serve` running there, on this very address and port (for `nd copy` with --receive)?"
        }
        Status::IO_TIMEOUT | Status::TIMEOUT => {
            "no answer: is the machine up? Has it RDMA of the same kind (RoCE or iWARP)? Does a firewall drop it (UDP port 4791, or TCP)?"
        }
        Status::NETWORK_UNREACHABLE => "there is no route: see `ip route get ADDRESS`",
        Status::HOST_UNREACHABLE => {
            "there is a route, but nobody answers at its end: is the machine up, and in the same network? `ip neigh` shows whether it \
             was found. Has its interface RDMA?"
        }
        Status::SHARING_VIOLATION => "the port is taken: end the other program, or choose another port",
        Status::INSUFFICIENT_RESOURCES | Status::NO_MEMORY => {
            "the device or the machine has no more: fewer queue pairs, less depth, or higher limits (`ulimit -l` for locked memory, `-n` for files)"
        }
        Status::ACCESS_DENIED | Status::ACCESS_VIOLATION => {
            "something is not permitted: `nd doctor` looks at /dev/infiniband"
        }
        Status::INVALID_PARAMETER => {
            "an argument, or one of the variables of `nd env`, has a value that means nothing here: `nd doctor` looks at the variables"
        }
        Status::DEVICE_REMOVED => "the device is gone: `nd doctor`",
        Status::BUFFER_OVERFLOW => "a message is longer than the adapter takes: `nd info` has the limits",
        Status::CANCELED | Status::CONNECTION_ABORTED => {
            "the peer has ended the connection: see what it says"
        }
        _ => return None,
    })
}

/// What there is to say of an error besides its text.
struct Known {
    status: Option<Status>,
    /// The errno beneath, and the call or event that had it.
    errno: Option<i32>,
    call: Option<&'static str>,
    advice: Option<&'static str>,
}

impl Known {
    fn of(error: &anyhow::Error) -> Known {
        let refused = error.chain().find_map(|cause| cause.downcast_ref::<ConnectError>());
        let status = error.chain().find_map(|cause| cause.downcast_ref::<Status>().copied());
        let status = refused.map(|refused| refused.status).or(status);
        // An attempt to connect knows its own cause, or that it has none.
        let cause = match refused {
            Some(refused) => refused.cause,
            None => status.and_then(Status::cause),
        };
        let of_system =
            || error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()?.raw_os_error());
        let is_answered = refused.is_some_and(|refused| !refused.private_data.is_empty());
        Known {
            status,
            errno: cause.and_then(|cause| cause.errno).or_else(of_system),
            call: cause.map(|cause| cause.what),
            // Whoever refuses with a reason is there, and the reason is better than a guess.
            advice: status.filter(|_| !is_answered).and_then(advice),
        }
    }
}

/// What is said of an error, but for what is beneath its status, which is shown by itself.
fn text(error: &anyhow::Error) -> String {
    let said = error.chain().filter(|error| !error.is::<Cause>());
    said.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// An error as `--json` shows it. `hint` is what the command line may have meant.
pub fn as_json(error: &anyhow::Error, hint: Option<&str>) -> Value {
    let Known { status, errno, call, advice } = Known::of(error);
    let name = status.and_then(Status::name);
    let code = status.map(|status| format!("{:#010x}", status.0));
    json!({
        "error": text(error), "status": name, "code": code, "errno": errno,
        "errno_name": errno.and_then(errno::name), "call": call, "advice": advice, "hint": hint,
    })
}

/// Reports a command line that is wrong on the standard error, and with `--json` on the standard output as well. Help and version,
/// which are no errors, go to the standard output as they are.
pub fn wrong_command_line(error: &clap::Error) -> ExitCode {
    let is_json = std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json");
    if error.use_stderr() && is_json {
        let text = error.render().to_string();
        let (what, advice) = text.split_once("\n\n").unwrap_or((&text, ""));
        let what: Vec<_> = what.trim_start_matches("error: ").lines().map(str::trim).collect();
        output::json(&json!({
            "error": what.join(" "), "status": null, "code": null, "errno": null, "errno_name": null, "call": null,
            "advice": advice.trim(), "hint": null,
        }));
    }
    if error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(2);
    }
    output::check(error.print());
    if output::is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ends a measurement, which may have failed on the way. What was measured is shown all the same, as JSON together with the failure.
pub fn conclude(measured: Option<Value>, outcome: Result<()>) -> Result<bool> {
    if let Some(mut measured) = measured {
        if let Err(error) = &outcome
            && let (Value::Object(measured), Value::Object(failure)) = (&mut measured, as_json(error, None))
        {
            measured.extend(failure);
        }
        output::json(&measured);
    }
    if let Err(error) = &outcome {
        report(error, false, None);
    }
    Ok(outcome.is_ok())
}

/// Reports an error on the standard error, and with `json` on the standard output as well.
/// `hint` is what the command line may have meant.
pub fn report(error: &anyhow::Error, json: bool, hint: Option<&str>) {
    let Known { errno, call, advice, .. } = Known::of(error);
    if json {
        output::json(&as_json(error, hint));
    }
    // It may be what a peer says.
    eprintln!("nd: {}", plain(&text(error)));
    match (call, errno.map(errno::shown)) {
        (Some(call), Some(errno)) => eprintln!("    beneath: {call}: {errno}"),
        (Some(call), None) => eprintln!("    beneath: {call}"),
        (None, Some(errno)) => eprintln!("    beneath: {errno}"),
        (None, None) => {}
    }
    if let Some(advice) = advice {
        eprintln!("    {advice}");
    }
    if let Some(hint) = hint {
        eprintln!("    {hint}");
    }
    if call.is_some() && std::env::var_os("NDCOMPAT_LOG").is_none() {
        eprintln!("    NDCOMPAT_LOG=debug shows the calls before it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beneath_a_status_is_said_once() {
        let mut refused = ConnectError::from(Status::CONNECTION_REFUSED);
        refused.cause = Status::from(std::io::Error::from_raw_os_error(libc::ECONNREFUSED)).cause();
        assert!(refused.cause.is_some());
        let error = anyhow::Error::from(refused).context("connecting");
        assert_eq!(text(&error), "connecting: ND_CONNECTION_REFUSED (0xC0000236)");
        assert_eq!(Known::of(&error).errno, Some(libc::ECONNREFUSED));
    }

    #[test]
    fn every_unreachable_peer_has_advice_of_its_own() {
        let (network, host) = (advice(Status::NETWORK_UNREACHABLE), advice(Status::HOST_UNREACHABLE));
        assert!(network.unwrap().contains("no route") && host.unwrap().contains("ip neigh"));
    }
}
