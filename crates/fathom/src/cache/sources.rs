//! What the processes of a trial say they saw (`python/fathom/_doorway/sources.py`), checked and put in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use contract::files::sources::{KIND, Sight, read};

use super::seen::{
    Aspect, MISSING, Seen, changed_since, hash_of_names, mark_without, size_and_time,
};
use crate::confined::Window;

/// All that a trial rests on, or why that cannot be said. `began` is when the first process was started whose
/// imports the trial may share; what was made in the time `unseen`, it did not see.
pub(super) fn seen_by(
    folder: &Path,
    began: SystemTime,
    unseen: Option<Window>,
) -> Result<Vec<Seen>, String> {
    let mut report = Report { began, unseen, ..Report::default() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_list = |name: &String| name.strip_prefix(KIND).is_some_and(|rest| rest.starts_with('.'));
    let mut names: Vec<String> = names.filter(is_list).collect();
    names.sort();
    for name in &names {
        let bytes = fs::read(folder.join(name))
            .map_err(|error| format!("`{name}` cannot be read ({error})"))?;
        let before = report.ends;
        for sight in read(name, &bytes) {
            report.take(sight?)?;
        }
        if report.ends == before {
            return Err("one of its processes was ended from outside".to_owned());
        }
    }
    match names.is_empty() {
        true => Err("it does not say what it reads".to_owned()),
        false => Ok(report.seen()),
    }
}

struct Report {
    began: SystemTime,
    unseen: Option<Window>,
    seen: BTreeMap<(u8, PathBuf), Seen>,
    made: BTreeSet<PathBuf>,
    ends: usize,
}

impl Default for Report {
    fn default() -> Report {
        let (seen, made) = (BTreeMap::new(), BTreeSet::new());
        Report { began: SystemTime::UNIX_EPOCH, unseen: None, seen, made, ends: 0 }
    }
}

impl Report {
    /// One line. What is not as the trial saw it was changed meanwhile, by it or by somebody else: the next one
    /// would see something else.
    fn take(&mut self, sight: Sight) -> Result<(), String> {
        let (began, unseen) = (self.began, self.unseen);
        match sight {
            Sight::Read { path, was } => self.add(Aspect::Content, path, |path| match was {
                None => mark_without(unseen, Aspect::Content, path) == MISSING,
                was => was == size_and_time(path),
            }),
            Sight::Look { path, kind } => {
                let aspect = if kind.starts_with("link ") { Aspect::Link } else { Aspect::Kind };
                self.add(aspect, path, |path| kind == mark_without(unseen, aspect, path))
            }
            Sight::List { path, names } => self.add_names(Aspect::Names, path, names),
            Sight::Modules { path, names } => self.add_names(Aspect::Modules, path, names),
            Sight::Installed(paths) => paths.into_iter().try_for_each(|path| {
                let is_as_seen = |path: &Path| path.is_dir() || !changed_since(path, began);
                self.add(Aspect::Stamp, path, is_as_seen)
            }),
            Sight::Made(path) => {
                // A folder that was missing and is made by the trial itself says nothing; what is in it does.
                if path.is_dir() {
                    self.seen.retain(|_, seen| seen.1 != path || seen.2 != MISSING);
                }
                self.made.insert(path);
                Ok(())
            }
            Sight::Beyond(why) => Err(why),
            Sight::End => {
                self.ends += 1;
                Ok(())
            }
        }
    }

    fn add_names(
        &mut self,
        aspect: Aspect,
        path: PathBuf,
        names: Option<Vec<String>>,
    ) -> Result<(), String> {
        let (began, unseen) = (self.began, self.unseen);
        self.add(aspect, path, |path| match &names {
            Some(names) => hash_of_names(names) == mark_without(unseen, aspect, path),
            None => !changed_since(path, began),
        })
    }

    /// The first sight of a path counts. Looks at folders that the trial makes later are settled there.
    fn add(
        &mut self,
        aspect: Aspect,
        path: PathBuf,
        is_as_seen: impl Fn(&Path) -> bool,
    ) -> Result<(), String> {
        let key = (aspect as u8, path.clone());
        if self.seen.contains_key(&key) || path.ancestors().any(|path| self.made.contains(path)) {
            return Ok(());
        }
        let now = match is_as_seen(&path) {
            true => mark_without(self.unseen, aspect, &path),
            false if path.is_dir() && aspect == Aspect::Kind => MISSING.to_owned(),
            false => return Err(format!("it makes or changes `{}`", path.display())),
        };
        self.seen.insert(key, Seen(aspect, path, now));
        Ok(())
    }

    fn seen(self) -> Vec<Seen> {
        self.seen.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use contract::files::sources::SCHEMA;
    use serde_json::{Value, json};

    use super::*;

    /// What a trial said, in a folder of its own.
    fn said(lines: &[Value]) -> Result<Vec<Seen>, String> {
        let folder = tempfile::tempdir().unwrap();
        let first = json!(["schema", SCHEMA]);
        let text: String =
            std::iter::once(&first).chain(lines).map(|line| format!("{line}\n")).collect();
        fs::write(folder.path().join("sources.7"), text).unwrap();
        seen_by(folder.path(), SystemTime::now() + Duration::from_secs(60), None)
    }

    #[test]
    fn what_a_trial_makes_is_its_own() {
        let place = tempfile::tempdir().unwrap();
        let [made, inside, other] = ["made", "made/log", "other"].map(|it| place.path().join(it));
        fs::create_dir(&made).unwrap();
        fs::write(&inside, "").unwrap();
        let look = |path: &Path| json!(["look", path, "missing"]);
        let (make, end) = (json!(["made", made]), json!(["end"]));
        let seen = said(&[look(&made), make.clone(), look(&inside), look(&other), end.clone()]);
        let paths: Vec<PathBuf> = seen.unwrap().into_iter().map(|seen| seen.1).collect();
        assert_eq!(paths, [other]);
        // It was looked for before: the next trial would find it.
        let error = said(&[look(&inside), make, end]).unwrap_err();
        assert!(error.contains("makes or changes"), "{error}");
    }

    #[test]
    fn a_list_that_is_not_whole_does_not_count() {
        assert!(said(&[json!(["end"])]).unwrap().is_empty());
        assert!(said(&[]).is_err() && said(&[json!(["look", "/", "folder"])]).is_err());
        let why = said(&[json!(["beyond", "it starts other programs"]), json!(["end"])]);
        assert_eq!(why, Err("it starts other programs".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        assert!(seen_by(folder.path(), SystemTime::now(), None).is_err(), "nobody said anything");
    }

    #[test]
    fn a_file_must_still_be_what_the_trial_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        fs::write(&file, "width: 1").unwrap();
        let (size, time) = size_and_time(&file).unwrap();
        let read = |size: u64| said(&[json!(["read", file, size, time as i64]), json!(["end"])]);
        let seen = read(size).unwrap();
        assert_eq!(
            (seen[0].0, seen[0].2.as_str()),
            (Aspect::Content, mark_without(None, Aspect::Content, &file).as_str())
        );
        assert!(read(size + 1).is_err());
        let installed = said(&[json!(["installed", file]), json!(["end"])]).unwrap();
        assert_eq!(installed[0].0, Aspect::Stamp);
    }
}
