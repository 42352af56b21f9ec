//! The files that the processes of a run leave: the doorway's and the phantom's.

use std::fs;
use std::path::Path;

use cuda_abi::status::Reading;
use report::Workspaces;
use serde::Deserialize;

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
    pub(super) unreal: Vec<Unreal>,
    pub(super) end: Option<End>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Device {
    pub(super) device: usize,
    pub(super) allocated: Moment,
    pub(super) reserved: Moment,
    pub(super) requested: Moment,
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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Unreal {
    pub(super) operator: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
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
}

impl Seen {
    /// The card this process used most, and what it took from it, context included.
    pub(super) fn device(&self) -> (usize, u64) {
        let used = self.page.devices.iter().map(|device| match device.peak {
            0 => 0,
            peak => peak + device.context,
        });
        used.enumerate().max_by_key(|(_, bytes)| *bytes).unwrap_or((0, 0))
    }

    /// Another cuDNN than torch's own gives good sizes, but not the exact ones.
    pub(super) fn workspaces(&self) -> Workspaces {
        match self.page.workspaces {
            0 => Workspaces::None,
            1 if self.foreign_cudnn().is_none() => Workspaces::Exact,
            _ => Workspaces::Modelled,
        }
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
        all.push(Seen { pid: pid.to_owned(), process, page });
    }
    all.sort_by_key(|seen| std::cmp::Reverse(seen.device().1));
    all
}
