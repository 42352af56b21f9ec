//! The text form: one thing per line. What tests are written in, and what a failing one prints.
//!
//! ```text
//! torch 2.15.0
//! settings expandable_segments:True
//! memory 25769803776
//! parameters total 100 trainable 90 frozen 10 unused 0
//! text 1 "train.py"
//! text 2 "net.fc"
//! frame 0 file 1 function 0 line 12
//! stack 0 frame 0
//! owner 0
//! owner 1 module 2 stack 0
//! segment_alloc 0x100000 2097152 stream 0
//! alloc 0x100000 1000 stream 0 owner 1
//! ```
//!
//! Rows carry their number, and come before whatever refers to them. Texts are JSON strings. A word that has no
//! meaning in its line is an error: what is mistyped would else be a default without a word about it.

mod event;
mod fields;
mod hint;
mod tables;

use crate::Recording;
use crate::event::Event;
use fields::Words;

/// A line that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Error {
    pub line: usize,
    /// What was found, and what could be there.
    pub why: String,
}

/// Reads events, one per line; blank lines and lines that start with `#` are passed over.
pub fn parse(text: &str) -> Result<Vec<Event>, Error> {
    each_line(text).map(|(line, words)| at(line, event::event(words))).collect()
}

/// Reads a recording; blank lines and lines that start with `#` are passed over.
pub fn recording(text: &str) -> Result<Recording, Error> {
    let mut recording = Recording::default();
    for (line, words) in each_line(text) {
        at(line, fact(&mut recording, words))?;
    }
    Ok(recording)
}

/// Writes what [`recording`] reads.
pub fn write(recording: &Recording) -> String {
    let mut lines = tables::about_lines(&recording.about);
    lines.extend(tables::table_lines(recording));
    lines.extend(recording.finish.iter().map(ToString::to_string));
    lines.extend(recording.start.iter().map(|event| format!("start {event}")));
    lines.extend(recording.events.iter().map(ToString::to_string));
    lines.push(String::new());
    lines.join("\n")
}

fn each_line(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn at<T>(line: usize, result: Result<T, String>) -> Result<T, Error> {
    result.map_err(|why| Error { line, why })
}

fn fact(recording: &mut Recording, line: &str) -> Result<(), String> {
    let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
    match key {
        "text" => tables::text(&mut recording.texts, rest)?,
        "start" => recording.start.push(event::event(rest)?),
        "segment" => recording.finish.push(fields::segment(&Words::of(line))?),
        "block" => {
            let segment = recording.finish.last_mut().ok_or("a block before its segment")?;
            segment.blocks.push(fields::block(&Words::of(line))?);
        }
        _ => {
            let is_known = tables::about(&mut recording.about, key, rest)?
                || tables::row(recording, &Words::of(line))?;
            if !is_known {
                recording.events.push(event::event(line)?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_read_as_it_is_written() {
        let text = "\
alloc 0x7f0000000200 1000 stream 0 owner 3
alloc 0x7f0000000400 1000 stream 9 owner 0 pool 1.0
free_requested 0x7f0000000200 1000
free_completed 0x7f0000000200 1000
segment_alloc 0x7f0000000000 2097152 stream 0
segment_free 0x7f0000000000 2097152 stream 0
segment_map 0x7f0000000000 20971520 stream 5 pool 0.2
segment_unmap 0x7f0000000000 20971520 stream 5
oom 1024 free 512 stream 0
phase before_optimizer step 2
name 0x7f0000000200 model_copies text 4
tensor 0x7f0000000200 text 5";
        let events = parse(text).unwrap();
        let back: Vec<String> = events.iter().map(ToString::to_string).collect();
        assert_eq!(back.join("\n"), text);
    }

    #[test]
    fn a_recording_is_read_as_it_is_written() {
        let text = "\
torch 2.6.0
settings expandable_segments:True
memory 25769803776
context 264241152
device 1
parameters total 100 trainable 90 frozen 10 unused 5
saved kept 3 outputs 4
counters allocated_peak 9 reserved_peak 8 requested_peak 7 allocated 6 reserved 5
complete
text 1 \"train.py\"
text 2 \"two\\nlines \"
frame 0 file 1 function 2 line 12
frame 1 file 1 function 0 line 40 source 2
stack 0 frame 1
stack 1 frame 0 caller 0
owner 0 module 0 operator 0 node 0
owner 1 module 2 operator 2 node 0 stack 1
module 0 path 2 class 1
segment 0x100000 2097152 small stream 7 pool 1.0 expandable
block 0x100000 512 active_allocated requested 3
block 0x100200 2096640 inactive requested 0
start segment_alloc 0x100000 2097152 stream 7 pool 1.0
alloc 0x100000 3 stream 7 owner 0 pool 1.0
";
        let recording = recording(text).unwrap();
        assert_eq!(write(&recording), text);
        assert!(recording.about.complete);
    }

    #[test]
    fn what_is_no_event_is_refused_with_its_line() {
        let error = |text: &str| recording(text).unwrap_err().to_string();
        assert_eq!(
            error("# fine\nallocate 1 2"),
            "line 2: `allocate` is not an event (did you mean `alloc`?)"
        );
        assert_eq!(error("alloc 0x10"), "line 1: `alloc 0x10` ends too early");
        assert_eq!(error("alloc 0x10 many"), "line 1: `many` is not a number");
        assert_eq!(error("segment 0 9 small\nblock 1 2 3"), "line 2: `3` is no state");
        assert_eq!(error("block 1 2 3"), "line 1: a block before its segment");
        assert_eq!(error("text 2 \"a\""), "line 1: text 2 comes where 1 is next");
        assert_eq!(error("text 1 \"a"), "line 1: `\"a` is not a text in quotes");
        assert_eq!(error("stack 0 frame 0"), "line 1: frame 0 is not among 0");
        assert_eq!(error("owner 1"), "line 1: owner 1 comes where 0 is next");
    }

    #[test]
    fn a_word_without_a_meaning_is_refused_with_its_line_and_a_hint() {
        let error = |text: &str| recording(text).unwrap_err().to_string();
        assert_eq!(
            error("alloc 0x10 5 strem 7"),
            "line 1: `strem` has no meaning in `alloc 0x10 5 strem 7` (did you mean `stream`?)"
        );
        assert_eq!(
            error("alloc 0x10 5 colour 7"),
            "line 1: `colour` has no meaning in `alloc 0x10 5 colour 7` \
             (it can have `stream`, `owner`, `pool`)"
        );
        let twice = "oom 5 free 1 free 2";
        assert_eq!(error(twice), format!("line 1: `free` stands twice in `{twice}`"));
        for (line, word) in [
            ("free_completed 0x10 5 stream 7", "stream"),
            ("start alloc 0x10 5 onwer 1", "onwer"),
            ("segment 0x10 5 smal", "smal"),
            ("segment 0x10 5 small\nblock 0x10 5 inactive requestd 3", "requestd"),
            ("memory 5 GiB", "GiB"),
            ("complete not", "not"),
            ("saved kept 3 output 4", "output"),
            ("deferred 3", "3"),
            ("owner 0 modul 0", "modul"),
            ("phase forward stp 2", "stp"),
        ] {
            let error = error(line);
            assert!(error.contains(&format!("`{word}` has no meaning in")), "{line}: {error}");
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
