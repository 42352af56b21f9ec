//! What rests on values that nobody knows, in words.

/// The verdict of a trial, for programs.
pub fn word(verdict: &fit::Outcome) -> &'static str {
    match verdict {
        fit::Outcome::Fits => "fits",
        fit::Outcome::FitsIf => "fits_if",
        fit::Outcome::DoesNotFit => "does_not_fit",
        fit::Outcome::Failed(_) => "script_failed",
        fit::Outcome::NotRun => "not_run",
    }
}

/// What it takes for an answer to hold that rests on values which nobody knows.
pub(crate) fn condition(places: Option<&str>) -> String {
    format!("what {} gives is as assumed", places.unwrap_or("a value"))
}

/// What `fits if` means below a table of trials, and what can be done.
pub(crate) fn legend(places: &str) -> String {
    format!(
        "fits if {}: that is not known; `fathom run` says what was assumed, and `--assume FILE:LINE=NUMBER` says what \
         is found there",
        condition(Some(places))
    )
}
