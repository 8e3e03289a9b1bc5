//! `FindFirstFile`: the files of a folder that match a pattern.

use super::{error_at, folder_of};
use crate::error::*;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::Path;

/// A search in progress.
pub struct Search {
    left: Mutex<VecDeque<Found>>,
}

/// A file that matches.
pub struct Found {
    /// Its name in its folder.
    pub name: OsString,
    /// Its metadata; of a dangling link those of the link.
    pub metadata: Metadata,
}

/// A part of a pattern, as `FindFirstFile` of Windows gives it to its file systems.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// Any characters: `*`.
    Any,
    /// Any up to the last dot: `*` before a dot (`DOS_STAR`).
    AnyToDot,
    /// One character that is no dot, or none at a dot and at the end: `?` (`DOS_QM`).
    One,
    /// A dot, or none at the end: a dot before `*` and `?` (`DOS_DOT`).
    Dot,
    Char(char),
}

/// The parts of a pattern. `*.*` matches all files, also those without a dot; a dot at the end is none.
fn parts(pattern: &str) -> Vec<Part> {
    if pattern == "*.*" {
        return vec![Part::Any];
    }
    let is_name = pattern.chars().all(|c| c == '.');
    let ends_in_dot = pattern.ends_with('.') && !is_name;
    let chars: Vec<char> = if is_name { pattern } else { pattern.trim_end_matches('.') }.chars().collect();
    let part = |at: usize| match (chars[at], chars.get(at + 1)) {
        ('*', Some('.')) => Part::AnyToDot,
        ('*', None) if ends_in_dot => Part::AnyToDot,
        ('*', _) => Part::Any,
        ('?', _) => Part::One,
        ('.', Some('*' | '?')) => Part::Dot,
        (c, _) => Part::Char(c),
    };
    (0..chars.len()).map(part).collect()
}

/// Whether a name matches a pattern, in any case.
fn matches(pattern: &[Part], name: &[char]) -> bool {
    let last_dot = name.iter().rposition(|c| *c == '.');
    // From the end: whether the rest of the name, from each place, matches the rest of the pattern.
    let mut rest: Vec<bool> = (0..=name.len()).map(|at| at == name.len()).collect();
    for part in pattern.iter().rev() {
        let mut with = vec![false; name.len() + 1];
        for at in (0..=name.len()).rev() {
            let next = name.get(at);
            // One character of the name, and the pattern's rest (`rest`) or this part once more (`with`).
            let (one, more) =
                (next.is_some() && rest[(at + 1).min(name.len())], at < name.len() && with[at + 1]);
            with[at] = match part {
                Part::Any => rest[at] || more,
                Part::AnyToDot => rest[at] || more && last_dot != Some(at),
                Part::One if matches!(next, None | Some('.')) => rest[at],
                Part::One => one,
                Part::Dot => one && next == Some(&'.') || next.is_none() && rest[at],
                Part::Char(c) => one && next.is_some_and(|next| next.to_lowercase().eq(c.to_lowercase())),
            };
        }
        rest = with;
    }
    rest[0]
}

impl Search {
    /// Starts a search. All matching names are read at once.
    ///
    /// # Errors
    /// `ERROR_FILE_NOT_FOUND` if nothing matches, or what the system says.
    pub fn begin(path: &Path) -> Result<Search, u32> {
        let text = path.to_string_lossy();
        // A name that ends with a slash has no pattern.
        if text.ends_with('/') {
            return Err(ERROR_FILE_NOT_FOUND);
        }
        let pattern = parts(text.rsplit('/').next().unwrap_or_default());
        let folder = folder_of(path);
        let entries = std::fs::read_dir(folder).map_err(|error| match error_at(&error, folder) {
            ERROR_FILE_NOT_FOUND => ERROR_PATH_NOT_FOUND,
            code => code,
        })?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut left: VecDeque<Found> = [".".into(), "..".into()]
            .into_iter()
            .chain(names)
            .filter(|name| matches(&pattern, &name.to_string_lossy().chars().collect::<Vec<_>>()))
            .filter_map(|name| {
                let path = folder.join(&name);
                let metadata = std::fs::metadata(&path).or_else(|_| std::fs::symlink_metadata(&path)).ok()?;
                Some(Found { name, metadata })
            })
            .collect();
        if left.is_empty() {
            return Err(ERROR_FILE_NOT_FOUND);
        }
        left.make_contiguous().sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Search { left: Mutex::new(left) })
    }

    /// The next file.
    ///
    /// # Errors
    /// `ERROR_NO_MORE_FILES` after the last.
    pub fn next(&self) -> Result<Found, u32> {
        self.left.lock().pop_front().ok_or(ERROR_NO_MORE_FILES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_stars_and_question_marks() {
        let matches = |pattern: &str, name: &str| matches(&parts(pattern), &name.chars().collect::<Vec<_>>());
        for (pattern, name) in [
            ("*", ""),
            ("*", "a.b"),
            ("a?c", "abc"),
            ("*.TXT", "x.txt"),
            ("*.txt", "x.y.txt"),
            ("a*b*c", "aXbYbZc"),
            ("?", "\u{e4}"),
            // Without what may be missing at the end.
            ("log*.*", "log1"),
            ("log*.*", "log.1.2"),
            ("core.*", "core"),
            ("core.*", "core.123"),
            ("abc?", "abc"),
            ("abc??.t", "abc.t"),
            ("a.?", "a"),
            ("*.", "name"),
            ("name.", "name"),
            (".", "."),
            ("..", ".."),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a?b", "ab"),
            ("a?", "abc"),
            ("*.txt", "x.txt2"),
            ("*.txt", "x.txt.y"),
            ("a*b", "ac"),
            ("abc", "ab"),
            ("*.", "name.txt"),
            ("core.*", "cores"),
            ("log*.*", "lo"),
            ("a?c", "a.c"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        // In no more steps than their lengths multiplied.
        assert!(!matches(&"*a".repeat(100), &"a".repeat(99)));
        assert!(!matches(&("*a".repeat(60) + "b"), &"a".repeat(120)));
    }
}
