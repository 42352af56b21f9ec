//! `fathom explain`.

#[cfg(test)]
mod tests;

use std::path::Path;

use answer::Opened;
use anyhow::Result;
use recording::Recording;
use report::Explanation;
use study::{Study, Wants};

use super::page::name_of;
use crate::cli::ExplainArguments;
use crate::error::Hinted;
use crate::export;
use crate::here;
use crate::load;
use crate::oom;
use crate::outputs::Outputs;
use crate::screen;
use crate::shell;

/// Says who holds the memory of recordings and memory snapshots, and what texts say about it; 0 if there is an
/// answer. Texts are explained together: a log and a table may be about one card.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let mut outputs = Outputs::check(&[
        ("--json", arguments.source.json.as_deref()),
        ("--page", arguments.page.as_deref()),
        ("--snapshot", arguments.snapshot.as_deref()),
    ])?;
    let mut texts = Vec::new();
    let mut recorded = Vec::new();
    for file in &arguments.files {
        match load::load_any(file)? {
            Opened::Text(text) => texts.push((file.display().to_string(), text)),
            Opened::Recordings(recordings) => {
                let device = arguments.source.device;
                // One answer goes to one file.
                let chosen = match arguments.source.json.is_some() || arguments.snapshot.is_some() {
                    true => vec![load::choose(recordings, file, device)?],
                    false => answer::choose_all(recordings, &file.display().to_string(), device)?,
                };
                recorded.extend(chosen.into_iter().map(|recording| (file, recording)));
            }
        }
    }
    check(arguments, texts.len(), recorded.len())?;
    let is_any_recorded = !recorded.is_empty();
    let source = arguments.snapshot.is_some() || arguments.page.is_some();
    let wants = Wants { fragments: true, source, ..Wants::default() };
    let studied = recorded.into_iter().map(|(file, recording)| explanation(recording, file, wants));
    let mut studied: Vec<Explanation> = studied.collect::<Result<_>>()?;
    if let Some(path) = &arguments.page {
        outputs.file(path, page_of(&studied)?);
    }
    if let Some(ranks) = answer::ranks(&studied) {
        outputs.print(&report::explain_ranks(&ranks, screen::reader()));
        outputs.print("\n");
        studied = answer::in_full(studied, &ranks);
    }
    for (index, mut explanation) in studied.into_iter().enumerate() {
        if index != 0 {
            outputs.print("\n");
        }
        if let (Some(path), Some(source)) = (&arguments.snapshot, &explanation.study.source) {
            let file = Path::new(&explanation.file);
            let notes = outputs.note(export::write(source, file, path)).flatten();
            explanation.study.notes.extend(notes);
        }
        let Study { anatomy, findings, .. } = &explanation.study;
        let asked = arguments.ask.iter();
        let about = diagnose::About { anatomy, findings, command: &[] };
        explanation.answers = asked.map(|ask| diagnose::ask(&about, ask)).collect();
        explanation.next = Some(next(&explanation, arguments));
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

/// All of them on one page, each by its file, and by its device where a file has several.
fn page_of(studied: &[Explanation]) -> Result<String> {
    let item = |it: &Explanation| {
        let file = name_of(Path::new(&it.file));
        let is_alone = studied.iter().filter(|other| other.file == it.file).count() == 1;
        let name = if is_alone { file } else { format!("{file} · device {}", it.study.device) };
        answer::item(it, &name, &here::folder())
    };
    let items = studied.iter().map(item).collect::<Result<_>>()?;
    Ok(answer::page(items, Vec::new()))
}

/// The same with every section; where that was asked for, as a page.
fn next(explanation: &Explanation, arguments: &ExplainArguments) -> String {
    let Explanation { file, study, .. } = explanation;
    if arguments.unfold.all {
        return shell::line(["fathom", "page", file]);
    }
    let device = study.device.to_string();
    let of_one = arguments.source.device.map(|_| ["--device", &device]);
    let words = ["fathom", "explain", "--all"].into_iter().chain(of_one.into_iter().flatten());
    shell::line(words.chain([file.as_str()]))
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
    if recorded == 0 && arguments.page.is_some() {
        let hint = "`fathom run --page FILE -- COMMAND` runs the script and writes its page";
        return Err(Hinted::error("`--page` needs a recording or a snapshot", hint));
    }
    Ok(())
}

/// A recording studied, with what its file does not tell.
pub(crate) fn explanation(recording: Recording, file: &Path, wants: Wants) -> Result<Explanation> {
    answer::explanation(recording, &file.display().to_string(), &here::folder(), wants)
}

fn show(explanation: &Explanation, arguments: &ExplainArguments, outputs: &mut Outputs) {
    if outputs.json(arguments.source.json.as_deref(), || report::explain_json(explanation)) {
        outputs.print(&report::explain(explanation, screen::reader(), &arguments.unfold()));
    }
}
