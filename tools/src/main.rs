//! `nd`: lists, diagnoses and measures RDMA on a machine.
//!
//! It uses the library's public Rust API only. The protocol between two machines is in `protocol`.

/// Prints a line.
macro_rules! out {
    ($($text:tt)*) => {
        $crate::output::line(format_args!($($text)*))
    };
}

mod arriving;
mod cli;
mod copy;
mod doctor;
mod env;
mod errno;
mod failure;
mod generate;
mod info;
mod interrupt;
mod measure;
mod messages;
mod output;
mod peer;
mod perf;
mod ping;
mod place;
mod protocol;
mod receive_file;
mod room;
mod serve;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Cli { json, command } = match Cli::try_parse() {
        Ok(line) => line,
        Err(error) => return failure::wrong_command_line(&error),
    };
    // The library's log goes to the standard error, at the levels in NDCOMPAT_LOG.
    ndcompat::logging::start();
    let hint = hint(&command);
    let outcome = match command {
        Command::Info(info) => info::run(&info, json),
        Command::Doctor => doctor::run(json),
        Command::Env(env) => env::run(&env, json),
        Command::Serve(serve) => serve::run(&serve, json),
        Command::Ping(ping) => ping::run(&ping, json),
        Command::Perf(perf) => perf::run(&perf, json),
        Command::Copy(copy) => copy::run(&copy, json),
        Command::Generate { folder } => generate::run(&folder).map(|()| true),
    };
    let all_is_well = outcome.unwrap_or_else(|error| {
        failure::report(&error, json, hint.as_deref());
        false
    });
    if output::is_whole() && all_is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What to say if the command fails: that an address may have been meant otherwise.
fn hint(command: &Command) -> Option<String> {
    match command {
        Command::Ping(cli::Ping { peer, .. }) | Command::Perf(cli::Perf { peer, .. }) => {
            peer.host.as_ref()?.hint()
        }
        Command::Serve(serve) => serve.bind.as_ref()?.hint(),
        Command::Info(info) => info.address.as_ref()?.hint(),
        Command::Copy(copy) => copy.to.hint(),
        _ => None,
    }
}
