//! NCCL: communicators that know their size and rank; collectives move nothing, except that small
//! payloads arrive as if all ranks had sent the same: sizes and flags that ranks exchange make sense.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use cuda_abi::types::{Address, Handle, UniqueId};

use crate::error::{Answer, Failure};
use crate::memory;
use crate::state::{lock, new_handle};

/// What `ncclGetVersion` says: 2.27.0.
const VERSION: c_int = 22700;

/// Size, rank and card of the communicators.
static COMMUNICATORS: Mutex<BTreeMap<Handle, [c_int; 3]>> = Mutex::new(BTreeMap::new());

fn get(communicator: Handle, field: usize) -> Result<c_int, Failure> {
    let found = lock(&COMMUNICATORS).get(&communicator).copied();
    found.map(|fields| fields[field]).ok_or(Failure::InvalidHandle)
}

fn add(out: &mut Handle, size: c_int, rank: c_int) -> Answer {
    *out = new_handle();
    lock(&COMMUNICATORS).insert(*out, [size, rank, crate::device::current_ordinal()]);
    Ok(())
}

pub(crate) fn version(out: &mut c_int) -> Answer {
    *out = VERSION;
    Ok(())
}

pub(crate) fn unique_id(out: &mut UniqueId) -> Answer {
    *out = UniqueId([1; 128]);
    Ok(())
}

pub(crate) fn init_rank_config(
    out: &mut Handle,
    size: c_int,
    _id: UniqueId,
    rank: c_int,
) -> Answer {
    add(out, size, rank)
}

pub(crate) fn init_rank_scalable(out: &mut Handle, size: c_int, rank: c_int) -> Answer {
    add(out, size, rank)
}

pub(crate) fn split(communicator: Handle, color: c_int, _key: c_int, out: &mut Handle) -> Answer {
    if color < 0 {
        *out = Handle::default();
        return Ok(());
    }
    add(out, get(communicator, 0)?, get(communicator, 1)?)
}

pub(crate) fn count(communicator: Handle, out: &mut c_int) -> Answer {
    *out = get(communicator, 0)?;
    Ok(())
}

pub(crate) fn rank(communicator: Handle, out: &mut c_int) -> Answer {
    *out = get(communicator, 1)?;
    Ok(())
}

pub(crate) fn device(communicator: Handle, out: &mut c_int) -> Answer {
    *out = get(communicator, 2)?;
    Ok(())
}

pub(crate) fn async_error(_communicator: Handle, out: &mut c_int) -> Answer {
    *out = 0;
    Ok(())
}

pub(crate) fn make_handle(out: &mut Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

pub(crate) fn register(
    _communicator: Handle,
    _buffer: Address,
    _size: usize,
    out: &mut Handle,
) -> Answer {
    make_handle(out)
}

/// Bytes of one element of an `ncclDataType_t`.
fn bytes_of(dtype: c_int) -> usize {
    match dtype {
        0 | 1 | 10 | 11 => 1, // int8, uint8, fp8
        6 | 9 => 2,           // half, bfloat16
        4 | 5 | 8 => 8,       // int64, uint64, double
        _ => 4,
    }
}

/// Every rank sends what this one sends.
pub(crate) fn all_gather(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    communicator: Handle,
) -> Answer {
    let bytes = count * bytes_of(dtype);
    for rank in 0..get(communicator, 0)?.max(0) as usize {
        memory::move_small(Address(to.0 + (rank * bytes) as u64), from, bytes);
    }
    Ok(())
}

/// The value stays as it is: right for one rank, and for averages and extremes of equal ranks.
pub(crate) fn all_reduce(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    _operation: c_int,
    _communicator: Handle,
) -> Answer {
    memory::move_small(to, from, count * bytes_of(dtype));
    Ok(())
}

pub(crate) fn reduce(from: Address, to: Address, count: usize, dtype: c_int) -> Answer {
    memory::move_small(to, from, count * bytes_of(dtype));
    Ok(())
}

pub(crate) fn broadcast(from: Address, to: Address, count: usize, dtype: c_int) -> Answer {
    memory::move_small(to, from, count * bytes_of(dtype));
    Ok(())
}

/// This rank keeps its own part.
pub(crate) fn reduce_scatter(
    from: Address,
    to: Address,
    count: usize,
    dtype: c_int,
    _operation: c_int,
    communicator: Handle,
) -> Answer {
    let bytes = count * bytes_of(dtype);
    let own = get(communicator, 1)?.max(0) as usize * bytes;
    memory::move_small(to, Address(from.0 + own as u64), bytes);
    Ok(())
}
