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
        /// Whether the loss is a mean over unequal numbers of targets: of smaller batches it is another mean.
        means_of_means: bool,
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
        /// Settings of the script's own that may do what a lever does.
        settings: Vec<Setting>,
    }

    /// A setting that the script has already: a flag, a key of its config file, a constant.
    Setting {
        /// As the user knows it.
        name: String,
        /// The remedy that it looks like: a row of the table of remedies.
        like: String,
        /// It and its other value, as they would be written.
        shown: String,
        /// Of smaller batches: in how many parts each is then.
        parts: u32,
        /// The batch of the loader with it, if that changes too.
        batch: Option<u32>,
        /// Words behind the command that set it.
        words: Vec<String>,
        /// Or its other value as text.
        edits: Vec<Edit>,
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
