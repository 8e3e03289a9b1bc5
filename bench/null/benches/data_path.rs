//! Each case under criterion, ours and raw: `cargo bench -p ndcompat-null`, after `ci/build`.

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use ndcompat_null::{CASES, Ours, ROUND, Raw, Round};
use std::time::{Duration, Instant};

fn data_path(criterion: &mut Criterion) {
    let _turn = double::turn();
    let (ours, raw) = (Ours::new(), Raw::new());
    double::complete_at_once();
    for case in CASES {
        let mut group = criterion.benchmark_group(case.name);
        group.throughput(Throughput::Elements(ROUND));
        side(&mut group, "ours", &case.ours, &ours);
        side(&mut group, "raw", &case.raw, &raw);
        group.finish();
    }
}

fn side<P>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, round: &Round<P>, path: &P) {
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|rounds| {
            let mut total = Duration::ZERO;
            for _ in 0..rounds {
                (round.prepare)(path);
                let begin = Instant::now();
                (round.run)(path);
                total += begin.elapsed();
            }
            total
        });
    });
}

criterion_group!(benches, data_path);
criterion_main!(benches);
