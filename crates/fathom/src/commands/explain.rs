//! `fathom explain`.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use recording::Recording;
use report::{Explanation, Palette};

use crate::cli::ExplainArguments;
use crate::dissect::dissect;
use crate::error::Hinted;
use crate::export;
use crate::fragments::fragments;
use crate::load;

/// Says who holds the memory of a recording or a memory snapshot; 0 if there is an answer.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let recordings = load::load(&arguments.file)?;
    let recording = load::choose(recordings, &arguments.file, arguments.device)?;
    let mut explanation = explanation(&recording, &arguments.file)?;
    if let Some(path) = &arguments.snapshot {
        explanation.notes.extend(export::write(&recording, &arguments.file, path)?);
    }
    show(&explanation, arguments)?;
    Ok(0)
}

/// A recording taken apart, in words and numbers.
pub(crate) fn explanation(recording: &Recording, file: &Path) -> Result<Explanation> {
    let file = file.display().to_string();
    let (anatomy, mut notes) = dissect(recording).map_err(|why| {
        let hint = "settings of PyTorch's native allocator, torch 1.13 and newer, can be replayed";
        Hinted::error(format!("`{file}`: {why}"), hint)
    })?;
    let is_ours = anatomy.has_names;
    if is_ours && !recording.about.complete {
        notes.push("the recording ends before its process did".to_owned());
    }
    if !is_ours {
        notes.push(
            "nothing has a name here, so the category is unknown: `fathom run` gives names to all"
                .to_owned(),
        );
    }
    Ok(Explanation {
        file,
        device: recording.about.device,
        torch: recording.about.torch.clone(),
        complete: recording.about.complete,
        fragments: fragments(recording, &anatomy),
        anatomy,
        notes,
    })
}

fn show(explanation: &Explanation, arguments: &ExplainArguments) -> Result<()> {
    match arguments.json.as_deref() {
        Some(path) if path == Path::new("-") => {
            anstream::print!("{}", report::explain_json(explanation));
            return Ok(());
        }
        Some(path) => fs::write(path, report::explain_json(explanation))
            .with_context(|| format!("cannot write `{}`", path.display()))?,
        None => {}
    }
    let text = report::explain(explanation, Palette::coloured(), &arguments.unfold());
    anstream::print!("{text}");
    Ok(())
}
