//! What a recording and a run show, as the nouns that all commands share.
//!
//! [`study()`] replays a [`recording::Recording`] once and gives a [`Study`]: anatomy, causes, pieces, the smallest card,
//! late frees. A [`Run`] is a command that was run: its verdict, its peaks, and the study of its recording. Nothing
//! here reads files or asks a clock, and nothing writes for people: that is `report`'s.
//!
//! - `study`: the replay and what follows; `replayer`: through which allocator; `agreement`: whether it is what was recorded;
//! - [`mod@fragments`], `pieces`, `shortage`: how memory lies at one moment, and why a request found no room;
//! - [`settings_trials`], [`one_card`]: the same requests under other settings, and on one card; `sought`: the allocations of a size;
//! - `run`, `ranks`, `workspaces`: what is known of a run; `decision`: what its verdict rests on;
//! - [`need`]: the smallest card on which a run goes through; `beyond`: a run that does not fit, without a limit;
//! - `whole`: what a training does after its first steps;
//! - `growing`: how long memory lasts that grows with every step;
//! - `judgement`: what is said of it all, with its margin.

mod agreement;
mod beyond;
mod card_size;
mod decision;
pub mod fragments;
mod growing;
mod judgement;
mod names;
pub mod need;
pub mod one_card;
mod pieces;
mod ranks;
mod replayer;
mod run;
pub mod settings_trials;
mod shortage;
mod sought;
mod study;
mod whole;
mod workspaces;

pub use agreement::note as agreement;
pub use beyond::Beyond;
pub use card_size::sized;
pub use decision::{Decision, Most, RestsOn, places};
pub use judgement::Judgement;
pub use need::{Need, NeedKnown};
pub use ranks::{Rank, Ranks};
pub use recording::Phase;
pub use replayer::Replayer;
pub use run::{
    Against, Deferred, Fit, FitsOn, OutOfMemory, Peak, PeakBytes, Process, Run, SIMULATED,
    Software, Unattributed, Unfinished, Verdict, memory_text,
};
pub use sought::{Refused, Sought, seek};
pub use study::{Context, Source, Study, Wants, study, study_with};
pub use whole::{BatchOrder, Batches, PhaseSeen, Varies, Whole, WholeCame};
pub use workspaces::Workspace;
