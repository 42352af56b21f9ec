//! Writes a stub: a shared object with a SONAME, dependencies, and functions that refuse.
//!
//! A refusing function loads the address of its own name and jumps to the phantom's
//! `fathom_refuse`; this is how an x86-64 says it ([`Machine`] has the others):
//!
//! ```text
//!     lea rdi, [rip + name]        the name is its entry in .dynstr
//!     jmp [rip + slot]             filled by the loader with the address of fathom_refuse
//! ```
//!
//! The two segments share file pages, so that a stub takes a kilobyte and not three pages:
//!
//! ```text
//!     file   | headers .gnu.hash .dynsym .dynstr .rela.dyn .text | .dynamic .got   | .shstrtab …
//!     memory | same offset, read (and execute)                   | + a page, write | not loaded
//! ```

use object::Endianness;
use object::elf;
use object::write::StringId;
use object::write::elf::{
    FileHeader, ProgramHeader, Rel, SectionHeader, SectionIndex, Sym, Writer,
};

use super::machine::Machine;

/// The phantom's function that says a name once and returns "not supported".
pub(super) const REFUSE: &str = "fathom_refuse";

const SEGMENTS: u32 = 4;
const SYMBOL_SIZE: u64 = 24;
const RELOCATION_SIZE: u64 = 24;
const SLOT_SIZE: u64 = 8;
const BLOOM_SHIFT: u32 = 6;

/// What a stub is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stub<'a> {
    pub(super) machine: Machine,
    pub(super) soname: &'a str,
    /// SONAMEs that a lookup through this stub's handle goes on to.
    pub(super) needed: &'a [&'a str],
    /// Functions to define, each refusing by its own name.
    pub(super) refused: &'a [&'a str],
}

/// The file offsets of everything, fixed before the first byte is written.
struct Layout {
    machine: Machine,
    hash: HashShape,
    gnu_hash: u64,
    dynsym: u64,
    dynstr: u64,
    relocations: u64,
    text: u64,
    /// Also where the writable segment starts.
    dynamic: u64,
    slot: u64,
    data_end: u64,
    /// Only a stub that refuses something has code, a slot and a relocation.
    code: Option<CodeSections>,
}

impl Layout {
    fn address(&self, offset: u64) -> u64 {
        if offset < self.dynamic { offset } else { offset + self.machine.page() }
    }
}

struct HashShape {
    buckets: u32,
    /// A power of two.
    blooms: u32,
}

struct CodeSections {
    relocations_name: StringId,
    text_name: StringId,
    text_index: SectionIndex,
    slot_name: StringId,
    slot_index: SectionIndex,
}

/// Returns the bytes of a stub; the same description gives the same bytes.
pub(super) fn encode(stub: Stub<'_>) -> Vec<u8> {
    let buckets = (stub.refused.len() as u32 / 2).max(1);
    // The hash table asks for symbols in the order of their buckets.
    let mut refused = stub.refused.to_vec();
    refused.sort_by_key(|name| (elf::gnu_hash(name.as_bytes()) % buckets, *name));
    refused.dedup();
    let stub = Stub { refused: &refused, ..stub };

    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    let layout = reserve(&mut writer, stub, buckets);
    write_headers(&mut writer, &layout);
    write_symbols(&mut writer, stub, &layout);
    write_code(&mut writer, stub, &layout);
    write_dynamic(&mut writer, stub, &layout);
    write_sections(&mut writer, stub, &layout);
    assert_eq!(writer.offset(), writer.reserved_len());
    bytes
}

fn reserve<'a>(writer: &mut Writer<'a>, stub: Stub<'a>, buckets: u32) -> Layout {
    let n_refused = stub.refused.len() as u32;
    let has_code = n_refused > 0;
    let code = reserve_sections(writer, has_code);
    for name in has_code.then_some(&REFUSE).into_iter().chain(stub.refused) {
        writer.reserve_dynamic_symbol_index();
        writer.add_dynamic_string(name.as_bytes());
    }
    for name in stub.needed.iter().chain([&stub.soname]) {
        writer.add_dynamic_string(name.as_bytes());
    }

    writer.reserve_file_header();
    writer.reserve_program_headers(SEGMENTS);
    let blooms = (n_refused / 8).next_power_of_two();
    let gnu_hash = writer.reserve_gnu_hash(blooms, buckets, n_refused);
    let dynsym = writer.reserve_dynsym();
    let dynstr = writer.reserve_dynstr().expect("a stub's strings fit in 4 GiB");
    let relocations = writer.reserve_relocations(usize::from(has_code), true);
    let thunk_size = stub.machine.thunk_size();
    let text_align = if has_code { thunk_size } else { 1 };
    let text = writer.reserve(u64::from(n_refused) * thunk_size, text_align);
    let dynamic = writer.reserve_dynamic(n_dynamic_entries(stub));
    let slot = writer.reserve(if has_code { SLOT_SIZE } else { 0 }, 1);
    let data_end = writer.reserved_len();
    writer.reserve_shstrtab().expect("a stub's section names fit in 4 GiB");
    writer.reserve_section_headers();
    let hash = HashShape { buckets, blooms };
    let machine = stub.machine;
    Layout {
        machine,
        hash,
        gnu_hash,
        dynsym,
        dynstr,
        relocations,
        text,
        dynamic,
        slot,
        data_end,
        code,
    }
}

fn reserve_sections(writer: &mut Writer<'_>, has_code: bool) -> Option<CodeSections> {
    writer.reserve_null_dynamic_symbol_index();
    writer.reserve_gnu_hash_section_index();
    writer.reserve_dynsym_section_index();
    writer.reserve_dynstr_section_index();
    writer.reserve_dynamic_section_index();
    let code = has_code.then(|| {
        let _relocations_index = writer.reserve_section_index();
        CodeSections {
            relocations_name: writer.add_section_name(b".rela.dyn"),
            text_name: writer.add_section_name(b".text"),
            text_index: writer.reserve_section_index(),
            slot_name: writer.add_section_name(b".got"),
            slot_index: writer.reserve_section_index(),
        }
    });
    writer.reserve_shstrtab_section_index();
    code
}

fn write_headers(writer: &mut Writer<'_>, layout: &Layout) {
    let header = FileHeader {
        e_type: elf::ET_DYN,
        e_machine: layout.machine.elf(),
        ..FileHeader::default()
    };
    writer.write_file_header(&header).expect("a vector grows as far as memory goes");
    let page = layout.machine.page();
    let data = layout.data_end - layout.dynamic;
    let dynamic = layout.slot - layout.dynamic;
    let execute = if layout.code.is_some() { elf::PF_X } else { elf::ProgramFlags(0) };
    for (p_type, p_flags, offset, size, p_align) in [
        (elf::PT_LOAD, elf::PF_R | execute, 0, layout.dynamic, page),
        (elf::PT_LOAD, elf::PF_R | elf::PF_W, layout.dynamic, data, page),
        (elf::PT_DYNAMIC, elf::PF_R | elf::PF_W, layout.dynamic, dynamic, SLOT_SIZE),
        (elf::PT_GNU_STACK, elf::PF_R | elf::PF_W, 0, 0, 0),
    ] {
        let address = layout.address(offset);
        writer.write_program_header(&ProgramHeader {
            p_type,
            p_flags,
            p_offset: offset,
            p_vaddr: address,
            p_paddr: address,
            p_filesz: size,
            p_memsz: size,
            p_align,
        });
    }
}

fn write_symbols<'a>(writer: &mut Writer<'a>, stub: Stub<'a>, layout: &Layout) {
    let n_refused = stub.refused.len() as u32;
    let first_hashed = if layout.code.is_some() { 2 } else { 1 };
    let HashShape { buckets, blooms } = layout.hash;
    let hash = |index: u32| elf::gnu_hash(stub.refused[index as usize].as_bytes());
    writer.write_gnu_hash(first_hashed, BLOOM_SHIFT, blooms, buckets, n_refused, hash);

    writer.write_null_dynamic_symbol();
    let Some(code) = &layout.code else {
        writer.write_dynstr();
        return;
    };
    let refuse = Sym {
        section: None,
        st_name: string_offset(writer, REFUSE),
        st_info: elf::STB_GLOBAL | elf::STT_FUNC,
        st_other: elf::STV_DEFAULT.into(),
        st_shndx: elf::SHN_UNDEF,
        st_value: 0,
        st_size: 0,
    };
    writer.write_dynamic_symbol(&refuse);
    for (name, address) in stub.refused.iter().zip(thunks(layout)) {
        writer.write_dynamic_symbol(&Sym {
            section: Some(code.text_index.0),
            st_name: string_offset(writer, name),
            st_value: address,
            st_size: layout.machine.thunk_size(),
            ..refuse.clone()
        });
    }
    writer.write_dynstr();
}

fn write_code<'a>(writer: &mut Writer<'a>, stub: Stub<'a>, layout: &Layout) {
    if layout.code.is_none() {
        return;
    }
    let slot = layout.address(layout.slot);
    writer.write_align_relocation();
    writer.write_relocation(
        true,
        &Rel { r_offset: slot, r_sym: 1, r_type: layout.machine.address_of_symbol(), r_addend: 0 },
    );
    writer.write_align(layout.machine.thunk_size());
    for (name, address) in stub.refused.iter().zip(thunks(layout)) {
        let name = layout.dynstr + u64::from(string_offset(writer, name));
        writer.write(&layout.machine.thunk(address, name, slot));
    }
}

/// The addresses of the refusing functions, one after the other.
fn thunks(layout: &Layout) -> impl Iterator<Item = u64> {
    (layout.text..).step_by(layout.machine.thunk_size() as usize)
}

/// Name, hash, strings and symbols with their sizes, the end, and a relocation's three entries.
fn n_dynamic_entries(stub: Stub<'_>) -> usize {
    7 + stub.needed.len() + if stub.refused.is_empty() { 0 } else { 3 }
}

fn write_dynamic<'a>(writer: &mut Writer<'a>, stub: Stub<'a>, layout: &Layout) {
    let mut entries = vec![(elf::DT_SONAME, u64::from(string_offset(writer, stub.soname)))];
    for name in stub.needed {
        entries.push((elf::DT_NEEDED, u64::from(string_offset(writer, name))));
    }
    entries.push((elf::DT_GNU_HASH, layout.gnu_hash));
    entries.push((elf::DT_STRTAB, layout.dynstr));
    entries.push((elf::DT_SYMTAB, layout.dynsym));
    entries.push((elf::DT_STRSZ, u64::from(writer.dynstr_len())));
    entries.push((elf::DT_SYMENT, SYMBOL_SIZE));
    if layout.code.is_some() {
        entries.push((elf::DT_RELA, layout.relocations));
        entries.push((elf::DT_RELASZ, RELOCATION_SIZE));
        entries.push((elf::DT_RELAENT, RELOCATION_SIZE));
    }
    entries.push((elf::DT_NULL, 0));
    assert_eq!(entries.len(), n_dynamic_entries(stub));

    let offset = writer.write_align_dynamic();
    assert_eq!(offset, layout.dynamic);
    for (tag, value) in entries {
        writer.write_dynamic(tag, value).expect("a 64-bit entry holds any value");
    }
    if layout.code.is_some() {
        writer.write(&[0; SLOT_SIZE as usize]);
    }
}

fn write_sections(writer: &mut Writer<'_>, stub: Stub<'_>, layout: &Layout) {
    writer.write_shstrtab();
    writer.write_null_section_header();
    writer.write_gnu_hash_section_header(layout.gnu_hash);
    writer.write_dynsym_section_header(layout.dynsym, 1);
    writer.write_dynstr_section_header(layout.dynstr);
    writer.write_dynamic_section_header(layout.address(layout.dynamic));
    if let Some(code) = &layout.code {
        write_code_sections(writer, stub, layout, code);
    }
    writer.write_shstrtab_section_header();
}

fn write_code_sections(
    writer: &mut Writer<'_>,
    stub: Stub<'_>,
    layout: &Layout,
    code: &CodeSections,
) {
    let dynsym_index = writer.dynsym_index();
    writer.write_section_header(&SectionHeader {
        sh_name: writer.section_name_offset(Some(code.relocations_name)),
        sh_type: elf::SHT_RELA,
        sh_flags: elf::SHF_ALLOC | elf::SHF_INFO_LINK,
        sh_addr: layout.relocations,
        sh_offset: layout.relocations,
        sh_size: RELOCATION_SIZE,
        sh_link: dynsym_index.0,
        sh_info: code.slot_index.0,
        sh_addralign: 8,
        sh_entsize: RELOCATION_SIZE,
    });
    writer.write_section_header(&SectionHeader {
        sh_name: writer.section_name_offset(Some(code.text_name)),
        sh_type: elf::SHT_PROGBITS,
        sh_flags: elf::SHF_ALLOC | elf::SHF_EXECINSTR,
        sh_addr: layout.text,
        sh_offset: layout.text,
        sh_size: stub.refused.len() as u64 * layout.machine.thunk_size(),
        sh_addralign: layout.machine.thunk_size(),
        ..SectionHeader::default()
    });
    writer.write_section_header(&SectionHeader {
        sh_name: writer.section_name_offset(Some(code.slot_name)),
        sh_type: elf::SHT_PROGBITS,
        sh_flags: elf::SHF_ALLOC | elf::SHF_WRITE,
        sh_addr: layout.address(layout.slot),
        sh_offset: layout.slot,
        sh_size: SLOT_SIZE,
        sh_addralign: SLOT_SIZE,
        sh_entsize: SLOT_SIZE,
        ..SectionHeader::default()
    });
}

fn string_offset<'a>(writer: &Writer<'a>, name: &'a str) -> u32 {
    writer.dynamic_string_offset(Some(writer.get_dynamic_string(name.as_bytes())))
}
