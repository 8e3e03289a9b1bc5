//! The table of the functions that the target `functions` calls, made from the headers.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// What a parameter is drawn from, by its declaration: `h` a handle, `s` a socket, `0` nothing but zero, since the function would
/// wait, `.` its type alone says it.
fn kind(parameter: &str) -> char {
    let (kind, name) = parameter.trim().rsplit_once([' ', '*']).unwrap_or((parameter, ""));
    match kind.trim() {
        _ if parameter.contains(['*', '[']) => '.',
        "HANDLE" | "WSAEVENT" | "HMODULE" => 'h',
        kind if kind.starts_with("PTP_") && !kind.contains("CALLBACK") => 'h',
        "SOCKET" => 's',
        _ if matches!(name, "milliseconds" | "timeout" | "wait") => '0',
        _ => '.',
    }
}

/// Adds a line for each function that a header declares.
fn declared(header: &Path, table: &mut Vec<(String, String)>) {
    let text = read_to_string(header).expect("a header");
    for declaration in text.split("NDW_API(").skip(1) {
        let Some((declaration, _)) = declaration.split_once(");") else { continue };
        let Some((result, rest)) = declaration.split_once(',') else { continue };
        let Some((name, parameters)) = rest.split_once(',') else { continue };
        if result.contains('#') || name.contains(|c: char| c.is_whitespace() && c != ' ') {
            continue;
        }
        let parameters = parameters.split_whitespace().collect::<Vec<_>>().join(" ");
        let parameters = parameters.trim_start_matches('(').trim_end_matches(')');
        // What takes a list of arguments is for the target `text`.
        if parameters.contains("va_list") {
            continue;
        }
        let mut kinds: String = match parameters {
            "void" => String::new(),
            _ => parameters.split(',').map(kind).collect(),
        };
        let returns = result.split_whitespace().next_back().unwrap_or_default();
        kinds.insert(0, if kind(&format!("{returns} x")) == 'h' { 'h' } else { '.' });
        table.push((name.trim().to_owned(), kinds));
    }
}

fn headers(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            headers(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "h") {
            found.push(path);
        }
    }
}

/// Makes it, as `functions.inc`.
pub fn make() {
    let root = Path::new("..");
    let mut found = Vec::new();
    headers(&root.join("shims/include/ndwin"), &mut found);
    found.sort();
    let mut table = Vec::new();
    for header in &found {
        println!("cargo::rerun-if-changed={}", header.display());
        declared(header, &mut table);
    }
    println!("cargo::rerun-if-changed=excluded.txt");
    let excluded = read_to_string("excluded.txt").expect("the exclusions");
    let excluded: BTreeSet<&str> =
        excluded.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect();
    let names: BTreeSet<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    let gone: Vec<_> = excluded.difference(&names).collect();
    assert!(gone.is_empty(), "excluded.txt names functions that are not there: {gone:?}");
    let mut lines = String::new();
    for (name, kinds) in table.iter().filter(|(name, _)| !excluded.contains(name.as_str())) {
        writeln!(lines, "FUNCTION({name}, \"{kinds}\")").expect("a string takes all");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("functions.inc"), lines).expect("the table");
}
