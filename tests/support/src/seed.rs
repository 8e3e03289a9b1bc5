//! The seed of a test's random choices, and how much a test tries.
//!
//! `ci/test` always takes the same seed and the same counts, so that it gives the same answer for the same commit. `ci/campaign`
//! searches: it sets the variables that are read here.

/// The number that an environment variable holds, if it is set.
///
/// # Panics
/// If it holds no number.
pub fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// The seed, `NDCOMPAT_SEED` or 1. It is printed, so that a failure can be repeated.
pub fn seed() -> u64 {
    let seed = variable("NDCOMPAT_SEED").unwrap_or(1);
    println!("NDCOMPAT_SEED={seed}");
    seed
}
