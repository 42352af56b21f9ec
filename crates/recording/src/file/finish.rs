//! Segments and blocks after the last event.
//!
//! ```text
//! segment   u64 address   u64 size   u16 place   u8 flags: 1 large, 2 expandable   u8 0   u32 blocks
//! block     u64 address   u64 size   u64 requested   u8 state   7 bytes 0
//! ```

use super::chunk::{Chunk, u16_at, u32_at, u64_at};
use super::error::Error;
use super::read::{StreamAndPool, Tables};
use crate::state::{Block, BlockState, Segment};

const SEGMENT: usize = 24;
const BLOCK: usize = 32;
const LARGE: u8 = 1;
const EXPANDABLE: u8 = 2;
/// In the order of their numbers.
const STATES: [BlockState; 3] =
    [BlockState::Allocated, BlockState::PendingFree, BlockState::Inactive];

/// The segments of a chunk.
pub(super) fn decode(chunk: &Chunk<'_>, tables: &Tables) -> Result<Vec<Segment>, Error> {
    let mut segments = Vec::new();
    let mut rest = chunk.payload;
    while !rest.is_empty() {
        let at = chunk.payload.len() - rest.len();
        let wrong = |why: String| chunk.wrong(at, why);
        let short = || chunk.wrong(at, "the last segment is not whole");
        let (head, tail) = rest.split_first_chunk::<SEGMENT>().ok_or_else(short)?;
        let count = u32_at(head, 20) as usize;
        let length = count.checked_mul(BLOCK).ok_or_else(short)?;
        let (blocks, tail) = tail.split_at_checked(length).ok_or_else(short)?;
        let (blocks, _) = blocks.as_chunks();
        let StreamAndPool { stream, pool } = tables.place(u16_at(head, 16)).map_err(wrong)?;
        segments.push(Segment {
            address: u64_at(head, 0),
            size: u64_at(head, 8),
            stream,
            pool,
            large: head[18] & LARGE != 0,
            expandable: head[18] & EXPANDABLE != 0,
            blocks: blocks.iter().map(block).collect::<Result<_, _>>().map_err(wrong)?,
        });
        rest = tail;
    }
    Ok(segments)
}

fn block(row: &[u8; BLOCK]) -> Result<Block, String> {
    let state = row[24];
    Ok(Block {
        address: u64_at(row, 0),
        size: u64_at(row, 8),
        requested: u64_at(row, 16),
        state: *STATES.get(state as usize).ok_or(format!("{state} is no state of a block"))?,
    })
}

/// The bytes of a segment.
pub(super) fn encode(segment: &Segment, place: u16) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SEGMENT + BLOCK * segment.blocks.len());
    let flags =
        if segment.large { LARGE } else { 0 } | if segment.expandable { EXPANDABLE } else { 0 };
    bytes.extend_from_slice(&segment.address.to_le_bytes());
    bytes.extend_from_slice(&segment.size.to_le_bytes());
    bytes.extend_from_slice(&place.to_le_bytes());
    bytes.extend_from_slice(&[flags, 0]);
    bytes.extend_from_slice(&(segment.blocks.len() as u32).to_le_bytes());
    for block in &segment.blocks {
        bytes.extend_from_slice(&block.address.to_le_bytes());
        bytes.extend_from_slice(&block.size.to_le_bytes());
        bytes.extend_from_slice(&block.requested.to_le_bytes());
        bytes.extend_from_slice(&(block.state as u64).to_le_bytes());
    }
    bytes
}
