//! `nd env`: the environment variables that the library reads. `docs/environment.md` is generated from this table.

use crate::cli;
use crate::output::{self, plain};
use anyhow::Result;
use serde_json::json;
use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::fs;
use std::path::{self, Path, PathBuf};

/// A variable: its name, its default, its purpose.
pub struct Variable {
    pub name: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
    values: Values,
}

/// The values that a variable may have.
enum Values {
    /// All others than these, which are named for who mends it, mean nothing: no adapter can be opened then.
    Only(&'static str, fn(&OsStr) -> bool),
    /// What is wrong with a value, if anything is, and what the library takes it for.
    Checked(fn(&OsStr) -> Option<String>),
}

/// A value that is not valid.
pub enum Mistake {
    /// No adapter can be opened. These values are valid.
    Refused(&'static str),
    /// What is wrong, and what the library takes it for.
    Taken(String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::Refused(valid) => {
                write!(f, "it must be {valid}; taken as an error: no adapter can be opened")
            }
            Mistake::Taken(what) => f.write_str(what),
        }
    }
}

impl Variable {
    /// What is wrong with a value, if anything is. An empty one is as none.
    pub fn mistake(&self, value: &OsStr) -> Option<Mistake> {
        match self.values {
            _ if value.is_empty() => None,
            Values::Only(valid, is_valid) => (!is_valid(value)).then_some(Mistake::Refused(valid)),
            Values::Checked(mistake) => mistake(value).map(Mistake::Taken),
        }
    }

    const fn only(self, valid: &'static str, is_valid: fn(&OsStr) -> bool) -> Variable {
        Variable { values: Values::Only(valid, is_valid), ..self }
    }

    const fn checked(self, mistake: fn(&OsStr) -> Option<String>) -> Variable {
        Variable { values: Values::Checked(mistake), ..self }
    }
}

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, default, meaning, values: Values::Checked(|_| None) }
}

pub const VARIABLES: &[Variable] = &[
    variable(
        "NDCOMPAT_EMULATOR",
        "`auto`",
        "Whether the emulator, an RDMA device in user space over TCP, is offered: with `auto` if there is no other device, with `on` always, with `off` never.",
    )
    .only("auto, on or off", |value| ["auto", "on", "off"].map(OsStr::new).contains(&value)),
    variable(
        "NDCOMPAT_EMULATOR_GONE",
        "the device stays",
        "A file: while it exists, the emulator's device is gone. Making it removes the device from programs that use it: see emulator.md.",
    )
    .only("a file in a folder that exists", |value| {
        path::absolute(value).is_ok_and(|file| file.parent().is_some_and(Path::is_dir))
    }),
    variable(
        "NDCOMPAT_EMULATOR_RNR_TIMEOUT",
        "0: not at all, as over iWARP",
        "For how many milliseconds, up to 60000, a message waits on the emulator for a receive that is not posted yet (RNR, receiver not ready), as over RoCE and InfiniBand. Set it for the process that receives, and for the one that sends: see emulator.md.",
    )
    .only("a number of milliseconds up to 60000", |value| {
        // The library takes no signs.
        let digits = value.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|text| text.parse().ok()).is_some_and(|millis: u32| millis <= 60_000)
    }),
    variable(
        "NDCOMPAT_LOG",
        "`warn`",
        "How much is logged: `off`, `error`, `warn`, `info`, `debug` or `trace`; then, after commas, `MODULE=LEVEL`: see diagnosis.md.",
    )
    .checked(|value| ndcompat::logging::mistake(&value.to_string_lossy())),
    variable("NDCOMPAT_LOG_FILE", "standard error", "The file that the log is appended to.").checked(|value| {
        // The log has made it, if it can be made.
        let opened = fs::OpenOptions::new().append(true).open(value);
        opened.err().map(|error| format!("{error}; taken as standard error"))
    }),
    variable(
        "NDCOMPAT_MEMORY_WINDOWS",
        "the device's own, if it enforces their bounds",
        "How memory windows are made: `emulated` (by registrations), `1` or `2` (the device's own, of that type). For trying out a device's windows.",
    )
    .only("emulated, 1 or 2", |value| ["emulated", "1", "2"].map(OsStr::new).contains(&value)),
    variable(
        "NDCOMPAT_PROVIDERS",
        "`providers.d` in `~/.config/ndcompat` and `/etc/ndcompat`",
        "Folders, separated by colons, with the files of other ND providers: see providers.md.",
    )
    .checked(|value| {
        let is_relative = |path: &PathBuf| path.is_relative() && !path.as_os_str().is_empty();
        let relative: Vec<_> = env::split_paths(value).filter(is_relative).collect();
        let names: Vec<_> = relative.iter().map(|path| format!("'{}'", path.display())).collect();
        (!names.is_empty()).then(|| format!("no absolute path: {}; taken as if it were not there", names.join(", ")))
    }),
];

/// The variables of the project's scripts, tests and measurements, for who works on it.
const WORKSHOP: &[Variable] = &[
    variable(
        "NDCOMPAT_ADDR",
        "set by `ci/lab`",
        "The IPv4 address of the device under test; `NDCOMPAT_ADDR6` is the IPv6 one. With `_B`, the other end of a wire; with `_RXE` and `_SIW`, each of two devices.",
    ),
    variable(
        "NDCOMPAT_DEVICE",
        "set by `ci/lab`",
        "What is under test: `rxe`, `siw`, `both`, `emulator`, or `double` where the tests bring their own device.",
    ),
    variable(
        "NDCOMPAT_NETDEV",
        "set by `ci/lab`",
        "The network device that the device under test is on. Also with `_B`, `_RXE`, `_SIW`.",
    ),
    variable(
        "NDCOMPAT_RDMADEV",
        "set by `ci/lab`",
        "The name of the device under test in `ibv_devices`. Also with `_B`, `_RXE`, `_SIW`.",
    ),
    variable(
        "NDCOMPAT_LAB",
        "`auto`",
        "Where `ci/lab` makes devices: on the `host`, in a virtual machine (`vm`), or on the host if it can (`auto`). `ci/test` takes `vm`.",
    ),
    variable(
        "NDCOMPAT_KERNEL",
        "the distribution's",
        "The package of the kernel that `ci/lab` boots, as its option `--kernel`.",
    ),
    variable(
        "NDCOMPAT_CACHE",
        "`~/.cache/ndcompat`",
        "Where the scripts keep what they have fetched and built.",
    ),
    variable(
        "NDCOMPAT_RUST",
        "the newest `cargo-1.NN`, if the plain `cargo` is older",
        "The version of the compiler that the scripts have chosen. They set it for each other.",
    ),
    variable(
        "NDCOMPAT_LIBRARY",
        "what `ci/build` has made",
        "The `libndcompat.so` that tests load, and that fuzzing links.",
    ),
    variable(
        "NDCOMPAT_SHOWN",
        "nowhere",
        "The folder where tests record which statuses they have seen, for `ci/conformance`.",
    ),
    variable("NDCOMPAT_SEED", "1", "The seed of what tests choose at random. See `ci/campaign`."),
    variable("NDCOMPAT_LIVES", "2000", "How many runs of random calls there are on the double."),
    variable("NDCOMPAT_FAULTS", "1", "Multiplies how often each fault is tried on a device."),
    variable("NDCOMPAT_LAYOUT", "all", "Runs one layout of objects only, by its number."),
    variable("NDCOMPAT_ROUNDS", "1", "How often all layouts are run on the double."),
    variable("NDCOMPAT_STEP", "1", "Runs every n-th layout only."),
    variable("NDCOMPAT_LIMIT", "`ci/lib/limits`", "The time limit of each test program, in seconds."),
    variable("NDCOMPAT_LAYOUTS", "100", "How many layouts are run on a device."),
    variable("NDCOMPAT_STORM_ACTIONS", "each test's own", "How much each thread of a storm does."),
    variable(
        "NDCOMPAT_STORM_SECONDS",
        "none",
        "How long a storm of connections lasts, instead of a number of actions.",
    ),
    variable("NDCOMPAT_STORM_THREADS", "4", "How many threads a storm has."),
    variable(
        "NDCOMPAT_MODEL_RUNS",
        "500 or 1000",
        "How many orders of events the models of lock-free code try.",
    ),
    variable(
        "NDCOMPAT_HOST",
        "set by `ci/bench`",
        "The description of the machine in the results of `ci/bench --json`.",
    ),
];

/// The tables of docs/environment.md.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Environment variables\n\n<!-- Made by `nd env --markdown`; the tables themselves are in tools/src/env.rs. -->\n\n\
         The environment variables that the library reads. `nd env` shows their values.\n\n",
    );
    table(&mut text, VARIABLES);
    text.push_str(
        "\n## Of the scripts and tests\n\nThose that the project's scripts, tests and measurements read, for who works on it. The library \
         knows none of them.\n\n",
    );
    table(&mut text, WORKSHOP);
    text
}

fn table(text: &mut String, variables: &[Variable]) {
    text.push_str("| variable | when it is not set | meaning |\n|---|---|---|\n");
    for Variable { name, default, meaning, .. } in variables {
        writeln!(text, "| `{name}` | {default} | {meaning} |").expect("a string takes all");
    }
}

pub fn run(options: &cli::Env, json: bool) -> Result<bool> {
    if options.markdown {
        out!("{}", markdown().trim_end());
        return Ok(true);
    }
    let mut all = Vec::new();
    for variable in VARIABLES {
        let Variable { name, default, meaning, .. } = variable;
        let value = env::var_os(name);
        let mistake = value.as_deref().and_then(|value| variable.mistake(value));
        let mistake = mistake.map(|mistake| mistake.to_string());
        let value = value.map(|value| value.to_string_lossy().into_owned());
        if json {
            all.push(json!({
                "name": name, "value": value, "mistake": mistake, "default": default, "meaning": meaning,
            }));
            continue;
        }
        match value {
            Some(value) => out!("{name}={}", plain(&value)),
            None => out!("{name} is not set: {}", default.replace('`', "")),
        }
        if let Some(mistake) = mistake {
            out!("    not valid: {}", plain(&mistake));
        }
        out!("    {}", meaning.replace('`', ""));
    }
    if json {
        output::json(&json!({ "variables": all }));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn values_that_mean_nothing_are_known() {
        let mistake = |name: &str, value: &str| {
            let variable = VARIABLES.iter().find(|one| one.name == name).unwrap();
            variable.mistake(OsStr::new(value)).map(|mistake| mistake.to_string())
        };
        for (name, valid, invalid) in [
            ("NDCOMPAT_EMULATOR", &["", "auto", "on", "off"][..], &["banana", "ON"][..]),
            ("NDCOMPAT_EMULATOR_GONE", &["", "x", "/tmp/x"], &["/none/of/these", "/"]),
            ("NDCOMPAT_EMULATOR_RNR_TIMEOUT", &["", "0", "60000"], &["60001", "+5", "4s"]),
            ("NDCOMPAT_LOG", &["", "off", "info,queue=debug"], &["loud", "banana=debug"]),
            ("NDCOMPAT_LOG_FILE", &["", "/dev/null"], &["/none/of/these"]),
            ("NDCOMPAT_MEMORY_WINDOWS", &["", "emulated", "2"], &["3"]),
            ("NDCOMPAT_PROVIDERS", &["", "/tmp", "/tmp:"], &["tmp", "/tmp:tmp"]),
        ] {
            valid.iter().for_each(|value| assert_eq!(mistake(name, value), None, "{name}={value}"));
            for value in invalid {
                let said = mistake(name, value).unwrap_or_else(|| panic!("{name}={value}"));
                assert!(said.contains("taken as"), "{said}");
            }
        }
    }

    #[test]
    fn the_document_is_made_of_the_table() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/environment.md");
        let document = std::fs::read_to_string(document).unwrap();
        assert!(
            document == markdown(),
            "run: cargo run -p ndcompat-tools -- env --markdown >docs/environment.md"
        );
    }

    /// All files below these folders of the project that are text, without those of compiled programs.
    fn sources(folders: &[&str], mut each: impl FnMut(&Path, &str)) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut folders: Vec<_> = folders.iter().map(|name| root.join(name)).collect();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    if !path.ends_with("target") {
                        folders.push(path);
                    }
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    each(&path, &text);
                }
            }
        }
    }

    fn is_variable(text: &str) -> bool {
        let name = text.strip_prefix("NDCOMPAT_").unwrap_or_default();
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    }

    /// Every variable that the library's sources read is in the table.
    #[test]
    fn the_table_has_every_variable_that_the_library_reads() {
        let mut found = 0;
        sources(&["ndcompat/src", "ndcompat-ffi/src", "shims/src", "softiwarp/src"], |path, text| {
            if path.components().any(|part| part.as_os_str() == "model") || path.ends_with("tests.rs") {
                return;
            }
            let code = text.split("#[cfg(test)]").next().unwrap();
            for name in code.split('"').filter(|text| is_variable(text)) {
                found += 1;
                assert!(VARIABLES.iter().any(|one| one.name == name), "{name} in {}", path.display());
            }
        });
        assert!(found > 0);
    }

    #[test]
    fn the_log_knows_every_module_that_the_library_names() {
        let mut named = BTreeSet::new();
        sources(&["ndcompat/src", "ndcompat-ffi/src", "shims/src", "softiwarp/src"], |_, text| {
            let targets = text.split("target: \"ndcompat::").skip(1);
            named.extend(targets.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        });
        assert!(named.iter().eq(ndcompat::logging::MODULES), "{named:?}");
    }

    /// Every variable that a script, test or measurement reads is in one of the tables, and nothing else is.
    #[test]
    fn the_tables_have_every_variable_that_scripts_and_tests_read() {
        let mut read = BTreeSet::new();
        let folders = ["ci", "tests", "bench", "fuzz", "tools", "shims/src", "softiwarp/src", "ndcompat/src"];
        sources(&folders, |path, text| {
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            for (at, _) in text.match_indices("NDCOMPAT_") {
                let end = text[at..]
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .map_or(text.len(), |end| at + end);
                let (before, name) = (&text[..at], &text[at..end]);
                let by_shell = before.ends_with('$') || before.ends_with("${");
                let by_call = before.ends_with('"') && text[end..].starts_with('"');
                let is_read = if is_rust { by_call } else { by_shell || (by_call && before.contains("env")) };
                if is_read && is_variable(name) {
                    read.insert(name.to_owned());
                }
            }
        });
        // A test tells a process of its own by them, or means one that there is not.
        let is_own = |name: &str| {
            ["NDCOMPAT_TEST_", "NDCOMPAT_HOSTILE_", "NDCOMPAT_PLAIN"]
                .iter()
                .any(|start| name.starts_with(start))
                || ["NDCOMPAT_NOT_SET", "NDCOMPAT_NO_SUCH_VARIABLE", "NDCOMPAT_PLACE"].contains(&name)
        };
        let known = |name: &str| VARIABLES.iter().chain(WORKSHOP).any(|one| one.name == name);
        let plain = |name: &str| {
            let base = ["_B", "_RXE", "_SIW"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .unwrap_or(name)
                .to_owned();
            if base == "NDCOMPAT_ADDR6" { "NDCOMPAT_ADDR".to_owned() } else { base }
        };
        let missing: Vec<_> = read.iter().filter(|name| !is_own(name) && !known(&plain(name))).collect();
        assert!(missing.is_empty(), "not in the tables: {missing:?}");
        let stale: Vec<_> =
            WORKSHOP.iter().map(|one| one.name).filter(|name| !read.contains(*name)).collect();
        assert!(stale.is_empty(), "nothing reads {stale:?}");
    }
}
