//! How a trial is made: forked or cold, confined or free, and what is tried when it fails.

use study::{Run, Verdict};

use super::Job;
use crate::confined::{By, Confined, Window};
use crate::outcome;

/// Lines of a failed trial that are looked through for what was refused.
const LAST_LINES: usize = 12;

/// What a trial may do to the world around it. Each is confined first (`confined.rs`).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Guard {
    /// Whether it is made all the same where it cannot be confined, or is refused what it needs: who asks for trials by
    /// name wants answers.
    pub(crate) may_be_free: bool,
    /// The run that it repeats: what that made is not there yet.
    pub(crate) repeats: Option<Window>,
}

/// How a trial is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Whether it is forked from the warm process.
    pub(super) start: By,
    /// Whether it writes where the script writes.
    pub(super) is_free: bool,
    /// Whether it sees what the run that it repeats has made: that may be data which it cannot get once more.
    pub(super) sees_all: bool,
}

impl Way {
    pub(super) fn confined(self, guard: &Guard) -> Option<Confined> {
        let unseen = guard.repeats.filter(|_| !self.sees_all);
        (!self.is_free).then_some(Confined { by: self.start, unseen })
    }

    /// What is tried after a failure: it may be the fork's doing, or that of what was kept from it.
    pub(super) fn next(self, job: &Job, run: &Run) -> Option<Way> {
        let is_late = run.verdict == Verdict::TimedOut;
        let was_refused = was_refused(job, run);
        let is_short = job.settings.short.is_some();
        match () {
            () if self.is_free || is_late && is_short => None,
            () if job.guard.repeats.is_some() && !self.sees_all && !is_late => {
                Some(Way { sees_all: true, ..self })
            }
            () if job.guard.may_be_free && was_refused => {
                Some(Way { start: By::Launcher, is_free: true, ..self })
            }
            () if self.start == By::Fork && !was_refused && !is_short => {
                Some(Way { start: By::Launcher, ..self })
            }
            () => None,
        }
    }
}

/// Whether a confined trial that failed was kept from something.
pub(crate) fn was_refused(job: &Job, run: &Run) -> bool {
    let refused = outcome::refused(&job.folder);
    let said = run.failure.clone().unwrap_or_default() + &job.last_lines(LAST_LINES);
    run.failure.is_some() && (!refused.is_empty() || speaks_of_refusal(&said))
}

/// Whether an error is one of those in which a refusal of the kernel's ends, in Python, in C or in a shell.
pub(crate) fn speaks_of_refusal(said: &str) -> bool {
    const WORDS: [&str; 6] = [
        "PermissionError",
        "Permission denied",
        "Operation not permitted",
        "readonly",
        "read-only",
        "unable to open database",
    ];
    WORDS.iter().any(|word| said.contains(word))
}
