//! Every rule of the allocator that a version or a user can change, as one value.
//!
//! Sizes are bytes. The rules are those of `CUDACachingAllocator.cpp` and, since 2.10,
//! `AllocatorConfig.cpp`; each field says since when.

pub const MIB: u64 = 1 << 20;
/// `kMinBlockSize`: what sizes are rounded to, and the least block.
pub(crate) const MIN_BLOCK: u64 = 512;
/// `kSmallSize`: sizes up to this one, itself included, are of the small pool.
pub(crate) const SMALL_SIZE: u64 = MIB;
/// `kSmallBuffer`: a segment, or a page, of the small pool.
pub(crate) const SMALL_SEGMENT: u64 = 2 * MIB;
/// `kLargeBuffer`, `large_segment_size` since 2.11: the default of [`Settings::large_segment_size`].
pub(crate) const LARGE_SEGMENT: u64 = 20 * MIB;
/// `kMinLargeAlloc`: from here on a segment is made for one request.
pub(crate) const MIN_LARGE: u64 = 10 * MIB;
/// `kRoundLarge`: what such segments are rounded to.
pub(crate) const ROUND_LARGE: u64 = 2 * MIB;
pub const UNLIMITED: u64 = u64::MAX;

/// A version of torch: major and minor.
pub type Version = (u32, u32);

/// The newest version whose rules are known.
pub const NEWEST: Version = (2, 15);

/// Settings that cannot be, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Which of two free blocks of the same stream and size comes first: `BlockComparatorSize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The lower address; up to 2.11.
    Address,
    /// The block object that was made first; only 2.12.
    BlockCounter,
    /// The block of the segment that was made first, then the lower address; since 2.13.
    SegmentCounter,
}

/// How `setMemoryFraction` turns a fraction into a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FractionRule {
    /// Rounded down, and a limit even if the fraction is 1; up to 2.9.
    Always,
    /// Rounded down, no limit if the fraction is 1; 2.10 to 2.12.
    BelowOne,
    /// Rounded to the nearest byte, no limit if the fraction is 1; since 2.13.
    BelowOneRounded,
}

/// All rules of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The version of torch whose rules the others were taken from; the parser's own rules.
    pub version: Version,
    /// Order of free blocks of equal size.
    pub tie_break: TieBreak,
    /// Segment of requests between 1 and 10 MiB, and page of large expandable segments.
    pub large_segment_size: u64,
    /// Blocks of at least this size are not split, nor given to smaller requests.
    pub max_split_size: u64,
    /// How much larger than an unsplittable request its block may be; before 2.6 always 20 MiB.
    pub max_non_split_rounding: u64,
    /// Share of the limit above which unused segments are given back; 0 is never.
    pub garbage_collection_threshold: f64,
    /// Parts a power of two is divided into, by size: below 2 MiB, below 4 MiB, … from 32 GiB on.
    pub roundup_power2_divisions: [u64; 16],
    /// Requests above it are only rounded to 512; only 1.13.
    pub roundup_bypass_threshold: u64,
    /// One division leaves sizes as they are, not even multiples of 512; up to 2.3.
    pub one_division_keeps_size: bool,
    /// Segments grow by pages.
    pub expandable_segments: bool,
    /// Private pools use them too; since 2.5.
    pub expandable_private_pools: bool,
    /// `set_per_process_memory_fraction`, if it was called.
    pub memory_fraction: Option<f64>,
    /// What a fraction means.
    pub fraction_rule: FractionRule,
    /// Requests beyond the fraction are refused before anything is tried; since 2.12.
    pub throw_on_cudamalloc_oom: bool,
    /// Requests of pools that are not capturing empty the cache before they fail; since 2.13.
    pub private_pools_retry: bool,
    /// Total memory of the card; `None` is unlimited.
    pub memory: Option<u64>,
    /// What of it PyTorch cannot have: the context, libraries, other processes.
    pub context: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of_version(NEWEST)
    }
}

impl Settings {
    /// The defaults of a version as torch reports it, e.g. `2.6.0+cu124`; the newest for an empty text.
    pub fn for_torch(version: &str) -> Result<Settings, Error> {
        if version.is_empty() {
            return Ok(Settings::default());
        }
        let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
        let parsed = parts.next().flatten().zip(parts.next().flatten());
        match parsed {
            Some(version) if (1, 13) <= version => Ok(Settings::of_version(version.min(NEWEST))),
            Some(_) => Err(Error(format!("torch {version} is older than 1.13"))),
            None => Err(Error(format!("`{version}` is not a version of torch"))),
        }
    }

    /// The table of versions: section 13 of the specification, one line per change.
    fn of_version(version: Version) -> Settings {
        Settings {
            version,
            tie_break: match version {
                (2, 12) => TieBreak::BlockCounter,
                version if version < (2, 12) => TieBreak::Address,
                _ => TieBreak::SegmentCounter,
            },
            large_segment_size: LARGE_SEGMENT,
            max_split_size: UNLIMITED,
            max_non_split_rounding: LARGE_SEGMENT,
            garbage_collection_threshold: 0.0,
            roundup_power2_divisions: [0; 16],
            roundup_bypass_threshold: UNLIMITED,
            one_division_keeps_size: version < (2, 4),
            expandable_segments: false,
            expandable_private_pools: (2, 5) <= version,
            memory_fraction: None,
            fraction_rule: match version {
                version if version < (2, 10) => FractionRule::Always,
                version if version < (2, 13) => FractionRule::BelowOne,
                _ => FractionRule::BelowOneRounded,
            },
            throw_on_cudamalloc_oom: false,
            private_pools_retry: (2, 13) <= version,
            memory: None,
            context: 0,
        }
    }

    /// `allowed_memory_maximum`: the most PyTorch may reserve, if a fraction says so.
    pub fn limit(&self) -> Option<u64> {
        let (fraction, total) = (self.memory_fraction?, self.memory? as f64);
        match self.fraction_rule {
            FractionRule::Always => Some((fraction * total) as u64),
            _ if fraction == 1.0 => None,
            FractionRule::BelowOne => Some((fraction * total) as u64),
            FractionRule::BelowOneRounded => Some((fraction * total).round() as u64),
        }
    }

    /// What of the card PyTorch can have; `None` is unlimited.
    pub(crate) fn usable(&self) -> Option<u64> {
        self.memory.map(|total| total.saturating_sub(self.context))
    }

    /// The most that PyTorch can have reserved, by the card and by a fraction.
    pub(crate) fn room(&self) -> Option<u64> {
        [self.usable(), self.limit()].into_iter().flatten().min()
    }

    /// Is garbage collected? Only with a limit and a threshold.
    pub fn collects_garbage(&self) -> bool {
        0.0 < self.garbage_collection_threshold && self.limit().is_some()
    }

    /// May a request of this pool empty the cache? Pools (n, 0) are made by captures, which may not.
    pub fn retries(&self, pool: (u32, u32)) -> bool {
        pool == (0, 0) || (self.private_pools_retry && pool.0 == 0)
    }

    /// A page of expandable segments.
    pub fn page(&self, large: bool) -> u64 {
        if large { self.large_segment_size } else { SMALL_SEGMENT }
    }

    /// Do requests of this pool grow expandable segments?
    pub fn expands(&self, pool: (u32, u32)) -> bool {
        self.expandable_segments && (self.expandable_private_pools || pool == (0, 0))
    }

    /// `round_size`: bytes of the block for a request. Above an exabyte none is tried.
    pub fn round(&self, request: u64) -> u64 {
        let request = request.min(1 << 60);
        if request < MIN_BLOCK {
            return MIN_BLOCK;
        }
        let divisions = self.divisions(request);
        let divides = if self.one_division_keeps_size { 0 < divisions } else { 1 < divisions };
        if divides
            && divisions.saturating_mul(MIN_BLOCK) < request
            && request <= self.roundup_bypass_threshold
        {
            return round_to_division(request, divisions);
        }
        request.next_multiple_of(MIN_BLOCK)
    }

    /// `roundup_power2_divisions(size)`: the entry of the table for a request.
    fn divisions(&self, request: u64) -> u64 {
        let index = (request.ilog2() as usize).saturating_sub(20).min(15);
        self.roundup_power2_divisions[index]
    }

    /// `get_allocation_size`: bytes of a new segment for a block of this size.
    pub fn segment_size(&self, size: u64) -> u64 {
        if size <= SMALL_SIZE {
            SMALL_SEGMENT
        } else if size < MIN_LARGE {
            self.large_segment_size
        } else {
            size.next_multiple_of(ROUND_LARGE)
        }
    }
}

/// `roundup_power2_next_division`.
fn round_to_division(request: u64, divisions: u64) -> u64 {
    if divisions == 1 || request.is_power_of_two() {
        return request;
    }
    let floor = 1 << request.ilog2();
    match floor >> divisions.ilog2() {
        0 => 2 * floor,
        step => request.next_multiple_of(step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_differ_where_the_specification_says() {
        let tie = |version| Settings::for_torch(version).unwrap().tie_break;
        assert_eq!(tie("2.11.0"), TieBreak::Address);
        assert_eq!(tie("2.12.1"), TieBreak::BlockCounter);
        assert_eq!(tie("2.13.0+cu130"), TieBreak::SegmentCounter);
        assert_eq!(tie("2.99"), TieBreak::SegmentCounter);
        assert_eq!(Settings::for_torch("").unwrap().version, NEWEST);
        assert!(Settings::for_torch("1.12.1").is_err());
        assert!(Settings::for_torch("new").is_err());
    }

    #[test]
    fn requests_are_rounded_as_the_vectors_say() {
        let rounded = |request, divisions| {
            let settings =
                Settings { roundup_power2_divisions: [divisions; 16], ..Settings::default() };
            settings.round(request)
        };
        assert_eq!([1, 512, 513].map(|request| rounded(request, 0)), [512, 512, 1024]);
        assert_eq!(rounded(1200, 4), 1536);
        assert_eq!(rounded(3000, 4), 3072);
        assert_eq!(rounded(5_000_000, 4), 5_242_880);
        assert_eq!(rounded(5_000_000, 8), 5_242_880);
        assert_eq!(rounded(104_857_601, 2), 134_217_728);
        assert_eq!(rounded(1_073_741_825, 16), 1_140_850_688);
        let old = Settings { roundup_power2_divisions: [1; 16], ..Settings::of_version((2, 3)) };
        assert_eq!(old.round(700), 700);
        assert_eq!(rounded(700, 1), 1024);
    }

    #[test]
    fn a_fraction_is_a_limit_by_version() {
        let limit = |version, fraction| {
            let memory = Some(1001);
            let settings = Settings::of_version(version);
            Settings { memory, memory_fraction: Some(fraction), ..settings }.limit()
        };
        assert_eq!(limit((2, 9), 1.0), Some(1001));
        assert_eq!(limit((2, 10), 1.0), None);
        assert_eq!(limit((2, 12), 0.5), Some(500));
        assert_eq!(limit((2, 13), 0.5), Some(501));
    }
}
