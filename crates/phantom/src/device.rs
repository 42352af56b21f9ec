//! Cards: how many, which one is current, what they can do.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::Relaxed;

use contract::machine::{bus_of, pci_text, uuid_of};
use cuda_abi::types::{DeviceProp12, DeviceProp13};
use gpus::Architecture;

use crate::cards::Turn;
use crate::error::{Answer, Failure};
use crate::ffi::{Raw, write_text};
use crate::state::{self, phantom};
use crate::{config, status};

thread_local! {
    static CURRENT: Cell<c_int> = const { Cell::new(0) };
}

/// The calling thread's current card.
pub(crate) fn current_ordinal() -> c_int {
    CURRENT.get()
}

/// A card has a context from its first use on, if there is room for it.
pub(crate) fn touch(index: usize) -> Answer {
    if status::context_of(index) != 0 {
        return Ok(());
    }
    let phantom = phantom()?;
    let bytes = phantom.card.context_bytes;
    let turn = Turn::take();
    turn.forget_the_dead();
    let added =
        turn.add_context(phantom.devices[index].card, bytes, phantom.card.available_bytes());
    added.inspect_err(|_| status::note_refused_context(index, bytes))?;
    status::page().devices[index].context.store(bytes, Relaxed);
    Ok(())
}

/// For the doorway: a card's total, and what a process takes from it before its first tensor. Unlike
/// `cudaMemGetInfo` it makes no context on a card that is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fathom_card(total: *mut u64, context: *mut u64) {
    let card = &config::get().card;
    // SAFETY: the doorway passes two valid addresses.
    unsafe {
        total.write(card.memory_bytes);
        context.write(card.context_bytes);
    }
}

pub(crate) fn init() -> Answer {
    phantom().map(|_| ())
}

/// No card at all is an error of its own.
pub(crate) fn count(out: &mut c_int) -> Answer {
    *out = phantom()?.devices.len() as c_int;
    if *out == 0 { Err(Failure::NoDevice) } else { Ok(()) }
}

/// The driver wants to be initialised first; the runtime does so by itself.
pub(crate) fn count_once_initialised(out: &mut c_int) -> Answer {
    if !state::is_built() {
        return Err(Failure::Initialization);
    }
    count(out)
}

pub(crate) fn current(out: &mut c_int) -> Answer {
    *out = CURRENT.get();
    Ok(())
}

pub(crate) fn set_current(ordinal: c_int) -> Answer {
    let (index, _) = state::device(ordinal)?;
    touch(index)?;
    CURRENT.set(ordinal);
    Ok(())
}

pub(crate) fn get(out: &mut c_int, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    *out = ordinal;
    Ok(())
}

pub(crate) fn name(out: Raw<c_char>, length: c_int, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    write_text(out, length.max(0) as usize, phantom()?.card.title)
}

pub(crate) fn total_memory(out: &mut usize, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    *out = phantom()?.card.memory_bytes as usize;
    Ok(())
}

pub(crate) fn uuid(out: &mut [u8; 16], ordinal: c_int) -> Answer {
    *out = uuid_of(state::device(ordinal)?.1.card);
    Ok(())
}

pub(crate) fn compute_capability(major: &mut c_int, minor: &mut c_int, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    let capability = phantom()?.card.compute_capability;
    (*major, *minor) = (capability.0 as c_int, capability.1 as c_int);
    Ok(())
}

pub(crate) fn can_access_peer(out: &mut c_int, ordinal: c_int, peer: c_int) -> Answer {
    state::device(ordinal)?;
    state::device(peer)?;
    *out = c_int::from(ordinal != peer);
    Ok(())
}

pub(crate) fn pci_bus_id(out: Raw<c_char>, length: c_int, ordinal: c_int) -> Answer {
    let (_, device) = state::device(ordinal)?;
    write_text(out, length.max(0) as usize, &pci_text(device.card))
}

pub(crate) fn by_pci_bus_id(out: &mut c_int, name: &CStr) -> Answer {
    let wanted = name.to_string_lossy().to_ascii_uppercase();
    let mut devices = phantom()?.devices.iter();
    let found = devices.position(|device| wanted.ends_with(&pci_text(device.card)[5..]));
    *out = found.ok_or(Failure::InvalidDevice)? as c_int;
    Ok(())
}

/// Limits of stack, printf buffer and malloc heap, as the driver sets them.
pub(crate) fn limit(out: &mut usize, limit: c_int) -> Answer {
    *out = match limit {
        0 => 1 << 10,
        1 => 1 << 20,
        2 => 8 << 20,
        _ => 0,
    };
    Ok(())
}

pub(crate) fn driver_version(out: &mut c_int) -> Answer {
    runtime_version(out)
}

pub(crate) fn runtime_version(out: &mut c_int) -> Answer {
    *out = config::get().cuda_version;
    Ok(())
}

/// Attributes have the same numbers in the driver and in the runtime.
pub(crate) fn attribute(out: &mut c_int, attribute: c_int, ordinal: c_int) -> Answer {
    let (_, device) = state::device(ordinal)?;
    let card = phantom()?.card;
    let arch = card.architecture();
    *out = match attribute {
        1..=3 => 1024,   // threads per block, block x and y
        4 => 64,         // block z
        5 => c_int::MAX, // grid x
        6 | 7 => 65535,  // grid y and z
        8 => Architecture::SHARED_PER_BLOCK as c_int,
        9 => 65536,                                       // constant memory
        10 => 32,                                         // warp
        11 => c_int::MAX,                                 // pitch
        12 => arch.registers_per_multiprocessor as c_int, // registers per block
        13 => card.clock_khz as c_int,
        14 => 512,                             // texture alignment
        15 | 19 | 31 | 41 | 78 | 79 | 80 => 1, // overlap, map host, concurrent, unified addressing …
        16 => card.sm_count as c_int,
        33 => bus_of(device.card) as c_int, // PCI bus
        36 => card.memory_clock_khz as c_int,
        37 => card.memory_bus_bits as c_int,
        38 => card.l2_bytes as c_int,
        39 => arch.threads_per_multiprocessor as c_int,
        40 => 2, // copy engines
        75 => card.compute_capability.0 as c_int,
        76 => card.compute_capability.1 as c_int,
        81 => arch.shared_per_multiprocessor as c_int,
        82 => arch.registers_per_multiprocessor as c_int,
        83 | 86 | 89 | 90 | 91 | 95 | 96 | 99 | 102 | 103 | 115 | 125 => 1,
        87 => 32, // single to double precision
        97 => arch.shared_per_block_optin as c_int,
        106 => arch.blocks_per_multiprocessor as c_int,
        108 => (card.l2_bytes * 3 / 4) as c_int, // persisting L2
        109 => 128 << 20,
        111 => arch.shared_reserved_per_block as c_int,
        119 => 1, // memory pools export as file descriptors
        120 => c_int::from(9 <= card.compute_capability.0), // cluster launch
        139 => card.pci_device_id as c_int,
        _ => 0,
    };
    Ok(())
}

/// Fills the fields that both generations of `cudaDeviceProp` have.
macro_rules! fill_properties {
    ($out:ident, $ordinal:ident) => {{
        let card = phantom()?.card;
        let arch = card.architecture();
        let title = card.title.as_bytes();
        for (to, from) in $out.name.iter_mut().zip(title.iter().chain(std::iter::repeat(&0))) {
            *to = *from as c_char;
        }
        let number = state::device($ordinal)?.1.card;
        $out.uuid = uuid_of(number);
        $out.total_global_mem = card.memory_bytes as usize;
        $out.shared_mem_per_block = Architecture::SHARED_PER_BLOCK as usize;
        $out.regs_per_block = arch.registers_per_multiprocessor as c_int;
        $out.warp_size = 32;
        $out.mem_pitch = c_int::MAX as usize;
        $out.max_threads_per_block = 1024;
        $out.max_threads_dim = [1024, 1024, 64];
        $out.max_grid_size = [c_int::MAX, 65535, 65535];
        $out.total_const_mem = 65536;
        $out.major = card.compute_capability.0 as c_int;
        $out.minor = card.compute_capability.1 as c_int;
        $out.texture_alignment = 512;
        $out.texture_pitch_alignment = 32;
        $out.surface_alignment = 512;
        $out.multi_processor_count = card.sm_count as c_int;
        $out.can_map_host_memory = 1;
        $out.concurrent_kernels = 1;
        $out.pci_bus_id = bus_of(number) as c_int;
        $out.async_engine_count = 2;
        $out.unified_addressing = 1;
        $out.memory_bus_width = card.memory_bus_bits as c_int;
        $out.l2_cache_size = card.l2_bytes as c_int;
        $out.persisting_l2_cache_max_size = (card.l2_bytes * 3 / 4) as c_int;
        $out.max_threads_per_multi_processor = arch.threads_per_multiprocessor as c_int;
        $out.stream_priorities_supported = 1;
        $out.global_l1_cache_supported = 1;
        $out.local_l1_cache_supported = 1;
        $out.shared_mem_per_multiprocessor = arch.shared_per_multiprocessor as usize;
        $out.regs_per_multiprocessor = arch.registers_per_multiprocessor as c_int;
        $out.managed_memory = 1;
        $out.concurrent_managed_access = 1;
        $out.compute_preemption_supported = 1;
        $out.can_use_host_pointer_for_registered_mem = 1;
        $out.cooperative_launch = 1;
        $out.shared_mem_per_block_optin = arch.shared_per_block_optin as usize;
        $out.max_blocks_per_multi_processor = arch.blocks_per_multiprocessor as c_int;
        $out.access_policy_max_window_size = 128 << 20;
        $out.reserved_shared_mem_per_block = arch.shared_reserved_per_block as usize;
        $out.host_register_supported = 1;
        $out.memory_pools_supported = 1;
        $out.memory_pool_supported_handle_types = 1;
        $out.ipc_event_supported = 1;
        $out.cluster_launch = c_int::from(9 <= card.compute_capability.0);
        card
    }};
}

pub(crate) fn properties_12(out: &mut DeviceProp12, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    // SAFETY: a struct of integers for which zero is valid.
    *out = unsafe { std::mem::zeroed() };
    let card = fill_properties!(out, ordinal);
    out.clock_rate = card.clock_khz as c_int;
    out.memory_clock_rate = card.memory_clock_khz as c_int;
    out.device_overlap = 1;
    out.single_to_double_precision_perf_ratio = 32;
    Ok(())
}

pub(crate) fn properties_13(out: &mut DeviceProp13, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    // SAFETY: a struct of integers for which zero is valid.
    *out = unsafe { std::mem::zeroed() };
    fill_properties!(out, ordinal);
    Ok(())
}
