//! `fathom explain`.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::Result;
use diff::Side;
use recording::Recording;
use report::{Explanation, RankedSides};
use study::{Context, Study, Wants};

use crate::cli::ExplainArguments;
use crate::error::Hinted;
use crate::export;
use crate::here;
use crate::load::{self, Loaded};
use crate::oom;
use crate::outputs::Outputs;
use crate::screen;
use crate::shell;

/// Says who holds the memory of recordings and memory snapshots, and what texts say about it; 0 if there is an
/// answer. Texts are explained together: a log and a table may be about one card.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let mut outputs = Outputs::check(&[
        ("--json", arguments.source.json.as_deref()),
        ("--snapshot", arguments.snapshot.as_deref()),
    ])?;
    let mut texts = Vec::new();
    let mut recorded = Vec::new();
    for file in &arguments.files {
        match load::load_any(file)? {
            Loaded::Text(text) => texts.push((file.display().to_string(), text)),
            Loaded::Recordings(recordings) => {
                let device = arguments.source.device;
                // One answer goes to one file.
                let chosen = match arguments.source.json.is_some() || arguments.snapshot.is_some() {
                    true => vec![load::choose(recordings, file, device)?],
                    false => load::choose_all(recordings, file, device)?,
                };
                recorded.extend(chosen.into_iter().map(|recording| (file, recording)));
            }
        }
    }
    check(arguments, texts.len(), recorded.len())?;
    let is_any_recorded = !recorded.is_empty();
    let wants = Wants { fragments: true, source: arguments.snapshot.is_some(), ..Wants::default() };
    let studied = recorded.into_iter().map(|(file, recording)| {
        explanation(recording, file, wants).map(|explanation| (file, explanation))
    });
    let mut studied: Vec<(&PathBuf, Explanation)> = studied.collect::<Result<_>>()?;
    if let Some(ranks) = ranks(&studied) {
        outputs.print(&report::explain_ranks(&ranks, screen::reader()));
        outputs.print("\n");
        if IN_FULL < studied.len() {
            studied = vec![studied.swap_remove(ranks.worst())];
        }
    }
    for (index, (file, mut explanation)) in studied.into_iter().enumerate() {
        if index != 0 {
            outputs.print("\n");
        }
        if let (Some(path), Some(source)) = (&arguments.snapshot, &explanation.study.source) {
            let notes = outputs.note(export::write(source, file, path)).flatten();
            explanation.study.notes.extend(notes);
        }
        let Study { anatomy, findings, .. } = &explanation.study;
        let asked = arguments.ask.iter();
        explanation.answers = asked.map(|ask| diagnose::ask(anatomy, findings, ask)).collect();
        explanation.next = Some(next(file, &explanation.study, arguments));
        show(&explanation, arguments, &mut outputs);
    }
    if texts.is_empty() && is_any_recorded {
        return Ok(outputs.finish(0));
    }
    if is_any_recorded {
        outputs.print("\n");
    }
    oom::explain(&texts, &arguments.texts, arguments.source.json.as_deref(), &mut outputs)?;
    Ok(outputs.finish(0))
}

/// The same with every section; where that was asked for, as a page.
fn next(file: &Path, study: &Study, arguments: &ExplainArguments) -> String {
    let (file, device) = (file.to_string_lossy(), study.device.to_string());
    if arguments.unfold.all {
        return shell::line(["fathom", "page", &file]);
    }
    let of_one = arguments.source.device.map(|_| ["--device", &device]);
    let words = ["fathom", "explain", "--all"].into_iter().chain(of_one.into_iter().flatten());
    shell::line(words.chain([&*file]))
}

/// So many recordings are explained in full; of more, the one that needs most.
const IN_FULL: usize = 2;

/// Several cards, ranks or files side by side; `None` if there is only one.
fn ranks(studied: &[(&PathBuf, Explanation)]) -> Option<RankedSides> {
    let is_one_file = studied.iter().all(|(file, _)| Some(file) == studied.first().map(|(f, _)| f));
    let side = |(file, explanation): &(&PathBuf, Explanation)| {
        let study = &explanation.study;
        let mut side = Side::of(&study.anatomy, &study.findings);
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let several = studied.iter().filter(|(other, _)| other == file).count();
        side.name = match several {
            1 => name.into_owned(),
            _ if is_one_file => format!("device {}", study.device),
            _ => format!("{name} device {}", study.device),
        };
        side
    };
    RankedSides::of(studied.iter().map(side).collect())
}

/// Flags that make no sense for what the files turned out to be.
fn check(arguments: &ExplainArguments, texts: usize, recorded: usize) -> Result<()> {
    let answers = recorded + usize::from(texts != 0);
    if 1 < answers && (arguments.source.json.is_some() || arguments.snapshot.is_some()) {
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

/// A recording studied, with what its file does not tell.
pub(crate) fn explanation(recording: Recording, file: &Path, wants: Wants) -> Result<Explanation> {
    let file = file.display().to_string();
    let context = Context { folder: here::folder(), wants, ..Context::default() };
    let mut study = study::study(recording, &context).map_err(|why| {
        let hint = "settings of PyTorch's native allocator, torch 1.13 and newer, can be replayed";
        Hinted::error(format!("`{file}`: {why}"), hint)
    })?;
    let is_ours = study.anatomy.has_names;
    if study.anatomy.events == 0 {
        study.notes.push(
            "the state of one moment: what was held at other moments is not in the file".to_owned(),
        );
    }
    if is_ours && !study.is_whole {
        study.notes.push("the recording ends before its process did".to_owned());
    }
    if !is_ours {
        study.notes.push(
            "snapshots carry no tensor names, so categories are unknown; `fathom run` records them"
                .to_owned(),
        );
    }
    if study.anatomy.is_inferred {
        study.notes.push(
            "snapshots carry no tensor names; categories, modules and phases are inferred: \
             `fathom run` records them"
                .to_owned(),
        );
    }
    Ok(Explanation { file, study, answers: Vec::new(), next: None })
}

fn show(explanation: &Explanation, arguments: &ExplainArguments, outputs: &mut Outputs) {
    if outputs.json(arguments.source.json.as_deref(), || report::explain_json(explanation)) {
        outputs.print(&report::explain(explanation, screen::reader(), &arguments.unfold()));
    }
}
