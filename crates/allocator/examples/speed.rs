//! Replays a memory snapshot many times and prints events per second of CPU time: `speed FILE`

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
    let begin = cpu_seconds();
    for _ in 0..rounds {
        std::hint::black_box(replay(recording, &settings));
    }
    let million = (rounds * recording.events.len()) as f64 / 1e6;
    println!("{:.2} M events/s", million / (cpu_seconds() - begin));
}

/// Time this process has run, seconds; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}
