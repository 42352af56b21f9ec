//! Collectives: every other rank has what this one has, unless all ranks are in this process.

use std::ffi::c_int;

use cuda_abi::types::{Address, Handle};

use super::clique::{self, Call};
use super::values::{Operation, bytes_of, repeat};
use super::{Communicator, get, peers};
use crate::error::Answer;
use crate::memory;

fn at(start: Address, index: usize, bytes: usize) -> Address {
    Address(start.0.saturating_add(index.saturating_mul(bytes) as u64))
}

/// Gives each of the `ranks` parts of `to` a copy of `from`, if all of it together is small.
fn fill(to: Address, from: Address, bytes: usize, ranks: usize) {
    if bytes == 0 || memory::SMALL_COPY < bytes.saturating_mul(ranks) {
        return;
    }
    for rank in 0..ranks {
        memory::move_small(at(to, rank, bytes), from, bytes);
    }
}

/// Copies a payload and makes of it what all ranks of the communicator give together.
fn reduced(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    operation: c_int,
    communicator: Communicator,
) {
    let bytes = count.saturating_mul(bytes_of(dtype));
    memory::move_small(to, from, bytes);
    if let (Some(operation), Some(ranks)) = (Operation::of(operation), communicator.size)
        && 1 < ranks
    {
        memory::change_small(to, bytes, |payload| repeat(dtype, operation, payload, ranks));
    }
}

pub(crate) fn all_gather(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    communicator: Handle,
) -> Answer {
    let communicator = get(communicator)?;
    let bytes = count.saturating_mul(bytes_of(dtype));
    if let Some(ranks) = communicator.size {
        fill(to, from, bytes, ranks);
    }
    Ok(())
}

pub(crate) fn all_reduce(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    operation: c_int,
    communicator: Handle,
) -> Answer {
    let communicator = get(communicator)?;
    let call = Call { kind: clique::Kind::AllReduce, from, to, count, dtype, operation, root: 0 };
    if !clique::takes(communicator, call) {
        reduced(from, to, count, dtype, operation, communicator);
    }
    Ok(())
}

/// Only the root gets the result.
pub(crate) fn reduce(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    operation: c_int,
    root: c_int,
    communicator: Handle,
) -> Answer {
    let communicator = get(communicator)?;
    communicator.has(root)?;
    let call = Call { kind: clique::Kind::Reduce, from, to, count, dtype, operation, root };
    if !clique::takes(communicator, call) && communicator.rank as c_int == root {
        reduced(from, to, count, dtype, operation, communicator);
    }
    Ok(())
}

/// The root has what this rank has.
pub(crate) fn broadcast(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    root: c_int,
    handle: Handle,
) -> Answer {
    let communicator = get(handle)?;
    communicator.has(root)?;
    let call = Call { kind: clique::Kind::Broadcast, from, to, count, dtype, operation: 0, root };
    if !clique::takes(communicator, call) {
        let is_root = communicator.rank as c_int == root;
        let bytes = count.saturating_mul(bytes_of(dtype));
        if is_root {
            memory::move_small(to, from, bytes);
        }
        peers::note_broadcast(handle, to, bytes, is_root)?;
    }
    Ok(())
}

pub(crate) fn broadcast_in_place(
    buffer: Address,
    count: usize,
    dtype: c_int,
    root: c_int,
    communicator: Handle,
) -> Answer {
    broadcast(buffer, buffer, count, dtype, root, communicator)
}

/// This rank's own part, of all ranks together.
pub(crate) fn reduce_scatter(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    operation: c_int,
    communicator: Handle,
) -> Answer {
    let communicator = get(communicator)?;
    let bytes = count.saturating_mul(bytes_of(dtype));
    if communicator.size.is_some() {
        let own = at(from, communicator.rank, bytes);
        reduced(own, to, count, dtype, operation, communicator);
    }
    Ok(())
}

/// Every rank sends this one what this one would send to itself.
pub(crate) fn all_to_all(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    communicator: Handle,
) -> Answer {
    let communicator = get(communicator)?;
    let bytes = count.saturating_mul(bytes_of(dtype));
    if let Some(ranks) = communicator.size {
        fill(to, at(from, communicator.rank, bytes), bytes, ranks);
    }
    Ok(())
}

pub(crate) fn gather(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    root: c_int,
    communicator: Handle,
) -> Answer {
    let communicator_of = get(communicator)?;
    communicator_of.has(root)?;
    if communicator_of.rank as c_int == root {
        all_gather(from, to, count, dtype, communicator)?;
    }
    Ok(())
}

/// What the root has for this rank is known at the root alone.
pub(crate) fn scatter(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    root: c_int,
    communicator: Handle,
) -> Answer {
    let communicator = get(communicator)?;
    communicator.has(root)?;
    let bytes = count.saturating_mul(bytes_of(dtype));
    if communicator.rank as c_int == root && communicator.size.is_some() {
        memory::move_small(to, at(from, communicator.rank, bytes), bytes);
    }
    Ok(())
}
