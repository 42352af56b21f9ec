//! What was said in words of a command, of a script in `fathom.toml` or of nobody: `None` leaves it to weaker places.

use std::path::PathBuf;

use crate::cli::{CardArguments, FitArguments, RunArguments, TrialArguments};

/// Settings as they were typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typed {
    pub(crate) card: CardArguments,
    pub(crate) steps: Option<u64>,
    pub(crate) timeout: Option<u64>,
    pub(crate) budget: Option<String>,
    pub(crate) values: Option<String>,
    pub(crate) assume: Vec<String>,
    pub(crate) record: Option<String>,
    pub(crate) verify: Option<String>,
    pub(crate) batch_order: Option<String>,
    pub(crate) whole: Option<String>,
    pub(crate) baseline: Option<PathBuf>,
    pub(crate) margin: Option<String>,
    /// Cards that one process sees.
    pub(crate) cards: Option<u32>,
    /// Whether the recording is wanted after the report.
    pub(crate) keeps_source: bool,
    pub(crate) jobs: Option<String>,
}

impl From<&RunArguments> for Typed {
    fn from(flags: &RunArguments) -> Typed {
        Typed {
            card: flags.card.clone(),
            steps: flags.steps,
            timeout: flags.timeout,
            budget: flags.budget.clone(),
            values: flags.values.clone(),
            assume: flags.assume.clone(),
            record: flags.record.clone(),
            verify: flags.verify.clone(),
            batch_order: flags.batch_order.clone(),
            whole: flags.whole.clone(),
            baseline: flags.baseline.clone(),
            margin: flags.margin.clone(),
            cards: flags.world.gpus.as_deref().and_then(|text| text.parse().ok()),
            keeps_source: flags.page.is_some(),
            jobs: flags.jobs.clone(),
        }
    }
}

impl From<&TrialArguments> for Typed {
    fn from(flags: &TrialArguments) -> Typed {
        Typed {
            steps: flags.steps,
            timeout: flags.timeout,
            assume: flags.assume.clone(),
            jobs: flags.jobs.clone(),
            ..Typed::default()
        }
    }
}

impl From<&FitArguments> for Typed {
    fn from(flags: &FitArguments) -> Typed {
        Typed { card: flags.card.clone(), ..Typed::from(&flags.trial) }
    }
}
