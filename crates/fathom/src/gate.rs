//! Holds a run against its baseline, or writes one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gate::{Baseline, Kind, Margin, compare};
use study::{Against, Run, Verdict};

use crate::error::Hinted;
use crate::settings::Settings;
use crate::{outputs, screen};

/// A baseline is a few KiB; what is larger is something else.
const LARGEST: u64 = 1 << 20;

/// What is to be done with a run when it is over.
pub(crate) struct Gate {
    against: Option<(PathBuf, Baseline)>,
    margin: Margin,
    save: Option<PathBuf>,
}

impl Gate {
    /// Reads the baseline, or makes room for a new one: what is wrong with it is said before anything runs.
    pub(crate) fn open(settings: &Settings, save: Option<&Path>) -> Result<Gate> {
        if let Some(path) = save {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)
                    .with_context(|| format!("cannot make `{}`", folder.display()))?;
            }
            outputs::check("--save-baseline", path)?;
        }
        let path = settings.baseline.as_deref().filter(|_| save.is_none());
        let against =
            path.map(|path| Ok::<_, anyhow::Error>((path.to_owned(), read(path, settings)?)));
        Ok(Gate {
            against: against.transpose()?,
            margin: settings.margin,
            save: save.map(Path::to_owned),
        })
    }

    /// Compares; a run that fits and has grown does not pass.
    pub(crate) fn judge(&self, run: &mut Run) {
        let Some((path, before)) = &self.against else { return };
        if run.verdict == Verdict::Fits && run.peak.is_none() {
            // A gate that lets this through would never close again.
            (run.verdict, run.exit_code) = (Verdict::ScriptFailed, 3);
            run.failure = Some("the script did not use the GPU, its baseline did".to_owned());
        }
        let Some(now) = report::baseline(run) else { return };
        let comparison = compare(before, &now, self.margin);
        if comparison.kind == Kind::Grew && run.verdict == Verdict::Fits {
            (run.verdict, run.exit_code) = (Verdict::Grew, 1);
        }
        let file = path.display().to_string();
        run.against = Some(Against { file, comparison });
    }

    /// Writes the run as a baseline, if that was asked for; gives the file that was written.
    pub(crate) fn save(&self, run: &Run) -> Result<Option<&Path>> {
        let Some(path) = &self.save else { return Ok(None) };
        let Some(baseline) = report::baseline(run) else {
            let why = format!("`{}` was not written", path.display());
            if run.verdict == Verdict::Fits {
                let hint = "a baseline needs a script that uses it";
                return Err(Hinted::error(format!("{why}: the script did not use the GPU"), hint));
            }
            screen::say(&format!("fathom: {why}: the run did not come to its end on the card"));
            return Ok(None);
        };
        outputs::write(path, gate::write(&baseline).as_bytes())?;
        Ok(Some(path))
    }
}

fn read(path: &Path, settings: &Settings) -> Result<Baseline> {
    let shown = path.display();
    let write_anew =
        "`--save-baseline FILE` writes one, `fathom check --update-baselines` those of fathom.toml";
    let data = fs::metadata(path).map_err(|error| {
        Hinted::error(format!("the baseline `{shown}` cannot be read: {error}"), write_anew)
    })?;
    if !data.is_file() || LARGEST < data.len() {
        return Err(Hinted::error(
            format!("`{shown}` is not a baseline: it is not a file of some KiB"),
            write_anew,
        ));
    }
    let text = fs::read(path).with_context(|| format!("cannot read `{shown}`"))?;
    let baseline = gate::read(&String::from_utf8_lossy(&text)).map_err(|error| {
        Hinted::error(format!("`{shown}` is not a baseline: {error}"), write_anew)
    })?;
    let name = |name: Option<&str>| name.map_or("unlimited memory".to_owned(), str::to_owned);
    let of_file = name(baseline.card.as_ref().map(|card| card.name.as_str()));
    let of_run = name(settings.card.as_ref().map(|card| card.name));
    if of_file != of_run {
        return Err(Hinted::error(
            format!("the baseline `{shown}` is of another card: {of_file}, this run has {of_run}"),
            "workspaces and the context differ between cards: keep one baseline for each",
        ));
    }
    Ok(baseline)
}
