//! The gate: has a run grown beyond what was agreed?
//!
//! A [`Baseline`] is what a run needed, small enough to be committed beside the script: peaks, categories
//! and modules. [`compare`] holds a run against it and gives a [`Comparison`]: what changed, and whether
//! that is more than the [`Margin`] allows. The file form is `fathom.baseline/1`.

mod baseline;
mod compare;
mod file;
mod margin;

pub use anatomy::Peaks;
pub use baseline::{Baseline, BaselineCard, Module};
pub use compare::{Change, Comparison, Kind, ModuleChange, compare};
pub use file::{Error, LISTED, SCHEMA, read, write};
pub use margin::{DEFAULT_MARGIN, Margin};
