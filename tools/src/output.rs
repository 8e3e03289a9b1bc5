//! The standard output.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// The first error in writing, if there was one.
static FAILED: OnceLock<ErrorKind> = OnceLock::new();

/// Writes a line. An error is reported at once, and [`is_whole`] remembers it.
pub fn line(text: Arguments<'_>) {
    check(writeln!(io::stdout(), "{text}"));
}

/// Takes note of the result of writing. A closed pipe is no error: its reader has had enough.
pub fn check(result: io::Result<()>) {
    if let Err(error) = result
        && error.kind() != ErrorKind::BrokenPipe
        && FAILED.set(error.kind()).is_ok()
    {
        eprintln!("nd: writing the output: {error}");
    }
}

/// Whether all output has been written, at the end of the program.
pub fn is_whole() -> bool {
    check(io::stdout().flush());
    FAILED.get().is_none()
}
