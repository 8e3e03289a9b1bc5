//! The command line. Completions and manual pages are generated from it.

use crate::place::{Destination, Place};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// The default port of the tools.
pub const PORT: u16 = 7650;
/// How long a server lets a peer be silent, unless it is told.
pub const IDLE: Duration = Duration::from_secs(60);
/// The longest time that a request can ask for besides.
pub const LONGEST_IDLE: Duration = Duration::from_secs(u16::MAX as u64);

/// RDMA through the NetworkDirect interfaces: lists adapters, diagnoses, measures, copies.
#[derive(Parser)]
#[command(
    name = "nd",
    version,
    propagate_version = true,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(after_help = "Exit status: 0 if all is well, 1 if not, 2 if the command line is wrong.")]
pub struct Cli {
    /// Writes one JSON object to the standard output instead of text
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Lists adapters: addresses, limits, quirks; versions of kernel and rdma-core; registered providers
    Info(Info),
    /// Diagnoses why RDMA does not work on this machine, and says how to fix it
    Doctor,
    /// Lists the environment variables that the library reads
    Env(Env),
    /// Serves `nd ping`, `nd perf` and `nd copy` from other machines
    Serve(Serve),
    /// Measures the round trip to a machine where `nd serve` runs
    Ping(Ping),
    /// Measures latency or bandwidth to a machine where `nd serve` runs
    Perf(Perf),
    /// Copies a file to a machine where `nd serve --receive` runs
    Copy(Copy),
    /// Writes manual pages and completions into a folder
    #[command(hide = true)]
    Generate { folder: PathBuf },
}

#[derive(Args)]
pub struct Info {
    /// Only the adapter with this address
    pub address: Option<Place>,
}

#[derive(Args)]
pub struct Env {
    /// Writes the table of docs/environment.md
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

#[derive(Args, Clone)]
pub struct Serve {
    /// Local RDMA address, with or without a port [default: 0.0.0.0:7650, all addresses of the first adapter]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub bind: Option<Place>,
    /// Accepts files from `nd copy` and stores them in this folder
    #[arg(long, value_name = "FOLDER")]
    pub receive: Option<PathBuf>,
    /// Lets a received file replace an existing one
    #[arg(long, requires = "receive")]
    pub overwrite: bool,
    /// Accepts names that begin with a dot, as those of a shell's settings
    #[arg(long, requires = "receive")]
    pub hidden: bool,
    /// How long a peer may be silent, in seconds, before its connection is ended
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = limit)]
    pub idle: Duration,
    /// How much longer a peer may ask for, in seconds: `nd perf` with writes or reads for its --duration, `nd ping` for its --interval
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    pub idle_max: Duration,
    /// Exits after this many connections
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub connections: Option<u64>,
}

/// The peer to connect to.
#[derive(Args, Clone)]
pub struct Peer {
    /// Where `nd serve` runs
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "loopback", value_parser = peer)]
    pub host: Option<Place>,
    /// Runs both ends in this process, on this RDMA address or on the first one
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, conflicts_with_all = ["host", "bind"])]
    pub loopback: Option<Option<Place>>,
    /// The local RDMA address to connect from [default: the one that the route to the peer has]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub bind: Option<Place>,
    /// How long to wait for the peer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = limit)]
    pub timeout: Duration,
}

#[derive(Args)]
pub struct Ping {
    #[command(flatten)]
    pub peer: Peer,
    /// Number of messages
    #[arg(long, short, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Message size in bytes, also with K, M or G (or KiB, MiB, GiB)
    #[arg(long, short, default_value = "64", value_parser = size)]
    pub size: u32,
    /// Seconds between messages
    #[arg(long, short, value_name = "SECONDS", default_value = "0.2", value_parser = seconds)]
    pub interval: Duration,
}

#[derive(Args)]
pub struct Perf {
    #[command(flatten)]
    pub peer: Peer,
    /// Operation that moves the data
    #[arg(long, short, value_enum, default_value_t = Operation::Send)]
    pub operation: Operation,
    /// Measures bandwidth, with many requests outstanding, instead of the latency of one at a time
    #[arg(long, short)]
    pub bandwidth: bool,
    /// How to wait for completions
    #[arg(long, short, value_enum, default_value_t = Wait::Poll)]
    pub wait: Wait,
    /// Message size in bytes, also with K, M or G (or KiB, MiB, GiB); several sizes, separated by commas, give a table
    #[arg(long, short, value_delimiter = ',', default_value = "64", value_parser = size)]
    pub size: Vec<u32>,
    /// How long to measure each size, in seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub duration: Duration,
    /// Connections that share the work
    #[arg(long, short = 'q', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub queue_pairs: u32,
    /// Requests outstanding on each, for --bandwidth
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: u32,
    /// Writes the distribution as an SVG image; with several sizes, that of the last
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Shows no progress
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct Copy {
    /// File to copy
    pub file: PathBuf,
    /// Destination: a host, a colon, and optionally a name for the file there; the port goes into --port
    #[arg(value_name = "HOST:[NAME]")]
    pub to: Destination,
    /// The port of `nd serve`
    #[arg(long, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// The local RDMA address to connect from [default: the one that the route to the peer has]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub bind: Option<Place>,
    /// Size of a piece in bytes, also with K, M or G (or KiB, MiB, GiB)
    #[arg(long, default_value = "256K", value_parser = size)]
    pub piece: u32,
    /// Number of pieces in flight
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub depth: u32,
    /// How long to wait for the peer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = limit)]
    pub timeout: Duration,
    /// Shows no progress
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Send,
    Write,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Polls without sleeping
    Poll,
    /// Sleeps until there is a completion
    Event,
    /// Sleeps in poll(2) on the session's descriptor, as an async executor does
    Descriptor,
    /// Sleeps in GetQueuedCompletionStatus on a completion port, as Windows programs do
    Port,
}

/// Where to connect to. Port 0 is for one's own end: any that is free.
fn peer(text: &str) -> Result<Place, String> {
    let place: Place = text.parse()?;
    if place.port == Some(0) {
        return Err(format!("nobody listens at port 0; the default is {PORT}"));
    }
    Ok(place)
}

/// A time, which may be 0. What the clock cannot count is refused.
fn seconds(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(1_000_000_000);
    let seconds: f64 = text.parse().map_err(|_| format!("'{text}' is no number of seconds"))?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|&time| time <= MOST);
    time.ok_or_else(|| format!("'{text}' is no time to wait"))
}

/// How long to wait for somebody, which takes some time at least.
fn limit(text: &str) -> Result<Duration, String> {
    let time = seconds(text)?;
    if time.is_zero() {
        return Err("no peer answers in 0 seconds".into());
    }
    Ok(time)
}

/// A number of bytes: `64`, `4K`, `1MiB`.
fn size(text: &str) -> Result<u32, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.parse::<u32>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    match bytes {
        Some(bytes @ 1..=0x4000_0000) => Ok(bytes),
        _ => Err(format!("'{text}' is no number of bytes between 1 and 1G, such as 64, 4K or 1MiB")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn sizes_have_units_and_bounds() {
        for (text, bytes) in [
            ("64", 64),
            ("4K", 4 << 10),
            ("4kib", 4 << 10),
            ("1M", 1 << 20),
            ("3MiB", 3 << 20),
            ("1024m", 1 << 30),
            ("1G", 1 << 30),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["0", "-1", "+1", "K", "", "2048M", "5000M", "2G", "8G", "1.5K", "1KB", "1iB", "1 K", "1µ"]
        {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_bounds_and_waiting_for_somebody_takes_some() {
        let half = Ok(Duration::from_millis(500));
        assert_eq!((seconds("0.5"), limit("0.5"), seconds("0")), (half.clone(), half, Ok(Duration::ZERO)));
        for bad in ["-1", "x", "", "nan", "inf", "1e19"] {
            assert!(seconds(bad).is_err() && limit(bad).is_err(), "{bad}");
        }
        assert!(limit("0").is_err() && limit("1e-12").is_err());
    }

    #[test]
    fn nobody_listens_at_port_0() {
        assert!(peer("there:0").is_err() && peer("[::1]:0").is_err());
        assert_eq!(peer("there:1").unwrap().port, Some(1));
    }
}
