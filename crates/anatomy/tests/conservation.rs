//! No byte is lost: over random recordings, and over the recorded ones of the repository.

mod support;

use std::path::Path;

use allocator::{Settings, Timeline, replay, reproduce};
use anatomy::{Anatomy, Dissection, check, dissect};
use proptest::prelude::*;
use recording::{Category, Event, OwnerId, Phase, Recording};
use support::Script;

#[derive(Clone, Debug)]
enum Act {
    Alloc(u64, usize),
    Free(usize),
    Name(usize, usize),
    Phase(usize, u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1u64..40_000_000, 0..8usize).prop_map(|(size, owner)| Act::Alloc(size, owner)),
        3 => any::<usize>().prop_map(Act::Free),
        3 => (any::<usize>(), 0..Category::ALL.len()).prop_map(|(at, what)| Act::Name(at, what)),
        1 => (0..Phase::ALL.len(), 1..5u32).prop_map(|(phase, step)| Act::Phase(phase, step)),
    ];
    proptest::collection::vec(act, 1..120)
}

fn script(acts: &[Act]) -> Script {
    let mut script = Script::new();
    let paths = ["", "Net", "fc", "fc.0", "fc.0.deep.er", "Other.fc", "fc.1"];
    paths.iter().take(5).for_each(|path| script.module(path, "Linear"));
    let owners: Vec<OwnerId> = (0..8)
        .map(|n| script.owner(paths[n % 7], ["addmm", "", "sum"][n % 3], &[("a.py", n as u32 % 4)]))
        .collect();
    let mut live = Vec::new();
    for act in acts {
        match *act {
            Act::Alloc(size, owner) => live.push(script.alloc(size, owners[owner])),
            Act::Free(at) if !live.is_empty() => {
                let address = live.swap_remove(at % live.len());
                script.free(address);
            }
            Act::Name(at, what) if !live.is_empty() => {
                script.name(live[at % live.len()], Category::ALL[what], "step of fc.0.weight");
            }
            Act::Phase(phase, step) => script.phase(Phase::ALL[phase], step),
            _ => {}
        }
    }
    script
}

fn assert_sums(at: &Dissection) {
    let sum = at.allocated;
    assert_eq!(at.categories.sum(), sum, "categories");
    assert_eq!(at.modules.iter().map(|row| row.own).sum::<u64>(), sum, "modules");
    let tops = at.modules.iter().filter(|row| row.parent.is_none());
    assert_eq!(tops.map(|row| row.total).sum::<u64>(), sum, "top modules");
    for (index, row) in at.modules.iter().enumerate() {
        let below = at.modules.iter().filter(|other| other.parent == Some(index));
        assert_eq!(row.own + below.map(|row| row.total).sum::<u64>(), row.total, "{}", row.path);
        assert!(row.saved <= row.total && row.parent < Some(index));
    }
    assert_eq!(at.lines.iter().map(|row| row.bytes).sum::<u64>(), sum, "lines");
    assert_eq!(at.operators.iter().map(|row| row.bytes).sum::<u64>(), sum, "operators");
    assert_eq!(at.born.iter().map(|row| row.bytes).sum::<u64>(), sum, "phases");
    let of = |name: &str| {
        at.ledger.iter().find(|row| row.part.name() == name).map_or(0, |row| row.bytes)
    };
    let parts = at.ledger.iter().filter(|row| row.part.depth() == 2).map(|row| row.bytes);
    assert_eq!(parts.sum::<u64>(), of("reserved"), "reserved");
    assert_eq!(of("reserved"), at.reserved);
}

fn assert_conserved(recording: &Recording, timeline: &Timeline) -> Anatomy {
    check(recording, timeline).unwrap();
    let anatomy = dissect(recording, timeline);
    assert_sums(&anatomy.allocated_peak);
    assert_sums(&anatomy.reserved_peak);
    let peak = timeline.moments.iter().map(|moment| moment.allocated).max().unwrap_or(0);
    assert!(peak <= anatomy.allocated_peak.allocated);
    let phases = anatomy.phases.iter().map(|row| row.allocated).max();
    assert_eq!(phases, Some(anatomy.allocated_peak.allocated));
    anatomy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_dimension_sums_to_what_is_allocated(acts in acts()) {
        let script = script(&acts);
        let (timeline, _) = script.dissect();
        assert_conserved(&script.recording, &timeline);
    }
}

/// Every device of every snapshot in a folder; gives the number of snapshots.
fn check_folder(folder: &Path) -> usize {
    let mut seen = 0;
    for path in std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|ending| ending != "pickle" && ending != "pkl") {
            continue;
        }
        let snapshot = snapshot::read(&std::fs::read(&path).unwrap()).unwrap();
        for recording in snapshot::to_recordings(&snapshot) {
            let settings = Settings::of(&recording.about).unwrap();
            let reproduction = reproduce(&recording, &settings);
            let anatomy = assert_conserved(&recording, &reproduction.timeline);
            assert!(!anatomy.has_names && anatomy.growth.sites.is_empty());
        }
        seen += 1;
    }
    seen
}

#[test]
fn recorded_snapshots_are_conserved() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(3 <= check_folder(&root.join("tests/recorded")));
}

#[test]
fn snapshots_of_a_folder_are_conserved() {
    let Some(folder) = std::env::var_os("FATHOM_SNAPSHOTS") else {
        eprintln!("SKIPPED: `FATHOM_SNAPSHOTS` names no folder of memory snapshots");
        return;
    };
    eprintln!("{} snapshots are conserved", check_folder(Path::new(&folder)));
}

/// Events in any order and with any addresses, as a damaged or a foreign recorder might write them.
fn nonsense() -> impl Strategy<Value = Recording> {
    let places = (1..8u64, 1..2000u64, 0..3u64, 0..11u8);
    let event = places.prop_map(|(page, size, stream, kind)| {
        let (address, size, pool) = (page << 20, size * 1024, (0, 0));
        match kind {
            0..=3 => Event::Alloc { address, size, stream, owner: OwnerId(kind.into()), pool },
            4 | 5 => Event::FreeRequested { address, size },
            6 | 7 => Event::FreeCompleted { address, size },
            8 => Event::SegmentAlloc { address, size, stream, pool },
            9 => Event::SegmentFree { address, size, stream, pool },
            _ => Event::OutOfMemory { size, free: 0, stream, pool },
        }
    });
    let events = proptest::collection::vec(event, 1..40);
    events.prop_map(|events| Recording { events, ..Recording::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nonsense_is_conserved_too(recording in nonsense()) {
        for timeline in [
            reproduce(&recording, &Settings::default()).timeline,
            replay(&recording, &Settings::default()),
        ] {
            assert_conserved(&recording, &timeline);
        }
    }
}
