//! `fathom explain`.

#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::Result;
use recording::Recording;
use report::{Explanation, Palette};

use crate::cli::ExplainArguments;
use crate::dissect::dissect;
use crate::error::Hinted;
use crate::export;
use crate::fragments::fragments;
use crate::load::{self, Loaded};
use crate::outputs::Outputs;
use crate::texts;

/// Says who holds the memory of recordings and memory snapshots, and what texts say about it; 0 if there is an
/// answer. Texts are explained together: a log and a table may be about one card.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let mut outputs = Outputs::check(&[
        ("--json", arguments.json.as_deref()),
        ("--snapshot", arguments.snapshot.as_deref()),
    ])?;
    let mut texts = Vec::new();
    let mut recorded = Vec::new();
    for file in &arguments.files {
        match load::load_any(file)? {
            Loaded::Text(text) => texts.push((file.display().to_string(), text)),
            Loaded::Recordings(recordings) => {
                recorded.push((file, load::choose(recordings, file, arguments.device)?));
            }
        }
    }
    check(arguments, texts.len(), recorded.len())?;
    for (index, (file, recording)) in recorded.iter().enumerate() {
        if index != 0 {
            outputs.print("\n");
        }
        let mut explanation = explanation(recording, file)?;
        if let Some(path) = &arguments.snapshot {
            let notes = outputs.note(export::write(recording, file, path)).flatten();
            explanation.notes.extend(notes);
        }
        let Explanation { anatomy, findings, .. } = &explanation;
        let asked = arguments.ask.iter();
        explanation.answers = asked.map(|ask| diagnose::ask(anatomy, findings, ask)).collect();
        show(&explanation, arguments, &mut outputs);
    }
    if texts.is_empty() && !recorded.is_empty() {
        return Ok(outputs.finish(0));
    }
    if !recorded.is_empty() {
        outputs.print("\n");
    }
    texts::explain(&texts, &arguments.texts, arguments.json.as_deref(), &mut outputs)?;
    Ok(outputs.finish(0))
}

/// Flags that make no sense for what the files turned out to be.
fn check(arguments: &ExplainArguments, texts: usize, recorded: usize) -> Result<()> {
    let answers = recorded + usize::from(texts != 0);
    if 1 < answers && (arguments.json.is_some() || arguments.snapshot.is_some()) {
        let message = format!("{answers} answers cannot be written to one file");
        return Err(Hinted::error(message, "name one recording, one snapshot, or texts alone"));
    }
    if let (0, true, Some(flag)) = (texts, recorded != 0, arguments.texts.first_given()) {
        let message = format!("`{flag}` is for texts, and these files are recordings or snapshots");
        return Err(Hinted::error(message, "leave it out, or name the log with the error too"));
    }
    if let (true, true) = (recorded == 0, arguments.snapshot.is_some()) {
        let hint = "a recording can be written as a snapshot: `fathom run --out DIR` keeps one";
        return Err(Hinted::error("`--snapshot` needs a recording or a snapshot", hint));
    }
    Ok(())
}

/// A recording taken apart, in words and numbers.
pub(crate) fn explanation(recording: &Recording, file: &Path) -> Result<Explanation> {
    let file = file.display().to_string();
    let (anatomy, mut notes) = dissect(recording).map_err(|why| {
        let hint = "settings of PyTorch's native allocator, torch 1.13 and newer, can be replayed";
        Hinted::error(format!("`{file}`: {why}"), hint)
    })?;
    let is_ours = anatomy.has_names;
    if anatomy.events == 0 {
        notes.push(
            "the state of one moment: what was held at other moments is not in the file".to_owned(),
        );
    }
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
        findings: diagnose::diagnose(&anatomy, anatomy.out_of_memory.is_some()),
        anatomy,
        answers: Vec::new(),
        notes,
    })
}

fn show(explanation: &Explanation, arguments: &ExplainArguments, outputs: &mut Outputs) {
    if outputs.json(arguments.json.as_deref(), || report::explain_json(explanation)) {
        outputs.print(&report::explain(explanation, Palette::coloured(), &arguments.unfold()));
    }
}
