//! Events as rows of 24 bytes.
//!
//! ```text
//! u8 kind   u8 code   u16 place   u32 third   u64 address   u64 size
//! ```
//!
//! `third` is the owner of an allocation, the step of a phase, the text of a name, the number of a free. `code` is the
//! number of a phase or a category. Where an event has no such part, the field is 0.

use super::chunk::{u16_at, u32_at, u64_at};
use super::read::{StreamAndPool, Tables};
use crate::event::{Category, Event, Mark, Phase};
use crate::owner::OwnerId;

/// Bytes of a row.
pub(super) const ROW: usize = 24;

/// The numbers of the kinds.
mod kind {
    pub(super) const ALLOC: u8 = 0;
    pub(super) const FREE_REQUESTED: u8 = 1;
    pub(super) const FREE_COMPLETED: u8 = 2;
    pub(super) const SEGMENT_ALLOC: u8 = 3;
    pub(super) const SEGMENT_FREE: u8 = 4;
    pub(super) const SEGMENT_MAP: u8 = 5;
    pub(super) const SEGMENT_UNMAP: u8 = 6;
    pub(super) const OUT_OF_MEMORY: u8 = 7;
    pub(super) const PHASE: u8 = 8;
    pub(super) const NAME: u8 = 9;
    pub(super) const TENSOR: u8 = 10;
    pub(super) const OWNER: u8 = 11;
    pub(super) const HOLDER: u8 = 12;
    pub(super) const DEFERRED: u8 = 13;
    pub(super) const IDLE: u8 = 14;
    pub(super) const AREA: u8 = 15;
    pub(super) const SOFT: u8 = 16;
    pub(super) const EVIDENCE: u8 = 17;
}

/// The event of a row.
#[inline]
pub(super) fn decode(row: &[u8; ROW], tables: &Tables) -> Result<Event, String> {
    let (code, third) = (row[1], u32_at(row, 4));
    let (address, size) = (u64_at(row, 8), u64_at(row, 16));
    let place = || tables.place(u16_at(row, 2));
    Ok(match row[0] {
        kind::ALLOC => {
            let StreamAndPool { stream, pool } = place()?;
            Event::Alloc { address, size, stream, owner: owner(tables, third)?, pool }
        }
        kind::FREE_REQUESTED => Event::FreeRequested { address, size },
        kind::FREE_COMPLETED => Event::FreeCompleted { address, size },
        kind::SEGMENT_ALLOC => {
            let StreamAndPool { stream, pool } = place()?;
            Event::SegmentAlloc { address, size, stream, pool }
        }
        kind::SEGMENT_FREE => {
            let StreamAndPool { stream, pool } = place()?;
            Event::SegmentFree { address, size, stream, pool }
        }
        kind::SEGMENT_MAP => {
            let StreamAndPool { stream, pool } = place()?;
            Event::SegmentMap { address, size, stream, pool }
        }
        kind::SEGMENT_UNMAP => {
            let StreamAndPool { stream, pool } = place()?;
            Event::SegmentUnmap { address, size, stream, pool }
        }
        kind::OUT_OF_MEMORY => {
            let StreamAndPool { stream, pool } = place()?;
            Event::OutOfMemory { size, free: address, stream, pool }
        }
        kind::PHASE => {
            let phase = *Phase::ALL.get(code as usize).ok_or(format!("{code} is no phase"))?;
            Event::Mark(Mark::Phase { phase, step: third })
        }
        kind::NAME => {
            let category = Category::ALL.get(code as usize);
            let category = *category.ok_or(format!("{code} is no category"))?;
            Event::Mark(Mark::Name { address, category, name: tables.text(third)? })
        }
        kind::TENSOR => Event::Mark(Mark::Tensor { address, what: tables.text(third)? }),
        kind::OWNER => Event::Mark(Mark::Owner { address, owner: owner(tables, third)? }),
        kind::HOLDER => Event::Mark(Mark::Holder { address, by: tables.text(third)? }),
        kind::AREA => Event::Mark(Mark::Area { address, area: tables.text(third)? }),
        kind::SOFT => Event::Mark(Mark::Soft { address }),
        kind::EVIDENCE => Event::Mark(Mark::Evidence { address, by: tables.text(third)? }),
        kind::DEFERRED => Event::Mark(Mark::Deferred),
        kind::IDLE => Event::Mark(Mark::Idle { free: third }),
        other => return Err(format!("{other} is no kind of event")),
    })
}

/// Owner 0 is nobody, with or without a row.
fn owner(tables: &Tables, number: u32) -> Result<OwnerId, String> {
    match number {
        0 => Ok(OwnerId(0)),
        _ if (number as usize) < tables.recording.owners.len() => Ok(OwnerId(number)),
        _ => Err(format!("owner {number} is not among {}", tables.recording.owners.len())),
    }
}

/// Where the event's block or segment is; the default stream and pool if it has no place.
pub(super) fn place(event: &Event) -> StreamAndPool {
    match *event {
        Event::Alloc { stream, pool, .. }
        | Event::SegmentAlloc { stream, pool, .. }
        | Event::SegmentFree { stream, pool, .. }
        | Event::SegmentMap { stream, pool, .. }
        | Event::SegmentUnmap { stream, pool, .. }
        | Event::OutOfMemory { stream, pool, .. } => StreamAndPool { stream, pool },
        _ => StreamAndPool::default(),
    }
}

/// The row of an event.
pub(super) fn encode(event: &Event, place: u16) -> [u8; ROW] {
    let (kind, code, third, address, size) = match *event {
        Event::Alloc { address, size, owner, .. } => (kind::ALLOC, 0, owner.0, address, size),
        Event::FreeRequested { address, size } => (kind::FREE_REQUESTED, 0, 0, address, size),
        Event::FreeCompleted { address, size } => (kind::FREE_COMPLETED, 0, 0, address, size),
        Event::SegmentAlloc { address, size, .. } => (kind::SEGMENT_ALLOC, 0, 0, address, size),
        Event::SegmentFree { address, size, .. } => (kind::SEGMENT_FREE, 0, 0, address, size),
        Event::SegmentMap { address, size, .. } => (kind::SEGMENT_MAP, 0, 0, address, size),
        Event::SegmentUnmap { address, size, .. } => (kind::SEGMENT_UNMAP, 0, 0, address, size),
        Event::OutOfMemory { size, free, .. } => (kind::OUT_OF_MEMORY, 0, 0, free, size),
        Event::Mark(Mark::Phase { phase, step }) => (kind::PHASE, phase as u8, step, 0, 0),
        Event::Mark(Mark::Name { address, category, name }) => {
            (kind::NAME, category as u8, name.0, address, 0)
        }
        Event::Mark(Mark::Tensor { address, what }) => (kind::TENSOR, 0, what.0, address, 0),
        Event::Mark(Mark::Owner { address, owner }) => (kind::OWNER, 0, owner.0, address, 0),
        Event::Mark(Mark::Holder { address, by }) => (kind::HOLDER, 0, by.0, address, 0),
        Event::Mark(Mark::Area { address, area }) => (kind::AREA, 0, area.0, address, 0),
        Event::Mark(Mark::Soft { address }) => (kind::SOFT, 0, 0, address, 0),
        Event::Mark(Mark::Evidence { address, by }) => (kind::EVIDENCE, 0, by.0, address, 0),
        Event::Mark(Mark::Deferred) => (kind::DEFERRED, 0, 0, 0, 0),
        Event::Mark(Mark::Idle { free }) => (kind::IDLE, 0, free, 0, 0),
    };
    let mut row = [0; ROW];
    row[0] = kind;
    row[1] = code;
    row[2..4].copy_from_slice(&place.to_le_bytes());
    row[4..8].copy_from_slice(&third.to_le_bytes());
    row[8..16].copy_from_slice(&address.to_le_bytes());
    row[16..].copy_from_slice(&size.to_le_bytes());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_phase_or_category_is_its_place_in_the_list() {
        assert!(Phase::ALL.iter().enumerate().all(|(index, phase)| *phase as usize == index));
        assert!(Category::ALL.iter().enumerate().all(|(index, name)| *name as usize == index));
    }
}
