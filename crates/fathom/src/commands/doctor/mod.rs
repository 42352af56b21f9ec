//! `fathom doctor`: what a run needs, found and tried.

mod trying;

use std::cell::RefCell;

use anyhow::Result;

use crate::cache;
use crate::compiler::{self, Compiler};
use crate::error;
use crate::installed;
use crate::launch::Launch;
use crate::outputs::Outputs;
use crate::python::{self, Python, Start};
use crate::settings::{self, Settings, Typed};

/// What a row says of what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Ok,
    /// Only some scripts need it.
    Note,
    Fail,
}

impl Mark {
    fn text(self) -> &'static str {
        match self {
            Mark::Ok => "ok",
            Mark::Note => "note",
            Mark::Fail => "FAIL",
        }
    }
}

/// Checks what a run needs and prints what is in force; 0 if a run would start.
pub(crate) fn doctor(words: &[String]) -> Result<u8> {
    let rows = RefCell::new(Vec::new());
    let row = |mark: Mark, label: &str, text: &str| {
        let lines: Vec<String> =
            text.lines().map(report::visible).map(|line| line.to_string()).collect();
        let text = lines.join("\n                 ");
        rows.borrow_mut().push((mark, format!("{:5} {label:10} {text}\n", mark.text())));
    };
    // What only some scripts need is worth a note, not a failure.
    let note = |label: &str, text: String| row(Mark::Note, label, &text);
    let line = |label: &str, result: Result<String>| match result {
        Ok(text) => row(Mark::Ok, label, &text),
        Err(problem) => row(Mark::Fail, label, &error::text(&problem).replace("\n\n", "\n")),
    };
    line("fathom", Ok(env!("CARGO_PKG_VERSION").to_owned()));
    line("phantom", installed::phantom().map(|path| path.display().to_string()));
    line("doorway", installed::doorway().map(|path| path.display().to_string()));
    line("recorder", installed::recorder().map(|path| path.display().to_string()));
    line("cache", cache::folder().map(|path| path.display().to_string()));
    let command = match words {
        [] => vec!["python3".to_owned()],
        words => words.to_vec(),
    };
    let python = python::find_program(&command[0])
        .and_then(|path| Python::probe(&path, &Start::of(&command)));
    match python {
        Err(problem) => line("python", Err(problem)),
        Ok(python) => {
            line("python", Ok(format!("{} ({})", python.version, python.executable)));
            line("torch", describe_torch(&python));
            line("cuDNN", Ok(describe_cudnn(&python)));
            match describe_compiler(&python) {
                (text, true) => line("compiler", Ok(text)),
                (text, false) => note("compiler", text),
            }
            match Launch::for_python(Some(python)) {
                Err(problem) => line("stubs", Err(problem)),
                Ok(launch) => {
                    line("stubs", Ok("written".to_owned()));
                    match trying::all(&launch, &command) {
                        Ok(rows) => {
                            rows.iter().for_each(|each| row(each.mark, &each.label, &each.text))
                        }
                        Err(problem) => line("trial", Err(problem)),
                    }
                }
            }
        }
    }
    match Settings::resolve(&Typed::default()) {
        Err(problem) => line("settings", Err(problem)),
        Ok(settings) => {
            line("card", Ok(describe_card(&settings)));
            for (key, value, origin) in settings.origins {
                line("setting", Ok(format!("{key} = {value} ({origin})")));
            }
        }
    }
    match settings::all_set() {
        Err(problem) => line("settings", Err(problem)),
        Ok(all) => all.into_iter().for_each(|(name, words, place)| {
            line("setting", Ok(format!("{name}: {words} ({place})")));
        }),
    }
    let (mut outputs, rows) = (Outputs::default(), rows.into_inner());
    rows.iter().for_each(|(_, text)| outputs.print(text));
    let has_failed = rows.iter().any(|(mark, _)| *mark == Mark::Fail);
    Ok(outputs.finish(if has_failed { 2 } else { 0 }))
}

/// The card that a run would be made for, after all settings are put together.
fn describe_card(settings: &Settings) -> String {
    let Some(card) = &settings.card else { return "none: memory is unlimited".to_owned() };
    let memory = study::memory_text(card.memory_bytes, card.used_bytes);
    let context = report::bytes::text(card.context_bytes);
    let text = format!("{} with {memory}, context {context}", card.shown_title());
    settings.notes.iter().fold(text, |text, note| format!("{text}\n{note}"))
}

fn describe_torch(python: &Python) -> Result<String> {
    let torch = python.cuda_torch()?;
    let cuda = torch.cuda.as_deref().unwrap_or("unknown");
    Ok(format!("{} for CUDA {cuda} ({})", torch.version, torch.folder.display()))
}

/// What compiles a script's own operators, and whether all of it is there.
fn describe_compiler(python: &Python) -> (String, bool) {
    let Compiler { nvcc, missing } = compiler::find(python);
    let text = match (nvcc, missing.is_empty()) {
        (None, _) => "custom CUDA operators cannot be compiled".to_owned(),
        (Some(nvcc), true) => format!("custom CUDA operators are compiled by {nvcc}"),
        (Some(nvcc), false) => format!("custom CUDA operators may not be compiled by {nvcc}"),
    };
    let row = |text: String, each: &String| format!("{text}\n                 missing: {each}");
    (missing.iter().fold(text, row), missing.is_empty())
}

fn describe_cudnn(python: &Python) -> String {
    let torch = python.torch.as_ref();
    match torch.and_then(|torch| torch.cudnn.as_ref()) {
        Some(path) => format!("convolution workspaces are asked of {}", path.display()),
        None => "not installed: convolution workspaces are modelled".to_owned(),
    }
}
