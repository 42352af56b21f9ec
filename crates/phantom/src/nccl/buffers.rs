//! What NCCL takes from the card for itself: a model, since nothing is there to be measured.
//!
//! A communicator has channels, and each channel buffers for its connections; memory is linear in the
//! number of channels (NVIDIA/nccl issue 864). On four A100 cards with NVLink a communicator was
//! measured to take 544 MiB between two ranks and 688 MiB among more (NVIDIA/nccl issue 964). That
//! total is taken for all cards of data centres; on others than the A100 it is assumed.
//!
//! How many channels a machine has depends on how its cards are connected, which is not known here.
//! A100 cards behind a switch have 24 (the log in NVIDIA/nccl-tests issue 100): that count is assumed
//! for the machine that was measured, and two channels for cards that are sold without NVLink.

use gpus::Card;

/// Bytes of one channel between two ranks, and among more: the measured totals by 24.
const CHANNEL: [u64; 2] = [(544 << 20) / 24, (688 << 20) / 24];

/// Cards of data centres: A100, H100, B200 and their like.
const WITH_NVLINK: [(u32, u32); 4] = [(7, 0), (8, 0), (9, 0), (10, 0)];

/// What one communicator of so many ranks takes on such a card.
pub(super) fn bytes(card: &Card, ranks: usize) -> u64 {
    let channels = if WITH_NVLINK.contains(&card.compute_capability) { 24 } else { 2 };
    match ranks {
        0 | 1 => 0,
        2 => channels * CHANNEL[0],
        _ => channels * CHANNEL[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_totals_come_back() {
        let card = gpus::find("a100-80g").unwrap();
        assert_eq!([1, 2, 3, 4096].map(|ranks| bytes(card, ranks) >> 20), [0, 543, 687, 687]);
        let card = gpus::find("rtx3090").unwrap();
        assert_eq!(bytes(card, 8) >> 20, 57);
    }
}
