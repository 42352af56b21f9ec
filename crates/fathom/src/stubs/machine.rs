//! What the stubs of each kind of processor have of their own.

use object::elf;

/// A kind of processor that torch has CUDA builds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    pub(super) const ALL: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

    /// The one that this program, and so its phantom, is built for.
    pub(crate) fn own() -> Option<Machine> {
        Machine::of_name(std::env::consts::ARCH)
    }

    /// By the name that `uname -m` and Python have for it.
    pub(crate) fn of_name(name: &str) -> Option<Machine> {
        Machine::ALL.into_iter().find(|machine| machine.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
        }
    }

    pub(super) fn of_elf(number: elf::Machine) -> Option<Machine> {
        Machine::ALL.into_iter().find(|machine| machine.elf() == number)
    }

    pub(super) fn elf(self) -> elf::Machine {
        match self {
            Machine::X86_64 => elf::EM_X86_64,
            Machine::Aarch64 => elf::EM_AARCH64,
        }
    }

    /// The largest page that a kernel for it may have: segments must not share one. Servers with ARM have 64 KiB.
    pub(super) fn page(self) -> u64 {
        match self {
            Machine::X86_64 => 4096,
            Machine::Aarch64 => 65_536,
        }
    }

    /// "Put the address of this symbol here."
    pub(super) fn address_of_symbol(self) -> elf::RelocationType {
        match self {
            Machine::X86_64 => elf::R_X86_64_GLOB_DAT,
            Machine::Aarch64 => elf::R_AARCH64_GLOB_DAT,
        }
    }

    pub(super) fn thunk_size(self) -> u64 {
        match self {
            Machine::X86_64 => 16,
            Machine::Aarch64 => 32,
        }
    }

    /// A function at an address: its first argument becomes the address of a name, then it goes on where the slot says.
    pub(super) fn thunk(self, address: u64, name: u64, slot: u64) -> Vec<u8> {
        match self {
            Machine::X86_64 => thunk_x86_64(address, name, slot),
            Machine::Aarch64 => thunk_aarch64(address, name, slot),
        }
    }
}

/// `lea rdi, [rip + name]; jmp [rip + slot]`, filled up with breakpoints.
fn thunk_x86_64(address: u64, name: u64, slot: u64) -> Vec<u8> {
    let lea_end = address + 7;
    let jmp_end = lea_end + 6;
    let mut bytes = vec![0x48, 0x8d, 0x3d];
    bytes.extend(distance(lea_end, name));
    bytes.extend([0xff, 0x25]);
    bytes.extend(distance(jmp_end, slot));
    bytes.resize(Machine::X86_64.thunk_size() as usize, 0xcc);
    bytes
}

fn distance(from: u64, to: u64) -> [u8; 4] {
    let distance = i32::try_from(to as i64 - from as i64);
    distance.expect("a stub is far smaller than 2 GiB").to_le_bytes()
}

/// `adrp x0, name; add x0, x0, :lo12:name; adrp x16, slot; ldr x16, [x16, :lo12:slot]; br x16`, and breakpoints.
fn thunk_aarch64(address: u64, name: u64, slot: u64) -> Vec<u8> {
    const BREAKPOINT: u32 = 0xd420_0000;
    let low = |to: u64| (to & 0xfff) as u32;
    assert!(slot.is_multiple_of(8), "the slot holds an address");
    let mut code = vec![
        page_of(address, name, 0),
        0x9100_0000 | low(name) << 10,
        page_of(address + 8, slot, 16),
        0xf940_0000 | (low(slot) / 8) << 10 | 16 << 5 | 16,
        0xd61f_0000 | 16 << 5,
    ];
    code.resize(Machine::Aarch64.thunk_size() as usize / 4, BREAKPOINT);
    code.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// `adrp`: the 4 KiB in which an address lies, counted from those of the instruction.
fn page_of(address: u64, to: u64, register: u32) -> u32 {
    let pages = (to >> 12) as i64 - (address >> 12) as i64;
    let pages = i32::try_from(pages).expect("a stub is far smaller than 4 GiB") as u32 & 0x1f_ffff;
    0x9000_0000 | (pages & 3) << 29 | (pages >> 2) << 5 | register
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_system() {
        assert_eq!(Machine::of_name("aarch64"), Some(Machine::Aarch64));
        assert_eq!(Machine::of_name("arm64"), None, "that is a Mac");
        assert!(Machine::own().is_some());
    }

    /// As LLVM's assembler and linker make them.
    #[test]
    fn instructions_of_arm_are_encoded_as_the_manual_says() {
        let words = |bytes: Vec<u8>| -> Vec<u32> {
            bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
        };
        // adrp x0, 0; add x0, x0, #0x234; adrp x16, 0x12000; ldr x16, [x16, #1288]; br x16; brk #0
        let near = words(thunk_aarch64(0x1000, 0x234, 0x12508));
        assert_eq!(near[..2], [0xf0ff_ffe0, 0x9108_d000]);
        assert_eq!(
            near[2..],
            [0xb000_0090, 0xf942_8610, 0xd61f_0200, 0xd420_0000, 0xd420_0000, 0xd420_0000]
        );
    }
}
