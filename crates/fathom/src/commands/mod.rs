//! One function per verb.

mod calibrate;
mod cards;
mod check;
mod diff;
mod doctor;
mod explain;
mod fit;
mod gpus;
mod meta;
mod next;
mod page;
mod replay;
mod report;
mod run;
mod sweep;
mod viewer;

pub(crate) use calibrate::calibrate;
pub(crate) use check::check;
pub(crate) use diff::diff;
pub(crate) use doctor::doctor;
pub(crate) use explain::{explain, explanation};
pub(crate) use fit::fit;
pub(crate) use gpus::gpus;
pub(crate) use meta::{completions, man};
pub(crate) use page::page;
pub(crate) use replay::replay;
pub(crate) use report::report;
pub(crate) use run::run;
pub(crate) use sweep::sweep;
pub(crate) use viewer::viewer;
