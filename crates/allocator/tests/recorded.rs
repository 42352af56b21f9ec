//! Recordings of real cards are reproduced: each block's address, each segment event and its order,
//! and the final blocks.

mod support;

use allocator::{Settings, contradiction, reproduce, validate};
use support::Recorded;

fn check(Recorded { name, recording }: &Recorded) {
    let settings = Settings::of(&recording.about).unwrap();
    let result = reproduce(recording, &settings);
    if let Some(difference) = result.difference {
        panic!("{name}: {difference}");
    }
    assert_eq!(contradiction(recording), None, "{name}");
    assert_eq!(result.timeline.moments.len(), recording.events.len());
    validate::validate(recording, &result.timeline)
        .unwrap_or_else(|fault| panic!("{name}: {fault}"));
}

#[test]
fn snapshots_of_the_repository() {
    support::of_repository().iter().for_each(check);
}

#[test]
fn snapshots_of_a_folder() {
    let all = support::of_collection();
    all.iter().for_each(check);
    eprintln!("{} devices of snapshots are reproduced", all.len());
}
