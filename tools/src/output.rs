//! The standard output, and text of a peer's in it.

use std::fmt::{Arguments, Write as _};
use std::io::{self, ErrorKind, Write as _};
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

/// Text that a peer may have chosen, for a terminal: what would move its cursor, change its colours or turn text round is escaped.
pub fn plain(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut plain = String::new();
    for c in text.chars() {
        if c.is_control() || turns(c) {
            let _ = write!(plain, "{}", c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(plain("größe 1\\2 'x'.txt"), "größe 1\\2 'x'.txt");
        assert_eq!(plain("a\u{1b}[2J\r\n\u{7f}"), "a\\u{1b}[2J\\r\\n\\u{7f}");
        assert_eq!(plain("\u{9b}31m\u{202e}fdp"), "\\u{9b}31m\\u{202e}fdp");
    }
}
