//! What the processes of a trial say they saw (`python/fathom/sources.py`), checked and put in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use super::seen::{Aspect, Seen, changed_since, hash_of_names, mark, size_and_time};

/// All that a trial rests on, or why that cannot be said. `began` is when the first process was started whose
/// imports the trial may share.
pub(super) fn seen_by(folder: &Path, began: SystemTime) -> Result<Vec<Seen>, String> {
    let mut report = Report { began, ..Report::default() };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sources."))
        })
        .collect();
    files.sort();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
        let before = report.ends;
        for line in text.lines() {
            let line: Vec<Value> = serde_json::from_str(line)
                .map_err(|_| "it sees a file whose name is no text".to_owned())?;
            report.take(&line)?;
        }
        if report.ends == before {
            return Err("one of its processes was ended from outside".to_owned());
        }
    }
    match files.is_empty() {
        true => Err("it does not say what it reads".to_owned()),
        false => Ok(report.seen()),
    }
}

struct Report {
    began: SystemTime,
    seen: BTreeMap<(u8, PathBuf), Seen>,
    made: BTreeSet<PathBuf>,
    ends: usize,
}

impl Default for Report {
    fn default() -> Report {
        let (seen, made) = (BTreeMap::new(), BTreeSet::new());
        Report { began: SystemTime::UNIX_EPOCH, seen, made, ends: 0 }
    }
}

impl Report {
    /// One line. What is not as the trial saw it was changed meanwhile, by it or by somebody else: the next one
    /// would see something else.
    fn take(&mut self, line: &[Value]) -> Result<(), String> {
        let text = |at: usize| line.get(at).and_then(Value::as_str).unwrap_or_default();
        let path = PathBuf::from(text(1));
        match text(0) {
            "read" => {
                let was = line.get(2).and_then(Value::as_u64).zip(integer(line.get(3)));
                self.add(Aspect::Content, path, |path| was == size_and_time(path))
            }
            "look" => {
                let was = text(2).to_owned();
                let aspect = if was.starts_with("link ") { Aspect::Link } else { Aspect::Kind };
                self.add(aspect, path, |path| was == mark(aspect, path))
            }
            "list" => self.add_names(Aspect::Names, path, line.get(2)),
            "modules" => self.add_names(Aspect::Modules, path, line.get(2)),
            "installed" => {
                let began = self.began;
                let paths = line[1..].iter().filter_map(Value::as_str).map(PathBuf::from);
                paths.into_iter().try_for_each(|path| {
                    self.add(Aspect::Stamp, path, |path| {
                        path.is_dir() || !changed_since(path, began)
                    })
                })
            }
            "made" => {
                // A folder that was missing and is made by the trial itself says nothing; what is in it does.
                if path.is_dir() {
                    self.seen.retain(|_, seen| seen.1 != path || seen.2 != "missing");
                }
                self.made.insert(path);
                Ok(())
            }
            "beyond" => Err(text(1).to_owned()),
            "end" => {
                self.ends += 1;
                Ok(())
            }
            _ => Err("it says something that is not understood".to_owned()),
        }
    }

    fn add_names(
        &mut self,
        aspect: Aspect,
        path: PathBuf,
        names: Option<&Value>,
    ) -> Result<(), String> {
        let began = self.began;
        let names: Option<Vec<String>> =
            names.and_then(|names| serde_json::from_value(names.clone()).ok());
        self.add(aspect, path, |path| match &names {
            Some(names) => hash_of_names(names) == mark(aspect, path),
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
            true => mark(aspect, &path),
            false if path.is_dir() && aspect == Aspect::Kind => "missing".to_owned(),
            false => return Err(format!("it makes or changes `{}`", path.display())),
        };
        self.seen.insert(key, Seen(aspect, path, now));
        Ok(())
    }

    fn seen(self) -> Vec<Seen> {
        self.seen.into_values().collect()
    }
}

/// Times are larger than what a float holds.
fn integer(value: Option<&Value>) -> Option<i128> {
    value.and_then(Value::as_i64).map(i128::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// What a trial said, in a folder of its own.
    fn said(lines: &[Value]) -> Result<Vec<Seen>, String> {
        let folder = tempfile::tempdir().unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.path().join("sources.7"), text).unwrap();
        seen_by(folder.path(), SystemTime::now() + Duration::from_secs(60))
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
        assert!(seen_by(folder.path(), SystemTime::now()).is_err(), "nobody said anything");
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
            (Aspect::Content, mark(Aspect::Content, &file).as_str())
        );
        assert!(read(size + 1).is_err());
        let installed = said(&[json!(["installed", file]), json!(["end"])]).unwrap();
        assert_eq!(installed[0].0, Aspect::Stamp);
    }
}
