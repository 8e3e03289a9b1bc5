//! Whether the emulator is enabled, and there: the environment variables `NDCOMPAT_EMULATOR` and `NDCOMPAT_EMULATOR_GONE`.

use super::Library;
use std::env::{self, VarError};
use std::ffi::OsString;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Once;

/// The name of the environment variable.
const VARIABLE: &str = "NDCOMPAT_EMULATOR";
/// That of the one for a file: while it exists, the device is gone.
const GONE: &str = "NDCOMPAT_EMULATOR_GONE";

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

/// Fails with `EINVAL`, and logs that, if a variable has an invalid value.
///
/// # Errors
/// `EINVAL`.
pub(super) fn check() -> io::Result<()> {
    static SAID: Once = Once::new();
    let wrong = match (Mode::read(), gone()) {
        (Err(value), _) => format!("{VARIABLE}={} is not auto, on or off", value.display()),
        (_, Some(file)) if !file.parent().is_some_and(Path::is_dir) => {
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
}
