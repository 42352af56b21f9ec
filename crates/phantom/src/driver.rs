//! Entry points of the driver by name, for libraries that look them up at run time.

use std::ffi::{CStr, c_int, c_uint};

use cuda_abi::handles::Kind;
use cuda_abi::types::{Address, Handle};

use crate::error::{Answer, Failure};
use crate::export::driver_entry_point;
use crate::handles;

/// Callers name functions without the version that their header would add.
fn find(name: &CStr) -> Option<Address> {
    let name = name.to_str().ok()?;
    let versions = ["_v2", "", "_v3", "_v4"];
    let found = versions.iter().find_map(|version| driver_entry_point(&format!("{name}{version}")));
    found.map(|address| Address(address as u64))
}

fn answer(name: &CStr, out: &mut Address, found: Option<&mut c_int>) -> Answer {
    let address = find(name);
    *out = address.unwrap_or_default();
    if let Some(found) = found {
        *found = if address.is_some() { 0 } else { 1 };
        return Ok(());
    }
    address.map(|_| ()).ok_or(Failure::NotFound)
}

pub(crate) fn entry_point_by_version(
    name: &CStr,
    out: &mut Address,
    _version: c_uint,
    _flags: u64,
    found: Option<&mut c_int>,
) -> Answer {
    answer(name, out, found)
}

pub(crate) fn entry_point(
    name: &CStr,
    out: &mut Address,
    _flags: u64,
    found: Option<&mut c_int>,
) -> Answer {
    answer(name, out, found)
}

pub(crate) fn proc_address(name: &CStr, out: &mut Address, _version: c_int, _flags: u64) -> Answer {
    answer(name, out, None)
}

pub(crate) fn proc_address_v2(
    name: &CStr,
    out: &mut Address,
    _version: c_int,
    _flags: u64,
    found: Option<&mut c_int>,
) -> Answer {
    let result = answer(name, out, found);
    if *out == Address(0) { Err(Failure::NotFound) } else { result }
}

/// The driver's private tables: not here. Saying so matters, since the NVRTC inside cuDNN reads the
/// table without a look if the function itself is missing.
pub(crate) fn export_table(out: &mut Address) -> Answer {
    *out = Address(0);
    Err(Failure::NotFound)
}

/// The driver's log has nothing to say.
pub(crate) fn register_log(_callback: Address, _data: Address, out: Option<&mut Handle>) -> Answer {
    if let Some(out) = out {
        *out = handles::make(Kind::LogCallback)?;
    }
    Ok(())
}
