//! The card as cuDNN wants to have it described when there is no device to look at.

use std::fmt::Write;

use gpus::{Architecture, Card};

/// The text of a device property (attribute 2702) for `card` under a driver of `cuda_version`.
///
/// The memory is the one the card is sold with even if the user gave another: a run that asks
/// "what if it had less" must not change cuDNN's choice of kernels.
pub(crate) fn describe(card: &Card, cuda_version: i32) -> String {
    let architecture = card.architecture();
    let memory = if card.is_unlimited() {
        u64::from(card.nominal_gib) << 30
    } else {
        gpus::find(card.name).map_or(card.memory_bytes, |sold| sold.memory_bytes)
    };
    let mut text = format!("{{\"deviceVer\":{}", architecture.sm() * 10);
    let mut number = |name: &str, value: u64| {
        // Writing to a string does not fail.
        let _ = write!(text, ",\"{name}\":{value}");
    };
    number("driverVer", cuda_version.max(0) as u64);
    number("cudaDeviceId", 0);
    number("multiProcessorCount", card.sm_count.into());
    number("maxSharedMemoryPerBlock", Architecture::SHARED_PER_BLOCK);
    number("maxSharedMemoryPerBlockOptin", architecture.shared_per_block_optin);
    number("reservedSharedMemoryPerBlock", architecture.shared_reserved_per_block);
    number("maxThreadsPerSM", architecture.threads_per_multiprocessor.into());
    number("maxCtasPerSM", architecture.blocks_per_multiprocessor.into());
    number("maxRegistersPerSM", architecture.registers_per_multiprocessor.into());
    number("regsPerBlock", architecture.registers_per_block().into());
    number("warpSize", Architecture::WARP_SIZE.into());
    number("maxThreadsPerBlock", Architecture::THREADS_PER_BLOCK.into());
    number("l2CacheSize", card.l2_bytes);
    number("smClockRateKHz", card.clock_khz.into());
    number("memClockRateKHz", card.memory_clock_khz.into());
    number("pciDeviceId", card.pci_device_id.into());
    number("isTccDriver", 0);
    number("supportCoopLaunch", 1);
    number("totalGlobalMem", memory);
    let [x, y, z] = Architecture::GRID_SIZE;
    let _ = write!(text, ",\"maxGridSize\":[{x},{y},{z}]");
    let [x, y, z] = Architecture::BLOCK_SIZE;
    let _ = write!(text, ",\"maxBlockSize\":[{x},{y},{z}]");
    // The catalogue's titles have no character that JSON would want escaped.
    let _ = write!(text, ",\"deviceName\":\"{}\"}}", card.title);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_described_by_its_own_numbers() {
        let card = gpus::find("rtx3090").unwrap();
        let text = describe(card, 13020);
        assert!(text.starts_with("{\"deviceVer\":860,\"driverVer\":13020,\"cudaDeviceId\":0,"));
        assert!(text.contains("\"multiProcessorCount\":82,"));
        assert!(text.contains("\"maxSharedMemoryPerBlockOptin\":101376,"));
        assert!(text.ends_with("\"deviceName\":\"NVIDIA GeForce RTX 3090\"}"));
    }

    #[test]
    fn another_memory_is_the_same_card_to_cudnn() {
        let card = gpus::find("rtx3090").unwrap();
        assert_eq!(describe(card, 13020), describe(&card.with_memory(1 << 30), 13020));
    }

    #[test]
    fn titles_need_no_escape() {
        let plain = |card: &Card| !card.title.contains(['"', '\\']);
        assert!(gpus::cards().iter().all(plain));
    }
}
