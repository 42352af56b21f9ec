//! NCCL: communicators that know their size and rank. Collectives move nothing, except that small
//! payloads arrive as if all ranks had sent the same: sizes and flags that ranks exchange make sense.
//! Communicators of one process (`ncclCommInitAll`) have all their ranks here, and their payloads are
//! truly exchanged.

mod buffers;
mod clique;
mod collectives;
mod peers;
mod values;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::handles::Kind;
use cuda_abi::types::{Address, Handle, UniqueId};

pub(crate) use self::collectives::*;
pub(crate) use self::peers::{group_end, group_start, recv, send};
use crate::error::{Answer, Failure};
use crate::ffi::{New, Raw};
use crate::state::{self, lock};
use crate::{handles, status};

/// What `ncclGetVersion` says: 2.27.0.
const VERSION: c_int = 22700;

/// A communicator as one rank has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Communicator {
    /// `None` after a split, which is not told how many ranks choose the same colour.
    size: Option<usize>,
    rank: usize,
    device: c_int,
    /// Shared by the communicators of one `ncclCommInitAll`; 0 for those whose other ranks are elsewhere.
    clique: usize,
    /// Memory of the card that it is taken to hold.
    bytes: u64,
}

static COMMUNICATORS: Mutex<BTreeMap<Handle, Communicator>> = Mutex::new(BTreeMap::new());

/// A type of elements that NCCL has.
pub(crate) fn data_type(number: c_int) -> Result<c_int, Failure> {
    if (0..=11).contains(&number) { Ok(number) } else { Err(Failure::InvalidValue) }
}

/// An operation that there is.
pub(crate) fn operation(number: c_int) -> Result<c_int, Failure> {
    values::Operation::of(number).map(|_| number).ok_or(Failure::InvalidValue)
}

impl Communicator {
    /// Whether there is such a rank, as far as the size is known.
    fn has(&self, rank: c_int) -> Answer {
        let rank = usize::try_from(rank).map_err(|_| Failure::InvalidValue)?;
        match self.size {
            Some(size) if size <= rank => Err(Failure::InvalidValue),
            _ => Ok(()),
        }
    }
}

/// For a collective, which is work on a stream.
fn get(communicator: Handle) -> Result<Communicator, Failure> {
    crate::capture::add_work_somewhere()?;
    lock(&COMMUNICATORS).get(&communicator).copied().ok_or(Failure::InvalidHandle)
}

fn add(out: &mut Handle, size: Option<usize>, rank: usize) -> Answer {
    let device = crate::device::current_ordinal();
    let bytes = charge(device, size.unwrap_or(1))?;
    *out = handles::make(Kind::Communicator)?;
    lock(&COMMUNICATORS).insert(*out, Communicator { size, rank, device, clique: 0, bytes });
    Ok(())
}

/// Takes a communicator's buffers from its card; how many bytes.
fn charge(ordinal: c_int, ranks: usize) -> Result<u64, Failure> {
    let (index, device) = state::device(ordinal)?;
    let bytes = buffers::bytes(state::phantom()?.card, ranks);
    let page = &status::page().devices[index];
    let charged = device.with_arena(index, |arena| arena.charge(bytes));
    charged.inspect_err(|_| page.nccl_refused.store(bytes, Relaxed))?;
    let all = lock(&COMMUNICATORS);
    let held: u64 =
        all.values().filter(|other| other.device == ordinal).map(|other| other.bytes).sum();
    page.nccl.fetch_max(held + bytes, Relaxed);
    Ok(bytes)
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
    init_rank_scalable(out, size, rank)
}

pub(crate) fn init_rank_scalable(out: &mut Handle, size: c_int, rank: c_int) -> Answer {
    if size < 1 || !(0..size).contains(&rank) {
        return Err(Failure::InvalidValue);
    }
    add(out, Some(size as usize), rank as usize)
}

/// All ranks of a communicator in one process, one for each card of the list.
pub(crate) fn init_all(out: Raw<Handle>, count: c_int, devices: Raw<c_int>) -> Answer {
    let cards = state::phantom()?.devices.len();
    let count = usize::try_from(count).ok().filter(|count| (1..=cards).contains(count));
    let count = count.filter(|_| !out.is_null()).ok_or(Failure::InvalidValue)?;
    let devices: Vec<c_int> = match devices.0.is_null() {
        true => (0..count as c_int).collect(),
        false => devices.read(count)?,
    };
    devices.iter().try_for_each(|device| state::device(*device).map(|_| ()))?;
    static CLIQUES: AtomicUsize = AtomicUsize::new(1);
    let clique = CLIQUES.fetch_add(1, Relaxed);
    let mut made = Vec::new();
    for (rank, device) in devices.into_iter().enumerate() {
        let bytes = charge(device, count)?;
        let handle = handles::make(Kind::Communicator)?;
        let communicator = Communicator { size: Some(count), rank, device, clique, bytes };
        lock(&COMMUNICATORS).insert(handle, communicator);
        made.push(handle);
    }
    out.write(&made)
}

/// The colours of the other ranks are not known here, so neither is the size.
pub(crate) fn split(communicator: Handle, color: c_int, key: c_int, out: &mut Handle) -> Answer {
    get(communicator)?;
    if color < 0 {
        *out = Handle::default();
        return Ok(());
    }
    add(out, None, key.max(0) as usize)
}

/// Without a communicator there is nothing to do.
pub(crate) fn destroy(communicator: Option<Handle>) -> Answer {
    let Some(communicator) = communicator else { return Ok(()) };
    handles::end(Kind::Communicator, communicator)?;
    let Some(gone) = lock(&COMMUNICATORS).remove(&communicator) else { return Ok(()) };
    let (index, device) = state::device(gone.device)?;
    device.with_arena(index, |arena| arena.discharge(gone.bytes));
    Ok(())
}

pub(crate) fn count(communicator: Handle, out: &mut c_int) -> Answer {
    *out = get(communicator)?.size.unwrap_or(1) as c_int;
    Ok(())
}

pub(crate) fn rank(communicator: Handle, out: &mut c_int) -> Answer {
    *out = get(communicator)?.rank as c_int;
    Ok(())
}

pub(crate) fn device(communicator: Handle, out: &mut c_int) -> Answer {
    *out = get(communicator)?.device;
    Ok(())
}

pub(crate) fn async_error(_communicator: Handle, out: &mut c_int) -> Answer {
    *out = 0;
    Ok(())
}

/// An operation that multiplies by a factor and then sums. The factor may lie on the card.
pub(crate) fn make_pre_mul_sum(
    out: &mut c_int,
    scalar: Raw<c_void>,
    dtype: c_int,
    _residence: c_int,
    _communicator: Handle,
) -> Answer {
    if scalar.0.is_null() {
        return Err(Failure::InvalidValue);
    }
    // Device memory is host memory: one way to read for both residences.
    let bytes = Raw(scalar.0.cast::<u8>()).read(values::bytes_of(dtype))?;
    *out = values::add_factor(values::number(dtype, &bytes));
    Ok(())
}

pub(crate) fn register(
    _communicator: Handle,
    _buffer: Address,
    _size: usize,
    out: New<'_>,
) -> Answer {
    handles::create(out)
}
