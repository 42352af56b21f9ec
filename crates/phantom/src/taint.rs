//! Work that the doorway does not see, of extensions and compilers: kernels, and calls of libraries such as cuBLAS.
//! Whatever their arguments point to may be written to, so nothing is known of it any more.
//!
//! The number and sizes of a kernel's arguments are not told at a launch. Each is looked at as far as arguments reach,
//! and behind the last one lie other words of the caller's: what these point to is lost as well, which is the safe side.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::error::Library;
use crate::ffi::Raw;
use crate::state::phantom;
use crate::{config, fresh, reach, reads};

/// Arguments that are looked at. Compiled code seldom has more than twenty.
const MOST: usize = 128;

/// Words of an argument: a structure with pointers in it, such as PyTorch's iterators.
const WORDS: usize = 128;

const WORD: usize = size_of::<u64>();

/// Backward passes under way: autograd's own kernels write to gradients, which the doorway knows of.
static BACKWARD: AtomicUsize = AtomicUsize::new(0);

/// For the doorway: a backward pass begins, or ends.
#[unsafe(no_mangle)]
pub extern "C" fn fathom_backward(begins: std::ffi::c_int) {
    match begins {
        0 => BACKWARD.fetch_sub(1, Relaxed),
        _ => BACKWARD.fetch_add(1, Relaxed),
    };
}

/// A kernel of a compiled program: its arguments may be structures.
pub(crate) fn launched(arguments: Raw<Raw<i64>>) {
    if is_unseen() {
        lose(listed(arguments, WORDS));
    }
}

/// A kernel that was loaded at run time, as Triton's are: its arguments are numbers and addresses. They may also lie in
/// one piece of memory, which `extra` names.
pub(crate) fn launched_by_driver(arguments: Raw<Raw<i64>>, extra: Raw<Raw<i64>>) {
    if is_unseen() {
        lose(listed(arguments, 1));
        lose(packed(extra));
    }
}

/// A function of a library: these are its arguments, and `more` what may be arguments behind them.
pub(crate) fn called(
    library: Library,
    name: &str,
    named: &[usize],
    more: impl FnOnce() -> [usize; 16],
) {
    use Library::{Cublas, Cudnn, Cufft, Cusolver, Cusparse};
    if !matches!(library, Cublas | Cudnn | Cufft | Cusolver | Cusparse) {
        return;
    }
    fresh::note_work();
    if !is_unseen() {
        return;
    }
    // The addresses of its results lie on the card themselves.
    if name.contains("Batched") && !name.contains("Strided") {
        return lose_all();
    }
    lose(named.iter().copied().chain(more()).map(|word| word as u64).collect());
}

/// Addresses that lie in a list on the host.
pub(crate) fn pointed_to(addresses: &[u64]) {
    if is_unseen() {
        lose(addresses.to_vec());
    }
}

fn is_unseen() -> bool {
    config::get().values && !reads::is_seen() && BACKWARD.load(Relaxed) == 0
}

/// The words of a list of arguments.
fn listed(arguments: Raw<Raw<i64>>, words: usize) -> Vec<u64> {
    let mut found = Vec::new();
    for at in 0..MOST {
        let Some(argument) = word(arguments.0 as usize + at * WORD) else { break };
        // The list ends where something else begins.
        if word(argument as usize).is_none() {
            break;
        }
        let start = (argument as usize).next_multiple_of(WORD);
        found.extend((0..words).map_while(|number| word(start + number * WORD)));
    }
    found
}

/// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `CU_LAUNCH_PARAM_BUFFER_SIZE`: what the next word of `extra` is.
const BUFFER: u64 = 1;
const BUFFER_SIZE: u64 = 2;

/// The words of arguments that lie in one piece.
fn packed(extra: Raw<Raw<i64>>) -> Vec<u64> {
    let (mut start, mut size) = (0, 0);
    for pair in 0..MOST {
        let at = extra.0 as usize + 2 * pair * WORD;
        match (word(at), word(at + WORD)) {
            (Some(BUFFER), Some(address)) => start = address as usize,
            (Some(BUFFER_SIZE), Some(address)) => size = word(address as usize).unwrap_or(0),
            _ => break,
        }
    }
    let words = (size as usize / WORD).min(MOST * WORDS);
    (0..words).map_while(|number| word(start + number * WORD)).collect()
}

/// Nothing is known any more of what these point to.
fn lose(mut words: Vec<u64>) {
    let Ok(phantom) = phantom() else { return };
    words.retain(|address| phantom.device_of(*address).is_some());
    words.sort_unstable();
    words.dedup();
    words.into_iter().for_each(|address| reads::lost(address, 1));
}

fn lose_all() {
    let Ok(phantom) = phantom() else { return };
    reads::lost(phantom.base, phantom.span as usize * phantom.devices.len());
}

/// The word at an address, if it can be read.
fn word(address: usize) -> Option<u64> {
    if address == 0 || !reach::is_readable(address, WORD) {
        return None;
    }
    // SAFETY: these bytes can be read.
    Some(unsafe { (address as *const u64).read_unaligned() })
}
