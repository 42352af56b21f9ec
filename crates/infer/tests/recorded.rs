//! Snapshots of real cards: inference changes no event, and whatever a file says, nothing panics.

use std::path::{Path, PathBuf};

use allocator::{Settings, observe, reproduce};
use infer::{NoSources, infer};
use recording::{Category, Event};
use snapshot::{Action, Snapshot};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded");
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_pickle = |path: &PathBuf| path.extension().is_some_and(|end| end != "md");
    let mut files: Vec<PathBuf> = all.filter(is_pickle).collect();
    files.sort();
    files
}

fn read(path: &Path) -> Snapshot {
    snapshot::read(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn events_stay_as_they_are_and_replay_as_before() {
    for path in files() {
        for (plain, clues) in snapshot::with_clues(&read(&path)) {
            let settings = Settings::of(&plain.about).unwrap();
            let named = infer(plain.clone(), &clues, &NoSources);
            let of_allocator = |events: &[Event]| -> Vec<String> {
                let events = events.iter().filter(|event| event.is_of_allocator());
                events.map(|event| event.to_string()).collect()
            };
            assert_eq!(of_allocator(&named.events), of_allocator(&plain.events));
            let [before, after] = [&plain, &named].map(|it| reproduce(it, &settings).difference);
            assert_eq!(before.is_none(), after.is_none(), "{} {after:?}", path.display());
        }
    }
}

#[test]
fn most_of_what_real_cards_hold_has_a_category() {
    for path in files() {
        for (plain, clues) in snapshot::with_clues(&read(&path)) {
            let named = infer(plain, &clues, &NoSources);
            let settings = Settings::of(&named.about).unwrap();
            let timeline = reproduce(&named, &settings).timeline;
            let peak = anatomy::dissect(&named, &timeline).allocated_peak;
            let unknown = peak.categories.of(Category::Unknown);
            assert!(unknown * 5 <= peak.allocated, "{}: {unknown} unknown", path.display());
        }
    }
}

/// Numbers that look like chance and are the same every time.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// One change of what a snapshot says: entries and blocks that are gone, twice there, elsewhere, or of any size.
fn change(snapshot: &mut Snapshot, chance: &mut Chance) {
    let device = chance.below(snapshot.device_traces.len());
    let Some(trace) = snapshot.device_traces.get_mut(device).filter(|trace| !trace.is_empty())
    else {
        return;
    };
    let (at, other) = (chance.below(trace.len()), chance.below(trace.len()));
    let any = [0, 1, 511, 1 << 40, u64::MAX, u64::MAX - 511, 1 << 62][chance.below(7)];
    match chance.below(12) {
        0 => drop(trace.remove(at)),
        1 => {
            let entry = trace[at];
            trace.insert(other, entry);
        }
        2 => trace.swap(at, other),
        3 => trace[at].address = any,
        4 => trace[at].size = any,
        5 => trace[at].address = trace[other].address,
        6 => trace[at].stack = trace[other].stack,
        7 => trace.truncate(at),
        8 => drop(trace.drain(..at)),
        9 => {
            let actions = [
                Action::Alloc,
                Action::FreeCompleted,
                Action::Oom,
                Action::SegmentMap,
                Action::SegmentUnmap,
            ];
            trace[at].action = actions[chance.below(actions.len())];
        }
        10 if !snapshot.segments.is_empty() => {
            let index = chance.below(snapshot.segments.len());
            let segment = &mut snapshot.segments[index];
            let block = chance.below(segment.blocks.len());
            if let Some(block) = segment.blocks.get_mut(block) {
                (block.size, block.requested_size) = (any, Some(any));
            }
        }
        _ if !snapshot.segments.is_empty() => {
            let index = chance.below(snapshot.segments.len());
            drop(snapshot.segments.remove(index));
        }
        _ => {}
    }
}

#[test]
fn changed_snapshots_make_nothing_panic() {
    change_many(1_000);
}

/// A minute and a half: `make test-all`.
#[test]
#[ignore = "takes long"]
fn ten_thousand_changed_snapshots_make_nothing_panic() {
    change_many(10_000);
}

fn change_many(rounds: usize) {
    let originals: Vec<Snapshot> = files().iter().map(|path| read(path)).collect();
    let mut chance = Chance(0x5eed_cafe_f00d_0001);
    for round in 0..rounds {
        let mut changed = originals[round % originals.len()].clone();
        for _ in 0..1 + chance.below(4) {
            change(&mut changed, &mut chance);
        }
        for (plain, clues) in snapshot::with_clues(&changed) {
            let named = infer(plain, &clues, &NoSources);
            let Ok(settings) = Settings::of(&named.about) else { continue };
            let seen = observe(&named, &settings);
            let _ = anatomy::dissect(&named, &seen);
        }
    }
}
