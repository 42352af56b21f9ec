//! What a run has shown, rendered for people and for programs.
//!
//! Given a [`Run`], [`terminal`] gives text and [`json`] the versioned mirror `fathom.report/1`.
//! An [`Explanation`] is the same for a file without a run. Nothing is computed here that they do not
//! already hold. [`check`] renders what a gate found, [`diff`], [`fit`], [`mod@replay`], [`sweep`] and [`oom`] the
//! other answers.

mod baseline;
pub mod check;
pub mod diff;
mod explain;
pub mod fit;
pub mod fragments;
mod json;
mod lines;
pub mod oom;
mod processes;
mod ranks;
pub mod replay;
mod run;
mod sections;
pub mod sweep;
mod terminal;
mod why;
mod workspaces;

pub use anatomy::bytes;
pub use baseline::baseline;
pub use explain::{Explanation, explain};
pub use json::{explain as explain_json, json};
pub use lines::{clean, visible};
pub use ranks::{Rank, Ranks};
pub use run::{
    Against, Card, Decision, Deferred, Fit, FitsOn, Most, OutOfMemory, Peak, PeakBytes, Process,
    Run, Software, Unattributed, Unfinished, Verdict, memory_text,
};
pub use sections::Unfold;
pub use terminal::{Palette, headline, terminal};
pub use workspaces::{Workspace, sentence as workspaces_sentence};
