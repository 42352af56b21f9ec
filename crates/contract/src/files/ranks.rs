//! `waits.<pid>.json` and `unanswered.<pid>.json`: why a rank that runs alone cannot go on.

use super::File;
use super::shape::records;

impl File for Waits {
    const KIND: &'static str = "waits";
    const TELLS: &'static str = "which rank's data this one waits for";
}

impl File for Unanswered {
    const KIND: &'static str = "unanswered";
    const TELLS: &'static str = "the call that only other ranks could answer";
}

records! {
    /// A rank that needs what only another knows, which has not run yet.
    Waits {
        /// Which.
        rank: u32,
        /// Whose data it needs.
        sender: u32,
        /// The file that is waited for, in the folder of letters.
        letter: String,
        /// The call that needs it.
        call: String,
    }

    /// A call that only other ranks could answer.
    Unanswered {
        /// What the script was told.
        message: String,
    }
}
