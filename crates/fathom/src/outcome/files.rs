//! The files that the processes of a run leave: the doorway's and the phantom's.

use std::fs;
use std::path::Path;

use anyhow::Result;
use cuda_abi::status::Reading;
use report::Decision;
use serde::Deserialize;

use super::processes;
use crate::error::Hinted;

/// `process.<pid>.json`, written by the doorway.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Process {
    pub(super) python: String,
    pub(super) torch: String,
    pub(super) cuda: String,
    pub(super) cudnn: u64,
    pub(super) architectures: Vec<String>,
    /// Steps of the optimizer that took most.
    pub(super) steps: u64,
    /// Steps of all optimizers together.
    pub(super) steps_of_all: u64,
    pub(super) devices: Vec<Device>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) refusal_count: u64,
    pub(super) decisions: Vec<Decided>,
    pub(super) faults: Vec<Fault>,
    pub(super) end: Option<End>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Device {
    pub(super) device: usize,
    pub(super) allocated: Moment,
    pub(super) reserved: Moment,
    pub(super) requested: Moment,
    /// All that was ever allocated.
    pub(super) total_bytes: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Moment {
    pub(super) bytes: u64,
    pub(super) phase: String,
    pub(super) step: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub(super) tried_bytes: u64,
    pub(super) free_bytes: u64,
    pub(super) phase: String,
    pub(super) step: u64,
    pub(super) steps_done: u64,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
}

/// Something that the script decided by values which are not known.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Decided {
    operator: String,
    why: String,
    assumed: String,
    file: Option<String>,
    line: Option<u64>,
    library_file: Option<String>,
    library_line: Option<u64>,
    count: u64,
}

impl From<&Decided> for Decision {
    fn from(said: &Decided) -> Decision {
        Decision {
            operator: said.operator.clone(),
            place: said.file.clone().zip(said.line),
            library: said.library_file.clone().zip(said.library_line),
            why: said.why.clone(),
            assumed: said.assumed.clone(),
            count: said.count,
        }
    }
}

/// An error of ours, which the script did not see.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fault {
    /// What it costs, in words.
    pub(super) loss: String,
    pub(super) error: String,
    pub(super) place: String,
    pub(super) phase: Option<String>,
    pub(super) step: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct End {
    pub(super) kind: String,
    pub(super) message: String,
    #[serde(rename = "type")]
    pub(super) exception: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
}

/// One process: the doorway's file and the phantom's page, where they exist.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) pid: String,
    pub(super) process: Option<Process>,
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

pub(super) fn read_all(folder: &Path) -> Vec<Seen> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix("phantom.") else { continue };
        let Some(page) = fs::read(entry.path()).ok().and_then(|bytes| Reading::parse(&bytes))
        else {
            continue;
        };
        let file = fs::read_to_string(folder.join(format!("process.{pid}.json")));
        let process = file.ok().and_then(|text| serde_json::from_str(&text).ok());
        all.push(Seen { pid: pid.to_owned(), process, page, fullest: None });
    }
    let fullest = processes::fullest_card(folder);
    let share =
        |seen: &Seen| fullest.as_ref().map_or(0, |(_, peak)| processes::share_of(seen, peak));
    all.iter_mut().for_each(|seen| seen.fullest = fullest.as_ref().map(|(card, _)| *card));
    all.sort_by_key(|seen| std::cmp::Reverse((share(seen), seen.device().1)));
    all
}

/// Without its status page a process that used the card looks like one that did not.
pub(crate) fn check_pages(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_page = name.strip_prefix("phantom.").is_some_and(|pid| pid.parse::<u32>().is_ok());
        if is_page && entry.metadata().is_ok_and(|data| data.len() == 0) {
            let message = format!(
                "what the script used is not known: `{}` could not be written",
                entry.path().display()
            );
            return Err(Hinted::error(message, "make room on that disk, or name another folder"));
        }
    }
    Ok(())
}
