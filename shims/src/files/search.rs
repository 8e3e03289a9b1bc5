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

/// Whether a name matches a pattern of `*` and `?`, in any case.
fn matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        (['?', rest @ ..], [_, tail @ ..]) => matches(rest, tail),
        ([a, rest @ ..], [b, tail @ ..]) => a.to_lowercase().eq(b.to_lowercase()) && matches(rest, tail),
        _ => false,
    }
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
        let pattern: Vec<char> = text.rsplit('/').next().unwrap_or_default().chars().collect();
        // `*.*` matches all files, also those without a dot.
        let pattern = if pattern == ['*', '.', '*'] { vec!['*'] } else { pattern };
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
        let matches = |pattern: &str, name: &str| {
            matches(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        for (pattern, name) in [
            ("*", ""),
            ("*", "a.b"),
            ("a?c", "abc"),
            ("*.TXT", "x.txt"),
            ("a*b*c", "aXbYbZc"),
            ("?", "\u{e4}"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("a?", "a"), ("*.txt", "x.txt2"), ("a*b", "ac"), ("abc", "ab")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
