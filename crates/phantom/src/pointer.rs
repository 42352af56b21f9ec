//! What the driver says about an address: whose it is, and the allocation around it.

use std::ffi::{c_int, c_uint, c_void};

use cuda_abi::types::{Address, PointerAttributes};

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::phantom;
use crate::{context, host};

pub(crate) fn address_range(
    base: Option<&mut Address>,
    size: Option<&mut usize>,
    address: Address,
) -> Answer {
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    let (start, length) =
        phantom.devices[index].containing(address.0).ok_or(Failure::InvalidValue)?;
    if let Some(base) = base {
        *base = Address(start);
    }
    if let Some(size) = size {
        *size = length as usize;
    }
    Ok(())
}

/// The card on which somebody has the byte at an address.
fn card_of(address: Address) -> Result<Option<usize>, Failure> {
    Ok(phantom()?.place(address.0, 1).unwrap_or(None))
}

/// An address that nobody has is the host's, as far as the driver knows.
pub(crate) fn attributes(out: &mut PointerAttributes, address: Address) -> Answer {
    *out = match card_of(address)? {
        Some(index) => PointerAttributes {
            kind: 2,
            device: index as c_int,
            device_pointer: address,
            host_pointer: Address(0),
        },
        None => {
            let pinned = host::is_pinned(address.0, 1);
            PointerAttributes {
                kind: c_int::from(pinned),
                device: if pinned { 0 } else { -2 },
                device_pointer: if pinned { address } else { Address(0) },
                host_pointer: address,
            }
        }
    };
    Ok(())
}

/// The driver's attributes of a pointer have the numbers from 1 to this.
const LAST_ATTRIBUTE: c_int = 21;

/// Bytes of an attribute's value.
fn attribute_bytes(number: c_int) -> Result<usize, Failure> {
    match number {
        1 | 3 | 4 | 7 | 11 | 12 | 14 | 17..=20 => Ok(8),
        2 | 9 | 16 => Ok(4),
        6 | 8 | 10 | 13 | 15 | LAST_ATTRIBUTE => Ok(1),
        _ => Err(Failure::InvalidValue),
    }
}

/// An attribute by the driver's number; `None` for memory that the driver does not know.
fn value_of(number: c_int, address: Address) -> Result<Option<Vec<u8>>, Failure> {
    let length = attribute_bytes(number)?;
    let on_device = card_of(address)?;
    if on_device.is_none() && !host::is_pinned(address.0, 1) {
        return Ok(None);
    }
    let value = match number {
        1 => {
            let mut handle = Default::default();
            context::primary_retain(&mut handle, on_device.unwrap_or(0) as c_int)?;
            handle.0 as u64
        }
        2 => {
            if on_device.is_some() {
                2
            } else {
                1
            }
        }
        3 | 4 => address.0,
        9 => on_device.unwrap_or(0) as u64,
        11 | 12 => {
            let (mut base, mut size) = (Address(0), 0);
            address_range(Some(&mut base), Some(&mut size), address)?;
            if number == 11 { base.0 } else { size as u64 }
        }
        13 => 1,
        _ => 0,
    };
    Ok(Some(value.to_ne_bytes()[..length].to_vec()))
}

pub(crate) fn attribute(out: Raw<c_void>, number: c_int, address: Address) -> Answer {
    let value = value_of(number, address)?.ok_or(Failure::InvalidValue)?;
    if out.0.is_null() {
        return Err(Failure::InvalidValue);
    }
    out.write_bytes(&value)
}

/// Several at once: of memory that the driver does not know, all of them are zero.
pub(crate) fn attribute_list(
    count: c_uint,
    attributes: Raw<c_int>,
    out: Raw<Address>,
    address: Address,
) -> Answer {
    let is_good = (1..=LAST_ATTRIBUTE as c_uint).contains(&count);
    if !is_good || attributes.is_null() || out.is_null() {
        return Err(Failure::InvalidValue);
    }
    let targets = out.read(count as usize)?;
    for (number, target) in attributes.read(count as usize)?.into_iter().zip(targets) {
        let value = match value_of(number, address)? {
            Some(value) => value,
            None => vec![0; attribute_bytes(number)?],
        };
        Raw(target.0 as *mut c_void).write_bytes(&value)?;
    }
    Ok(())
}
