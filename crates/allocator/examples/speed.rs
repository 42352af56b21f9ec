//! Replays a recording in text form many times and prints events per second.
use std::io::Read;
use std::time::Instant;

use allocator::{Settings, replay, reproduce};

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("standard input is text");
    let recording = recording::text::recording(&text).expect("a recording");
    let settings = Settings::of(&recording.about).expect("settings that exist");
    let rounds = 2_000_000 / recording.events.len().max(1) + 1;
    let begin = Instant::now();
    for _ in 0..rounds {
        std::hint::black_box(replay(&recording, &settings));
    }
    let replayed = begin.elapsed().as_secs_f64();
    for _ in 0..rounds {
        std::hint::black_box(reproduce(&recording, &settings));
    }
    let reproduced = begin.elapsed().as_secs_f64() - replayed;
    let million = (rounds * recording.events.len()) as f64 / 1e6;
    println!("replay {:.1} M/s, reproduce {:.1} M/s", million / replayed, million / reproduced);
}
