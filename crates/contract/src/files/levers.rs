//! `levers.<pid>.json`: where the changes took hold that `fit` tries inside of a script.

use super::File;
use super::shape::records;

impl File for Levers {
    const KIND: &'static str = "levers";
    const TELLS: &'static str = "where the levers of this trial took hold";
}

records! {
    /// What became of all that were asked for.
    Levers {
        /// One row each.
        levers: Vec<Lever>,
    }

    /// One lever.
    Lever {
        /// Its name.
        lever: String,
        /// Whether it took hold, and may count.
        applied: bool,
        /// Why not.
        reason: Option<String>,
        /// What was changed: paths of modules, classes of optimizers.
        sites: Vec<String>,
        /// `file:line` of the code that the change belongs to.
        places: Vec<String>,
        /// Whether the model has BatchNorm that it would meet.
        meets_batch_norm: bool,
        /// The change of the code that it stands for.
        change: String,
        /// The script's batch size, if the lever is about it.
        batch: Option<u32>,
        /// The change as text, where it can be written.
        edits: Vec<Edit>,
        /// Why some or all of it cannot be written, each with its line.
        in_the_way: Vec<String>,
        /// Words behind the command that do the same.
        words: Vec<String>,
    }

    /// What stands in a file instead of some of its bytes.
    Edit {
        /// Its path.
        file: String,
        /// The first byte that goes.
        begin: u64,
        /// The first one that stays.
        end: u64,
        /// What comes in their place.
        text: String,
    }
}
