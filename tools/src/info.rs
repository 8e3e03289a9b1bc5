//! `nd info`: the adapters and their capabilities.

use crate::cli;
use crate::failure;
use crate::output;
use crate::peer::address;
use anyhow::{Context, Result};
use ndcompat::types::AdapterInfo;
use ndcompat::{Adapter, Catalogue, Provider, Status};
use serde_json::{Map, Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// A limit: what the SPI calls it, its unit, its value.
type Limit = (&'static str, &'static str, fn(&AdapterInfo) -> u64);

const LIMITS: &[Limit] = &[
    ("InfoVersion", "", |info| info.info_version.into()),
    ("VendorId", "", |info| info.vendor_id.into()),
    ("DeviceId", "", |info| info.device_id.into()),
    ("AdapterId", "", |info| info.adapter_id),
    ("MaxRegistrationSize", "bytes", |info| info.max_registration_size as u64),
    ("MaxWindowSize", "bytes", |info| info.max_window_size as u64),
    ("MaxInitiatorSge", "pieces", |info| info.max_initiator_sge.into()),
    ("MaxReceiveSge", "pieces", |info| info.max_receive_sge.into()),
    ("MaxReadSge", "pieces", |info| info.max_read_sge.into()),
    ("MaxTransferLength", "bytes", |info| info.max_transfer_length.into()),
    ("MaxInlineDataSize", "bytes", |info| info.max_inline_data_size.into()),
    ("MaxInboundReadLimit", "reads", |info| info.max_inbound_read_limit.into()),
    ("MaxOutboundReadLimit", "reads", |info| info.max_outbound_read_limit.into()),
    ("MaxReceiveQueueDepth", "receives", |info| info.max_receive_queue_depth.into()),
    ("MaxInitiatorQueueDepth", "requests", |info| info.max_initiator_queue_depth.into()),
    ("MaxSharedReceiveQueueDepth", "receives", |info| info.max_shared_receive_queue_depth.into()),
    ("MaxCompletionQueueDepth", "results", |info| info.max_completion_queue_depth.into()),
    ("InlineRequestThreshold", "bytes", |info| info.inline_request_threshold.into()),
    ("LargeRequestThreshold", "bytes", |info| info.large_request_threshold.into()),
    ("MaxCallerData", "bytes", |info| info.max_caller_data.into()),
    ("MaxCalleeData", "bytes", |info| info.max_callee_data.into()),
    ("AdapterFlags", "", |info| info.adapter_flags.bits().into()),
];

/// The adapter flags in words.
fn flags(info: &AdapterInfo) -> Vec<&'static str> {
    info.adapter_flags.iter_names().map(|(name, _)| name).collect()
}

/// The kernel's release.
pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map_or("unknown".into(), |text| text.trim().to_owned())
}

/// The version of rdma-core, from the file name of the loaded library: libibverbs.so.1.14.44.0 belongs to 44.0.
pub fn rdma_core() -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find(|line| line.contains("libibverbs.so"))?.split_whitespace().last()?;
    let file = Path::new(path).canonicalize().ok()?;
    let version = file.file_name()?.to_str()?.strip_prefix("libibverbs.so.1.")?.split_once('.')?.1.to_owned();
    Some(version)
}

/// An adapter with its addresses, or an address whose adapter cannot be used, and why.
struct Found {
    addresses: Vec<SocketAddr>,
    adapter: Result<(Arc<Adapter>, AdapterInfo)>,
}

impl Found {
    fn device(&self) -> Option<String> {
        self.adapter.as_ref().ok().map(|(adapter, _)| adapter.device_name())
    }

    fn shown_addresses(&self) -> Vec<String> {
        self.addresses.iter().map(|address| address.ip().to_string()).collect()
    }
}

/// The adapters that can be used, each with its addresses, and the addresses of the others.
fn adapters(wanted: Option<SocketAddr>) -> Result<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    let all = Provider::addresses().context("listing the addresses with RDMA")?;
    for address in all.into_iter().filter(|address| wanted.is_none_or(|wanted| wanted.ip() == address.ip())) {
        let adapter = Provider::open(address).with_context(|| format!("opening the adapter of {address}"));
        let name = adapter.as_ref().ok().map(|adapter| adapter.device_name());
        let known = found.iter_mut().find(|known| name.is_some() && known.device() == name);
        if let Some(known) = known {
            known.addresses.push(address);
            continue;
        }
        let adapter = adapter.and_then(|adapter| {
            let info = adapter.info().with_context(|| {
                format!("asking {}, the adapter of {address}, for its limits", adapter.device_name())
            })?;
            Ok((adapter, info))
        });
        found.push(Found { addresses: vec![address], adapter });
    }
    Ok(found)
}

pub fn run(options: &cli::Info, json: bool) -> Result<bool> {
    let wanted = options.address.as_ref().map(|place| address(place, 0)).transpose()?;
    let adapters = adapters(wanted)?;
    if let (Some(wanted), true) = (wanted, adapters.is_empty()) {
        return Err(
            anyhow::Error::from(Status::INVALID_ADDRESS).context(format!("{} is no adapter's", wanted.ip()))
        );
    }
    let are_usable = !adapters.is_empty() && adapters.iter().all(|found| found.adapter.is_ok());
    let (kernel, rdma_core) = (kernel(), rdma_core());
    let catalogue = Provider::catalogue();
    let (none, advice) = ("no address of this machine has RDMA", "`nd doctor` says why, and what mends it");
    if json {
        let adapters: Vec<_> = adapters.iter().map(as_json).collect();
        let version = env!("CARGO_PKG_VERSION");
        let mut shown = json!({
            "ndcompat": version, "kernel": kernel, "rdma_core": rdma_core, "adapters": adapters,
            "catalogue": catalogue_as_json(&catalogue),
        });
        if adapters.is_empty() {
            (shown["error"], shown["advice"]) = (none.into(), advice.into());
        }
        output::json(&shown);
        return Ok(are_usable);
    }
    out!(
        "ndcompat {}, rdma-core {}, Linux {kernel}",
        env!("CARGO_PKG_VERSION"),
        rdma_core.as_deref().unwrap_or("of unknown version")
    );
    for found in &adapters {
        print(found);
    }
    print_catalogue(&catalogue);
    if adapters.is_empty() {
        eprintln!("nd: {none}");
        eprintln!("    {advice}");
    }
    Ok(are_usable)
}

/// Shows an adapter, or why it cannot be used.
fn print(found: &Found) {
    let addresses = found.shown_addresses().join(", ");
    let (adapter, info) = match &found.adapter {
        Ok(usable) => usable,
        Err(error) => {
            out!("\n{addresses}");
            out!("    error: {error:#}");
            let advice = failure::as_json(error, None);
            if let Some(advice) = advice["advice"].as_str() {
                out!("    {advice}");
            }
            return;
        }
    };
    out!("\n{}: {addresses}", adapter.device_name());
    for (name, unit, value) in LIMITS {
        let value = value(info);
        let shown = match *name {
            "InfoVersion" | "VendorId" | "DeviceId" | "AdapterId" => format!("{value:#x}"),
            "AdapterFlags" => format!("{value:#x} {}", flags(info).join(" ")),
            _ => format!("{value} {unit}"),
        };
        out!("    {name:<28}{shown}");
    }
    for (name, meaning) in adapter.quirks() {
        out!("    quirk {name:<22}{meaning}");
    }
}

/// Shows the providers that C programs find.
fn print_catalogue(catalogue: &Catalogue) {
    out!("\nproviders:");
    for provider in &catalogue.providers {
        let version = match provider.version {
            Some(2) => "",
            Some(_) => ", of version 1, which is not used",
            None => ", which is not for NetworkDirect",
        };
        match &provider.file {
            None => out!("    {} {}, this library", provider.id, provider.name),
            Some(file) => {
                out!("    {} {}{version}", provider.id, provider.name);
                out!("        {}, registered by {}", provider.library, file.display());
            }
        }
    }
    for refused in &catalogue.refused {
        out!("    left out: {refused}");
    }
    let folders: Vec<_> = catalogue.folders.iter().map(|folder| shown(folder)).collect();
    out!("    searched: {}", if folders.is_empty() { "no folder".into() } else { folders.join(", ") });
}

/// A path, which may be no text, as text.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn catalogue_as_json(catalogue: &Catalogue) -> Value {
    let providers: Vec<_> = catalogue
        .providers
        .iter()
        .map(|provider| {
            json!({
                "id": provider.id, "name": provider.name, "version": provider.version, "library": provider.library,
                "file": provider.file.as_deref().map(shown),
            })
        })
        .collect();
    let folders: Vec<_> = catalogue.folders.iter().map(|folder| shown(folder)).collect();
    json!({ "folders": folders, "providers": providers, "refused": catalogue.refused })
}

/// An adapter, or why it cannot be used: then `error` and what else there is of a failure.
fn as_json(found: &Found) -> Value {
    let addresses = found.shown_addresses();
    let (adapter, info) = match &found.adapter {
        Ok(usable) => usable,
        Err(error) => {
            let mut shown = failure::as_json(error, None);
            (shown["device"], shown["addresses"]) = (Value::Null, addresses.into());
            return shown;
        }
    };
    let limits: Map<String, Value> = LIMITS
        .iter()
        .map(|(name, unit, value)| ((*name).to_owned(), json!({ "value": value(info), "unit": unit })))
        .collect();
    let quirks: Map<String, Value> =
        adapter.quirks().into_iter().map(|(name, meaning)| (name.to_owned(), meaning.into())).collect();
    json!({
        "device": adapter.device_name(), "addresses": addresses, "limits": limits, "flags": flags(info), "quirks": quirks,
    })
}
