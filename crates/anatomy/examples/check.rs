//! Reads a recording's file, replays it, and checks that no byte is lost at any event. Prints the
//! peaks and the categories; exit code 1 if the replay differs or a sum is wrong.

use std::process::ExitCode;

use allocator::{Settings, reproduce};

fn main() -> ExitCode {
    let path = std::env::args().nth(1).expect("the path of a recording");
    let bytes = std::fs::read(path).expect("a file that can be read");
    let recording = recording::file::read(&bytes).expect("a recording");
    let settings = Settings::of(&recording.about).expect("settings that exist");
    let result = reproduce(&recording, &settings);
    let lost = anatomy::check(&recording, &result.timeline).err();
    let anatomy = anatomy::dissect(&recording, &result.timeline);
    let peak = &anatomy.allocated_peak;
    println!(
        "{} events, allocated {}, reserved {}",
        anatomy.events, peak.allocated, anatomy.reserved_peak.reserved
    );
    peak.categories.iter().for_each(|(name, bytes)| println!("{name} {bytes}"));
    result.difference.iter().for_each(|difference| println!("difference {difference}"));
    lost.iter().for_each(|lost| println!("lost {lost}"));
    ExitCode::from(u8::from(result.difference.is_some() || lost.is_some()))
}
