//! Kernels that the doorway does not see, of extensions and compilers: whatever their arguments point to may be
//! written to, so nothing is known of it any more.
//!
//! The number and sizes of a kernel's arguments are not told at a launch. Each is looked at as far as arguments reach,
//! and behind the last one lie other words of the caller's: what these point to is lost as well, which is the safe side.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::ffi::Raw;
use crate::state::phantom;
use crate::{config, reach, reads};

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
    lose(arguments, WORDS);
}

/// A kernel that was loaded at run time, as Triton's are: its arguments are numbers and addresses.
pub(crate) fn launched_by_driver(arguments: Raw<Raw<i64>>) {
    lose(arguments, 1);
}

fn lose(arguments: Raw<Raw<i64>>, words: usize) {
    if !config::get().values || reads::is_seen() || BACKWARD.load(Relaxed) != 0 {
        return;
    }
    let Ok(phantom) = phantom() else { return };
    let mut found: Vec<u64> = Vec::new();
    for at in 0..MOST {
        let Some(argument) = word(arguments.0 as usize + at * WORD) else { break };
        // The list ends where something else begins.
        if word(argument as usize).is_none() {
            break;
        }
        let start = (argument as usize).next_multiple_of(WORD);
        let words = (0..words).map_while(|number| word(start + number * WORD));
        found.extend(words.filter(|address| phantom.device_of(*address).is_some()));
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().for_each(|address| reads::lost(address, 1));
}

/// The word at an address, if it can be read.
fn word(address: usize) -> Option<u64> {
    if address == 0 || !reach::is_readable(address, WORD) {
        return None;
    }
    // SAFETY: these bytes can be read.
    Some(unsafe { (address as *const u64).read_unaligned() })
}
