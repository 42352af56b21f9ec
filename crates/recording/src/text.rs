//! The text form: one event per line. What tests are written in, and what a failing one prints.

use std::fmt;

use crate::Recording;
use crate::event::{Category, Event, Mark, Phase};
use crate::owner::{OwnerId, TextId};

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
            Event::SegmentFree { address, size } => write!(to, "segment_free {address:#x} {size}"),
            Event::SegmentMap { address, size, stream, pool: p } => {
                write!(to, "segment_map {address:#x} {size} stream {stream}{}", pool(p))
            }
            Event::SegmentUnmap { address, size } => {
                write!(to, "segment_unmap {address:#x} {size}")
            }
            Event::OutOfMemory { size, free, stream } => {
                write!(to, "oom {size} free {free} stream {stream}")
            }
            Event::Mark(Mark::Phase { phase, step }) => {
                write!(to, "phase {} step {step}", phase.name())
            }
            Event::Mark(Mark::Name { address, category, name }) => {
                write!(to, "name {address:#x} {} text {}", category.name(), name.0)
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

/// A recording with these events and nothing else.
pub fn recording(text: &str) -> Result<Recording, Error> {
    Ok(Recording { events: parse(text)?, ..Recording::default() })
}

fn event(line: &str) -> Result<Event, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = |index: usize| words.get(index).copied().ok_or(format!("`{line}` ends too early"));
    let number = |index: usize| {
        let word = at(index)?;
        let parsed = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => word.parse(),
        };
        parsed.map_err(|_| format!("`{word}` is not a number"))
    };
    let after = |key: &str| words.iter().position(|word| *word == key).map(|index| index + 1);
    let optional = |key: &str| after(key).map_or(Ok(0), number);
    let pool = || match after("pool") {
        None => Ok((0, 0)),
        Some(index) => {
            let (a, b) = at(index)?.split_once('.').ok_or("a pool is written `1.0`".to_owned())?;
            let part =
                |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a number"));
            Ok::<_, String>((part(a)?, part(b)?))
        }
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
        "segment_free" => Event::SegmentFree { address: number(1)?, size: number(2)? },
        "segment_map" => Event::SegmentMap {
            address: number(1)?,
            size: number(2)?,
            stream: stream()?,
            pool: pool()?,
        },
        "segment_unmap" => Event::SegmentUnmap { address: number(1)?, size: number(2)? },
        "oom" => {
            Event::OutOfMemory { size: number(1)?, free: optional("free")?, stream: stream()? }
        }
        "phase" => Event::Mark(Mark::Phase {
            phase: Phase::from_name(at(1)?).ok_or(format!("`{line}` names no phase"))?,
            step: optional("step")? as u32,
        }),
        "name" => Event::Mark(Mark::Name {
            address: number(1)?,
            category: Category::from_name(at(2)?).ok_or(format!("`{line}` names no category"))?,
            name: TextId(optional("text")? as u32),
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
segment_free 0x7f0000000000 2097152
segment_map 0x7f0000000000 20971520 stream 5 pool 0.2
segment_unmap 0x7f0000000000 20971520
oom 1024 free 512 stream 0
phase before_optimizer step 2
name 0x7f0000000200 model_copies text 4";
        let events = parse(text).unwrap();
        let back: Vec<String> = events.iter().map(ToString::to_string).collect();
        assert_eq!(back.join("\n"), text);
    }

    #[test]
    fn what_is_no_event_is_refused_with_its_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("# fine\nallocate 1 2"), "line 2: `allocate` is not an event");
        assert_eq!(error("alloc 0x10"), "line 1: `alloc 0x10` ends too early");
        assert_eq!(error("alloc 0x10 many"), "line 1: `many` is not a number");
    }
}
