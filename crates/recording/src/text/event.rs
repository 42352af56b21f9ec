//! One event as a line, both ways.

use std::fmt;

use super::fields::{Words, pool};
use super::hint::hint;
use crate::event::{Category, Event, Mark, Phase};
use crate::owner::{OwnerId, TextId};

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
            Event::Mark(Mark::Owner { address, owner }) => {
                write!(to, "owner_of {address:#x} owner {}", owner.0)
            }
            Event::Mark(Mark::Holder { address, by }) => {
                write!(to, "holder {address:#x} text {}", by.0)
            }
            Event::Mark(Mark::Area { address, area }) => {
                write!(to, "area {address:#x} text {}", area.0)
            }
            Event::Mark(Mark::Soft { address }) => write!(to, "soft {address:#x}"),
            Event::Mark(Mark::Evidence { address, by }) => {
                write!(to, "evidence {address:#x} text {}", by.0)
            }
            Event::Mark(Mark::Deferred) => write!(to, "deferred"),
            Event::Mark(Mark::Idle { free }) => write!(to, "idle free {free}"),
        }
    }
}

/// First words of events, for whoever mistypes one.
const KINDS: [&str; 18] = [
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "phase",
    "name",
    "tensor",
    "owner_of",
    "holder",
    "area",
    "soft",
    "evidence",
    "deferred",
    "idle",
];

/// The event of a line.
pub(super) fn event(line: &str) -> Result<Event, String> {
    let words = Words::of(line);
    let event = event_of(&words)?;
    words.nothing_else()?;
    Ok(event)
}

fn event_of(words: &Words<'_>) -> Result<Event, String> {
    let number = |index: usize| words.number(index);
    let stream = || words.after("stream");
    let pool = || pool(words);
    Ok(match words.at(0)? {
        "alloc" => Event::Alloc {
            address: number(1)?,
            size: number(2)?,
            stream: stream()?,
            owner: OwnerId(words.small("owner")?),
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
            free: words.after("free")?,
            stream: stream()?,
            pool: pool()?,
        },
        _ => Event::Mark(mark_of(words)?),
    })
}

fn mark_of(words: &Words<'_>) -> Result<Mark, String> {
    let number = |index: usize| words.number(index);
    Ok(match words.at(0)? {
        "phase" => Mark::Phase {
            phase: Phase::from_name(words.at(1)?)
                .ok_or(format!("`{}` names no phase", words.line()))?,
            step: words.small("step")?,
        },
        "name" => Mark::Name {
            address: number(1)?,
            category: Category::from_name(words.at(2)?)
                .ok_or(format!("`{}` names no category", words.line()))?,
            name: TextId(words.small("text")?),
        },
        "tensor" => Mark::Tensor { address: number(1)?, what: TextId(words.small("text")?) },
        "owner_of" => Mark::Owner { address: number(1)?, owner: OwnerId(words.small("owner")?) },
        "holder" => Mark::Holder { address: number(1)?, by: TextId(words.small("text")?) },
        "area" => Mark::Area { address: number(1)?, area: TextId(words.small("text")?) },
        "soft" => Mark::Soft { address: number(1)? },
        "evidence" => Mark::Evidence { address: number(1)?, by: TextId(words.small("text")?) },
        "deferred" => Mark::Deferred,
        "idle" => Mark::Idle { free: words.small("free")? },
        other => return Err(format!("`{other}` is not an event{}", hint(other, &KINDS))),
    })
}
