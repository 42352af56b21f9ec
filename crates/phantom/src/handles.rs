//! Every handle that the phantom gives out, by what it stands for and whether it is still alive.
//!
//! A handle is no address: it is the number of a slot and which of the slot's owners it belongs to.
//! A slot knows its owner of today, so a handle that has ended, one of another kind, and one that was
//! never given out are all told from a live one by one comparison, without a lock.
//!
//! ```text
//! 47       40 39      28 27                4 3   0
//! [   TAG    ] [ owner ] [      slot       ] [ 0 ]
//! ```

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use cuda_abi::handles::{Kind, OfKind};
use cuda_abi::types::Handle;

use crate::error::{Answer, Failure};
use crate::ffi::New;
use crate::state::{is_forked, lock};
use crate::{blas, fat_binary};

/// No address of a process on Linux begins like this unless it has terabytes mapped.
const TAG: usize = 0x25;

/// Bits of the slot's number, of its owner's, and of the zeros below: callers keep flags there.
const SLOT_BITS: u32 = 24;
const OWNER_BITS: u32 = 12;
const ZERO_BITS: u32 = 4;

/// Slots that are allocated together.
const BLOCK: usize = 1 << 16;
const BLOCKS: usize = (1 << SLOT_BITS) / BLOCK;

/// So many slots rest before one is used again: a stale handle is met long before its slot has a new owner.
const RESTING: usize = 1024;

/// A slot holds its owner's number and, in the low eight bits, the owner's [`Kind`].
type Slots = [AtomicU32; BLOCK];

static SLOTS: [AtomicPtr<Slots>; BLOCKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; BLOCKS];

struct Unused {
    /// The first slot that never had an owner.
    next: usize,
    resting: VecDeque<u32>,
}

static UNUSED: Mutex<Unused> = Mutex::new(Unused { next: 0, resting: VecDeque::new() });

fn slot(number: usize) -> Option<&'static AtomicU32> {
    let block = SLOTS.get(number / BLOCK)?.load(Acquire);
    // SAFETY: a block is published once, after it was made, and never freed.
    unsafe { block.as_ref() }.map(|slots| &slots[number % BLOCK])
}

/// The slot of a handle, and what it holds as long as the handle is alive.
fn read(kind: Kind, handle: Handle) -> Option<(usize, u32)> {
    let is_tagged = handle.0 >> (ZERO_BITS + SLOT_BITS + OWNER_BITS) == TAG;
    if !is_tagged || !handle.0.is_multiple_of(1 << ZERO_BITS) {
        return None;
    }
    let number = (handle.0 >> ZERO_BITS) & ((1 << SLOT_BITS) - 1);
    let owner = (handle.0 >> (ZERO_BITS + SLOT_BITS)) & ((1 << OWNER_BITS) - 1);
    Some((number, (owner as u32) << 8 | kind as u32))
}

fn is_live(kind: Kind, handle: Handle) -> bool {
    read(kind, handle)
        .is_some_and(|(number, live)| slot(number).is_some_and(|slot| slot.load(Acquire) == live))
}

/// Gives out a handle.
pub(crate) fn make(kind: Kind) -> Result<Handle, Failure> {
    // The child of a fork has no card, and a thread that it does not have may have held the lock.
    if is_forked() {
        return Err(Failure::Initialization);
    }
    let mut unused = lock(&UNUSED);
    let number = match unused.resting.len() {
        0..RESTING if unused.next < 1 << SLOT_BITS => {
            unused.next += 1;
            unused.next - 1
        }
        _ => unused.resting.pop_front().ok_or(Failure::OutOfMemory)? as usize,
    };
    let block = &SLOTS[number / BLOCK];
    if block.load(Relaxed).is_null() {
        let zeros: Vec<AtomicU32> = (0..BLOCK).map(|_| AtomicU32::new(0)).collect();
        block.store(Box::into_raw(zeros.into_boxed_slice()).cast(), Release);
    }
    let slot = slot(number).ok_or(Failure::OutOfMemory)?;
    let owner = slot.load(Relaxed) >> 8;
    slot.store(owner << 8 | kind as u32, Release);
    let handle = TAG << (SLOT_BITS + OWNER_BITS) | (owner as usize) << SLOT_BITS | number;
    Ok(Handle(handle << ZERO_BITS))
}

/// Brings a handle to its end; a second time is an error.
pub(crate) fn end(kind: Kind, handle: Handle) -> Answer {
    let (number, live) = read(kind, handle).ok_or(Failure::InvalidHandle)?;
    let slot = slot(number).ok_or(Failure::InvalidHandle)?;
    let next = (live >> 8) + 1;
    slot.compare_exchange(live, next << 8, AcqRel, Relaxed).map_err(|_| Failure::InvalidHandle)?;
    // A slot that has no numbers for owners left is not used again: no handle is given out twice.
    if next < 1 << OWNER_BITS {
        lock(&UNUSED).resting.push_back(number as u32);
    }
    Ok(())
}

/// Whether a handle may be used as one of this kind.
pub(crate) fn check(kind: Kind, handle: Handle) -> Answer {
    let is_good = is_live(kind, handle)
        || match kind {
            // The default stream, by its three names.
            Kind::Stream => handle.0 <= 2,
            // cuBLASLt takes cuBLAS's handles, too.
            Kind::BlasLt => is_live(Kind::Blas, handle),
            // The runtime hands kernels to the driver by the addresses of their stubs.
            Kind::Kernel => fat_binary::is_registered(handle),
            Kind::MatmulDescriptor
            | Kind::MatrixLayout
            | Kind::MatmulPreference
            | Kind::TransformDescriptor => blas::is_initialised(kind, handle),
            _ => false,
        };
    if is_good { Ok(()) } else { Err(Failure::InvalidHandle) }
}

/// A handle of this type that is alive.
pub(crate) fn alive<K: OfKind>(handle: K) -> Result<Handle, Failure> {
    let handle = handle.handle();
    check(K::KIND, handle).map(|()| handle)
}

/// A handle of this type that was alive and is no more.
pub(crate) fn ended<K: OfKind>(handle: K) -> Result<Handle, Failure> {
    let handle = handle.handle();
    end(K::KIND, handle).map(|()| handle)
}

/// Answers every function that only makes something.
pub(crate) fn create(out: New<'_>) -> Answer {
    *out.place = make(out.kind)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_handles_of_the_kind_are_good() {
        let event = make(Kind::Event).unwrap();
        assert_eq!(check(Kind::Event, event), Ok(()));
        assert_eq!(check(Kind::Graph, event), Err(Failure::InvalidHandle));
        for foreign in [0, 1, 64, event.0 + 1, event.0 + 16, event.0 ^ (1 << 28), usize::MAX] {
            assert_eq!(check(Kind::Event, Handle(foreign)), Err(Failure::InvalidHandle));
        }
        assert_eq!(end(Kind::Graph, event), Err(Failure::InvalidHandle));
        assert_eq!(end(Kind::Event, event), Ok(()));
        assert_eq!(end(Kind::Event, event), Err(Failure::InvalidHandle));
        assert_eq!(check(Kind::Event, event), Err(Failure::InvalidHandle));
    }

    #[test]
    fn slots_are_used_again_and_handles_are_not() {
        let mut seen = std::collections::HashSet::new();
        let before = lock(&UNUSED).next;
        for _ in 0..20 * RESTING {
            let handle = make(Kind::Program).unwrap();
            assert!(seen.insert(handle), "given out twice");
            end(Kind::Program, handle).unwrap();
        }
        let taken = lock(&UNUSED).next - before;
        assert!(taken <= RESTING + 64, "{taken} slots for one handle at a time");
    }

    #[test]
    fn the_default_stream_has_three_names() {
        assert!((0..3).all(|name| check(Kind::Stream, Handle(name)).is_ok()));
        assert!(check(Kind::Stream, Handle(3)).is_err());
        assert!(end(Kind::Stream, Handle(0)).is_err());
    }
}
