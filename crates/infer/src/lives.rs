//! Every allocation of a recording by its own addresses: nothing is replayed.

use std::collections::{BTreeMap, HashMap, HashSet};

use recording::{BlockState, Event, Mark, OwnerId, Recording};

/// One allocation; times are indices of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) address: u64,
    /// Bytes asked for.
    pub(crate) size: u64,
    /// `None`: it is older than the events.
    pub(crate) born: Option<usize>,
    /// `None`: not while anybody looked.
    pub(crate) freed: Option<usize>,
    pub(crate) owner: OwnerId,
    pub(crate) pool: (u32, u32),
}

/// In the order of birth; what is older comes first, in the order in which its segments were most likely made.
pub(crate) fn lives(recording: &Recording) -> Vec<Life> {
    let mut older: Vec<Life> = Vec::new();
    let mut born: Vec<Life> = Vec::new();
    let mut live: HashMap<u64, usize> = HashMap::new();
    let mut owners: HashMap<u64, OwnerId> = HashMap::new();
    let mut gone: HashSet<u64> = HashSet::new();
    for (at, event) in recording.events.iter().enumerate() {
        match *event {
            Event::Alloc { address, size, owner, pool, .. } => {
                live.insert(address, born.len());
                born.push(Life { address, size, born: Some(at), freed: None, owner, pool });
            }
            Event::FreeRequested { address, size } | Event::FreeCompleted { address, size } => {
                let is_end = matches!(event, Event::FreeCompleted { .. });
                match live.get(&address) {
                    Some(index) => {
                        if let Some(life) = born.get_mut(*index) {
                            life.freed.get_or_insert(at);
                        }
                        if is_end {
                            live.remove(&address);
                        }
                    }
                    None => {
                        if gone.insert(address) {
                            let (owner, pool) = (OwnerId(0), (0, 0));
                            let freed = Some(at);
                            older.push(Life { address, size, born: None, freed, owner, pool });
                        }
                    }
                }
            }
            Event::Mark(Mark::Owner { address, owner }) if address != 0 => {
                owners.insert(address, owner);
            }
            _ => {}
        }
    }
    older.extend(still_there(recording, &live, &owners));
    let ages = Ages::of(recording);
    older.sort_by_key(|life| ages.of_block(life.address));
    older.extend(born);
    older
}

/// What the driver takes from the system at once on Linux (`crates/addresses` has its rules).
const CHUNK: u64 = 32 << 20;

/// The order in which segments were made, by where they lie: on Linux each chunk of addresses is below the one before
/// it, and fills upwards; on Windows all goes upwards. Pages of an expandable segment go upwards too.
struct Ages {
    /// End, and whether it is expandable, by address.
    segments: BTreeMap<u64, (u64, bool)>,
    is_downwards: bool,
}

impl Ages {
    fn of(recording: &Recording) -> Ages {
        let segments = recording.finish.iter().map(|segment| {
            let end = segment.address.saturating_add(segment.size);
            (segment.address, (end, segment.expandable))
        });
        let made = recording.events.iter().filter_map(|event| match event {
            Event::SegmentAlloc { address, .. } => Some(*address),
            _ => None,
        });
        let made: Vec<u64> = made.collect();
        let chunks = made.iter().map(|address| address / CHUNK);
        let pairs = chunks.clone().zip(chunks.skip(1)).filter(|(first, second)| first != second);
        let (down, up): (Vec<_>, Vec<_>) = pairs.partition(|(first, second)| second < first);
        let is_windows = || recording.texts.iter().any(|text| text.contains(":\\"));
        let is_downwards =
            if down.len() == up.len() { !is_windows() } else { up.len() < down.len() };
        Ages { segments: segments.collect(), is_downwards }
    }

    fn of_block(&self, address: u64) -> (u64, u64) {
        let below = self.segments.range(..=address).next_back();
        let segment = below.filter(|(_, (end, _))| address < *end);
        match segment {
            Some((start, (_, false))) if self.is_downwards => (u64::MAX - start / CHUNK, address),
            Some((start, _)) => (*start, address),
            None => (address, address),
        }
    }
}

/// Blocks that are in use at the end and that no event made.
fn still_there(
    recording: &Recording,
    live: &HashMap<u64, usize>,
    owners: &HashMap<u64, OwnerId>,
) -> Vec<Life> {
    let mut found = Vec::new();
    for segment in &recording.finish {
        for block in &segment.blocks {
            if block.state == BlockState::Allocated && !live.contains_key(&block.address) {
                found.push(Life {
                    address: block.address,
                    size: block.requested,
                    born: None,
                    freed: None,
                    owner: owners.get(&block.address).copied().unwrap_or_default(),
                    pool: segment.pool,
                });
            }
        }
    }
    found
}
