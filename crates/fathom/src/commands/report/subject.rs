//! The command as it is: its run, and the one without a limit where it does not fit.

use anatomy::Peaks;
use anyhow::Result;
use gpus::Card;
use study::{Run, Verdict};

use crate::cli::ReportArguments;
use crate::commands::run::{Files, see};
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::settings::{Settings, Typed};

pub(super) struct Subject {
    pub(super) run: Run,
    /// Where the run does not fit: what it takes without a limit.
    pub(super) unlimited: Option<Run>,
    /// Whose files stay until the document is written.
    pub(super) files: std::path::PathBuf,
    _kept: Files,
    /// Who ran it without a limit.
    pub(super) runner: Option<OnPhantom>,
}

impl Subject {
    /// Runs it on the card, else on the one of the settings, else without a limit.
    pub(super) fn measure(
        command: &[String],
        arguments: &ReportArguments,
        card: Option<&Card>,
    ) -> Result<Subject> {
        let typed = Typed { keeps_source: true, ..Typed::from(&arguments.trial) };
        let mut settings = Settings::resolve(&typed)?;
        settings.card = card.cloned().or(settings.card);
        let (mut run, files, kept_files) = see(command, &settings, None, None)?.into_parts();
        run.keep_cards_that_are_certain();
        let (mut unlimited, mut again) = (None, None);
        if run.verdict == Verdict::DoesNotFit && crate::session::ending().is_none() {
            let card =
                run.card.clone().unwrap_or_else(gpus::unlimited).with_memory(gpus::UNLIMITED_BYTES);
            let (settings, progress) =
                (settings.for_trials(), Progress::new(arguments.trial.quiet));
            let mut runner = OnPhantom::new(
                command,
                Vec::new(),
                vec![card.clone()],
                settings,
                !arguments.trial.fresh,
                progress,
            )?;
            let went = runner.run_on(&[card])?.pop();
            unlimited = went.filter(|run| run.verdict == Verdict::Fits && run.anatomy().is_some());
            again = Some(runner);
        }
        Ok(Subject { run, unlimited, files, _kept: kept_files, runner: again })
    }

    /// The run that went through: what is taken apart.
    pub(super) fn whole(&self) -> &Run {
        self.unlimited.as_ref().unwrap_or(&self.run)
    }

    /// The most that it took on the card itself.
    pub(super) fn peaks(&self) -> Option<Peaks> {
        let peak = self.run.peak.as_ref()?;
        Some(Peaks {
            allocated: peak.allocated.bytes,
            reserved: peak.reserved.bytes,
            device: peak.device_bytes,
        })
    }

    /// The card that the answer is about; one without a limit if none was named.
    pub(super) fn card(&self) -> Card {
        self.run.card.clone().unwrap_or_else(gpus::unlimited)
    }
}
