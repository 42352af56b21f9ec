//! One function per verb.

mod doctor;
mod gpus;
mod meta;
mod run;

pub(crate) use doctor::doctor;
pub(crate) use gpus::gpus;
pub(crate) use meta::{completions, man};
pub(crate) use run::run;
