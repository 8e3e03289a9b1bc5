//! The standard output, and text of a peer's in it.

use serde_json::Value;
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

/// Writes JSON on one line. It may have text of a peer's in it, and the standard output may be a terminal.
pub fn json(value: &Value) {
    line(format_args!("{}", plain_json(&value.to_string())));
}

/// Whether a terminal would move its cursor, change its colours, turn text round or begin a line by it.
fn is_obeyed(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Text that a peer may have chosen, for a terminal: what that would obey is escaped.
pub fn plain(text: &str) -> String {
    escaped(text, |c| c.escape_default().to_string())
}

/// JSON with the escapes that JSON does not ask for, but a terminal. What is escaped is in strings only, and below 0x10000.
fn plain_json(text: &str) -> String {
    escaped(text, |c| format!("\\u{:04x}", u32::from(c)))
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if is_obeyed(c) {
            escaped.push_str(&escape(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(plain("größe 1\\2 'x'.txt"), "größe 1\\2 'x'.txt");
        assert_eq!(plain("a\u{1b}[2J\r\n\u{7f}"), "a\\u{1b}[2J\\r\\n\\u{7f}");
        assert_eq!(plain("\u{9b}31m\u{202e}fdp\u{2028}"), "\\u{9b}31m\\u{202e}fdp\\u{2028}");
    }

    #[test]
    fn json_moves_no_terminal_either_and_means_the_same() {
        let every: String = ('\0'..='\u{2100}').collect();
        let value = serde_json::json!({ &every: [&every, "größe", 1.5] });
        let text = plain_json(&value.to_string());
        assert!(!text.contains(is_obeyed), "{text}");
        assert!(text.contains("größe") && text.contains("\\u007f\\u0080"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
