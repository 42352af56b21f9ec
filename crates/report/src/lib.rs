//! What a run has shown, rendered for people and for programs.
//!
//! Given a [`Run`], [`terminal`] gives text and [`json`] the versioned mirror `fathom.report/1`.
//! An [`Explanation`] is the same for a file without a run. Nothing is computed here that they do not
//! already hold. [`check`] renders what a gate found, [`diff`], [`fit`], [`mod@replay`], [`sweep`] and [`oom`] the
//! other answers.

mod assumed;
mod baseline;
pub mod cards;
pub mod check;
pub mod diff;
pub mod document;
mod explain;
mod explain_ranks;
pub mod fit;
mod json;
mod lines;
mod markup;
mod moment;
pub mod oom;
mod processes;
mod ranks;
mod reader;
pub mod replay;
mod sections;
pub mod sweep;
mod terminal;
mod trials;
mod verdict;
mod whole;
mod why;
mod workspaces;

pub use anatomy::bytes;
pub use assumed::word as outcome_name;
pub use baseline::baseline;
pub use explain::{Explanation, explain};
pub use explain_ranks::{RankedSides, explain_ranks};
pub use json::{explain as explain_json, json};
pub use lines::{clean, visible};
pub use reader::Reader;
pub use sections::Unfold;
pub use terminal::terminal;
pub use trials::Trials;
pub use verdict::{answer, headline};
pub use workspaces::sentence as workspaces_sentence;
