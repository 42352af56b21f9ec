//! From what a message prints back to what was asked for.

use crate::account::Kind;
use crate::amount::Amount;

const MIB: u64 = 1 << 20;

/// Requests up to this come out of small segments.
const SMALL: u64 = MIB;
/// The length of a small segment.
const SMALL_SEGMENT: u64 = 2 * MIB;
/// Larger requests below this come out of segments of the next length.
const LARGE: u64 = 10 * MIB;
/// The length of a segment for them.
const LARGE_SEGMENT: u64 = 20 * MIB;
/// Everything else is rounded up to a multiple of this.
const STEP: u64 = 2 * MIB;
/// In the first versions of the allocator (`kRoundLarge` of `THCCachingAllocator.cpp`) it was this.
const OLD_STEP: u64 = 128 << 10;

/// The bytes that can have been asked for, as ranges.
///
/// The caching allocator prints the segment it wanted, not the request: a small request wants 2 MiB,
/// one below 10 MiB wants 20 MiB, any other a multiple of 2 MiB (`get_allocation_size` in
/// `c10/cuda/CUDACachingAllocator.cpp`). All other messages print the request.
pub fn requests(tried: Amount, kind: Kind) -> Vec<Amount> {
    if !kind.is_caching_allocator() {
        return vec![tried];
    }
    let mut ranges = Vec::new();
    if tried.contains(SMALL_SEGMENT) {
        ranges.push(Amount { low: 1, high: SMALL });
    }
    if tried.contains(LARGE_SEGMENT) {
        ranges.push(Amount { low: SMALL + 1, high: LARGE - 1 });
    }
    let step = if multiple_in(tried, STEP) { STEP } else { OLD_STEP };
    let least = if step == STEP { LARGE } else { 1 };
    // Of the multiples that the text can mean, the last is the most that was asked for.
    let first = tried.low.next_multiple_of(step);
    let last = tried.high / step * step;
    let (low, high) = match multiple_in(tried, step) {
        true => ((first + 1).saturating_sub(step).max(least), last),
        false => (tried.low, tried.high),
    };
    if low <= high {
        ranges.push(Amount { low, high });
    }
    ranges
}

fn multiple_in(range: Amount, step: u64) -> bool {
    let last = range.high / step * step;
    last != 0 && range.low <= last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Vec<(u64, u64)> {
        let ranges = requests(Amount::parse(text).unwrap(), Kind::Cuda);
        ranges.iter().map(|range| (range.low, range.high)).collect()
    }

    #[test]
    fn small_segments_hide_small_requests() {
        assert_eq!(asked("2.00 MiB"), [(1, MIB)]);
        assert_eq!(asked("20.00 MiB"), [(MIB + 1, 10 * MIB - 1), (18 * MIB + 1, 20 * MIB)]);
    }

    #[test]
    fn large_ones_are_known_to_two_mebibytes_or_to_the_text() {
        assert_eq!(asked("226.00 MiB"), [(224 * MIB + 1, 226 * MIB)]);
        let (low, high) = asked("98.00 GiB")[0];
        assert!(low <= (98 << 30) && (98 << 30) <= high && high - low < 13 * MIB);
        assert_eq!(asked("0.00 GiB"), [(1, MIB)]);
        // In the first versions steps were smaller.
        assert_eq!(asked("12.50 MiB"), [(12 * MIB + 384 * 1024 + 1, 12 * MIB + 512 * 1024)]);
    }
}
