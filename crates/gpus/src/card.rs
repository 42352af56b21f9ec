//! One card: the numbers its driver reports, and how each of them is known.

use std::fmt;

use crate::architecture::Architecture;
use crate::beside::Loading;

/// The memory of [`crate::unlimited`]: large, and yet small beside the address space of a process.
pub const UNLIMITED_BYTES: u64 = 16 << 40;

/// The catalogue's name for no card in particular.
pub(crate) const NAMELESS: &str = "unlimited";

/// Where a number is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Somebody published it; the sentence says where.
    Sourced(&'static str),
    /// Nobody was found to have published it; the sentence says why it is taken to be so.
    Assumed(&'static str),
    /// The user said so.
    Given,
}

impl Source {
    /// Whether the number is only taken to be so.
    pub fn is_assumed(self) -> bool {
        matches!(self, Source::Assumed(_))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Sourced(place) => f.write_str(place),
            Source::Assumed(reason) => write!(f, "assumed: {reason}"),
            Source::Given => f.write_str("given by the user"),
        }
    }
}

/// A card of the catalogue.
///
/// Memory and context are those of Linux. Windows reports nearly the whole memory, and newer
/// drivers keep more of it back than older ones, up to about one part in a hundred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The catalogue's name, as in `rtx3060-12g`.
    pub name: &'static str,
    /// The driver's name of the device, as in `NVIDIA GeForce RTX 3060`.
    pub title: &'static str,
    /// The memory on the box, in GiB.
    pub nominal_gib: u32,
    /// Total bytes as `cudaMemGetInfo` reports them, less than on the box.
    pub memory_bytes: u64,
    /// How `memory_bytes` is known.
    pub memory_known: Source,
    /// Bytes that a desktop or other programs hold, as `--used` says; none in the catalogue.
    pub used_bytes: u64,
    /// Bytes that the CUDA context of one process takes before its first allocation.
    ///
    /// With modules loaded lazily, the default since CUDA 12.2. It also depends on the driver and
    /// on CUDA's version, and grows when kernels are loaded.
    pub context_bytes: u64,
    /// How `context_bytes` is known.
    pub context_known: Source,
    /// When kernels are loaded; lazily in the catalogue.
    pub loading: Loading,
    /// Compute capability, as in 8.6.
    pub compute_capability: (u32, u32),
    pub sm_count: u32,
    /// How `sm_count` is known.
    pub sm_known: Source,
    /// Bytes of level-2 cache.
    pub l2_bytes: u64,
    /// How `l2_bytes` is known.
    pub l2_known: Source,
    /// The driver's maximum clock of the multiprocessors, in kHz. Boards differ by a few percent.
    pub clock_khz: u32,
    /// The clock of the memory, in kHz: half its data rate.
    pub memory_clock_khz: u32,
    /// The width of the memory's bus.
    pub memory_bus_bits: u32,
    /// How the clocks and the width of the bus are known.
    pub clocks_known: Source,
    /// The PCI device id; the vendor is 0x10de. Zero for a processor that is not on the bus.
    pub pci_device_id: u16,
    /// How `pci_device_id` is known.
    pub pci_known: Source,
    /// The row of the other table that `compute_capability` names.
    pub(crate) architecture: &'static Architecture,
}

impl Card {
    /// The limits that follow from the compute capability.
    pub fn architecture(&self) -> &'static Architecture {
        self.architecture
    }

    /// Bytes on the box, the most that `nvidia-smi` can show: CUDA reports less, because the driver keeps some.
    pub fn nominal_bytes(&self) -> u64 {
        u64::from(self.nominal_gib) << 30
    }

    /// The same card with another amount of memory, as `--memory` asks for.
    pub fn with_memory(&self, bytes: u64) -> Card {
        Card { memory_bytes: bytes, memory_known: Source::Given, ..self.clone() }
    }

    /// The same card of which others hold so much already, as `--used` says.
    pub fn with_used(&self, bytes: u64) -> Card {
        Card { used_bytes: bytes, ..self.clone() }
    }

    /// What reports call it.
    pub fn shown_title(&self) -> &'static str {
        if self.is_nameless() { "a card" } else { self.title }
    }

    /// Whether the size of its context is not measured: that of a card given by its memory alone is another card's.
    pub fn is_context_assumed(&self) -> bool {
        self.context_known.is_assumed() || self.is_nameless()
    }

    /// Whether this stands for "no card was chosen".
    pub fn is_unlimited(&self) -> bool {
        self.memory_bytes == UNLIMITED_BYTES
    }

    /// Bytes that a process can allocate: without its context and what others hold.
    pub fn usable_bytes(&self) -> u64 {
        self.available_bytes().saturating_sub(self.context_bytes)
    }

    /// Bytes that other programs leave to a run, contexts included.
    pub fn available_bytes(&self) -> u64 {
        self.memory_bytes.saturating_sub(self.used_bytes)
    }

    /// Whether only an amount of memory was asked for, whatever card it is on.
    pub fn is_nameless(&self) -> bool {
        self.name == NAMELESS
    }

    /// Whether two cards have the same chip, as far as libraries choose their kernels by it.
    pub fn has_chip_of(&self, other: &Card) -> bool {
        (self.compute_capability, self.sm_count) == (other.compute_capability, other.sm_count)
    }

    /// Threads that the whole card can hold.
    pub fn resident_threads(&self) -> u64 {
        u64::from(self.sm_count) * u64::from(self.architecture.threads_per_multiprocessor)
    }

    /// Operations per second in single precision, at the most: what its clock and its units allow.
    pub fn flops(&self) -> f64 {
        let units = self.sm_count * self.architecture.multiply_adds_per_clock;
        2.0 * f64::from(units) * f64::from(self.clock_khz) * 1e3
    }

    /// Bytes per second to and from its memory, at the most.
    pub fn bandwidth(&self) -> f64 {
        2.0 * f64::from(self.memory_clock_khz) * 1e3 * f64::from(self.memory_bus_bits) / 8.0
    }

    /// Every number beside how it is known, in the order in which they are shown.
    pub fn facts(&self) -> [(&'static str, String, Source); 6] {
        let memory = format!("{} B ({:.2} GiB)", self.memory_bytes, gib(self.memory_bytes));
        let clocks = format!(
            "{} MHz, memory {} MHz on {} bits",
            self.clock_khz / 1000,
            self.memory_clock_khz / 1000,
            self.memory_bus_bits
        );
        [
            ("memory", memory, self.memory_known),
            ("context", format!("{} MiB", self.context_bytes >> 20), self.context_known),
            ("multiprocessors", self.sm_count.to_string(), self.sm_known),
            ("level-2 cache", format!("{} KiB", self.l2_bytes >> 10), self.l2_known),
            ("clocks", clocks, self.clocks_known),
            ("PCI device", format!("10de:{:04x}", self.pci_device_id), self.pci_known),
        ]
    }
}

/// Bytes in GiB, for people.
pub(crate) fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}
