//! What to change so that a run fits, tried before it is advised.
//!
//! Everything here is pure: whoever calls hands over a [`Runner`] that makes trials, and decides what a
//! trial is. The same answers of the runner give the same result.
//!
//! - [`knob`]: a setting of the user's own script, as flag, `key=value`, variable or config key;
//! - [`config_text`]: another value for one key of a YAML or JSON text;
//! - [`trial`]: what is asked of a runner, and what it answers;
//! - [`law`]: how a peak grows with a knob, and what it will be at another value;
//! - [`scaling`]: how a peak and its causes grew with a knob in a sweep, and the smallest world that fits;
//! - [`trace`]: which settings make a size;
//! - [`grid`], [`largest`]: which values fit which card, and the largest that does;
//! - [`lever`]: changes of the training, by what they do to it;
//! - [`saved`], [`checkpoint`]: what modules save, and which of them to compute again;
//! - [`plan`]: the search for a plan that fits;
//! - [`patch`]: a plan as changes of files.

pub mod checkpoint;
pub mod config_text;
pub mod grid;
pub mod knob;
pub mod largest;
pub mod law;
pub mod lever;
pub mod patch;
pub mod plan;
pub mod saved;
pub mod scaling;
pub mod trace;
pub mod trial;

pub use anatomy::Peaks;
pub use knob::{Knob, Setting};
pub use law::Law;
pub use lever::{Label, Lever};
pub use trial::{Measured, Memory, Outcome, Runner, Target, Trial};
