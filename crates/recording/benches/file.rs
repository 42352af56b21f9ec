//! Reading and writing a recording of a million events.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use recording::{Event, Mark, Owner, OwnerId, Phase, Recording, file};

const EVENTS: u64 = 1_000_000;

/// Allocations and frees with a mark now and then.
fn recording() -> Recording {
    let mut recording = Recording::default();
    recording.owners.push(Owner::default());
    for index in 0..EVENTS {
        let (address, size) = (0x7f00_0000_0000 + (index / 3) % 4096 * 512, 500);
        recording.events.push(match index % 3 {
            _ if index % 1000 == 0 => {
                Event::Mark(Mark::Phase { phase: Phase::Forward, step: (index / 1000) as u32 })
            }
            0 => Event::Alloc { address, size, stream: 0, owner: OwnerId(0), pool: (0, 0) },
            1 => Event::FreeRequested { address, size },
            _ => Event::FreeCompleted { address, size },
        });
    }
    recording
}

fn bench(criterion: &mut Criterion) {
    let recording = recording();
    let bytes = file::write(&recording);
    println!("{:.2} bytes an event", bytes.len() as f64 / EVENTS as f64);
    assert_eq!(file::read(&bytes).expect("what was written is read"), recording);
    let mut group = criterion.benchmark_group("a million events");
    group.sample_size(20);
    group.bench_function("read", |bencher| bencher.iter(|| file::read(black_box(&bytes))));
    group.bench_function("write", |bencher| bencher.iter(|| file::write(black_box(&recording))));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
