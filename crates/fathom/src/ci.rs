//! Where CI looks for an answer: a job summary, annotations, Markdown, JUnit's XML.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use report::check::{Annotation, Check, annotation, junit, markdown};

use crate::cli::OutletArguments;
use crate::outputs::{Asked, Outputs};
use crate::screen;

impl OutletArguments {
    /// The outputs that they ask for.
    pub(crate) fn asked(&self) -> [Asked<'_>; 2] {
        [("--markdown", self.markdown.as_deref()), ("--junit", self.junit.as_deref())]
    }

    /// The same from any working folder.
    pub(crate) fn absolute(&self) -> OutletArguments {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        OutletArguments {
            markdown: self.markdown.as_ref().map(absolute),
            junit: self.junit.as_ref().map(absolute),
        }
    }
}

/// Writes what was asked for, and what a runner of GitHub takes by itself.
pub(crate) fn publish(checks: &[Check], outlets: &OutletArguments, outputs: &mut Outputs) {
    outlets.markdown.iter().for_each(|path| outputs.file(path, markdown(checks)));
    outlets.junit.iter().for_each(|path| outputs.file(path, junit(checks)));
    let summary = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    if let Some(path) = summary {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        // The answer itself matters more than a copy of it.
        if let Err(error) = file.and_then(|mut file| file.write_all(markdown(checks).as_bytes())) {
            screen::say(&format!("fathom: the job summary could not be written: {error}"));
        }
    }
}

/// Lines for a runner of GitHub; none elsewhere.
pub(crate) fn annotations(checks: &[Check]) -> String {
    if std::env::var("GITHUB_ACTIONS").as_deref() != Ok("true") {
        return String::new();
    }
    let root = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
    let here = std::env::current_dir().unwrap_or_default();
    let root = root.unwrap_or_else(|| here.clone());
    let all = checks.iter().filter_map(annotation);
    all.map(|annotation| format!("{}\n", from_root(annotation, &here, &root))).collect()
}

/// Files are named from the root of the repository; those outside of it have no place there.
fn from_root(annotation: Annotation, here: &Path, root: &Path) -> Annotation {
    let file = annotation.file.as_ref().and_then(|file| {
        let path = here.join(file);
        path.strip_prefix(root).ok().map(|path| path.to_string_lossy().into_owned())
    });
    Annotation { file, ..annotation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_root_of_the_repository() {
        let name = |file: &str| {
            let annotation = Annotation {
                file: Some(file.to_owned()),
                line: Some(1),
                title: String::new(),
                message: String::new(),
            };
            from_root(annotation, Path::new("/repo/sub"), Path::new("/repo")).file
        };
        assert_eq!(name("train.py").as_deref(), Some("sub/train.py"));
        assert_eq!(name("/repo/net.py").as_deref(), Some("net.py"));
        assert_eq!(name("/usr/lib/python3/torch.py"), None);
    }
}
