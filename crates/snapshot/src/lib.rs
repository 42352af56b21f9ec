//! PyTorch memory snapshots (`torch.cuda.memory._dump_snapshot`), read and written.
//!
//! Given the bytes of a file, [`read`] gives a [`Snapshot`]: plain structs with public fields.
//! The file is a pickle and may come from anyone: [`pickle`] executes nothing, every read is
//! checked, memory stays proportional to the file. [`write`] gives bytes that CPython loads and
//! pytorch.org/memory_viz opens. No file is touched here: bytes in, bytes out.
//!
//! [`to_recordings`] and [`from_recording`] go between a snapshot and what Fathom replays and explains;
//! [`with_clues`] adds what a snapshot tells beside its events.

// A file may come from anyone: no number in it may make this panic.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

mod convert;
mod error;
mod keys;
mod model;
pub mod pickle;
mod read;
mod tables;
mod write;

pub use convert::{Clues, Region, from_recording, to_recordings, with_clues};
pub use error::{Error, Lookalike};
pub use model::{
    Action, AllocatorSettings, Annotation, Block, BlockState, Contents, Form, PoolId, Segment,
    SegmentKind, Snapshot, TraceEntry,
};
pub use read::read;
pub use tables::{Frame, FrameId, Interner, StackId, StringId, Tables};
pub use write::write;
