//! Whether a recording's replay agrees with it, in words, and what of its allocator settings is not known.

use allocator::{Difference, Settings};
use recording::Recording;

/// What the reader should know; `None` if all is known and agrees.
pub fn note(recording: &Recording, difference: Option<&Difference>) -> Option<String> {
    let differs = difference.map(|difference| differs(recording, difference));
    let (Some(unknown), it) = unknown(recording) else { return differs };
    Some(match differs {
        None => format!("{unknown}; replay agrees without {it}"),
        Some(differs) => format!("{unknown}; without {it} {differs}"),
    })
}

/// Says which settings are not known, and how to refer to them again.
fn unknown(recording: &Recording) -> (Option<String>, &'static str) {
    let keys: Vec<String> =
        Settings::unknown(&recording.about).iter().map(|key| format!("`{key}`")).collect();
    match keys.as_slice() {
        [] => (None, ""),
        [key] => (Some(format!("the allocator setting {key} is not known to this version")), "it"),
        keys => {
            let keys = keys.join(", ");
            (Some(format!("the allocator settings {keys} are not known to this version")), "them")
        }
    }
}

fn differs(recording: &Recording, difference: &Difference) -> String {
    if recording.events.len() <= difference.event {
        return "the replay ends with other blocks than were recorded".to_owned();
    }
    format!(
        "the replay is not what was recorded from event {} of {} on: after it, the trace's own addresses say who holds \
         the memory, and blocks may be larger than shown",
        recording.trace_number(difference.event),
        recording.trace_length()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tensors of 3 MiB: one segment of 20 MiB holds both.
    const TRACE: &str = "\
segment_alloc 0x7f0000000000 20971520 stream 0
alloc 0x7f0000000000 3145728 stream 0
alloc 0x7f0000300000 3145728 stream 0
";

    fn of(settings: &str, trace: &str) -> Option<String> {
        let text = format!("torch 2.16.0\nsettings {settings}\n{trace}");
        let recording = recording::text::recording(&text).unwrap();
        let settings = Settings::of(&recording.about).unwrap();
        note(&recording, allocator::reproduce(&recording, &settings).difference.as_ref())
    }

    #[test]
    fn a_setting_that_is_not_known_is_said_and_replay_decides() {
        let agrees =
            "the allocator setting `speed` is not known to this version; replay agrees without it";
        assert_eq!(of("speed:1", TRACE).as_deref(), Some(agrees));
        assert_eq!(of("expandable_segments:False", TRACE), None);
        let both = of("speed:1,light", TRACE).unwrap();
        assert!(
            both.starts_with("the allocator settings `speed`, `light` are not known"),
            "{both}"
        );
        // What it does may be seen: here it leaves a gap.
        let gap = TRACE.replace("0x7f0000300000", "0x7f0000400000");
        let differs = "the replay is not what was recorded from event 2 of 3 on: after it, the trace's own addresses say who \
                       holds the memory, and blocks may be larger than shown";
        let unknown = "the allocator setting `speed` is not known to this version; without it";
        assert_eq!(of("speed:1", &gap), Some(format!("{unknown} {differs}")));
        assert_eq!(of("max_split_size_mb:64", &gap).as_deref(), Some(differs));
    }
}
