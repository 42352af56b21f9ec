//! Answers of trials, kept by content: the same command, files, card and versions give the same peaks.
//!
//! An entry says which files the script read; it counts only while all of them are as they were. So a
//! sweep that was broken off goes on where it was, and a change of one line makes it begin anew.

use std::fs;
use std::path::{Path, PathBuf};

use fit::{Measured, Peaks, Verdict};
use serde::{Deserialize, Serialize};

use crate::runner::Wanted;
use crate::settings::Settings;
use crate::warm::Job;

/// Files larger than this count by their size and time, not by their content.
const LARGE: u64 = 16 << 20;

/// A folder of answers.
pub(crate) struct Cache {
    folder: PathBuf,
    software: String,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    fits: bool,
    allocated: u64,
    reserved: u64,
    device: u64,
    /// Path and mark of each file that the script read.
    files: Vec<(PathBuf, String)>,
}

impl Cache {
    /// In this folder.
    pub(crate) fn new(folder: PathBuf) -> Cache {
        Cache { folder, software: String::new() }
    }

    /// For these versions of Python and torch, and this program.
    pub(crate) fn with(self, software: &str) -> Cache {
        let own = std::env::current_exe().ok().map(|path| mark(&path)).unwrap_or_default();
        Cache { software: format!("{own} {software}"), ..self }
    }

    /// The name of a trial's answer.
    pub(crate) fn key(&self, wanted: &Wanted, settings: &Settings) -> String {
        let setting = &wanted.setting;
        let card =
            wanted.card.as_ref().map(|card| (card.name, card.memory_bytes, card.context_bytes));
        let ours = std::env::vars()
            .filter(|(name, _)| name.starts_with("PYTORCH_") || name.starts_with("CUDA_"));
        let mut ours: Vec<(String, String)> = ours.collect();
        ours.sort();
        let folder = std::env::current_dir().unwrap_or_default();
        let configs: Vec<String> =
            setting.files.iter().map(|change| mark(Path::new(&change.path))).collect();
        let whole = format!(
            "{:?} {:?} {:?} {configs:?} {card:?} {} {} {ours:?} {folder:?} {}",
            setting.words,
            setting.environment,
            setting.files,
            settings.steps,
            settings.values,
            self.software
        );
        hash(whole.as_bytes())
    }

    /// A remembered answer whose files have not changed.
    pub(crate) fn get(&self, key: &str) -> Option<Measured> {
        let text = fs::read_to_string(self.folder.join(key)).ok()?;
        let entry: Entry = serde_json::from_str(&text).ok()?;
        if !entry.files.iter().all(|(path, as_it_was)| mark(path) == *as_it_was) {
            return None;
        }
        let verdict = if entry.fits { Verdict::Fits } else { Verdict::DoesNotFit };
        let peaks =
            Peaks { allocated: entry.allocated, reserved: entry.reserved, device: entry.device };
        Some(Measured { verdict, peaks })
    }

    /// Remembers an answer; failures are not worth it, and a cache that cannot be written is none.
    pub(crate) fn put(&self, key: &str, job: &Job, measured: &Measured) {
        let fits = match measured.verdict {
            Verdict::Fits => true,
            Verdict::DoesNotFit => false,
            Verdict::Failed(_) => return,
        };
        let Some(files) = sources(&job.folder) else { return };
        let Peaks { allocated, reserved, device } = measured.peaks;
        let files = files.into_iter().map(|path| (path.clone(), mark(&path))).collect();
        let entry = Entry { fits, allocated, reserved, device, files };
        let write = || {
            fs::create_dir_all(&self.folder).ok()?;
            let new = tempfile::NamedTempFile::new_in(&self.folder).ok()?;
            fs::write(new.path(), serde_json::to_string(&entry).ok()?).ok()?;
            new.persist(self.folder.join(key)).ok()
        };
        // Without it the next sweep runs the trial again.
        let _ = write();
    }
}

/// Files that the processes of a trial say they read, outside of the trial's own folder; `None` if they did not say.
fn sources(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut said = false;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("sources.") {
            said = true;
            let text = fs::read_to_string(entry.path()).ok()?;
            all.extend(serde_json::from_str::<Vec<PathBuf>>(&text).ok()?);
        }
    }
    // The trial's own changed copies of config files are known by their changes; their neighbours are links.
    all.retain(|path| !path.starts_with(folder));
    all.sort();
    all.dedup();
    said.then_some(all)
}

/// What tells a file from its other versions.
fn mark(path: &Path) -> String {
    let Ok(data) = fs::metadata(path) else { return "missing".to_owned() };
    if LARGE < data.len() {
        return format!("{} {:?}", data.len(), data.modified().ok());
    }
    fs::read(path).map(|bytes| hash(&bytes)).unwrap_or_default()
}

/// FNV-1a over 128 bits: not against forgers, who could write the cache themselves.
fn hash(bytes: &[u8]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let sum = bytes.iter().fold(OFFSET, |sum, byte| (sum ^ u128::from(*byte)).wrapping_mul(PRIME));
    format!("{sum:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_published_function() {
        // The first is the offset itself, as the function's authors give it; the second follows from one step.
        assert_eq!(hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
