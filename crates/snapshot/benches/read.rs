//! Reading a snapshot: the values alone, and the whole. `SNAPSHOT=file cargo bench -p snapshot`
//! measures a file of your own, such as `benches/make_snapshot.py` writes.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn reading(criterion: &mut Criterion) {
    let recorded = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/recorded/kdr2-t2-None_fwd-eager_bwd.pickle"
    );
    let path = std::env::var("SNAPSHOT").unwrap_or_else(|_| recorded.to_owned());
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let snapshot = snapshot::read(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut group = criterion.benchmark_group("snapshot");
    group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(10);
    group.bench_function("values", |bencher| bencher.iter(|| snapshot::pickle::load(&bytes)));
    group.bench_function("read", |bencher| bencher.iter(|| snapshot::read(&bytes)));
    group.bench_function("write", |bencher| bencher.iter(|| snapshot::write(&snapshot)));
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
