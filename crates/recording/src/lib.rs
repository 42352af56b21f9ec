//! The narrow waist: what happened to one card's memory, as a flat list of events, and who did it.
//!
//! Whatever can be turned into a [`Recording`] can be replayed and explained: runs on the phantom,
//! runs on a real card, memory snapshots. Sizes are bytes, addresses are the card's own, and the
//! order of events is the order in which PyTorch's allocator saw them.
//!
//! - [`event`]: the events and the marks between them;
//! - [`state`]: segments and blocks at one moment;
//! - [`owner`]: module, operator, source line, phase and step behind an allocation;
//! - [`mod@facts`]: what the recorder saw of the script beside its memory;
//! - [`mod@file`]: compact, checked, written while the script runs;
//! - [`text`]: one event per line, for people and tests.

// A file may come from anyone: no number in it may make this panic.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

pub mod event;
pub mod facts;
pub mod file;
mod known;
mod names;
pub mod owner;
pub mod state;
pub mod text;

pub use event::{Category, Event, Mark, Phase};
pub use facts::Facts;
pub use known::Known;
pub use owner::{Frame, FrameId, Owner, OwnerId, Stack, StackId, Text, TextId};
pub use state::{Block, BlockState, Segment};

/// Facts about the run, such as the versions of torch and CUDA and the card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// As torch reports it, e.g. `2.15.0+cu132`; empty if not known.
    pub torch: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the run; empty for the defaults.
    pub allocator_settings: String,
    /// Total memory of the card; 0 if not known.
    pub memory_bytes: u64,
    /// Memory of the card that PyTorch cannot have: the context; 0 if not known.
    pub context_bytes: u64,
    /// The card's number in its process.
    pub device: u32,
    /// Counts of parameters; `None` if no optimizer or module was seen.
    pub parameters: Option<Parameters>,
    /// What autograd kept for the backward pass that kept most; `None` if none was seen.
    pub saved: Option<Saved>,
    /// What the recorder saw of the script beside its memory, kind by kind: `frozen` modules, `unused`
    /// parameters, calls of `sdpa`, `checkpointing` switches, the `optimizer`, …; see [`facts`].
    pub facts: Facts,
    /// What PyTorch's own counters said when the recording ended; `None` if they were not read.
    pub counters: Option<Counters>,
    /// Whether the recording was brought to its end; else its process was killed on the way.
    pub complete: bool,
}

/// How many numbers a model learns, and how many it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// All elements of all parameters.
    pub total: u64,
    /// Of those that require a gradient.
    pub trainable: u64,
    /// Of those that require none.
    pub frozen: u64,
    /// Of trainable ones that had no gradient after a backward pass.
    pub unused: u64,
}

/// What autograd keeps, beside what people count with hooks on modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Bytes of storages that the graph keeps, each once, without parameters.
    pub kept: u64,
    /// Sum of the outputs of all modules in that forward pass: what forward hooks count.
    pub outputs: u64,
}

/// PyTorch's own peaks, as `torch.cuda.memory_stats` gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// `allocated_bytes.all.peak`
    pub allocated_peak: u64,
    /// `reserved_bytes.all.peak`
    pub reserved_peak: u64,
    /// `requested_bytes.all.peak`
    pub requested_peak: u64,
    /// `allocated_bytes.all.current`
    pub allocated: u64,
    /// `reserved_bytes.all.current`
    pub reserved: u64,
}

/// A module of the user's model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its path, as owners name it: `encoder.layers.3.attn`; of a root its class name.
    pub path: TextId,
    /// Its class, e.g. `MultiheadAttention`.
    pub class: TextId,
}

/// One card's memory over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Versions and the card.
    pub about: About,
    /// Names of modules, operators, files, functions; events refer to them by [`TextId`].
    pub texts: Text,
    pub frames: Vec<Frame>,
    /// Call stacks, sharing their outer parts.
    pub stacks: Vec<Stack>,
    /// Who allocated; events refer to them by [`OwnerId`].
    pub owners: Vec<Owner>,
    /// Modules that owners name.
    pub modules: Vec<Module>,
    /// Segments and blocks that were there when recording began, as events that make them.
    pub start: Vec<Event>,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Segments and blocks after the last event, as a snapshot lists them; empty if not known.
    /// What was there at the beginning follows from it, if `start` does not say.
    pub finish: Vec<Segment>,
}

impl Recording {
    /// How many events of the allocator it holds. A snapshot of a state without a trace holds none, but
    /// may hold marks.
    pub fn trace_length(&self) -> usize {
        self.trace_number(self.events.len())
    }

    /// Which of the allocator's events the one at this index is, counted from 0.
    pub fn trace_number(&self, index: usize) -> usize {
        self.events.iter().take(index).filter(|event| event.is_of_allocator()).count()
    }
}
