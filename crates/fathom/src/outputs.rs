//! Files that a command writes. Whether they can be written is found out before the script runs; one that
//! cannot be written in the end does not keep the others back.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::error::{self, Hinted};
use crate::screen;

/// What a command has written so far.
#[derive(Default)]
pub(crate) struct Outputs {
    failures: Vec<anyhow::Error>,
}

/// An output that was asked for: the flag and its value.
pub(crate) type Asked<'a> = (&'static str, Option<&'a Path>);

impl Outputs {
    /// Checks that each can be written, and that no two are the same file. `-` is the standard output, which
    /// from now on is for this answer alone.
    pub(crate) fn check(asked: &[Asked<'_>]) -> Result<Outputs> {
        let mut seen: Vec<(&str, PathBuf)> = Vec::new();
        for (flag, path) in asked.iter().filter_map(|(flag, path)| Some((*flag, (*path)?))) {
            if screen::is_stdout(Some(path)) {
                screen::keep_for_answer()?;
                continue;
            }
            check(flag, path)?;
            let whole = path.canonicalize().or_else(|_| std::path::absolute(path));
            let whole = whole.unwrap_or_else(|_| path.to_owned());
            let is_device = path.exists() && !path.is_file();
            if let Some((other, _)) = seen.iter().find(|(_, seen)| *seen == whole && !is_device) {
                let message = format!("`{other}` and `{flag}` name one file: {}", path.display());
                return Err(Hinted::error(message, "give each its own file"));
            }
            seen.push((flag, whole));
        }
        Ok(Outputs::default())
    }

    /// Writes a file, or notes why not.
    pub(crate) fn file(&mut self, path: &Path, bytes: impl AsRef<[u8]>) {
        self.note(write(path, bytes.as_ref()));
    }

    /// Writes an answer for programs, to a file or the standard output; whether text is still to be printed.
    pub(crate) fn json(&mut self, path: Option<&Path>, text: impl FnOnce() -> String) -> bool {
        match path {
            Some(_) if screen::is_stdout(path) => drop(self.note(screen::answer(&text()))),
            Some(file) => self.file(file, text()),
            None => {}
        }
        !screen::is_stdout(path)
    }

    /// Prints a text that `report` made.
    pub(crate) fn print(&mut self, text: &str) {
        self.note(screen::print(text));
    }

    /// Notes what went wrong with an output of another kind; what came of it otherwise.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.failures.push(error)).ok()
    }

    /// Says what could not be written; the exit code is then 2.
    pub(crate) fn finish(self, exit_code: u8) -> u8 {
        self.failures.iter().for_each(|failure| screen::say_styled(&error::text(failure)));
        if self.failures.is_empty() { exit_code } else { 2 }
    }
}

/// Whether a file can be written, without changing anything.
pub(crate) fn check(flag: &str, path: &Path) -> Result<()> {
    let shown = path.display();
    let cannot = |why: String, hint: String| {
        Err(Hinted::error(format!("`{flag} {shown}` cannot be written: {why}"), hint))
    };
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => {
            cannot("it is a folder".to_owned(), format!("name a file in it: `{flag} {shown}/NAME`"))
        }
        Ok(data) if data.is_file() => match OpenOptions::new().append(true).open(path) {
            Ok(_) => Ok(()),
            Err(error) => cannot(error.to_string(), "name another file".to_owned()),
        },
        // A device or a pipe: opening it could do something.
        Ok(_) => Ok(()),
        Err(_) => {
            let folder = folder_of(path);
            match fs::metadata(folder) {
                Ok(data) if !data.is_dir() => cannot(
                    format!("`{}` is not a folder", folder.display()),
                    "name a file in a folder that is there".to_owned(),
                ),
                Ok(_) => match tempfile::tempfile_in(folder) {
                    Ok(_) if path.file_name().is_some() => Ok(()),
                    Ok(_) => cannot("it has no name".to_owned(), "name a file".to_owned()),
                    Err(error) => cannot(error.to_string(), "name another folder".to_owned()),
                },
                Err(_) => cannot(
                    format!("the folder `{}` is not there", folder.display()),
                    format!("`mkdir -p {}`", folder.display()),
                ),
            }
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a whole file or leaves the old one: a disk that is full costs nothing that was there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let old = fs::symlink_metadata(path);
    // Links, devices and pipes are written through.
    let is_plain = old.as_ref().map_or(true, |data| data.is_file());
    let replace = || -> std::io::Result<()> {
        let mode = old.as_ref().map_or(0o666, |data| data.permissions().mode());
        let mut draft = tempfile::Builder::new()
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder_of(path))?;
        draft.write_all(bytes)?;
        draft.persist(path)?;
        Ok(())
    };
    let result = match is_plain {
        true => replace(),
        false => fs::write(path, bytes),
    };
    result.with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_said_with_its_cure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "kept").unwrap();
        let problem = |path: PathBuf| {
            let error = Outputs::check(&[("--page", Some(&path))]).err().unwrap();
            error::text(&error)
        };
        let missing = problem(folder.path().join("none/report.html"));
        assert!(missing.contains("is not there") && missing.contains("mkdir -p"), "{missing}");
        assert!(problem(folder.path().to_owned()).contains("it is a folder"));
        assert!(problem(file.join("report.html")).contains("is not a folder"));
        let twice = Outputs::check(&[("--page", Some(&file)), ("--json", Some(&file))]);
        assert!(twice.is_err_and(|error| error.to_string().contains("name one file")));
        assert!(Outputs::check(&[("--page", Some(&file)), ("--json", None)]).is_ok());
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn one_failure_keeps_nothing_else_back() {
        let folder = tempfile::tempdir().unwrap();
        let good = folder.path().join("good");
        let mut outputs = Outputs::default();
        outputs.file(Path::new("/dev/full"), "lost");
        outputs.file(&good, "written");
        assert_eq!(fs::read_to_string(&good).unwrap(), "written");
        assert_eq!(outputs.finish(0), 2);
        assert_eq!(Outputs::default().finish(1), 1);
        let mode = fs::metadata(&good).unwrap().permissions().mode() & 0o777;
        fs::write(folder.path().join("other"), "").unwrap();
        let usual = fs::metadata(folder.path().join("other")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, usual, "as any program would write it");
    }
}
