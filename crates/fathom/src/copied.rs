//! A copy of the user's folder in which some files have another text: what a patch does is seen there before it is advised.
//!
//! Only what lies on the way to a changed file, to the script and to the working folder is copied; all else is a link to
//! the original.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Bytecode of the original files, which Python would write anew through a link.
const BYTECODE: &str = "__pycache__";

/// Where it is.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    /// The copy of the working folder.
    pub(crate) here: PathBuf,
    /// The copy of `root`.
    pub(crate) copy: PathBuf,
    pub(crate) root: PathBuf,
}

/// Makes it in `folder`, and names copies in the command where it names originals by whole paths.
pub(crate) fn copy(
    texts: &[(String, String)],
    words: &mut [String],
    folder: &Path,
) -> Result<Copied> {
    let here = std::env::current_dir()?.canonicalize()?;
    let root = root(&here, texts.iter().map(|(file, _)| Path::new(file)));
    let is_script = |word: &&String| word.ends_with(".py");
    let scripts =
        words.iter().filter(is_script).filter_map(|word| Path::new(word).canonicalize().ok());
    let scripts: Vec<PathBuf> = scripts.filter(|path| path.starts_with(&root)).collect();
    let files = texts.iter().map(|(file, _)| PathBuf::from(file)).chain(scripts);
    let real: BTreeSet<PathBuf> = files.collect();
    let mut folders: BTreeSet<PathBuf> = real
        .iter()
        .flat_map(|file| file.ancestors().skip(1).map(Path::to_owned))
        .chain(here.ancestors().map(Path::to_owned))
        .filter(|path| path.starts_with(&root))
        .collect();
    folders.insert(root.clone());
    for original in &folders {
        let copy = folder.join(original.strip_prefix(&root)?);
        fs::create_dir_all(&copy)?;
        for entry in fs::read_dir(original)?.flatten() {
            let (from, to) = (entry.path(), copy.join(entry.file_name()));
            match texts.iter().find(|(file, _)| Path::new(file) == from) {
                Some((_, text)) => fs::write(&to, text)?,
                None if folders.contains(&from) || entry.file_name() == BYTECODE => {}
                None if real.contains(&from) => fs::copy(&from, &to).map(|_| ())?,
                None => symlink(&from, &to)?,
            }
        }
    }
    for word in words.iter_mut() {
        let path = Path::new(word.as_str());
        if path.is_absolute()
            && let Some(file) = path.canonicalize().ok().filter(|file| real.contains(file))
        {
            *word = folder.join(file.strip_prefix(&root)?).to_string_lossy().into_owned();
        }
    }
    let here = folder.join(here.strip_prefix(&root).context("the copy lies elsewhere")?);
    Ok(Copied { here, copy: folder.to_owned(), root })
}

/// The innermost folder that holds the working folder and all of the files: where a diff of them is applied.
pub(crate) fn root<'a>(here: &Path, files: impl Iterator<Item = &'a Path>) -> PathBuf {
    files.fold(here.to_owned(), |root, file| {
        let holds = |folder: &&Path| file.starts_with(folder);
        root.ancestors().find(holds).unwrap_or(Path::new("/")).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_applied_where_all_of_its_files_are_below() {
        let root = |files: &[&str]| root(Path::new("/home/me/run"), files.iter().map(Path::new));
        assert_eq!(root(&[]), Path::new("/home/me/run"));
        assert_eq!(root(&["/home/me/run/src/a.py"]), Path::new("/home/me/run"));
        assert_eq!(root(&["/home/me/lib/a.py", "/home/me/run/b.py"]), Path::new("/home/me"));
    }
}
