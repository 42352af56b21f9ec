//! Kernels as things that can be loaded, found and described; none of them ever runs.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::Mutex;

use cuda_abi::types::{Address, FuncAttributes, Handle};

use crate::error::{Answer, Failure};
use crate::ffi::{New, Raw};
use crate::state::{Side, lock, phantom};
use crate::{device, doorway, fat_binary, handles, memory, reach};

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

/// Variables of kernels by the addresses of their shadows on the host.
#[derive(Default)]
struct Variable {
    size: usize,
    /// Where it lies on each card, once somebody asked.
    on_card: BTreeMap<c_int, Address>,
}

static VARIABLES: Mutex<BTreeMap<Address, Variable>> = Mutex::new(BTreeMap::new());

/// What `__cudaRegisterVar` says at the start of a program.
pub(crate) fn register_variable(
    _binary: Handle,
    symbol: Address,
    _on_card: Address,
    _name: Address,
    _external: c_int,
    size: usize,
) -> c_int {
    lock(&VARIABLES).insert(symbol, Variable { size, ..Variable::default() });
    0
}

/// Device variables get an address when somebody asks for it.
pub(crate) fn symbol_address(out: &mut Address, symbol: Address) -> Answer {
    let mut variables = lock(&VARIABLES);
    let variable = variables.get_mut(&symbol).ok_or(Failure::InvalidSymbol)?;
    let card = device::current_ordinal();
    if let Some(address) = variable.on_card.get(&card) {
        *out = *address;
        return Ok(());
    }
    memory::malloc_some(out, variable.size.max(1))?;
    variable.on_card.insert(card, *out);
    Ok(())
}

pub(crate) fn symbol_size(out: &mut usize, symbol: Address) -> Answer {
    *out = lock(&VARIABLES).get(&symbol).ok_or(Failure::InvalidSymbol)?.size;
    Ok(())
}

/// Not done, since no kernel reads it.
pub(crate) fn copy_to_symbol(symbol: Address, from: Address, size: usize, offset: usize) -> Answer {
    let mut whole = 0;
    symbol_size(&mut whole, symbol)?;
    let end = offset.checked_add(size).filter(|end| *end <= whole);
    end.ok_or(Failure::InvalidValue)?;
    match phantom()?.side(from.0, size)? {
        Side::Host if !reach::has_readable_ends(from.0 as usize, size) && size != 0 => {
            Err(Failure::InvalidValue)
        }
        _ => Ok(()),
    }
}

pub(crate) fn global(out: Option<&mut Address>, size: Option<&mut usize>) -> Answer {
    const BYTES: usize = 4096;
    if let Some(out) = out {
        memory::malloc_some(out, BYTES)?;
    }
    if let Some(size) = size {
        *size = BYTES;
    }
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
    out: New<'_>,
) -> Answer {
    handles::create(out)
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
