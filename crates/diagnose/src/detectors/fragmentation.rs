//! What PyTorch holds of the card and no tensor uses: cached segments, holes between blocks.

use anatomy::{Dissection, Part, bytes};

use crate::finding::{Finding, Whole};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

/// Less than this part of what is reserved, in percent, is as it should be.
const LEAST: u64 = 5;

/// And so is less than two of the smallest segments, which a toy needs too.
const SEGMENTS: u64 = 4 << 20;

pub(super) fn detect(scene: &Scene<'_>, _: &mut Claims) -> Vec<Finding> {
    let refusal = scene.anatomy.out_of_memory.as_ref();
    let is_refused = refusal.is_some_and(|refusal| std::ptr::eq(&refusal.at, scene.at));
    let reserved =
        if is_refused { scene.at.reserved } else { scene.anatomy.reserved_peak.reserved };
    let idle = reserved.saturating_sub(scene.at.allocated);
    if idle < SEGMENTS || u128::from(idle) * 100 < u128::from(reserved) * u128::from(LEAST) {
        return Vec::new();
    }
    let (segments, holes) =
        (entry(scene.at, Part::CachedSegments), entry(scene.at, Part::CachedFragments));
    let when = if is_refused { "When memory ran out" } else { "At the allocated peak" };
    let later = match reserved.saturating_sub(scene.at.reserved) {
        0 => String::new(),
        more => format!(" {} more are reserved at other times.", bytes::text(more)),
    };
    // Only holes: what is wholly free comes back by itself.
    let remedies = if segments < holes { remedies!(scene, "allocator") } else { Vec::new() };
    vec![Finding {
        title: "PyTorch's cache and fragmentation".to_owned(),
        bytes: idle,
        of: Whole::Reserved,
        explanation: format!(
            "{when} {} lie in segments that are wholly free and {} in holes between blocks.{later} What \
             is wholly free is given back before memory runs out; a hole serves only what fits into it.",
            bytes::text(segments),
            bytes::text(holes)
        ),
        scales: "the order and sizes of allocations".to_owned(),
        remedies,
        ..Finding::default()
    }]
}

fn entry(at: &Dissection, part: Part) -> u64 {
    at.ledger.iter().find(|row| row.part == part).map_or(0, |row| row.bytes)
}
