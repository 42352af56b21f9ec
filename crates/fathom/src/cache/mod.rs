//! Trials, remembered. One rule says when: **an answer is remembered if all that the trial could see is either
//! in its key or on the list of what it rests on**, and it counts while both are the same.
//!
//! The key: the command, the working folder, the variables (but for those of terminals and shells), the card,
//! the settings, Python, torch, and this program. The list: files that were read, looked for or listed, and
//! those of every module. A trial that sees anything else (another program, the network) is not remembered, and
//! the answer says so. Time, random numbers without a seed and what libraries read below Python are not seen.

mod counts;
mod entry;
mod environment;
mod folder;
mod hash;
mod seen;
mod sources;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::confined::Window;
use crate::installed;
use crate::python::Python;
use crate::runner::Wanted;
use crate::settings::Settings;

pub(crate) use self::counts::Counts;
pub(crate) use self::entry::How;
pub(crate) use self::environment::of_batch_system;
pub(crate) use self::folder::{folder, shared_folder};
pub(crate) use self::hash::hash;
pub(crate) use self::seen::{Aspect, Eyes, Seen, mark};

/// Entries that are kept, and the bytes that they may take: beyond that the oldest go.
const MOST: usize = 4_000;
const MOST_BYTES: u64 = 1 << 30;

/// A folder of answers, for one Python.
pub(crate) struct Cache {
    folder: PathBuf,
    /// What every key of this command begins with.
    world: String,
    began: SystemTime,
    eyes: Eyes,
    /// What was made then does not count: trials repeat the run that made it, and do not see it.
    pub(crate) unseen: Option<Window>,
}

impl Cache {
    /// In this folder, for trials of this Python that begin from now on.
    pub(crate) fn new(folder: PathBuf, python: Option<&Python>) -> Cache {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let here = std::env::current_dir().unwrap_or_default();
        let variables = environment::that_counts();
        let world = format!("{here:?} {cores} {variables:?} {python:?} {:?}", program());
        Cache { folder, world, began: SystemTime::now(), eyes: Eyes::default(), unseen: None }
    }

    /// The name of a trial's answer.
    pub(crate) fn key(&self, wanted: &Wanted, settings: &Settings) -> String {
        let Wanted { card, setting, record, cold, most, row: _, short: _ } = wanted;
        let changed = setting.files.iter().map(|change| Path::new(&change.path));
        let configs: Vec<String> = changed.map(|path| mark(Aspect::Content, path)).collect();
        let Settings { steps, values, assume, cards, .. } = settings;
        let trial = format!(
            "{card:?} {setting:?} {configs:?} {record} {cold} {} {steps} {values} {assume:?} {cards:?}",
            most.as_ref().map_or_else(|| "false".to_owned(), |most| format!("{:?}", most.at))
        );
        hash(format!("{} {trial}", self.world).as_bytes())
    }

    /// What was looked at may have changed since.
    pub(crate) fn look_again(&mut self) {
        self.eyes = Eyes::without(self.unseen);
    }

    /// Puts the files of a remembered trial into a folder and says how it ended; `None` if it is
    /// not remembered, or rests on what is no longer so. What is remembered and cannot be read is an error.
    pub(crate) fn get(&mut self, key: &str, into: &Path) -> Result<Option<How>, String> {
        let Some(whole) = self.find(key)? else { return Ok(None) };
        let (header, rest) = entry::open(&whole).ok_or_else(|| damaged(key))?;
        entry::unpack(&header, rest, into)
            .map_err(|error| format!("its files cannot be written: {error}"))?;
        Ok(Some(header.ended))
    }

    /// Whether a trial is remembered, and its answer counts.
    pub(crate) fn has(&mut self, key: &str) -> bool {
        self.find(key).is_ok_and(|whole| whole.is_some())
    }

    /// The entry of a trial, if it rests on nothing that has changed.
    fn find(&mut self, key: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(whole) = self.read(key)? else { return Ok(None) };
        let (header, _) = entry::open(&whole).ok_or_else(|| damaged(key))?;
        // Another command may have made room meanwhile.
        let Some(list) = self.read(&header.rests_on)? else { return Ok(None) };
        // A list that is damaged is not the one that was meant.
        let is_meant = hash(&list) == header.rests_on.trim_start_matches(LIST);
        let list = serde_json::from_slice::<Vec<Seen>>(&list).ok().filter(|_| is_meant);
        let list = list.ok_or_else(|| damaged(&header.rests_on))?;
        Ok(self.eyes.are_as_before(&list).then_some(whole))
    }

    /// A file of the folder; `None` if there is none.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let read = || fs::read(self.folder.join(name));
        let is_stale = |error: &std::io::Error| {
            error.raw_os_error() == Some(rustix::io::Errno::STALE.raw_os_error())
        };
        // On a network file system, one that another job has just replaced: the new one is there.
        match read().or_else(|error| if is_stale(&error) { read() } else { Err(error) }) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("`{name}` in the cache cannot be read ({error})")),
        }
    }

    /// Remembers what a trial left in its folder, or says why not.
    pub(crate) fn put(&self, key: &str, from: &Path, ended: How) -> Result<(), String> {
        let list = sources::seen_by(from, self.began, self.unseen)?;
        let list = serde_json::to_vec(&list).map_err(|error| error.to_string())?;
        let rests_on = format!("{LIST}{}", hash(&list));
        let whole =
            entry::pack(from, rests_on.clone(), ended).map_err(|error| error.to_string())?;
        let whole = whole.ok_or("what it recorded is too large to keep")?;
        let write = || -> std::io::Result<()> {
            let is_there = fs::read(self.folder.join(&rests_on)).is_ok_and(|it| it == list);
            if !is_there {
                replace(&self.folder, &rests_on, &list)?;
            }
            replace(&self.folder, key, &whole)
        };
        write().map_err(|error| format!("the cache cannot be written: {error}"))
    }

    /// Makes room: the oldest answers go.
    pub(crate) fn tidy(&self) {
        let mut all: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let data = entry.metadata().ok()?;
                Some((data.modified().ok()?, data.len(), entry.path()))
            })
            .collect();
        all.sort_by_key(|(time, _, _)| std::cmp::Reverse(*time));
        let mut size = 0;
        for (index, (_, bytes, path)) in all.iter().enumerate() {
            size += bytes;
            if MOST <= index || MOST_BYTES < size {
                // What another command removes at the same moment is gone as well.
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn damaged(name: &str) -> String {
    format!("`{name}` in the cache is damaged")
}

/// Beginning of the names of lists: entries that rest on the same share one.
const LIST: &str = "rests-on-";

/// Puts a whole file in place at once: no lock is needed, whoever else writes. On a network file system others
/// see its name before its content, unless that is on the server by then.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(folder.join(name))?;
    Ok(())
}

/// This program and all that it puts into a process.
fn program() -> Vec<String> {
    let stamp = |path: &PathBuf| format!("{} {}", path.display(), mark(Aspect::Stamp, path));
    let own = [std::env::current_exe().ok(), installed::phantom().ok(), installed::recorder().ok()];
    let mut all: Vec<PathBuf> = own.into_iter().flatten().collect();
    let mut folders: Vec<PathBuf> = installed::doorway().ok().into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if entry.file_name() != "__pycache__" => folders.push(path),
                true => {}
                false => all.push(path),
            }
        }
    }
    all.sort();
    all.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_said_and_what_is_not_there_is_not() {
        let [place, from] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let text = format!("[\"schema\", \"{}\"]\n[\"end\"]\n", contract::files::sources::SCHEMA);
        fs::write(from.path().join("sources.7"), text).unwrap();
        fs::write(from.path().join("phantom.7"), b"page").unwrap();
        let mut cache = Cache::new(place.path().to_owned(), None);
        let mut get = |key: &str| {
            let into = tempfile::tempdir().unwrap();
            cache.get(key, into.path())
        };
        assert_eq!(get("key"), Ok(None));
        let how = How { seconds: 1.5, has_failed: false };
        Cache::new(place.path().to_owned(), None).put("key", from.path(), how).unwrap();
        assert_eq!(get("key"), Ok(Some(how)));
        let mut files = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
        let list = files.find(|path| !path.ends_with("key")).unwrap();
        let whole = fs::read(&list).unwrap();
        fs::write(&list, b"[").unwrap();
        assert!(get("key").unwrap_err().contains("rests-on-"));
        fs::remove_file(&list).unwrap();
        assert_eq!(get("key"), Ok(None), "another command made room");
        fs::write(&list, whole).unwrap();
        fs::write(place.path().join("key"), b"{").unwrap();
        assert!(get("key").unwrap_err().contains("`key` in the cache is damaged"));
    }
}
