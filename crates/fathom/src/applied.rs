//! `fathom fit --write`: the patch of the chosen plan, applied to the user's files: to all of them or to none.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use fit::patch::{Changed, Patch};
use fit::plan::{Answer, Written};

use crate::here::from_here;

/// What became of it.
pub(crate) enum Applied {
    /// These files were written, as people name them.
    To(Vec<String>),
    /// None was; why.
    Nothing(String),
}

impl Applied {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Applied::To(_))
    }

    pub(crate) fn note(&self) -> String {
        match self {
            Applied::To(files) if files.is_empty() => {
                "`--write`: no file has to change; what is to be given stands above".to_owned()
            }
            Applied::To(files) => format!("written: {}", files.join(", ")),
            Applied::Nothing(why) => format!("`--write`: nothing was written: {why}"),
        }
    }
}

/// Applies the chosen plan, if it has a patch and its files are as they were.
pub(crate) fn apply(answer: &Answer) -> Result<Applied> {
    let plan = answer.chosen.and_then(|index| answer.plans.get(index));
    match plan.map(|plan| &plan.written) {
        Some(Some(Written::Patch { patch, .. })) => write(patch),
        Some(_) => Ok(Applied::Nothing("the chosen plan has no patch".to_owned())),
        None if answer.as_it_is.fits() => Ok(Applied::To(Vec::new())),
        None => Ok(Applied::Nothing("no plan fits".to_owned())),
    }
}

fn write(patch: &Patch) -> Result<Applied> {
    // All are looked at, and all new texts lie beside their files, before the first takes its place.
    let mut drafts = Vec::new();
    for changed in &patch.files {
        let now = fs::read_to_string(&changed.file).unwrap_or_default();
        if now != changed.before {
            let file = from_here(changed.file.clone());
            return Ok(Applied::Nothing(format!("`{file}` has changed since it was read")));
        }
        drafts.push((draft(changed)?, changed));
    }
    let mut files = Vec::new();
    for (draft, changed) in drafts {
        let cannot = || format!("cannot write `{}`", changed.file);
        draft.persist(&changed.file).with_context(cannot)?;
        files.push(from_here(changed.file.clone()));
    }
    Ok(Applied::To(files))
}

/// The new text beside its file, with the file's own rights.
fn draft(changed: &Changed) -> Result<tempfile::NamedTempFile> {
    let cannot = || format!("cannot write `{}`", changed.file);
    let path = Path::new(&changed.file);
    let folder = path.parent().with_context(cannot)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    draft.write_all(changed.after.as_bytes()).with_context(cannot)?;
    let rights = fs::metadata(path).with_context(cannot)?.permissions();
    fs::set_permissions(draft.path(), rights).with_context(cannot)?;
    draft.as_file().sync_all().with_context(cannot)?;
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(file: &Path) -> Changed {
        let file = file.to_string_lossy().into_owned();
        Changed { name: file.clone(), file, before: "a\n".to_owned(), after: "b\n".to_owned() }
    }

    #[test]
    fn all_files_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["1.py", "2.py"].map(|name| folder.path().join(name));
        fs::write(&one, "a\n").unwrap();
        fs::write(&other, "changed meanwhile\n").unwrap();
        let patch = Patch { files: vec![changed(&one), changed(&other)], ..Patch::default() };
        assert!(!write(&patch).unwrap().is_done());
        assert_eq!(fs::read_to_string(&one).unwrap(), "a\n");
        fs::write(&other, "a\n").unwrap();
        assert!(write(&patch).unwrap().is_done());
        assert_eq!([&one, &other].map(|file| fs::read_to_string(file).unwrap()), ["b\n", "b\n"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no draft is left");
    }
}
