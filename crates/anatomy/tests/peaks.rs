//! A peak taken apart, with numbers that can be checked by hand.

mod support;

use allocator::{Settings, replay};
use anatomy::{Known, allocations, check, dissect};
use recording::{Category, Event, Phase};
use support::Script;

const MIB: u64 = 1 << 20;
const LIBRARY: &str = "/venv/lib/python3.12/site-packages/torch/nn/functional.py";

/// One step of a small model: weights 4 MiB, activations 8 MiB, a temporary of 1000 bytes.
fn step() -> Script {
    let mut script = Script::new();
    script.module("Net", "Net");
    script.module("fc", "Sequential");
    script.module("fc.0", "Linear");
    script.module("fc.1", "Linear");
    script.recording.about.memory_bytes = 1024 * MIB;
    script.recording.about.context_bytes = 100 * MIB;
    let made = script.owner("", "empty", &[("train.py", 3)]);
    let forward = script.owner("fc.0", "addmm", &[("train.py", 9), ("net.py", 20), (LIBRARY, 7)]);
    let sum = script.owner("fc.1", "sum", &[("train.py", 9), ("net.py", 21)]);
    script.phase(Phase::Construction, 1);
    let weight = script.alloc(4 * MIB, made);
    script.phase(Phase::Forward, 1);
    let kept = script.alloc(8 * MIB, forward);
    script.tensor(kept + 512, "float32[2, 1024, 1024]");
    let passing = script.alloc(1000, sum);
    script.name(kept, Category::Activations, "AddmmBackward0.mat1 in fc.0");
    script.free(passing);
    script.phase(Phase::Backward, 1);
    script.free(kept);
    script.name(weight, Category::Weights, "fc.0.weight");
    script
}

#[test]
fn the_peak_by_every_dimension() {
    let script = step();
    let (timeline, anatomy) = script.dissect();
    check(&script.recording, &timeline).unwrap();
    let peak = anatomy.allocated_peak;
    assert_eq!((peak.allocated, peak.requested), (12 * MIB + 1024, 12 * MIB + 1000));
    assert_eq!((peak.when.phase, peak.when.step), (Some(Phase::Forward), 1));
    let cause = peak.raised_by.unwrap();
    assert_eq!((cause.module.as_str(), cause.operator.as_str()), ("fc.1", "sum"));
    assert_eq!((cause.file.as_str(), cause.line), ("net.py", 21));

    let held: Vec<_> = peak.categories.iter().filter(|(_, bytes)| *bytes != 0).collect();
    let expected =
        [("weights", 4 * MIB), ("activations", 8 * MIB), ("temporaries", 1000), ("rounding", 24)];
    assert_eq!(held, expected);

    let lines: Vec<_> =
        peak.lines.iter().map(|row| (row.file.as_str(), row.line, row.bytes, row.count)).collect();
    assert_eq!(
        lines,
        [("net.py", 20, 8 * MIB, 1), ("train.py", 3, 4 * MIB, 1), ("net.py", 21, 1024, 1)]
    );
    let operators: Vec<_> =
        peak.operators.iter().map(|row| (row.name.as_str(), row.bytes)).collect();
    assert_eq!(operators, [("addmm", 8 * MIB), ("empty", 4 * MIB), ("sum", 1024)]);
    let born: Vec<_> = peak.born.iter().map(|row| (row.phase.unwrap(), row.bytes)).collect();
    assert_eq!(born, [(Phase::Forward, 8 * MIB + 1024), (Phase::Construction, 4 * MIB)]);
}

#[test]
fn modules_are_a_tree() {
    let peak = step().dissect().1.allocated_peak;
    let rows: Vec<_> = peak
        .modules
        .iter()
        .map(|row| {
            (row.path.as_str(), row.class.as_str(), row.parent, row.own, row.total, row.saved)
        })
        .collect();
    let saved = 8 * MIB;
    assert_eq!(
        rows,
        [
            ("fc", "Sequential", None, 0, 12 * MIB + 1024, saved),
            ("fc.0", "Linear", Some(0), 12 * MIB, 12 * MIB, saved),
            ("fc.1", "Linear", Some(0), 1024, 1024, 0),
        ]
    );
}

#[test]
fn the_largest_tensors_have_shapes_and_names() {
    let peak = step().dissect().1.allocated_peak;
    let [kept, weight, passing] = &peak.tensors[..] else { panic!("{:?}", peak.tensors) };
    assert_eq!((kept.dtype.as_str(), &kept.shape[..]), ("float32", &[2, 1024, 1024][..]));
    assert_eq!((kept.bytes, kept.category), (8 * MIB, Category::Activations));
    assert_eq!((kept.origin.file.as_str(), kept.origin.line), ("net.py", 20));
    // A weight belongs to the module of its name, though it was made outside of any.
    assert_eq!((weight.name.as_str(), weight.origin.module.as_str()), ("fc.0.weight", "fc.0"));
    assert_eq!(weight.born.phase, Some(Phase::Construction));
    assert_eq!((passing.bytes, passing.block, passing.dtype.as_str()), (1000, 1024, ""));
}

#[test]
fn the_ledger_goes_from_the_card_to_tensors() {
    let anatomy = step().dissect().1;
    // The large pool takes 20 MiB at once, the small one 2 MiB.
    let rows: Vec<_> = anatomy
        .allocated_peak
        .ledger
        .iter()
        .map(|row| (row.part.name(), row.bytes, row.part.depth()))
        .collect();
    assert_eq!(
        rows,
        [
            ("card", 1024 * MIB, 0),
            ("context", 100 * MIB, 1),
            ("free", 902 * MIB, 1),
            ("reserved", 22 * MIB, 1),
            ("cached_segments", 0, 2),
            ("cached_fragments", 10 * MIB - 1024, 2),
            ("waiting", 0, 2),
            ("rounding", 24, 2),
            ("tensors", 12 * MIB + 1000, 2),
        ]
    );
    assert!(anatomy.allocated_peak.ledger.iter().all(|row| row.known == Known::Measured));
    assert_eq!(anatomy.reserved_peak.reserved, 22 * MIB);
}

#[test]
fn whole_free_segments_are_told_from_fragments() {
    let mut script = Script::new();
    let owner = script.owner("", "empty", &[]);
    let large = script.alloc(64 * MIB, owner);
    let other = script.alloc(12 * MIB, owner);
    script.free(large);
    script.alloc(30 * MIB, owner);
    script.free(other);
    script.alloc(200 * MIB, owner);
    let peak = script.dissect().1.reserved_peak;
    let of = |name: &str| peak.ledger.iter().find(|row| row.part.name() == name).unwrap().bytes;
    // 64 MiB hold 30, 12 MiB hold nothing, 200 MiB are full.
    assert_eq!((of("cached_segments"), of("cached_fragments")), (12 * MIB, 34 * MIB));
}

#[test]
fn the_strongest_name_wins_and_the_others_are_listed() {
    let mut script = Script::new();
    let block = script.alloc(512, recording::OwnerId(0));
    script.name(block, Category::Activations, "saved");
    script.name(block, Category::Weights, "fc.weight");
    script.name(block + 100, Category::Weights, "tied.weight");
    script.name(block, Category::Inputs, "x");
    script.name(block + 512, Category::Buffers, "not inside");
    let tensor = script.dissect().1.allocated_peak.tensors.remove(0);
    assert_eq!((tensor.category, tensor.name.as_str()), (Category::Weights, "fc.weight"));
    let also: Vec<_> =
        tensor.also.iter().map(|(category, name)| (*category, name.as_str())).collect();
    assert_eq!(
        also,
        [
            (Category::Activations, "saved"),
            (Category::Weights, "tied.weight"),
            (Category::Inputs, "x")
        ]
    );
}

#[test]
fn without_names_everything_is_unknown() {
    let mut script = Script::new();
    let owner = script.owner("", "empty", &[("train.py", 1)]);
    script.alloc(512, owner);
    let anatomy = script.dissect().1;
    assert_eq!(anatomy.allocated_peak.categories.of(Category::Unknown), 512);
    assert_eq!((anatomy.phases.len(), anatomy.phases[0].when.phase), (1, None));
    assert!(!anatomy.has_names && anatomy.first_step.is_none());
}

#[test]
fn phases_and_steps_have_their_own_peaks() {
    let mut script = Script::new();
    let owner = script.owner("", "empty", &[]);
    script.phase(Phase::Construction, 1);
    script.alloc(1024, owner);
    for step in 1..=3 {
        script.phase(Phase::Forward, step);
        let first = script.alloc(if step == 1 { 4096 } else { 2048 }, owner);
        script.phase(Phase::Backward, step);
        script.free(first);
        script.phase(Phase::Forward, step);
        let second = script.alloc(512, owner);
        script.phase(Phase::Optimizer, step);
        script.free(second);
    }
    let anatomy = script.dissect().1;
    let rows: Vec<_> = anatomy
        .phases
        .iter()
        .map(|row| (row.when.phase.unwrap().name(), row.when.step, row.allocated))
        .collect();
    assert_eq!(
        rows[..5],
        [
            ("construction", 1, 1024),
            ("forward", 1, 5120),
            ("backward", 1, 5120),
            ("optimizer", 1, 1536),
            ("forward", 2, 3072),
        ]
    );
    assert_eq!(anatomy.first_step.unwrap().allocated, 5120);
    let steady = anatomy.steady_step.unwrap();
    assert_eq!((steady.step, steady.allocated), (3, 3072));
}

#[test]
fn what_was_alive_when_memory_ran_out() {
    let mut script = Script::new();
    let owner = script.owner("fc", "addmm", &[("train.py", 5)]);
    script.phase(Phase::Forward, 1);
    let gone = script.alloc(64 * MIB, owner);
    script.free(gone);
    let kept = script.alloc(32 * MIB, owner);
    script.name(kept, Category::Activations, "saved");
    let (size, free) = (1 << 60, 7 * MIB);
    let refusal = Event::OutOfMemory { size, free, stream: 0, pool: (0, 0) };
    script.recording.events.push(refusal);
    script.phase(Phase::AfterTraining, 1);
    script.free(kept);
    let settings = Settings { memory: Some(256 * MIB), ..Settings::default() };
    let timeline = replay(&script.recording, &settings);
    let anatomy = dissect(&script.recording, &timeline);
    let refusal = anatomy.out_of_memory.unwrap();
    assert_eq!((refusal.tried_bytes, refusal.free_bytes), (size, free));
    assert_eq!((refusal.at.allocated, refusal.at.when.phase), (32 * MIB, Some(Phase::Forward)));
    assert_eq!(refusal.at.categories.of(Category::Activations), 32 * MIB);
    assert_eq!(anatomy.allocated_peak.allocated, 64 * MIB);
}

#[test]
fn allocations_of_a_size_are_found_whenever_they_were_made() {
    let script = step();
    let timeline = replay(&script.recording, &Settings::default());
    let found = allocations(&script.recording, &timeline, &|bytes| bytes != 4 * MIB);
    let told: Vec<_> = found
        .iter()
        .map(|alike| {
            let tensor = &alike.first;
            (tensor.bytes, alike.count, tensor.origin.module.as_str(), tensor.origin.line)
        })
        .collect();
    assert_eq!(told, [(8 * MIB, 1, "fc.0", 20), (1000, 1, "fc.1", 21)]);
    assert_eq!(
        (found[0].first.dtype.as_str(), &found[0].first.shape[..]),
        ("float32", &[2, 1024, 1024][..])
    );
}

#[test]
fn areas_are_summed_and_their_parts_are_counted() {
    let mut script = Script::new();
    let owner = script.owner("", "empty", &[("train.py", 3)]);
    script.phase(Phase::Forward, 1);
    for (area, category) in [
        ("buckets", Category::Communication),
        ("batches of stage 1#0", Category::Activations),
        ("batches of stage 1#0", Category::Activations),
        ("batches of stage 1#7", Category::Activations),
        ("batches of stage 1#8", Category::Inputs),
        ("buckets", Category::Workspace),
        ("buckets", Category::Weights),
    ] {
        let address = script.alloc(MIB, owner);
        script.area(address, area);
        script.name(address, category, "it");
    }
    script.alloc(MIB, owner);
    let (_, anatomy) = script.dissect();
    let rows = anatomy.allocated_peak.areas;
    let rows: Vec<_> =
        rows.iter().map(|row| (row.name.as_str(), row.bytes, row.count, row.parts)).collect();
    assert_eq!(rows, [("batches of stage 1", 3 * MIB, 3, 2), ("buckets", MIB, 1, 0)]);
}
