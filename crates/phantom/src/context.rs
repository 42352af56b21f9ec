//! Contexts of the driver: one primary context per card, its handle the ordinal plus one.

use std::ffi::{c_int, c_uint};

use cuda_abi::types::Handle;

use crate::error::{Answer, Failure};
use crate::{config, device, state};

/// Handles of contexts: the ordinal is in them.
const FIRST_HANDLE: usize = 0x6_0000_0000;

fn handle_of(ordinal: c_int) -> Handle {
    Handle(FIRST_HANDLE + 64 * (ordinal as usize + 1))
}

/// The card whose context a handle is.
pub(crate) fn ordinal_of(context: usize) -> Result<c_int, Failure> {
    let ordinal = context.saturating_sub(FIRST_HANDLE) / 64;
    let ordinal = c_int::try_from(ordinal).map_err(|_| Failure::InvalidContext)? - 1;
    let is_ours = state::device(ordinal).is_ok() && handle_of(ordinal).0 == context;
    if is_ours { Ok(ordinal) } else { Err(Failure::InvalidContext) }
}

pub(crate) fn primary_retain(out: &mut Handle, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    *out = handle_of(ordinal);
    Ok(())
}

pub(crate) fn primary_state(
    ordinal: c_int,
    flags: Option<&mut c_uint>,
    active: &mut c_int,
) -> Answer {
    state::device(ordinal)?;
    if let Some(flags) = flags {
        *flags = 0;
    }
    *active = 1;
    Ok(())
}

pub(crate) fn create(out: &mut Handle, _flags: c_uint, ordinal: c_int) -> Answer {
    device::set_current(ordinal)?;
    primary_retain(out, ordinal)
}

pub(crate) fn current(out: &mut Handle) -> Answer {
    *out = handle_of(device::current_ordinal());
    Ok(())
}

pub(crate) fn set_current(context: Option<c_int>) -> Answer {
    context.map_or(Ok(()), device::set_current)
}

pub(crate) fn device(out: &mut c_int) -> Answer {
    device::current(out)
}

pub(crate) fn flags(out: &mut c_uint) -> Answer {
    *out = 0;
    Ok(())
}

/// Without a context the current one is meant.
pub(crate) fn id(context: Option<c_int>, out: &mut u64) -> Answer {
    *out = handle_of(context.unwrap_or_else(device::current_ordinal)).0 as u64;
    Ok(())
}

pub(crate) fn api_version(_context: Option<c_int>, out: &mut c_uint) -> Answer {
    *out = config::get().cuda_version as c_uint;
    Ok(())
}
