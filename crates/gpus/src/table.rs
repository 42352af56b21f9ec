//! The text tables, read once. A row that cannot be read names itself.

use std::fmt;
use std::sync::OnceLock;

use crate::architecture::Architecture;
use crate::beside::{Counted, Loading, Measured};
use crate::card::{Card, Source};

const CARDS: &str = include_str!("../cards.txt");
const ARCHITECTURES: &str = include_str!("../architectures.txt");
const BESIDE: &str = include_str!("../beside.txt");
const SOURCES: &str = include_str!("../sources.txt");

/// A row that cannot be read: what was expected, and what stood there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    row: &'static str,
    expected: &'static str,
    got: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got `{}` in `{}`", self.expected, self.got, self.row.trim())
    }
}

/// The rows of `cards.txt`.
pub(crate) fn cards() -> &'static [Card] {
    static TABLE: OnceLock<Vec<Card>> = OnceLock::new();
    TABLE.get_or_init(|| rows(CARDS).map(card).collect::<Result<_, _>>().unwrap_or_else(give_up))
}

/// The rows of `architectures.txt`.
pub(crate) fn architectures() -> &'static [Architecture] {
    static TABLE: OnceLock<Vec<Architecture>> = OnceLock::new();
    TABLE.get_or_init(|| {
        rows(ARCHITECTURES).map(architecture).collect::<Result<_, _>>().unwrap_or_else(give_up)
    })
}

/// The rows of `beside.txt`.
pub(crate) fn beside() -> &'static [Measured] {
    static TABLE: OnceLock<Vec<Measured>> = OnceLock::new();
    TABLE.get_or_init(|| {
        rows(BESIDE).map(measured).collect::<Result<_, _>>().unwrap_or_else(give_up)
    })
}

/// The rows of `sources.txt`: a key and its sentence.
pub(crate) fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    rows(SOURCES).filter_map(|row| row.split_once("  ")).map(|(key, text)| (key, text.trim()))
}

/// The tables are part of the binary and tested, so that this is never reached.
fn give_up<T>(broken: Broken) -> T {
    panic!("the catalogue is broken: {broken}")
}

fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#'))
}

fn card(row: &'static str) -> Result<Card, Broken> {
    let mut cells = Cells::of(row);
    let name = cells.text("a name")?;
    let nominal_gib = cells.number("the size on the box")?;
    let memory_bytes = cells.number("bytes of memory")?;
    let memory_known = cells.source()?;
    let context_mib: u64 = cells.number("MiB of context")?;
    let context_known = cells.source()?;
    let architecture = cells.architecture()?;
    let sm_count = cells.number("a count of multiprocessors")?;
    let sm_known = cells.source()?;
    let l2_kib: u64 = cells.number("KiB of cache")?;
    let l2_known = cells.source()?;
    let clock_mhz: u32 = cells.number("MHz")?;
    let memory_clock_mhz: u32 = cells.number("MHz of the memory")?;
    let memory_bus_bits = cells.number("the width of the bus")?;
    let clocks_known = cells.source()?;
    let pci_device_id = cells.hexadecimal("a PCI device id")?;
    let pci_known = cells.source()?;
    let title = cells.text("the driver's name")?;
    cells.end()?;
    Ok(Card {
        name,
        title,
        nominal_gib,
        memory_bytes,
        memory_known,
        used_bytes: 0,
        context_bytes: context_mib << 20,
        context_known,
        loading: Loading::Lazy,
        compute_capability: architecture.compute_capability,
        sm_count,
        sm_known,
        l2_bytes: l2_kib << 10,
        l2_known,
        clock_khz: clock_mhz * 1000,
        memory_clock_khz: memory_clock_mhz * 1000,
        memory_bus_bits,
        clocks_known,
        pci_device_id,
        pci_known,
        architecture,
    })
}

fn architecture(row: &'static str) -> Result<Architecture, Broken> {
    let mut cells = Cells::of(row);
    let compute_capability = cells.capability()?;
    let family = cells.text("a family")?;
    let threads_per_multiprocessor = cells.number("threads")?;
    let blocks_per_multiprocessor = cells.number("blocks")?;
    let registers_per_multiprocessor = cells.number("registers")?;
    let [shared, optin, reserved]: [u64; 3] = [
        cells.number("KiB of shared memory")?,
        cells.number("KiB of shared memory of a block")?,
        cells.number("KiB of reserved shared memory")?,
    ];
    let multiply_adds_per_clock = cells.number("multiply-adds")?;
    cells.end()?;
    Ok(Architecture {
        compute_capability,
        family,
        threads_per_multiprocessor,
        blocks_per_multiprocessor,
        registers_per_multiprocessor,
        shared_per_multiprocessor: shared << 10,
        shared_per_block_optin: optin << 10,
        shared_reserved_per_block: reserved << 10,
        multiply_adds_per_clock,
    })
}

fn measured(row: &'static str) -> Result<Measured, Broken> {
    let mut cells = Cells::of(row);
    let card = cells.text("a card")?;
    if card != "-" && !cards().iter().any(|known| known.name == card) {
        return Err(cells.broken("a name of cards.txt", card));
    }
    let counted = match cells.text("what was counted")? {
        "context" => Counted::Context,
        "all" => Counted::All,
        "loading" => Counted::Loading,
        other => return Err(cells.broken("`context`, `all` or `loading`", other)),
    };
    let mib: u64 = cells.number("MiB")?;
    let loading = match cells.text("a way of loading")? {
        "lazy" => Some(Loading::Lazy),
        "eager" => Some(Loading::Eager),
        "?" => None,
        other => return Err(cells.broken("`lazy`, `eager` or `?`", other)),
    };
    let ranks = cells.number("a number of processes")?;
    let [torch, cuda, driver] =
        [cells.text("torch")?, cells.text("CUDA")?, cells.text("a driver")?];
    let source = cells.source()?;
    cells.end()?;
    Ok(Measured { card, counted, bytes: mib << 20, loading, ranks, torch, cuda, driver, source })
}

/// The cells of a row, separated by two or more blanks and read from left to right.
struct Cells {
    row: &'static str,
    rest: &'static str,
}

impl Cells {
    fn of(row: &'static str) -> Cells {
        Cells { row, rest: row.trim() }
    }

    fn broken(&self, expected: &'static str, got: &'static str) -> Broken {
        Broken { row: self.row, expected, got }
    }

    fn text(&mut self, expected: &'static str) -> Result<&'static str, Broken> {
        let (cell, rest) = self.rest.split_once("  ").unwrap_or((self.rest, ""));
        self.rest = rest.trim_start();
        if cell.is_empty() { Err(self.broken(expected, cell)) } else { Ok(cell) }
    }

    fn number<T: std::str::FromStr>(&mut self, expected: &'static str) -> Result<T, Broken> {
        let cell = self.text(expected)?;
        cell.parse().map_err(|_| self.broken(expected, cell))
    }

    fn hexadecimal(&mut self, expected: &'static str) -> Result<u16, Broken> {
        let cell = self.text(expected)?;
        u16::from_str_radix(cell, 16).map_err(|_| self.broken(expected, cell))
    }

    fn source(&mut self) -> Result<Source, Broken> {
        let key = self.text("a source")?;
        let (_, text) = sources()
            .find(|(known, _)| *known == key)
            .ok_or_else(|| self.broken("a key of sources.txt", key))?;
        Ok(if key.starts_with('~') { Source::Assumed(text) } else { Source::Sourced(text) })
    }

    fn capability(&mut self) -> Result<(u32, u32), Broken> {
        const EXPECTED: &str = "a compute capability";
        let cell = self.text(EXPECTED)?;
        let (major, minor) = cell.split_once('.').ok_or_else(|| self.broken(EXPECTED, cell))?;
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) => Ok((major, minor)),
            _ => Err(self.broken(EXPECTED, cell)),
        }
    }

    fn architecture(&mut self) -> Result<&'static Architecture, Broken> {
        let rest = self.rest;
        let capability = self.capability()?;
        architectures()
            .iter()
            .find(|architecture| architecture.compute_capability == capability)
            .ok_or_else(|| self.broken("a row of architectures.txt", rest))
    }

    fn end(&self) -> Result<(), Broken> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.broken("the end of the row", self.rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_can_be_read() {
        let broken: Vec<String> = rows(CARDS)
            .filter_map(|row| card(row).err())
            .chain(rows(ARCHITECTURES).filter_map(|row| architecture(row).err()))
            .chain(rows(BESIDE).filter_map(|row| measured(row).err()))
            .map(|broken| broken.to_string())
            .collect();
        assert_eq!(broken, [""; 0]);
        assert!(cards().len() >= 45);
    }

    #[test]
    fn a_broken_row_names_itself() {
        let row = "t4  16  15642329088  hearsay  105  llama-list  7.5  40";
        let broken = card(row).expect_err("the source is unknown");
        assert_eq!(
            broken.to_string(),
            format!("expected a key of sources.txt, got `hearsay` in `{row}`")
        );
    }

    #[test]
    fn a_broken_measurement_names_itself() {
        let broken = |row| measured(row).expect_err("something is wrong").to_string();
        let row = "rtx9999  context  115  lazy  1  -  12  -  llama-list";
        assert!(broken(row).starts_with("expected a name of cards.txt, got `rtx9999`"));
        let row = "gtx1080  contexts  115  lazy  1  -  12  -  llama-list";
        assert!(broken(row).contains("`context`, `all` or `loading`, got `contexts`"));
    }

    #[test]
    fn every_source_is_used_and_has_a_sentence() {
        let used: BTreeSet<&str> = rows(CARDS)
            .chain(rows(BESIDE))
            .flat_map(|row| row.split("  "))
            .map(str::trim)
            .collect();
        let unused: Vec<&str> =
            sources().map(|(key, _)| key).filter(|key| !used.contains(key)).collect();
        assert_eq!(unused, [""; 0]);
        assert!(sources().all(|(_, text)| text.len() > 20));
        assert_eq!(sources().count(), rows(SOURCES).count());
    }
}
