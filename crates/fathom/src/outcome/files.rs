//! The files that the processes of a run leave: the doorway's and the phantom's.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use contract::NoPage;
use contract::cards::{self, PeakReading};
use contract::files::process::{Decided, End};
use contract::files::{self, File, Flops, Levers, Process, Read, Unanswered, Waits};
use contract::status::Reading;
use study::Decision;

use super::processes;
use crate::error::Hinted;
use crate::here::from_here;

/// What the processes of a run left.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The one that used its card most comes first.
    pub(super) all: Vec<Seen>,
    /// The card of which most was held at once, by its number in the machine.
    pub(super) fullest: Option<(usize, PeakReading)>,
    /// What could not be read, of any file, as sentences with its name.
    pub(super) unread: Vec<String>,
}

/// One process: the doorway's file and the phantom's page, where they exist.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) pid: String,
    pub(super) process: Option<Process>,
    /// Whether the doorway's file is there, and nothing of it can be read.
    pub(super) is_unread: bool,
    pub(super) page: Reading,
    /// The card of which the run's processes together held most.
    pub(super) fullest: Option<usize>,
}

impl Seen {
    /// Steps that its optimizers took.
    pub(super) fn steps(&self) -> Option<u64> {
        self.process.as_ref().map(|process| process.steps)
    }

    /// The run's fullest card, else the one this process used most, and what it took from it, context
    /// included.
    pub(super) fn device(&self) -> (usize, u64) {
        let used = self.page.devices.iter().map(|device| match device.peak {
            0 => (false, 0),
            peak => {
                (self.fullest.is_some_and(|card| device.card == Some(card)), peak + device.context)
            }
        });
        let most = used.enumerate().rev().max_by_key(|(_, used)| *used);
        most.map_or((0, 0), |(device, (_, bytes))| (device, bytes))
    }

    /// The versions that answered and that torch has, where they differ.
    pub(super) fn foreign_cudnn(&self) -> Option<(u64, u64)> {
        let asked = u64::from(self.page.cudnn_version);
        let own = self.process.as_ref().map_or(0, |process| process.cudnn);
        (asked != 0 && own != 0 && asked / 100 != own / 100).then_some((asked, own))
    }

    pub(super) fn end(&self) -> Option<&End> {
        self.process.as_ref().and_then(|process| process.end.as_ref())
    }
}

/// Something that the script decided by values which are not known.
pub(super) fn decision(said: &Decided) -> Decision {
    Decision {
        operator: said.operator.clone(),
        place: said.file.clone().map(from_here).zip(said.line),
        library: said.library_file.clone().zip(said.library_line),
        why: said.why.clone(),
        assumed: said.assumed.clone(),
        count: said.count,
    }
}

impl Left {
    pub(super) fn read(folder: &Path) -> Left {
        let mut left = Left::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(pid) = pid_of_page(&name) else { continue };
            match page(&entry.path()) {
                Ok(page) => left.add(folder, pid, page),
                Err(None) => {}
                Err(Some(why)) => left
                    .unread
                    .push(format!("`{name}` {why}, so what process {pid} used is not known")),
            }
        }
        left.unread.extend(unread::<Levers>(folder).chain(unread::<Flops>(folder)));
        left.unread.extend(unread::<Waits>(folder).chain(unread::<Unanswered>(folder)));
        left.fullest = left.fullest_card(folder);
        let fullest = left.fullest.as_ref();
        left.all.iter_mut().for_each(|seen| seen.fullest = fullest.map(|(card, _)| *card));
        let share = |seen: &Seen| fullest.map_or(0, |(_, peak)| processes::share_of(seen, peak));
        left.all.sort_by_key(|seen| std::cmp::Reverse((share(seen), seen.device().1)));
        left
    }

    /// One process, with what the doorway says of it.
    fn add(&mut self, folder: &Path, pid: &str, page: Reading) {
        let file = read::<Process>(folder, &Process::name(pid));
        let is_unread = file.as_ref().is_some_and(|file| file.value.is_none());
        let process = file.and_then(|file| {
            self.unread.extend(file.notes);
            file.value
        });
        self.all.push(Seen { pid: pid.to_owned(), process, is_unread, page, fullest: None });
    }

    fn fullest_card(&mut self, folder: &Path) -> Option<(usize, PeakReading)> {
        let bytes = match fs::read(folder.join(cards::FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            bytes => bytes.map_err(|error| format!("cannot be read ({error})")),
        };
        let peaks = match bytes.map(|bytes| PeakReading::parse(&bytes)) {
            Ok(Ok(peaks)) => peaks,
            Ok(Err(NoPage::Unused)) => return None,
            Ok(Err(why)) => return self.without_cards(&why.to_string()),
            Err(why) => return self.without_cards(&why),
        };
        let fullest = peaks.into_iter().enumerate().rev().max_by_key(|(_, peak)| peak.bytes)?;
        Some(fullest).filter(|(_, peak)| peak.bytes != 0)
    }

    fn without_cards<T>(&mut self, why: &str) -> Option<T> {
        let lost = "so what several processes held of a GPU at once is not known";
        self.unread.push(format!("`{}` {why}, {lost}", cards::FILE));
        None
    }
}

/// A file of the doorway's; `None` if there is none.
pub(crate) fn read<T: File>(folder: &Path, name: &str) -> Option<Read<T>> {
    match fs::read(folder.join(name)) {
        Ok(bytes) => Some(files::read(name, &bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(files::unreadable(name, &error.to_string())),
    }
}

/// Those of one kind that the processes of a run left. Their notes are among those of the run already.
pub(crate) fn read_each<T: File>(folder: &Path) -> Vec<Read<T>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_wanted = |name: &String| {
        let pid = name.strip_prefix(T::KIND).and_then(|name| name.strip_prefix('.'));
        pid.and_then(|name| name.strip_suffix(".json"))
            .is_some_and(|pid| pid.parse::<u32>().is_ok())
    };
    let mut names: Vec<String> = names.filter(is_wanted).collect();
    names.sort();
    names.iter().filter_map(|name| read(folder, name)).collect()
}

fn unread<T: File>(folder: &Path) -> impl Iterator<Item = String> {
    read_each::<T>(folder).into_iter().flat_map(|file| file.notes)
}

/// The process whose page has this name.
fn pid_of_page(name: &str) -> Option<&str> {
    name.strip_prefix("phantom.").filter(|pid| pid.parse::<u32>().is_ok())
}

/// What a page says; else why it says nothing, or `None` if its process never used it.
fn page(path: &Path) -> Result<Reading, Option<String>> {
    let bytes = fs::read(path).map_err(|error| Some(format!("cannot be read ({error})")))?;
    Reading::parse(&bytes).map_err(|why| (why != NoPage::Unused).then(|| why.to_string()))
}

/// Without its status page a process that used the card looks like one that did not.
pub(crate) fn check_pages(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if pid_of_page(&name).is_none() {
            continue;
        }
        let shown = entry.path().display().to_string();
        let unknown = "what the script used is not known";
        if entry.metadata().is_ok_and(|data| data.len() == 0) {
            let message = format!("{unknown}: `{shown}` could not be written");
            return Err(Hinted::error(message, "make room on that disk, or name another folder"));
        }
        if let Err(Some(why)) = page(&entry.path()) {
            let hint = "install the command and its libraries anew, from one version of Fathom";
            return Err(Hinted::error(format!("{unknown}: `{shown}` {why}"), hint));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::status::{MAGIC, Status};

    /// A folder with the page of one process, and these files besides.
    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut page = vec![0; size_of::<Status>()];
        page[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        fs::write(folder.path().join("phantom.7"), page).unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        folder
    }

    /// What is said about a folder with this file in it.
    fn said(name: &str, bytes: &[u8]) -> Vec<String> {
        let folder = folder(&[(name, bytes)]);
        let left = Left::read(folder.path());
        assert_eq!(left.all.len(), 1, "the process itself is known");
        assert!(left.unread.iter().all(|note| note.contains(name)), "{:?}", left.unread);
        left.unread
    }

    #[test]
    fn whatever_cannot_be_read_is_said_by_name() {
        assert!(Left::read(folder(&[]).path()).unread.is_empty());
        assert!(said("phantom.cards", &[0; 100]).is_empty(), "a page that nobody has used");
        assert!(said("phantom.8", &[0; 100]).is_empty());
        let kinds = [
            "process.7.json",
            "levers.7.json",
            "flops.9.json",
            "waits.7.json",
            "unanswered.7.json",
        ];
        for name in kinds.into_iter().chain(["phantom.cards", "phantom.8"]) {
            assert_eq!(said(name, b"{\"schema\": ").len(), 1, "{name}");
        }
    }

    #[test]
    fn a_file_that_is_not_ours_is_not_looked_at() {
        for name in
            ["phantom.blend", "levers.json", "flops.a.json", "process.8.json", "waits.7.json.new"]
        {
            assert!(said(name, b"{").is_empty(), "{name}");
        }
    }

    #[test]
    fn nothing_is_said_of_a_python_that_was_not_reached() {
        let left = Left::read(folder(&[]).path());
        assert!(left.all[0].process.is_none() && !left.all[0].is_unread);
        let left = Left::read(folder(&[("process.7.json", b"{")]).path());
        assert!(left.all[0].process.is_none() && left.all[0].is_unread);
    }

    #[test]
    fn without_a_page_there_is_no_answer() {
        assert!(check_pages(folder(&[("phantom.8", &[0; 100])]).path()).is_ok());
        for bytes in [b"".as_slice(), b"FATHOM99", &MAGIC.to_ne_bytes()] {
            let error = check_pages(folder(&[("phantom.8", bytes)]).path()).unwrap_err();
            assert!(error.to_string().contains("phantom.8"), "{error}");
        }
    }
}
