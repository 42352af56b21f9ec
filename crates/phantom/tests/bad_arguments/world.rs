//! What arguments are drawn from: memory of this process that can and cannot be reached, numbers at
//! the edges, and whatever earlier calls gave.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::null_mut;

/// Room that a valid pointer leads to; behind it is a page that nobody may touch.
const ROOM: usize = 64 << 10;

/// How many results of earlier calls are remembered.
const REMEMBERED: usize = 256;

/// A text of the phantom's is written there. It lies among memory of this process that nobody should
/// write to, which no driver could know: not an argument of later calls.
pub const TEXT: &str = "text";

/// Random numbers that are the same in every run (SplitMix64).
pub struct Dice(u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

pub struct World {
    pub dice: Dice,
    /// End of the room.
    end: usize,
    /// A page that can be read and not written, one that was unmapped, one without any rights.
    walls: [usize; 3],
    /// Results of earlier calls: addresses, handles, sizes.
    seen: Vec<u64>,
    ever_seen: BTreeSet<u64>,
    /// Where the valid pointers of this call lead, how many bytes are written there, and what type of
    /// handle they are, if any.
    written: Vec<(usize, usize, Option<&'static str>)>,
    /// Handles by their type: those that were given out and may be alive, and those that have ended.
    handles: BTreeMap<&'static str, Handles>,
    /// Handles that end if this call succeeds.
    ending: Vec<(&'static str, u64)>,
    /// Why this call must not succeed.
    pub must_fail: Option<String>,
}

#[derive(Default)]
struct Handles {
    given: BTreeSet<u64>,
    ended: BTreeSet<u64>,
}

/// The low bytes of a number.
fn low(value: u64, bytes: usize) -> u64 {
    if bytes < 8 { value & ((1 << (8 * bytes)) - 1) } else { value }
}

fn map(bytes: usize, rights: i32) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let address = unsafe { libc::mmap(null_mut(), bytes, rights, flags, -1, 0) };
    assert_ne!(address, libc::MAP_FAILED);
    address as usize
}

impl World {
    pub fn new(seed: u64) -> World {
        let room = map(ROOM + 4096, libc::PROT_READ | libc::PROT_WRITE);
        let gone = map(4096, libc::PROT_READ);
        // SAFETY: both ranges were mapped above.
        unsafe {
            libc::mprotect((room + ROOM) as *mut libc::c_void, 4096, libc::PROT_NONE);
            libc::munmap(gone as *mut libc::c_void, 4096);
        }
        let walls = [map(4096, libc::PROT_READ), gone, map(4096, libc::PROT_NONE)];
        World {
            dice: Dice(seed),
            end: room + ROOM,
            walls,
            seen: Vec::new(),
            ever_seen: BTreeSet::new(),
            written: Vec::new(),
            handles: BTreeMap::new(),
            ending: Vec::new(),
            must_fail: None,
        }
    }

    /// Before a call: the room holds zeros, small numbers, results of earlier calls, or anything.
    pub fn prepare(&mut self) {
        self.written.clear();
        self.ending.clear();
        self.must_fail = None;
        let kind = self.dice.below(4);
        for place in (self.end - 4096..self.end).step_by(8) {
            let word = match kind {
                0 => 0,
                1 => self.dice.below(8) as u64,
                2 => self.earlier(),
                _ => self.dice.next(),
            };
            // SAFETY: inside the room.
            unsafe { (place as *mut u64).write(word) };
        }
    }

    /// After a call that succeeded: what it wrote may be an argument of later ones.
    pub fn remember(&mut self) {
        for (place, bytes, kind) in std::mem::take(&mut self.written) {
            // SAFETY: inside the room.
            let value = unsafe { (place as *const u64).read_unaligned() };
            let value = low(value, bytes);
            if kind == Some(TEXT) {
                continue;
            }
            if self.seen.len() == REMEMBERED {
                let index = self.dice.below(REMEMBERED);
                self.seen.swap_remove(index);
            }
            self.seen.push(value);
            self.ever_seen.insert(value);
            if let Some(kind) = kind {
                self.handles.entry(kind).or_default().given.insert(value);
            }
        }
        for (kind, value) in std::mem::take(&mut self.ending) {
            self.handles.entry(kind).or_default().ended.insert(value);
        }
    }

    /// A handle of a type, mostly one that was given out; also one of another type, one that has ended,
    /// and any number. Whether it can be alive decides whether the call may succeed.
    pub fn handle(&mut self, kind: &'static str, same: &[&'static str], bytes: usize) -> u64 {
        let of = |handles: &BTreeMap<&'static str, Handles>, name: &str| -> Vec<u64> {
            handles.get(name).map(|all| all.given.iter().copied().collect()).unwrap_or_default()
        };
        let own = of(&self.handles, kind);
        let others: Vec<&'static str> = self.handles.keys().copied().collect();
        let value = match self.dice.below(8) {
            0..5 if !own.is_empty() => self.dice.choose(&own),
            5 if !others.is_empty() => {
                let other = self.dice.choose(&others);
                let others = of(&self.handles, other);
                if others.is_empty() { 0 } else { self.dice.choose(&others) }
            }
            6 => self.address(),
            _ => self.number(),
        };
        let value = low(value, bytes);
        let may_live = std::iter::once(&kind).chain(same).any(|name| {
            let all = self.handles.get(name);
            all.is_some_and(|all| all.given.contains(&value) && !all.ended.contains(&value))
        });
        if !may_live {
            self.must_fail = Some(format!("{value:#x} is no live {kind}"));
        }
        value
    }

    /// A handle that the call brings to its end.
    pub fn ends(&mut self, kind: &'static str, value: u64) {
        self.ending.push((kind, value));
    }

    /// Whether some call gave this.
    pub fn was_seen(&self, value: u64) -> bool {
        self.ever_seen.contains(&value)
    }

    /// Whether an address lies in the room.
    pub fn is_room(&self, address: u64) -> bool {
        (self.end - ROOM..self.end).contains(&(address as usize))
    }

    /// A result of an earlier call.
    pub fn earlier(&mut self) -> u64 {
        if self.seen.is_empty() {
            return 0;
        }
        let index = self.dice.below(self.seen.len());
        self.seen[index]
    }

    /// A pointer to at least `bytes` of room, which then ends; for a handle of some type.
    pub fn room(&mut self, bytes: usize, kind: Option<&'static str>) -> usize {
        let spare = self.dice.choose(&[0, 0, 8, 64, 1024]);
        let place = self.end - bytes.max(8).next_multiple_of(8) - spare;
        self.written.push((place, bytes, kind));
        place
    }

    /// An address that nothing good lies at.
    pub fn nowhere(&mut self) -> usize {
        let [read_only, gone, forbidden] = self.walls;
        let places = [
            0,
            1,
            2,
            8,
            4095,
            read_only,
            gone,
            gone + 8,
            forbidden,
            0x7fff_ffff_f000,
            0x8000_0000_0000,
            0xffff_8000_0000_0000,
            usize::MAX,
            usize::MAX - 7,
        ];
        self.dice.choose(&places)
    }

    /// A number: small, at an edge, an earlier result, or anything.
    pub fn number(&mut self) -> u64 {
        let edges = [
            1 << 10,
            1 << 20,
            512 << 10,
            (512 << 10) + 1,
            2 << 20,
            1 << 31,
            (1 << 31) - 1,
            u64::from(u32::MAX),
            1 << 40,
            1 << 44,
            1 << 62,
            i64::MAX as u64,
            1 << 63,
            u64::MAX - 511,
            u64::MAX - 1,
            u64::MAX,
        ];
        match self.dice.below(8) {
            0..4 => self.dice.below(20) as u64,
            4 => self.dice.choose(&edges),
            5 => self.earlier(),
            6 => self.dice.next() >> self.dice.below(64),
            _ => 0,
        }
    }

    /// An address of any kind: of the host, of a card, at the edge of either, or of nothing.
    pub fn address(&mut self) -> u64 {
        match self.dice.below(8) {
            0..3 => self.earlier(),
            3 => self.earlier().wrapping_add(self.number()),
            4 | 5 => self.room(64, None) as u64,
            6 => self.nowhere() as u64,
            _ => self.number(),
        }
    }
}
