//! The cards of the run, and who holds what of them: from the environment and the page that its processes share.

use std::path::{Path, PathBuf};

use contract::cards::{self, HolderReading};
use contract::environment as name;
use contract::machine;
use gpus::Card;

/// What is asked about.
pub(super) struct Machine {
    pub(super) driver: &'static str,
    /// `13.0`.
    pub(super) cuda: String,
    pub(super) gpus: Vec<Gpu>,
    /// How many there are, whichever are asked about.
    pub(super) count: usize,
}

/// One card with those who use it.
pub(super) struct Gpu {
    pub(super) index: usize,
    pub(super) card: Card,
    pub(super) processes: Vec<Process>,
}

pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) bytes: u64,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// A size as the launcher writes it: `25414860800B`.
fn bytes(name: &str) -> Option<u64> {
    variable(name)?.trim().trim_end_matches('B').parse().ok()
}

impl Machine {
    /// As it is now.
    pub(super) fn read() -> Result<Machine, String> {
        let visible = variable(crate::visible::VARIABLE);
        let count = machine::cards(variable(name::DEVICES).as_deref(), visible.as_deref());
        let cuda = variable(name::CUDA).and_then(|text| text.trim().parse().ok()).unwrap_or(13020);
        let card = card()?;
        let page = variable(name::RUN).map(|run| PathBuf::from(run).join(cards::FILE));
        let page = page.and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        let gpus = (0..count).map(|index| Gpu {
            index,
            card: card.clone(),
            // Before the first process used a card there is no page, and nothing is held.
            processes: living(HolderReading::parse(&page, index).unwrap_or_default()),
        });
        Ok(Machine {
            driver: machine::driver(cuda),
            cuda: format!("{}.{}", cuda / 1000, cuda % 1000 / 10),
            gpus: gpus.collect(),
            count,
        })
    }

    /// Only the cards that are named, in the order of the names.
    pub(super) fn with_ids(mut self, ids: &[String]) -> Result<Machine, String> {
        if ids.is_empty() {
            return Ok(self);
        }
        let mut all: Vec<Option<Gpu>> = self.gpus.into_iter().map(Some).collect();
        let mut named = Vec::new();
        for id in ids {
            let found = all.iter_mut().find(|gpu| gpu.as_ref().is_some_and(|gpu| gpu.is(id)));
            named.push(found.and_then(Option::take).ok_or("No devices were found")?);
        }
        self.gpus = named;
        Ok(self)
    }
}

impl Gpu {
    fn is(&self, id: &str) -> bool {
        let bus = self.bus().to_lowercase();
        let by_name = id == self.uuid() || bus.ends_with(&id.to_lowercase()) && id.contains(':');
        by_name || id.parse() == Ok(self.index)
    }

    pub(super) fn uuid(&self) -> String {
        machine::uuid_text(self.index)
    }

    pub(super) fn bus(&self) -> String {
        format!("0000{}", machine::pci_text(self.index))
    }

    pub(super) fn used(&self) -> u64 {
        self.processes.iter().map(|process| process.bytes).sum::<u64>() + self.card.used_bytes
    }

    pub(super) fn free(&self) -> u64 {
        self.card.memory_bytes.saturating_sub(self.used())
    }
}

/// The card that the launcher chose, as the phantom reads it.
fn card() -> Result<Card, String> {
    let card = match variable(name::GPU).as_deref() {
        None | Some("unlimited") => gpus::unlimited(),
        Some(text) => gpus::find(text).cloned().map_err(|error| error.to_string())?,
    };
    let card = match bytes(name::MEMORY) {
        Some(bytes) => card.with_memory(bytes),
        None => card,
    };
    Ok(card.with_used(bytes(name::USED).unwrap_or(0)))
}

/// Those that still run.
fn living(holders: Vec<HolderReading>) -> Vec<Process> {
    let living = holders.into_iter().filter(|holder| started(holder.pid) == Some(holder.started));
    let process = |holder: HolderReading| Process {
        pid: holder.pid,
        name: program(Path::new(&format!("/proc/{}/cmdline", holder.pid))),
        bytes: holder.bytes,
    };
    living.map(process).collect()
}

/// When a process started; `None` if it has ended.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; state is the first field behind it, the time the 20th.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X" | "x")).then(|| fields.nth(18)?.parse().ok())?
}

/// The first word of a command line.
fn program(path: &Path) -> String {
    let line = std::fs::read(path).unwrap_or_default();
    let word = String::from_utf8_lossy(line.split(|byte| *byte == 0).next().unwrap_or_default());
    match report::visible(&word).to_string() {
        empty if empty.is_empty() => "[Not Found]".to_owned(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(count: usize) -> Machine {
        let card = gpus::find("rtx3090").unwrap().with_used(1 << 30);
        let gpus = (0..count).map(|index| Gpu { index, card: card.clone(), processes: Vec::new() });
        Machine { driver: "1", cuda: "13.0".to_owned(), gpus: gpus.collect(), count }
    }

    #[test]
    fn cards_are_chosen_by_index_uuid_or_address() {
        let chosen = |ids: &[String]| {
            let machine = machine(3).with_ids(ids)?;
            Ok::<_, String>(machine.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>())
        };
        let (uuid, bus) = (machine::uuid_text(1), "00000000:03:00.0".to_owned());
        assert_eq!(chosen(&[]), Ok(vec![0, 1, 2]));
        assert_eq!(chosen(&[bus, "0".to_owned(), uuid]), Ok(vec![2, 0, 1]));
        assert!(
            chosen(&["3".to_owned()]).is_err()
                && chosen(&["0".to_owned(), "0".to_owned()]).is_err()
        );
    }

    #[test]
    fn what_others_use_counts() {
        let gpu = &machine(1).gpus[0];
        assert_eq!((gpu.used(), gpu.free()), (1 << 30, gpu.card.memory_bytes - (1 << 30)));
    }

    #[test]
    fn a_process_that_has_ended_holds_nothing() {
        let own = std::process::id();
        let holder = |started| HolderReading { pid: own, started, bytes: 7 };
        let at = started(own).unwrap();
        assert_eq!(living(vec![holder(at)]).len(), 1);
        assert_eq!(living(vec![holder(at + 1)]).len(), 0);
    }
}
