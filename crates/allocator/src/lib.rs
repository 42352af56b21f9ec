//! PyTorch's caching allocator, byte for byte.
//!
//! [`replay`] takes the requests of a [`recording::Recording`] and some [`Settings`] and gives the
//! [`Timeline`]: the block of every request, every segment that came and went, PyTorch's statistics,
//! and whether it ran out of memory. [`reproduce`] does it under the recording's own settings and says
//! where the two first differ: nowhere, if the settings are right.
//!
//! Implemented from a specification of the behaviour of torch 1.13 to 2.15; each rule names the
//! function of `CUDACachingAllocator.cpp` it mirrors. It knows no tensors, does no I/O, and the same
//! input gives the same bytes.
//!
//! - `settings`, `conf`: what versions and users can change;
//! - `allocator`, `free`, `release`, `expandable`: the state machine; `block`, `pool`: its data;
//! - `source`, `recorded`: where segments come from;
//! - `replay`, `reproduce`, `retry`, `cache_calls`: feeding it with a recording;
//! - `late`: deferred frees, completed as late as a card may;
//! - `contradiction`: whether the listed end follows from the events;
//! - `rewind`, `state`, `front`: the state before a trace that begins in the middle of a run;
//! - `observed`: what a trace shows by its own addresses, without a replay;
//! - `on_card`: the requests on a card of another size, whatever was there before them;
//! - `floor`, `packing`: the least memory that does, for this allocator and for an ideal one;
//! - `layout`: what a timeline says of one moment; [`fragments`]: how memory lies in pieces at one moment, and why a request found no room;
//! - [`validate`]: a slow and separate check of any timeline.

mod allocator;
mod block;
mod cache_calls;
mod conf;
mod contradiction;
mod expandable;
mod floor;
pub mod fragments;
mod free;
mod front;
mod late;
mod layout;
mod observed;
mod on_card;
mod oom;
mod packing;
mod pool;
mod recorded;
mod release;
mod replay;
mod reproduce;
mod retry;
mod rewind;
mod settings;
mod source;
mod state;
mod stats;
mod taken;
mod timeline;
pub mod validate;

pub use allocator::{Allocator, Handle};
pub use contradiction::{Contradiction, contradiction};
pub use floor::{fits, floor};
pub use late::deferred;
pub use observed::observe;
pub use on_card::{OnCard, Start};
pub use oom::OutOfMemory;
pub use packing::{Packing, pack};
pub use replay::{Requests, replay};
pub use reproduce::{Difference, Reproduction, reproduce, reproduced};
pub use rewind::start;
pub use settings::{Error, FractionRule, MIB, NEWEST, Settings, TieBreak, UNLIMITED, Version};
pub use source::{SegmentSource, SyntheticCard};
pub use stats::{PoolStat, Stat, Stats};
pub use timeline::{Moment, Outcome, SegmentEvent, Timeline, fatal};
