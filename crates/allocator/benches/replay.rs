//! Speed of a replay: events per second on one core.

use allocator::{Settings, replay, reproduce};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use recording::{Event, OwnerId, Recording};

/// Steps of a training run: activations come in order and go in reverse, temporaries in between.
fn training(steps: usize) -> Recording {
    let sizes = [3000, 70_000, 1 << 20, 2_500_000, 9_000_000, 40_000_000, 512, 600_000];
    let (stream, pool, owner) = (0, (0, 0), OwnerId(0));
    let mut events = Vec::new();
    let mut next = 0x1000;
    let mut alloc = |events: &mut Vec<Event>, size| {
        next += 0x200;
        events.push(Event::Alloc { address: next, size, stream, owner, pool });
        (next, size)
    };
    let free = |events: &mut Vec<Event>, (address, size)| {
        events.push(Event::FreeRequested { address, size });
        events.push(Event::FreeCompleted { address, size });
    };
    for step in 0..steps {
        let mut kept = Vec::new();
        for layer in 0..200 {
            let size = sizes[(layer * 7 + step) % sizes.len()] + 64 * (layer as u64 % 5);
            kept.push(alloc(&mut events, size));
            let temporary = alloc(&mut events, sizes[(layer * 3) % sizes.len()]);
            free(&mut events, temporary);
        }
        kept.into_iter().rev().for_each(|block| free(&mut events, block));
    }
    Recording { events, ..Recording::default() }
}

/// The same with its own segment events, as a snapshot has them.
fn recorded(plain: &Recording) -> Recording {
    let timeline = replay(plain, &Settings::default());
    let mut segments = timeline.segments.iter().peekable();
    let mut events = Vec::new();
    for (at, event) in plain.events.iter().enumerate() {
        while let Some(segment) = segments.next_if(|segment| segment.at == at) {
            events.push(segment.event);
        }
        let place = timeline.moments[at].address;
        let mut event = *event;
        match &mut event {
            Event::Alloc { address, .. }
            | Event::FreeRequested { address, .. }
            | Event::FreeCompleted { address, .. } => *address = place,
            _ => {}
        }
        events.push(event);
    }
    Recording { events, ..Recording::default() }
}

fn speed(criterion: &mut Criterion) {
    let plain = training(800);
    let full = recorded(&plain);
    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(plain.events.len() as u64)).sample_size(10);
    for (name, conf) in [("default", ""), ("expandable segments", "expandable_segments:True")] {
        let settings = Settings::default().with_conf(conf).expect("settings that exist");
        group.bench_function(name, |bench| bench.iter(|| replay(&plain, &settings)));
    }
    group.throughput(Throughput::Elements(full.events.len() as u64));
    group.bench_function("reproduce", |bench| {
        bench.iter(|| {
            let result = reproduce(&full, &Settings::default());
            assert_eq!(result.difference, None, "a replay of a replay is the same");
        });
    });
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
