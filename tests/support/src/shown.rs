//! Records which method returned which status in which test. `docs/conformance.md` is generated from the records.

use ndcompat::Status;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Asserts that `method` (`IND2Adapter::Query`; `ND2_RESULT::Send` for the result of a send) returned `wanted`, and records that
/// for `ci/conformance`.
///
/// The record goes to a file named after the device, in the folder `NDCOMPAT_SHOWN`, if that is set.
#[track_caller]
pub fn shows(method: &str, given: Status, wanted: Status) {
    assert_eq!(given, wanted, "{method}");
    let Some(folder) = std::env::var_os("NDCOMPAT_SHOWN") else { return };
    let device = std::env::var("NDCOMPAT_DEVICE").expect("a device under test");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default().rsplit("::").next().unwrap_or_default();
    let status = wanted.name().expect("a status with a name");
    let line = format!("{method} {status} {test}\n");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(Path::new(&folder).join(device))
        .expect("the folder for what was shown");
    file.write_all(line.as_bytes()).expect("room for what was shown");
}
