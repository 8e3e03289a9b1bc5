//! `nd info` and `nd doctor`.

use crate::{json, nd};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

#[test]
fn info_has_every_limit_with_its_unit() {
    let info = json(&["info", "127.0.0.1"]);
    let adapter = &info["adapters"][0];
    assert!(adapter["addresses"].as_array().unwrap().contains(&"127.0.0.1".into()), "{adapter}");
    let limits = adapter["limits"].as_object().unwrap();
    assert_eq!(limits.len(), 22, "all fields of ND2_ADAPTER_INFO");
    assert_eq!(limits["MaxTransferLength"]["unit"], "bytes");
    assert!(limits["MaxCompletionQueueDepth"]["value"].as_u64().unwrap() > 0);
    assert!(info["kernel"].is_string() && info["rdma_core"].is_string());
    nd(&["info"]).assert().success().stdout(contains("MaxCallerData").and(contains("quirk")));
}

#[test]
fn info_lists_the_providers_of_the_catalogue_and_what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let id = "{0F0E0D0C-0B0A-0908-0706-050403020100}";
    let describe = |library: &str| format!("id = {id}\nlibrary = {library}\nname = Another\n");
    std::fs::write(path("another.provider"), describe("/usr/lib/another.so")).unwrap();
    std::fs::write(path("broken.provider"), describe("another.so")).unwrap();
    let list = format!("{}:relative", folder.path().display());
    let asked = |arguments: &[&str]| {
        let output =
            nd(arguments).env("NDCOMPAT_PROVIDERS", &list).assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    let text = asked(&["info"]);
    for part in [
        "ndcompat NetworkDirect provider, this library".into(),
        format!("{id} Another"),
        format!("/usr/lib/another.so, registered by {}", path("another.provider")),
        format!("left out: {}:2: the library is not an absolute path", path("broken.provider")),
        "left out: relative: not an absolute path".into(),
        format!("searched: {}", folder.path().display()),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    let info: Value = serde_json::from_str(&asked(&["info", "--json"])).unwrap();
    let catalogue = &info["catalogue"];
    let (own, other) = (&catalogue["providers"][0], &catalogue["providers"][1]);
    assert_eq!((&own["version"], &own["file"]), (&2.into(), &Value::Null));
    assert_eq!((&other["id"], &other["library"]), (&id.into(), &"/usr/lib/another.so".into()));
    assert_eq!(other["file"], path("another.provider"));
    assert_eq!(catalogue["refused"].as_array().unwrap().len(), 2, "{catalogue}");
    assert_eq!(catalogue["folders"][0], folder.path().to_str().unwrap());
}

#[test]
fn info_shows_a_folder_of_providers_whose_name_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(&folder).unwrap();
    let description = "id = {0F0E0D0C-0B0A-0908-0706-050403020100}\nlibrary = /usr/lib/x.so\nname = X\n";
    std::fs::write(folder.join("x.provider"), description).unwrap();
    let output = nd(&["info", "--json"]).env("NDCOMPAT_PROVIDERS", &folder).assert().success();
    let info: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert!(info["catalogue"]["folders"][0].as_str().unwrap().ends_with("/\u{fffd}"), "{info}");
    let file = info["catalogue"]["providers"][1]["file"].as_str().unwrap();
    assert!(file.ends_with("/\u{fffd}/x.provider"), "{info}");
}

#[test]
fn info_shows_an_adapter_that_cannot_be_opened_and_why() {
    let info = |arguments: &[&str]| {
        let output = nd(arguments).env("NDCOMPAT_MEMORY_WINDOWS", "3").assert().code(1);
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let text = info(&["info"]);
    let error = "error: opening the adapter of 127.0.0.1:0: ND_INVALID_PARAMETER";
    assert!(text.contains(&format!("\n127.0.0.1\n    {error}")) && text.contains("\nproviders:"), "{text}");
    let info: Value = serde_json::from_str(&info(&["info", "--json", "127.0.0.1"])).unwrap();
    let adapter = &info["adapters"][0];
    assert!(adapter["device"].is_null() && adapter["addresses"][0] == "127.0.0.1", "{info}");
    assert_eq!(adapter["status"], "ND_INVALID_PARAMETER");
    assert!(adapter["error"].as_str().unwrap().starts_with("opening the adapter of 127.0.0.1"), "{info}");
    assert!(info["catalogue"]["providers"].is_array() && info["kernel"].is_string(), "{info}");
}

#[test]
fn without_a_device_info_and_doctor_fail_and_say_what_to_do() {
    if std::path::Path::new("/sys/class/infiniband").exists() {
        return;
    }
    nd(&["info"]).env("NDCOMPAT_EMULATOR", "off").assert().code(1).stderr(contains("nd doctor"));
    nd(&["doctor"])
        .env("NDCOMPAT_EMULATOR", "off")
        .assert()
        .code(1)
        .stdout(contains("there is no RDMA device"));
    let wrong = nd(&["doctor"]).env("NDCOMPAT_EMULATOR", "foo").assert().code(1);
    wrong.stdout(contains("NDCOMPAT_EMULATOR=foo means nothing").and(contains("auto, on or off")));
    let ping = nd(&["ping", "127.0.0.1"]).env("NDCOMPAT_EMULATOR", "off").assert().code(1);
    ping.stderr(contains("finding an adapter that leads to 127.0.0.1").and(contains("ND_INVALID_ADDRESS")));
}
