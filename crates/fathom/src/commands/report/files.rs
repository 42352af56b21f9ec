//! The document and what stands beside it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use report::document::{Curve, Document, MARK, svg};

use super::subject::Subject;
use crate::cli::ReportArguments;
use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::page;
use crate::screen;

/// The document if no name is given.
const NAME: &str = "MEMORY.md";

pub(super) struct Files {
    text: PathBuf,
    json: PathBuf,
    page: PathBuf,
    picture: PathBuf,
    outputs: Outputs,
}

impl Files {
    /// Checks that all can be written, and that no file of the user's is in their place.
    pub(super) fn check(arguments: &ReportArguments) -> Result<Files> {
        let text = arguments.output.clone().unwrap_or_else(|| PathBuf::from(NAME));
        if text.extension().is_none_or(|end| end != "md") {
            return Err(Hinted::error(
                format!("`-o {}` is no name of a Markdown file", text.display()),
                format!("`-o {}`", text.with_extension("md").display()),
            ));
        }
        let beside = |end: &str| text.with_extension(end);
        let json = arguments.trial.json.clone().unwrap_or_else(|| beside("json"));
        let (page, picture) = (beside("html"), beside("svg"));
        let outputs = Outputs::check(&[
            ("-o", Some(&text)),
            ("--json", Some(&json)),
            ("the page", Some(&page)),
            ("the picture", Some(&picture)),
        ])?;
        // Of an own document all four files may be replaced.
        let is_own = starts_with(&text, MARK);
        let at_stake = [&text, &json, &page, &picture].into_iter().filter(|path| path.exists());
        if let Some(other) = at_stake.into_iter().find(|_| !is_own) {
            return Err(Hinted::error(
                format!("`{}` is there and is not a document of Fathom", other.display()),
                "name another place: `-o memory/MEMORY.md`",
            ));
        }
        Ok(Files { text, json, page, picture, outputs })
    }

    /// Writes all of them; the exit code is 2 if one could not be written.
    pub(super) fn write(
        mut self,
        document: &mut Document,
        subject: &Subject,
        arguments: &ReportArguments,
    ) -> Result<u8> {
        let whole = subject.whole();
        if let Some(anatomy) = &document.anatomy {
            self.outputs.file(&self.picture, svg(anatomy, Curve::of(whole).as_ref()));
            let name = self.picture.file_name().unwrap_or_default();
            document.picture = Some(name.to_string_lossy().into_owned());
        }
        self.outputs.file(&self.text, document.markdown());
        if self.outputs.json(Some(&self.json), || document.json()) {
            let said = [&self.text, &self.json, &self.page, &self.picture]
                .map(|path| path.display().to_string());
            let line = format!("{}\nwrote {}\n", document.headline(), said.join(", "));
            self.outputs.note(screen::answer(&report::clean(&line)));
        }
        let items = page::of_run(whole, &subject.files, &arguments.trial.command.join(" "));
        self.outputs.file(&self.page, answer::page(items, Vec::new()));
        Ok(self.outputs.finish(0))
    }
}

fn starts_with(path: &Path, mark: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(mark.as_bytes()))
}
