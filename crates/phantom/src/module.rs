//! Kernels as things that can be loaded, found and described; none of them ever runs.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::Mutex;

use cuda_abi::types::{Address, FuncAttributes, Handle};

use crate::doorway;
use crate::error::Answer;
use crate::fat_binary;
use crate::ffi::Raw;
use crate::memory;
use crate::state::{lock, new_handle, phantom};

/// Registers a kernel is said to need: enough for two blocks of 1,024 threads on any card.
const REGISTERS: c_int = 32;

/// The first fat binary a process registers is torch's: the moment to open the doorway.
pub(crate) fn register_fat_binary(binary: Address) -> Handle {
    doorway::open();
    fat_binary::register(binary)
}

pub(crate) fn init(_binary: Handle) -> c_char {
    0
}

pub(crate) fn get_kernel(out: &mut Handle, function: Handle) -> Answer {
    *out = function;
    Ok(())
}

fn capability() -> Result<c_int, crate::error::Failure> {
    let (major, minor) = phantom()?.card.compute_capability;
    Ok((10 * major + minor) as c_int)
}

pub(crate) fn function_attributes(out: &mut FuncAttributes, function: Handle) -> Answer {
    let capability = fat_binary::architecture_of(function, capability()?);
    *out = FuncAttributes {
        max_threads_per_block: 1024,
        num_regs: REGISTERS,
        ptx_version: capability,
        binary_version: capability,
        max_dynamic_shared_size_bytes: 48 << 10,
        ..FuncAttributes::default()
    };
    Ok(())
}

/// Attributes by the driver's numbers.
pub(crate) fn function_attribute(out: &mut c_int, attribute: c_int, function: Handle) -> Answer {
    *out = match attribute {
        0 => 1024,
        4 => REGISTERS,
        5 | 6 => fat_binary::architecture_of(function, capability()?),
        8 => 48 << 10,
        _ => 0,
    };
    Ok(())
}

/// Device variables get an address when somebody asks for it.
pub(crate) fn symbol_address(out: &mut Address, symbol: Address) -> Answer {
    static SYMBOLS: Mutex<BTreeMap<Address, Address>> = Mutex::new(BTreeMap::new());
    let mut symbols = lock(&SYMBOLS);
    if let Some(address) = symbols.get(&symbol) {
        *out = *address;
        return Ok(());
    }
    memory::malloc(out, 4096)?;
    symbols.insert(symbol, *out);
    Ok(())
}

pub(crate) fn symbol_size(out: &mut usize, _symbol: Address) -> Answer {
    *out = 4096;
    Ok(())
}

pub(crate) fn global(out: Option<&mut Address>, size: Option<&mut usize>) -> Answer {
    if let Some(out) = out {
        memory::malloc(out, 4096)?;
    }
    if let Some(size) = size {
        *size = 4096;
    }
    Ok(())
}

pub(crate) fn library_load(out: &mut Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

pub(crate) fn library_kernel(out: &mut Handle, _library: Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

pub(crate) fn library_kernel_count(out: &mut c_uint, _library: Handle) -> Answer {
    *out = 1;
    Ok(())
}

/// Lazy, as the driver has it since CUDA 12.
pub(crate) fn loading_mode(out: &mut c_int) -> Answer {
    *out = 2;
    Ok(())
}

pub(crate) fn link_create(
    _count: c_uint,
    _options: Raw<c_int>,
    _values: Raw<Address>,
    out: &mut Handle,
) -> Answer {
    *out = new_handle();
    Ok(())
}

pub(crate) fn link_complete(
    _state: Handle,
    out: Option<&mut Address>,
    size: Option<&mut usize>,
) -> Answer {
    static IMAGE: [u8; 64] = [0; 64];
    if let Some(out) = out {
        *out = Address(IMAGE.as_ptr() as u64);
    }
    if let Some(size) = size {
        *size = IMAGE.len();
    }
    Ok(())
}
