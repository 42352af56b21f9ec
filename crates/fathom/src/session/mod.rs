//! One owner of all that a run leaves on this machine while it lasts: its processes and its folders.
//!
//! A command is started through a [`keeper`], so that nothing of it is left when it ends, when it is ended,
//! or when this program is killed. Signals go to the command and do not end this program ([`signals`]): it
//! stays to report what is known by then. A [`Folder`] goes with the run, and one that was left behind is
//! removed by the next; in a [`Kept`] folder only what carries our mark is ever replaced.

mod folder;
mod keeper;
mod kept;
mod messages;
mod running;
mod signals;
mod tree;

pub(crate) use folder::Folder;
pub(crate) use keeper::{NAME as KEEPER, keep};
pub(crate) use kept::{Kept, make_rank, rank};
pub(crate) use running::{Cut, Ended, Running, Streams, start};
pub(crate) use signals::{ending, expect_trials, name};
pub(crate) use tree::{kill, trees};
