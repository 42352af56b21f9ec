//! What a run has shown, rendered for people and for programs.
//!
//! Given a [`Run`], [`terminal`] gives text and [`json`] the versioned mirror `fathom.report/1`.
//! Nothing is computed here that the run does not already hold.

pub mod bytes;
mod json;
mod run;
mod terminal;

pub use json::json;
pub use run::{Card, FitsOn, OutOfMemory, Peak, PeakBytes, Run, Software, Verdict, Workspaces};
pub use terminal::{Palette, terminal};
