//! Whether the emulator is enabled, and there, and how it is: the environment variables `NDCOMPAT_EMULATOR`, `NDCOMPAT_EMULATOR_GONE` and
//! `NDCOMPAT_EMULATOR_RNR_TIMEOUT`.

use super::Library;
use std::env::{self, VarError};
use std::ffi::OsString;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

/// The name of the environment variable.
const VARIABLE: &str = "NDCOMPAT_EMULATOR";
/// That of the one for a file: while it exists, the device is gone.
const GONE: &str = "NDCOMPAT_EMULATOR_GONE";
/// That of the one for how long a message waits for its receive.
const RNR_TIMEOUT: &str = "NDCOMPAT_EMULATOR_RNR_TIMEOUT";
/// The longest time, in milliseconds: half of what TCP gives a peer that takes nothing.
const RNR_TIMEOUT_MAX: u64 = 60_000;

/// When the emulator is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// On machines without an RDMA device: the default.
    Auto,
    /// Always, in addition to the devices of the machine.
    On,
    /// Never.
    Off,
}

impl Mode {
    /// The value of the variable; an error if it is invalid.
    fn read() -> Result<Mode, OsString> {
        let value = match env::var(VARIABLE) {
            Err(VarError::NotPresent) => return Ok(Mode::Auto),
            Err(VarError::NotUnicode(value)) => return Err(value),
            Ok(value) => value,
        };
        Mode::parse(&value).ok_or_else(|| value.into())
    }

    fn parse(value: &str) -> Option<Mode> {
        match value {
            "" | "auto" => Some(Mode::Auto),
            "on" => Some(Mode::On),
            "off" => Some(Mode::Off),
            _ => None,
        }
    }
}

/// The file that `NDCOMPAT_EMULATOR_GONE` names. A program with more rights than its user does not look for files of the user's choice.
fn gone() -> Option<PathBuf> {
    let file = env::var_os(GONE).filter(|file| !file.is_empty() && !win32::process::is_privileged())?;
    path::absolute(file).ok()
}

/// The value of `NDCOMPAT_EMULATOR_RNR_TIMEOUT`; an error if it is invalid.
fn rnr_timeout() -> Result<Option<Duration>, OsString> {
    let value = env::var_os(RNR_TIMEOUT).unwrap_or_default();
    value.to_str().and_then(parse_milliseconds).ok_or(value)
}

fn parse_milliseconds(value: &str) -> Option<Option<Duration>> {
    // A number of any other form may be meant to be another one.
    let is_number = value.bytes().all(|digit| digit.is_ascii_digit());
    let milliseconds = if value.is_empty() { 0 } else { value.parse().ok().filter(|_| is_number)? };
    let time = (milliseconds != 0).then(|| Duration::from_millis(milliseconds));
    (milliseconds <= RNR_TIMEOUT_MAX).then_some(time)
}

/// Fails with `EINVAL`, and logs that, if a variable has an invalid value.
///
/// # Errors
/// `EINVAL`.
pub(super) fn check() -> io::Result<()> {
    static SAID: Once = Once::new();
    let wrong = match (Mode::read(), gone(), rnr_timeout()) {
        (Err(value), ..) => format!("{VARIABLE}={} is not auto, on or off", value.display()),
        (_, _, Err(value)) => {
            format!("{RNR_TIMEOUT}={} is no number of milliseconds up to {RNR_TIMEOUT_MAX}", value.display())
        }
        (_, Some(file), _) if !file.parent().is_some_and(Path::is_dir) => {
            format!("{GONE}={} is not in a folder that exists", file.display())
        }
        _ => return Ok(()),
    };
    SAID.call_once(|| say(&wrong));
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// Whether it is enabled, on a machine with RDMA devices if `beside_others`, otherwise on one without.
pub(super) fn is_enabled(beside_others: bool) -> bool {
    let enabled = match Mode::read() {
        Ok(Mode::Auto) => !beside_others,
        Ok(Mode::On) => true,
        Ok(Mode::Off) | Err(_) => false,
    };
    if enabled {
        softiwarp::report::set(say);
        if let Some(file) = gone() {
            softiwarp::verbs::gone_while_exists(file);
        }
        if let Ok(Some(limit)) = rnr_timeout() {
            softiwarp::verbs::wait_for_receives(limit);
        }
    }
    enabled
}

/// Returns whether the emulator is used because there is no other device; logs that once.
pub(crate) fn is_fallback(library: &Library) -> bool {
    static SAID: Once = Once::new();
    let taken = library.is_emulator() && Mode::read() == Ok(Mode::Auto);
    if taken {
        SAID.call_once(|| {
            say(&format!(
                "no RDMA device; using the emulator, over TCP ({VARIABLE}=on silences this, =off does without)"
            ));
        });
    }
    taken
}

fn say(text: &str) {
    tracing::warn!(target: "ndcompat::device", "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let values = ["", "auto", "on", "off", "banana", "ON", "1"];
        assert_eq!(
            values.map(Mode::parse),
            [Some(Mode::Auto), Some(Mode::Auto), Some(Mode::On), Some(Mode::Off), None, None, None]
        );
    }

    #[test]
    fn times() {
        let time = |milliseconds| Some(Some(Duration::from_millis(milliseconds)));
        let values = ["", "0", "4000", "60000", "60001", "4s", "-1", "+5", "99999999999999999999"];
        assert_eq!(
            values.map(parse_milliseconds),
            [Some(None), Some(None), time(4000), time(60_000), None, None, None, None, None]
        );
    }
}
