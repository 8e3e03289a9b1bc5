//! The catalogue of NetworkDirect providers, which `docs/providers.md` describes.

use crate::rust_api::machine::Provider;
use std::path::PathBuf;
use win32::winsock::catalogue::{self, Spi};

/// The NetworkDirect providers that C programs find on this machine: see [`Provider::catalogue`].
///
/// ```
/// use ndcompat::Provider;
///
/// let catalogue = Provider::catalogue();
/// // This library is always the first.
/// assert!(catalogue.providers[0].file.is_none());
/// for provider in &catalogue.providers {
///     println!("{} {}: {}", provider.id, provider.name, provider.library);
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Catalogue {
    /// The folders that are searched for descriptions, in order of precedence.
    pub folders: Vec<PathBuf>,
    /// The providers, this library first.
    pub providers: Vec<RegisteredProvider>,
    /// The descriptions that are ignored, and why: `path:line: reason`.
    pub refused: Vec<String>,
}

/// A provider in the [`Catalogue`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RegisteredProvider {
    /// The identifier, as a GUID in braces.
    pub id: String,
    /// The name.
    pub name: String,
    /// The version of the SPI that it is registered for, 1 or 2. Only those of version 2 are used; `None` is no NetworkDirect
    /// provider.
    pub version: Option<u32>,
    /// The path of its library.
    pub library: String,
    /// The file that describes it; none for this library.
    pub file: Option<PathBuf>,
}

impl Provider {
    /// The catalogue of providers. [`addresses`](Self::addresses) and the rest of this API are those of this library only; the
    /// `Nd*` functions for C use all providers of version 2.
    pub fn catalogue() -> Catalogue {
        let catalogue::Catalogue { folders, providers, faults } = catalogue::read();
        let providers = providers.into_iter().map(|(provider, file)| {
            // A provider has at least one registration.
            let first = provider.protocols.first();
            RegisteredProvider {
                id: provider.id.to_string(),
                name: first.map(catalogue::ProtocolInfo::name).unwrap_or_default(),
                version: provider.protocols.iter().find_map(|protocol| protocol.spi()).map(|spi| match spi {
                    Spi::V1 => 1,
                    Spi::V2 => 2,
                }),
                library: provider.library,
                file,
            }
        });
        Catalogue { folders, providers: providers.collect(), refused: faults }
    }
}
