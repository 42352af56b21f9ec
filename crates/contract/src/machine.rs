//! The machine of a run as management tools see it: its cards with their names, whatever one process sees of them.
//!
//! NVML in the phantom and the stand-in for `nvidia-smi` both answer from here.

use crate::status::MAX_DEVICES;

/// What an idle card in a warm room says, in degrees and milliwatts.
pub const IDLE_TEMPERATURE: u32 = 35;
pub const IDLE_MILLIWATTS: u32 = 30_000;

/// NVIDIA's number as a vendor on the bus.
pub const VENDOR: u32 = 0x10de;

/// How many cards the machine has: as many as were asked for, or as `CUDA_VISIBLE_DEVICES` names.
pub fn cards(devices: Option<&str>, visible: Option<&str>) -> usize {
    let said = devices.and_then(|text| text.trim().parse::<usize>().ok());
    said.unwrap_or_else(|| named(visible)).clamp(1, MAX_DEVICES)
}

/// How many cards a machine needs so that it has all that are named.
pub fn named(visible: Option<&str>) -> usize {
    let entries = visible.into_iter().flat_map(|text| text.split(','));
    entries.map_while(number).map(|card| card.saturating_add(1)).max().unwrap_or(1)
}

/// The number an entry of `CUDA_VISIBLE_DEVICES` begins with; junk behind it does not matter to the driver.
pub fn number(entry: &str) -> Option<usize> {
    let entry = entry.trim_start();
    let entry = entry.strip_prefix('+').unwrap_or(entry);
    let end = entry.find(|c: char| !c.is_ascii_digit()).unwrap_or(entry.len());
    entry[..end].parse().ok()
}

/// Recognisable and different for each card of the machine.
pub fn uuid_of(card: usize) -> [u8; 16] {
    let mut uuid = *b"fathom-phantom-\0";
    uuid[15] = card as u8;
    uuid
}

/// As tools print it.
pub fn uuid_text(card: usize) -> String {
    let hex: String = uuid_of(card).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The number of a card's bus: each card of the machine has its own.
pub fn bus_of(card: usize) -> u32 {
    card as u32 + 1
}

/// The bus address of a card; NVML and its tools write four zeros before it.
pub fn pci_text(card: usize) -> String {
    format!("0000:{:02X}:00.0", bus_of(card))
}

/// A driver of the branch that brought this CUDA version.
pub fn driver(cuda_version: i32) -> &'static str {
    if 13000 <= cuda_version { "580.65.06" } else { "550.54.15" }
}
