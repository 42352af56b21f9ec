//! Changed copies of config files, in a folder of the trial.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fit::config_text;
use fit::knob::FileChange;

use crate::error::Hinted;

/// Keys that name the file which another one builds on.
const BASES: [&str; 5] = ["base", "_base_", "inherit", "extends", "parent"];

/// A file that builds on itself must end somewhere.
const MOST_BASES: usize = 4;

/// Writes a copy with another value and names it in the command instead of the file. A file that was
/// changed before is changed again.
pub(crate) fn change(change: &FileChange, folder: &Path, words: &mut [String]) -> Result<()> {
    let original = PathBuf::from(&change.path);
    let name = original.file_name().context("a config file without a name")?;
    let copy = folder.join(mark(&change.path)).join(name);
    let source = if copy.is_file() { &copy } else { &original };
    let text =
        fs::read_to_string(source).with_context(|| format!("cannot read `{}`", change.path))?;
    let changed = changed(&text, change)?;
    if !copy.is_file() {
        link_neighbours(&original, &copy)?;
    }
    fs::write(&copy, changed).with_context(|| format!("cannot write `{}`", copy.display()))?;
    let new = copy.to_string_lossy().into_owned();
    for word in words.iter_mut() {
        let named = word.split_once('=').filter(|(_, value)| *value == change.path);
        if *word == change.path {
            word.clone_from(&new);
        } else if let Some((key, _)) = named {
            *word = format!("{key}={new}");
        }
    }
    Ok(())
}

/// The text with another value. A file that builds on another one may set a key anew that only that one has.
pub(crate) fn changed(text: &str, change: &FileChange) -> Result<String> {
    let path = Path::new(&change.path);
    let FileChange { key, value, .. } = change;
    let set = match is_json(path) {
        true => config_text::set_json(text, key, value),
        false => match config_text::set_yaml(text, key, value) {
            Err(config_text::Error::Missing { .. })
                if values(path).iter().any(|(known, _)| known == key) =>
            {
                config_text::put_yaml(text, key, value)
            }
            other => other,
        },
    };
    set.map_err(|error| Hinted::error(format!("`{}`: {error}", change.path), error.hint()))
}

/// Keys and values of a file, and of those that it builds on, which it may set anew.
pub(crate) fn values(path: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut next = Some(path.to_owned());
    for _ in 0..MOST_BASES {
        let Some(file) = next.take() else { break };
        let Ok(text) = fs::read_to_string(&file) else { break };
        let values = match is_json(&file) {
            true => config_text::values_of_json(&text),
            false => config_text::values_of_yaml(&text),
        };
        let base = values.iter().find(|(key, _)| BASES.contains(&key.as_str()));
        next = base.map(|(_, base)| file.parent().unwrap_or(Path::new("")).join(base));
        for (key, value) in values {
            if found.iter().all(|row| row.0 != key) {
                found.push((key, value));
            }
        }
    }
    found
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

/// A folder's name for a path.
fn mark(path: &str) -> String {
    path.replace(['/', '.'], "_")
}

/// A config may name others beside it: they are found beside its copy too.
fn link_neighbours(original: &Path, copy: &Path) -> Result<()> {
    let (from, to) = (original.canonicalize()?, copy.parent().context("a copy without a folder")?);
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from.parent().context("a config file without a folder")?)?.flatten() {
        if entry.path() != from {
            symlink(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_changed_and_still_finds_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "base: b.yaml\nbatch: 4\nwidth: 2\n").unwrap();
        fs::write(folder.path().join("b.yaml"), "x: 1\n").unwrap();
        let given = path.to_string_lossy().into_owned();
        let mut words = vec!["python".to_owned(), format!("--config={given}")];
        let file_change = |path: &str, key: &str, value: &str| FileChange {
            path: path.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let copies = folder.path().join("copies");
        change(&file_change(&given, "batch", "8"), &copies, &mut words).unwrap();
        change(&file_change(&given, "width", "16"), &copies, &mut words).unwrap();
        let copy = PathBuf::from(words[1].strip_prefix("--config=").unwrap());
        assert_eq!(fs::read_to_string(&copy).unwrap(), "base: b.yaml\nbatch: 8\nwidth: 16\n");
        assert_eq!(fs::read_to_string(copy.with_file_name("b.yaml")).unwrap(), "x: 1\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "base: b.yaml\nbatch: 4\nwidth: 2\n");
        change(&file_change(&given, "x", "2"), &copies, &mut words).unwrap();
        let with_base = "base: b.yaml\nbatch: 8\nwidth: 16\nx: 2\n";
        assert_eq!(fs::read_to_string(&copy).unwrap(), with_base, "only the base has this key");
        let missing = change(&file_change(&given, "bath", "8"), &copies, &mut words).unwrap_err();
        assert!(missing.to_string().contains("no key `bath`"), "{missing}");
    }
}
