//! Runs models under shuttle.

use shuttle::Runner;
use shuttle::scheduler::{PctScheduler, RandomScheduler};

/// Runs `model` under `runs` random schedules, and under as many that are made to hit rare orders of few events.
/// `NDCOMPAT_MODEL_RUNS` sets another number. `NDCOMPAT_SEED` chooses the schedules, which are always the same without it.
pub(crate) fn check(model: fn(), runs: usize) {
    let variable = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seed = variable("NDCOMPAT_SEED").unwrap_or(1);
    let runs = variable("NDCOMPAT_MODEL_RUNS").map_or(runs, |runs| runs as usize);
    Runner::new(RandomScheduler::new_from_seed(seed, runs), Default::default()).run(model);
    Runner::new(PctScheduler::new_from_seed(seed, 3, runs), Default::default()).run(model);
}
