//! Replays a memory snapshot many times and prints events per second: `speed FILE`

use std::time::Instant;

use allocator::{Settings, replay};

fn main() {
    let path = std::env::args().nth(1).expect("a snapshot's path");
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let snapshot = snapshot::read(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
    drop(bytes);
    let recordings = snapshot::to_recordings(&snapshot);
    let recording = recordings.iter().max_by_key(|recording| recording.events.len());
    let recording = recording.expect("a snapshot has a device");
    let settings = Settings::of(&recording.about).expect("settings that exist");
    let rounds = 3_000_000 / recording.events.len().max(1) + 1;
    let begin = Instant::now();
    for _ in 0..rounds {
        std::hint::black_box(replay(recording, &settings));
    }
    let million = (rounds * recording.events.len()) as f64 / 1e6;
    println!("{:.2} M events/s", million / begin.elapsed().as_secs_f64());
}
