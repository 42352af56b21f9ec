//! Launches: counted, never executed; and how many blocks would run at once.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::types::Handle;

use crate::error::{Answer, Failure};
use crate::state::phantom;
use crate::status;

pub(crate) fn kernel() -> Answer {
    status::page().launches.fetch_add(1, Relaxed);
    Ok(())
}

/// Blocks per SM by threads, shared memory and the architecture's own bound.
pub(crate) fn blocks_per_sm(
    out: &mut c_int,
    _function: Handle,
    block: c_int,
    shared: usize,
) -> Answer {
    if block < 1 {
        return Err(Failure::InvalidValue);
    }
    let arch = phantom()?.card.architecture();
    let by_threads = arch.threads_per_multiprocessor / (block as u32).next_multiple_of(32);
    let per_block = (shared as u64).saturating_add(arch.shared_reserved_per_block);
    let by_shared = match shared {
        0 => u32::MAX,
        _ => (arch.shared_per_multiprocessor / per_block) as u32,
    };
    *out = by_threads.min(by_shared).min(arch.blocks_per_multiprocessor) as c_int;
    Ok(())
}

pub(crate) fn block_size(grid: &mut c_int, block: &mut c_int) -> Answer {
    let card = phantom()?.card;
    *block = 1024;
    *grid =
        (card.sm_count * (card.architecture().threads_per_multiprocessor / 1024).max(1)) as c_int;
    Ok(())
}

pub(crate) fn clusters(out: &mut c_int) -> Answer {
    *out = if 9 <= phantom()?.card.compute_capability.0 { 8 } else { 1 };
    Ok(())
}
