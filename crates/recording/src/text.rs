//! The text form: one event per line. What tests are written in, and what a failing one prints.

use std::fmt;

use crate::Recording;
use crate::event::{Category, Event, Mark, Phase};
use crate::owner::{OwnerId, TextId};
use crate::state::{Block, BlockState, Segment};

/// A line that is not an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Error {
    /// From 1.
    pub line: usize,
    /// What was expected.
    pub why: String,
}

impl fmt::Display for Event {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pool = |pool: &(u32, u32)| match pool {
            (0, 0) => String::new(),
            (a, b) => format!(" pool {a}.{b}"),
        };
        match self {
            Event::Alloc { address, size, stream, owner, pool: p } => {
                write!(to, "alloc {address:#x} {size} stream {stream} owner {}{}", owner.0, pool(p))
            }
            Event::FreeRequested { address, size } => {
                write!(to, "free_requested {address:#x} {size}")
            }
            Event::FreeCompleted { address, size } => {
                write!(to, "free_completed {address:#x} {size}")
            }
            Event::SegmentAlloc { address, size, stream, pool: p } => {
                write!(to, "segment_alloc {address:#x} {size} stream {stream}{}", pool(p))
            }
            Event::SegmentFree { address, size, stream, pool: p } => {
                write!(to, "segment_free {address:#x} {size} stream {stream}{}", pool(p))
            }
            Event::SegmentMap { address, size, stream, pool: p } => {
                write!(to, "segment_map {address:#x} {size} stream {stream}{}", pool(p))
            }
            Event::SegmentUnmap { address, size, stream, pool: p } => {
                write!(to, "segment_unmap {address:#x} {size} stream {stream}{}", pool(p))
            }
            Event::OutOfMemory { size, free, stream, pool: p } => {
                write!(to, "oom {size} free {free} stream {stream}{}", pool(p))
            }
            Event::Mark(Mark::Phase { phase, step }) => {
                write!(to, "phase {} step {step}", phase.name())
            }
            Event::Mark(Mark::Name { address, category, name }) => {
                write!(to, "name {address:#x} {} text {}", category.name(), name.0)
            }
            Event::Mark(Mark::Tensor { address, what }) => {
                write!(to, "tensor {address:#x} text {}", what.0)
            }
        }
    }
}

macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal,)*) => {
        impl $type {
            /// Every value, in order.
            pub const ALL: &[$type] = &[$($type::$variant),*];

            /// The name in texts and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }

            /// The value of a name.
            pub fn from_name(name: &str) -> Option<$type> {
                match name {
                    $($name => Some($type::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

named! { Phase:
    Construction = "construction",
    Forward = "forward",
    Backward = "backward",
    BeforeOptimizer = "before_optimizer",
    Optimizer = "optimizer",
    Evaluation = "evaluation",
    Saving = "saving",
    AfterTraining = "after_training",
}

named! { Category:
    Unknown = "unknown",
    Weights = "weights",
    Gradients = "gradients",
    Optimizer = "optimizer",
    Activations = "activations",
    Inputs = "inputs",
    Buffers = "buffers",
    ModelCopies = "model_copies",
    Casts = "casts",
    Temporaries = "temporaries",
    Workspace = "workspace",
}

/// Reads events, one per line; blank lines and lines that start with `#` are passed over.
pub fn parse(text: &str) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let event = event(line).map_err(|why| Error { line: index + 1, why })?;
        events.push(event);
    }
    Ok(events)
}

/// A recording: events, and before them what is known of the run and its last state, one per line:
/// `torch`, `settings`, `memory`, `context`, then `segment` lines, each followed by its `block` lines.
pub fn recording(text: &str) -> Result<Recording, Error> {
    let mut recording = Recording::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        fact(&mut recording, line).map_err(|why| Error { line: index + 1, why })?;
    }
    Ok(recording)
}

/// Writes what [`recording`] reads; owners and names are numbers only.
pub fn write(recording: &Recording) -> String {
    let about = &recording.about;
    let mut lines = Vec::new();
    for (key, value) in [("torch", &about.torch), ("settings", &about.allocator_settings)] {
        if !value.is_empty() {
            lines.push(format!("{key} {value}"));
        }
    }
    for (key, value) in [("memory", about.memory_bytes), ("context", about.context_bytes)] {
        if value != 0 {
            lines.push(format!("{key} {value}"));
        }
    }
    lines.extend(recording.finish.iter().map(ToString::to_string));
    lines.extend(recording.start.iter().map(|event| format!("start {event}")));
    lines.extend(recording.events.iter().map(ToString::to_string));
    lines.push(String::new());
    lines.join("\n")
}

fn fact(recording: &mut Recording, line: &str) -> Result<(), String> {
    let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| {
        let word = *words.get(index).ok_or(format!("`{line}` ends too early"))?;
        number(word)
    };
    match key {
        "torch" => recording.about.torch = rest.to_owned(),
        "settings" => recording.about.allocator_settings = rest.to_owned(),
        "memory" => recording.about.memory_bytes = number(0)?,
        "context" => recording.about.context_bytes = number(0)?,
        "start" => recording.start.push(event(rest)?),
        "segment" => recording.finish.push(segment(line, &words)?),
        "block" => {
            let name = words.get(2).copied().unwrap_or_default();
            let block = Block {
                address: number(0)?,
                size: number(1)?,
                state: BlockState::from_name(name).ok_or(format!("`{name}` is no state"))?,
                requested: number(4)?,
            };
            let segment = recording.finish.last_mut().ok_or("a block before its segment")?;
            segment.blocks.push(block);
        }
        _ => recording.events.push(event(line)?),
    }
    Ok(())
}

fn segment(line: &str, words: &[&str]) -> Result<Segment, String> {
    let at = |index: usize| words.get(index).copied().ok_or(format!("`{line}` ends too early"));
    let after = |key: &str| words.iter().position(|word| *word == key).map(|index| index + 1);
    let pool = match after("pool") {
        None => (0, 0),
        Some(index) => pool(at(index)?)?,
    };
    Ok(Segment {
        address: number(at(0)?)?,
        size: number(at(1)?)?,
        stream: after("stream").map_or(Ok(0), |index| number(at(index)?))?,
        pool,
        large: words.contains(&"large"),
        expandable: words.contains(&"expandable"),
        blocks: Vec::new(),
    })
}

fn number(word: &str) -> Result<u64, String> {
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("`{word}` is not a number"))
}

fn pool(word: &str) -> Result<(u32, u32), String> {
    let (a, b) = word.split_once('.').ok_or("a pool is written `1.0`".to_owned())?;
    let part = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a number"));
    Ok((part(a)?, part(b)?))
}

fn event(line: &str) -> Result<Event, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = |index: usize| words.get(index).copied().ok_or(format!("`{line}` ends too early"));
    let number = |index: usize| number(at(index)?);
    let after = |key: &str| words.iter().position(|word| *word == key).map(|index| index + 1);
    let optional = |key: &str| after(key).map_or(Ok(0), number);
    let pool = || match after("pool") {
        None => Ok((0, 0)),
        Some(index) => pool(at(index)?),
    };
    let stream = || optional("stream");
    Ok(match at(0)? {
        "alloc" => Event::Alloc {
            address: number(1)?,
            size: number(2)?,
            stream: stream()?,
            owner: OwnerId(optional("owner")? as u32),
            pool: pool()?,
        },
        "free_requested" => Event::FreeRequested { address: number(1)?, size: number(2)? },
        "free_completed" => Event::FreeCompleted { address: number(1)?, size: number(2)? },
        "segment_alloc" => Event::SegmentAlloc {
            address: number(1)?,
            size: number(2)?,
            stream: stream()?,
            pool: pool()?,
        },
        "segment_free" => Event::SegmentFree {
            address: number(1)?,
            size: number(2)?,
            stream: stream()?,
            pool: pool()?,
        },
        "segment_map" => Event::SegmentMap {
            address: number(1)?,
            size: number(2)?,
            stream: stream()?,
            pool: pool()?,
        },
        "segment_unmap" => Event::SegmentUnmap {
            address: number(1)?,
            size: number(2)?,
            stream: stream()?,
            pool: pool()?,
        },
        "oom" => Event::OutOfMemory {
            size: number(1)?,
            free: optional("free")?,
            stream: stream()?,
            pool: pool()?,
        },
        "phase" => Event::Mark(Mark::Phase {
            phase: Phase::from_name(at(1)?).ok_or(format!("`{line}` names no phase"))?,
            step: optional("step")? as u32,
        }),
        "name" => Event::Mark(Mark::Name {
            address: number(1)?,
            category: Category::from_name(at(2)?).ok_or(format!("`{line}` names no category"))?,
            name: TextId(optional("text")? as u32),
        }),
        "tensor" => Event::Mark(Mark::Tensor {
            address: number(1)?,
            what: TextId(optional("text")? as u32),
        }),
        other => return Err(format!("`{other}` is not an event")),
    })
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
segment 0x100000 2097152 small stream 7 pool 1.0 expandable
block 0x100000 512 active_allocated requested 3
block 0x100200 2096640 inactive requested 0
start segment_alloc 0x100000 2097152 stream 7 pool 1.0
alloc 0x100000 3 stream 7 owner 0 pool 1.0
";
        assert_eq!(write(&recording(text).unwrap()), text);
        assert_eq!(recording("block 1 2 3").unwrap_err().to_string(), "line 1: `3` is no state");
    }

    #[test]
    fn what_is_no_event_is_refused_with_its_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("# fine\nallocate 1 2"), "line 2: `allocate` is not an event");
        assert_eq!(error("alloc 0x10"), "line 1: `alloc 0x10` ends too early");
        assert_eq!(error("alloc 0x10 many"), "line 1: `many` is not a number");
    }
}
