//! `early.<pid>.json`: the exception that ended a process which had not used a card.

use super::File;
use super::process::End;
use super::shape::records;

impl File for Early {
    const KIND: &'static str = "early";
    const TELLS: &'static str = "the exception that ended a process before it used a card";
}

records! {
    /// The end of a process that no other file speaks of.
    Early {
        /// How it ended.
        end: End,
    }
}
