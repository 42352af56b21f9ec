//! Which architectures a kernel was compiled for. Libraries choose their way by what the driver
//! reports of a kernel: the newest architecture in its binary that the card can run, not the card's.

use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::types::{Address, Handle};

use crate::ffi::Raw;
use crate::state::lock;
use crate::{busy, reach};

/// What is at the address that a process registers; then comes the address of the container.
const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// The container: magic, version and header length, length of all entries.
const CONTAINER_MAGIC: u32 = 0xba55_ed50;
/// Where an entry says its architecture: 86 for 8.6.
const ARCHITECTURE: usize = 28;
/// No binary has more.
const MOST_ENTRIES: usize = 64;

#[derive(Default)]
struct Registered {
    binaries: HashMap<Handle, Address>,
    functions: HashMap<Handle, Handle>,
    /// Architectures by binary, read when somebody asks.
    known: HashMap<Handle, Vec<c_int>>,
}

static REGISTERED: Mutex<Option<Registered>> = Mutex::new(None);

/// Whether a kernel was registered.
pub(crate) fn is_registered(function: Handle) -> bool {
    let registered = lock(&REGISTERED);
    registered.as_ref().is_some_and(|registered| registered.functions.contains_key(&function))
}

/// Remembers where a binary is; nothing is read yet. Its handle is no more than a number: a program
/// registers its binaries before anything of CUDA is there.
pub(crate) fn register(binary: Address) -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(0x5_0000_0000);
    let handle = Handle(NEXT.fetch_add(64, Relaxed));
    let mut registered = lock(&REGISTERED);
    registered.get_or_insert_default().binaries.insert(handle, binary);
    handle
}

/// Remembers which binary a kernel is in.
pub(crate) fn register_function(
    binary: Handle,
    function: Handle,
    _device: Address,
    name: *const c_char,
) -> c_int {
    if let Some(name) = reach::text(name) {
        busy::note_kernel(function, name);
    }
    let mut registered = lock(&REGISTERED);
    registered.get_or_insert_default().functions.insert(function, binary);
    0
}

/// The architecture that a card of this one runs a kernel with; the card's own if that is not known.
pub(crate) fn architecture_of(function: Handle, card: c_int) -> c_int {
    let mut registered = lock(&REGISTERED);
    let registered = registered.get_or_insert_default();
    let Some(binary) = registered.functions.get(&function).copied() else { return card };
    let Some(address) = registered.binaries.get(&binary).copied() else { return card };
    let known = registered.known.entry(binary).or_insert_with(|| architectures(address));
    choose(known, card)
}

/// The newest that is not newer than the card; for an older card the oldest there is, since the run
/// goes on although a real driver would find no kernel.
fn choose(known: &[c_int], card: c_int) -> c_int {
    let fitting = known.iter().filter(|architecture| **architecture <= card).max();
    fitting.or(known.iter().min()).copied().unwrap_or(card)
}

fn architectures(binary: Address) -> Vec<c_int> {
    let wrapper = words(binary.0, 4);
    if wrapper[0] != WRAPPER_MAGIC {
        return Vec::new();
    }
    let container = u64::from(wrapper[2]) | u64::from(wrapper[3]) << 32;
    let head = words(container, 4);
    if container == 0 || head[0] != CONTAINER_MAGIC {
        return Vec::new();
    }
    let mut at = container.saturating_add(u64::from(head[1] >> 16));
    let end = at.saturating_add(u64::from(head[2]) | u64::from(head[3]) << 32);
    let mut found = Vec::new();
    while at < end && found.len() < MOST_ENTRIES {
        let entry = words(at, ARCHITECTURE / 4 + 1);
        found.push(entry[ARCHITECTURE / 4] as c_int);
        let body = u64::from(entry[2]) | u64::from(entry[3]) << 32;
        at = at.saturating_add(u64::from(entry[1])).saturating_add(body);
    }
    found
}

fn words(address: u64, count: usize) -> Vec<u32> {
    let read = Raw(address as *mut u32).read(count).unwrap_or_default();
    if read.len() == count { read } else { vec![0; count] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(architecture: u32, length: u32) -> Vec<u32> {
        let mut words = vec![2 | 257 << 16, 64, length, 0, length, 0, 65544, architecture];
        words.resize(16 + length as usize / 4, 0);
        words
    }

    #[test]
    fn architectures_are_read_from_the_binary() {
        let entries = [entry(75, 8), entry(86, 16), entry(120, 8)].concat();
        let length = 4 * entries.len() as u32;
        let container = [vec![CONTAINER_MAGIC, 1 | 16 << 16, length, 0], entries].concat();
        let address = container.as_ptr() as u64;
        let wrapper = [WRAPPER_MAGIC, 1, address as u32, (address >> 32) as u32, 0, 0];
        let handle = register(Address(wrapper.as_ptr() as u64));
        let kernel = Handle(0x1234_5678);
        register_function(handle, kernel, Address(0), std::ptr::null());
        let chosen = |card| architecture_of(kernel, card);
        assert_eq!(
            [chosen(70), chosen(75), chosen(89), chosen(90), chosen(121)],
            [75, 75, 86, 86, 120]
        );
        assert_eq!(architecture_of(Handle(1), 89), 89, "a kernel that nobody registered");
    }
}
