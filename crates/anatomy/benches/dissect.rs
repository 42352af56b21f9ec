//! A million events taken apart.

use std::hint::black_box;

use allocator::{Settings, replay};
use criterion::{Criterion, criterion_group, criterion_main};
use recording::{Category, Event, Mark, Owner, OwnerId, Phase, Recording};

const STEPS: u32 = 100;
const ALLOCATIONS: u64 = 3300;

/// Steps that allocate forward and free backward, with names.
fn recording() -> Recording {
    let mut recording = Recording::default();
    let name = recording.texts.intern("AddmmBackward0.mat1");
    let operators: Vec<_> = (0..50).map(|n| recording.texts.intern(&format!("op{n}"))).collect();
    let owner = |operator| Owner { operator, ..Owner::default() };
    recording.owners.extend(operators.into_iter().map(owner));
    for step in 1..=STEPS {
        recording.events.push(Event::Mark(Mark::Phase { phase: Phase::Forward, step }));
        for index in 0..ALLOCATIONS {
            let (address, owner) = ((index + 1) << 22, OwnerId((index % 50) as u32));
            let size = 1000 + index * 700;
            recording.events.push(Event::Alloc { address, size, stream: 0, owner, pool: (0, 0) });
            let category = Category::Activations;
            if index % 3 == 0 {
                recording.events.push(Event::Mark(Mark::Name { address, category, name }));
            }
        }
        recording.events.push(Event::Mark(Mark::Phase { phase: Phase::Backward, step }));
        for index in (0..ALLOCATIONS).rev() {
            let (address, size) = ((index + 1) << 22, 1000 + index * 700);
            recording.events.push(Event::FreeRequested { address, size });
            recording.events.push(Event::FreeCompleted { address, size });
        }
    }
    recording
}

fn bench(criterion: &mut Criterion) {
    let recording = recording();
    let timeline = replay(&recording, &Settings::default());
    assert_eq!(timeline.moments.len(), recording.events.len());
    println!("{} events", recording.events.len());
    let mut group = criterion.benchmark_group("dissect");
    group.sample_size(10);
    group.bench_function("a million events", |bencher| {
        bencher.iter(|| anatomy::dissect(black_box(&recording), black_box(&timeline)));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
