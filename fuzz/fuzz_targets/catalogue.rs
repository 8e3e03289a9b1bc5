//! The files that describe providers. What is understood is also what comes out again, and names a library as the rules say.

#![no_main]

use win32::winsock::catalogue::Provider;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(provider) = Provider::parse(text) else { return };
    assert!(provider.library.starts_with('/') && !provider.library.contains(['%', '\0']));
    assert!(provider.library.chars().count() < 260 && !provider.protocols.is_empty());
    if let Some(text) = provider.describe() {
        assert_eq!(Provider::parse(&text), Ok(provider));
    }
});
