//! `nd doctor`: diagnoses why RDMA does not work on this machine.
//!
//! Files of /sys, /proc and /dev are read below a root folder, which tests can replace.

mod kernel;
mod programs;
#[cfg(test)]
mod tests;

use crate::failure;
use crate::info;
use crate::output;
use anyhow::Result;
use ndcompat::Provider;
use serde::Serialize;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Error,
}

/// A finding, and how to fix it.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, found: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, found: found.into(), mend: None });
    }

    fn warning(&mut self, found: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { level: Level::Warning, found: found.into(), mend: Some(mend.into()) });
    }

    fn error(&mut self, found: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { level: Level::Error, found: found.into(), mend: Some(mend.into()) });
    }

    /// An error, or, where RDMA works all the same, a warning.
    fn fault(&mut self, works: bool, found: impl Into<String>, mend: impl Into<String>) {
        if works {
            self.warning(found, mend);
        } else {
            self.error(found, mend);
        }
    }

    fn is_well(&self) -> bool {
        self.0.iter().all(|finding| finding.level != Level::Error)
    }
}

/// The machine, as its /sys, /proc and /dev describe it.
struct Machine {
    root: PathBuf,
}

pub fn run(json: bool) -> Result<bool> {
    let machine = Machine { root: PathBuf::from("/") };
    let mut findings = machine.look();
    programs::limits(&mut findings);
    programs::variables(&mut findings, |name| std::env::var_os(name));
    addresses(&mut findings);
    if json {
        output::json(&json!({ "well": findings.is_well(), "findings": findings.0 }));
        return Ok(findings.is_well());
    }
    for Finding { level, found, mend } in &findings.0 {
        let mark = match level {
            Level::Ok => "  ok   ",
            Level::Warning => "  warn ",
            Level::Error => "  FAIL ",
        };
        out!("{mark}{found}");
        if let Some(mend) = mend {
            out!("           {mend}");
        }
    }
    Ok(findings.is_well())
}

impl Machine {
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_owned())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn look(&self) -> Findings {
        let mut findings = Findings::default();
        let version = info::rdma_core()
            .map_or("rdma-core of unknown version".into(), |version| format!("rdma-core {version}"));
        findings.ok(format!("Linux {}, {version}", self.release()));
        let contained = self.is_container();
        if contained {
            findings.ok("this is a container: it has the devices that it was given");
        }
        self.devices(&mut findings, contained);
        self.nodes(&mut findings, contained);
        self.drivers(&mut findings);
        self.name_spaces(&mut findings);
        self.control_groups(&mut findings);
        findings
    }

    /// Whether the machine's distribution is one of these, or like one.
    fn is_like(&self, names: &[&str]) -> bool {
        let system = self.read("/etc/os-release").unwrap_or_default();
        let mut words = system
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
            .flat_map(|value| value.trim_matches(['"', '\'']).split_whitespace());
        words.any(|word| names.contains(&word))
    }

    /// How to install a package, which has another name where there is no `apt-get`.
    fn install(&self, debian: &str, other: &str) -> String {
        if self.is_like(&["debian", "ubuntu"]) {
            format!("sudo apt-get install {debian}")
        } else {
            format!("install the package {other}")
        }
    }

    fn is_container(&self) -> bool {
        let named = ["/.dockerenv", "/run/.containerenv"].iter().any(|file| self.path(file).exists());
        named || self.read("/run/systemd/container").is_some()
    }
}

/// Asks the library for its addresses.
fn addresses(findings: &mut Findings) {
    match Provider::addresses() {
        Ok(addresses) if addresses.is_empty() => findings.error(
            "no address of this machine has RDMA",
            "give the interface of a device an address: sudo ip address add ADDRESS/24 dev INTERFACE",
        ),
        Ok(addresses) => {
            for address in addresses {
                match Provider::open(address)
                    .and_then(|adapter| adapter.info().map(|_| adapter.device_name()))
                {
                    Ok(name) => findings.ok(format!("{} is {name}, which can be opened", address.ip())),
                    Err(status) => findings.error(
                        format!("{} cannot be opened: {status}", address.ip()),
                        "NDCOMPAT_LOG=debug nd info tells which call fails",
                    ),
                }
            }
        }
        Err(status) => findings.error(
            format!("addresses with RDMA cannot be listed: {status}"),
            failure::advice(status).unwrap_or("NDCOMPAT_LOG=debug nd info tells which call fails"),
        ),
    }
}
