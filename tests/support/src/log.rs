//! Tests of the library's log: a test runs itself in a child process whose log goes to a file.

use std::process::Command;

/// Tells a child process which test to run.
const CHILD: &str = "NDCOMPAT_TEST_CHILD";

/// The log of `body`, run in a child process at these levels or the default ones. `test` is the name of the calling test, which
/// is the only one that the child runs. In the child this does not return.
pub fn logged(test: &str, levels: Option<&str>, body: impl FnOnce()) -> String {
    if std::env::var_os(CHILD).is_some() {
        body();
        std::process::exit(0);
    }
    let log = std::env::temp_dir().join(format!("ndcompat-{test}-{}.log", std::process::id()));
    let mut child = Command::new(std::env::current_exe().expect("the program's own path"));
    child
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "yes")
        .env("NDCOMPAT_LOG_FILE", &log)
        // The emulator must not stand in for a device that cannot be used.
        .env("NDCOMPAT_EMULATOR", if crate::is_emulator() { "on" } else { "off" });
    match levels {
        Some(levels) => child.env("NDCOMPAT_LOG", levels),
        None => child.env_remove("NDCOMPAT_LOG"),
    };
    let output = child.output().expect("the program runs again");
    assert!(
        output.status.success(),
        "{test} in its own process: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    text
}

/// Asserts that exactly one line is at level `warn`, and has all these words.
pub fn assert_one_warning(log: &str, words: &[&str]) {
    let warnings: Vec<_> = log.lines().filter(|line| line.contains(" WARN ")).collect();
    assert_eq!(warnings.len(), 1, "one warning in:\n{log}");
    for word in words {
        assert!(warnings[0].contains(word), "no '{word}' in: {}", warnings[0]);
    }
}
