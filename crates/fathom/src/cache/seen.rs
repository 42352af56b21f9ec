//! What an answer rests on: files and folders, and how they were.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::hash::hash;
use crate::confined::Window;

/// Files larger than this count by their size and time, not by their content.
const LARGE: u64 = 16 << 20;

/// How a path is that is not there.
pub(super) const MISSING: &str = "missing";

/// What of a path counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Aspect {
    /// Size and time of the last change: of installed files, which are many.
    Stamp,
    /// What is in the file.
    Content,
    /// Whether it is there, as what, and how large.
    Kind,
    /// Where a link leads; else as `Kind`.
    Link,
    /// All names in the folder.
    Names,
    /// Names in the folder that an import could take.
    Modules,
}

/// A path, what of it counts and how that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen(pub(crate) Aspect, pub(crate) PathBuf, pub(crate) String);

/// Looks at paths, at each once.
#[derive(Default)]
pub(crate) struct Eyes {
    unseen: Option<Window>,
    known: HashMap<(Aspect, PathBuf), String>,
}

impl Eyes {
    /// What was made then is not seen.
    pub(crate) fn without(unseen: Option<Window>) -> Eyes {
        Eyes { unseen, ..Eyes::default() }
    }

    /// Whether all are as they were.
    pub(crate) fn are_as_before(&mut self, all: &[Seen]) -> bool {
        all.iter().all(|Seen(aspect, path, before)| self.look(*aspect, path) == before)
    }

    /// How a path is now.
    fn look(&mut self, aspect: Aspect, path: &Path) -> &str {
        let unseen = self.unseen;
        let look = || mark_without(unseen, aspect, path);
        self.known.entry((aspect, path.to_owned())).or_insert_with(look)
    }
}

/// The same as if what was made then were not there.
pub(super) fn mark_without(unseen: Option<Window>, aspect: Aspect, path: &Path) -> String {
    let Some(unseen) = unseen else { return mark(aspect, path) };
    if path.ancestors().any(|part| unseen.has(part)) {
        return MISSING.to_owned();
    }
    match names(path, aspect).filter(|_| matches!(aspect, Aspect::Names | Aspect::Modules)) {
        Some(mut names) => {
            names.retain(|name| !unseen.has(&path.join(name)));
            hash_of_names(&names)
        }
        None => mark(aspect, path),
    }
}

/// How a path is, in a word.
pub(crate) fn mark(aspect: Aspect, path: &Path) -> String {
    let data = match aspect {
        Aspect::Link => fs::symlink_metadata(path),
        _ => fs::metadata(path),
    };
    let Ok(data) = data else { return MISSING.to_owned() };
    match aspect {
        Aspect::Stamp => stamp(&data),
        Aspect::Content if LARGE < data.len() || !data.is_file() => stamp(&data),
        Aspect::Content => {
            fs::read(path).map_or_else(|_| "unreadable".to_owned(), |all| hash(&all))
        }
        Aspect::Kind | Aspect::Link => kind(path, &data),
        Aspect::Names | Aspect::Modules => match names(path, aspect) {
            Some(names) => hash_of_names(&names),
            None => stamp(&data),
        },
    }
}

fn stamp(data: &Metadata) -> String {
    format!(
        "{} {}.{:09}",
        if data.is_dir() { 0 } else { data.len() },
        data.mtime(),
        data.mtime_nsec()
    )
}

/// As the doorway says it.
fn kind(path: &Path, data: &Metadata) -> String {
    match () {
        () if data.is_symlink() => {
            let target = fs::read_link(path).unwrap_or_default();
            format!("link {}", target.display())
        }
        () if data.is_dir() => "folder".to_owned(),
        () if data.is_file() => format!("file {}", data.len()),
        () => "other".to_owned(),
    }
}

/// As many names as the doorway lists, sorted; `None` if there are more.
fn names(folder: &Path, aspect: Aspect) -> Option<Vec<String>> {
    const MOST: usize = 5_000;
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let counts = |name: &String| aspect == Aspect::Names || is_module(folder, name);
    let names: Vec<String> = names.filter(counts).take(MOST + 1).collect();
    (names.len() <= MOST).then_some(names)
}

fn is_module(folder: &Path, name: &str) -> bool {
    [".py", ".so", ".pyc"].iter().any(|end| name.ends_with(end))
        || folder.join(name).join("__init__.py").is_file()
}

/// The order in which a folder gives its names is no one's choice; bytecode is Python's own.
pub(super) fn hash_of_names(names: &[String]) -> String {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.retain(|name| *name != "__pycache__");
    names.sort_unstable();
    hash(names.join("\0").as_bytes())
}

/// Whether a file or folder has been changed since.
pub(super) fn changed_since(path: &Path, began: SystemTime) -> bool {
    let modified = fs::metadata(path).and_then(|data| data.modified());
    modified.is_ok_and(|modified| began <= modified)
}

/// Size and time of a file, as the doorway notes them.
pub(super) fn size_and_time(path: &Path) -> Option<(u64, i128)> {
    let data = fs::metadata(path).ok()?;
    Some((data.len(), i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_aspect_notices_what_it_is_about() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.py");
        fs::write(&file, "one").unwrap();
        let all = |path: &Path| {
            use Aspect::{Content, Kind, Link, Modules, Names, Stamp};
            [Stamp, Content, Kind, Link, Names, Modules].map(|aspect| mark(aspect, path))
        };
        let (before, around) = (all(&file), all(folder.path()));
        assert_eq!(before[2], "file 3");
        fs::write(&file, "two").unwrap();
        let after = all(&file);
        assert!(before[0] != after[0] && before[1] != after[1] && before[2] == after[2]);
        fs::create_dir(folder.path().join("__pycache__")).unwrap();
        assert_eq!(all(folder.path())[4..], around[4..], "bytecode is no file of the user's");
        fs::write(folder.path().join("log.txt"), "").unwrap();
        let listed = all(folder.path());
        assert!(listed[4] != around[4] && listed[5] == around[5]);
        std::os::unix::fs::symlink("a.py", folder.path().join("link")).unwrap();
        assert_eq!(mark(Aspect::Link, &folder.path().join("link")), "link a.py");
        fs::remove_file(&file).unwrap();
        assert!(all(&file).iter().all(|mark| mark == "missing"));
    }
}
