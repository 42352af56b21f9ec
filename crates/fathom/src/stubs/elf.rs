//! Reads what the dynamic loader would read of one shared object: its name, the libraries it needs,
//! the functions it wants and gives. Only headers and dynamic tables are read, never the code, so
//! half a gigabyte costs milliseconds.

// What is read here may come from anyone.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs::File;
use std::path::Path;

use object::elf::{self, FileHeader64, Sym64};
use object::read::elf::{
    FileHeader as _, SectionHeader as _, SectionTable, Sym as _, VersionTable,
};
use object::read::{ReadCache, ReadRef, StringTable, SymbolIndex};
use object::{LittleEndian, read};

use super::Error;
use super::machine::Machine;

type Header = FileHeader64<LittleEndian>;
type Data<'data> = &'data ReadCache<File>;
type Symbol = Sym64<LittleEndian>;
type Strings<'data> = StringTable<'data, &'data [u8]>;

const ENDIAN: LittleEndian = LittleEndian;

/// The dynamic side of one shared object.
#[derive(Debug, Default)]
pub(super) struct Library {
    /// What it runs on.
    pub(super) machine: Option<Machine>,
    /// `DT_SONAME`: the name under which the loader remembers it.
    pub(super) soname: Option<String>,
    /// `DT_NEEDED`, in file order.
    pub(super) needed: Vec<String>,
    /// Functions and data it wants from others; weak wishes are left out, the loader leaves them
    /// null.
    pub(super) undefined: Vec<Undefined>,
    /// Functions and data it gives to others.
    pub(super) defined: Vec<String>,
}

/// One symbol that must come from another library.
#[derive(Debug)]
pub(super) struct Undefined {
    /// The symbol's name, without its version.
    pub(super) name: String,
    /// The library that the symbol's version ties it to, if it has a version.
    pub(super) library: Option<String>,
}

/// Reads `path`, keeping the names that pass `keep`; `None` when it is no shared object of a machine that we know.
pub(super) fn read(path: &Path, keep: fn(&str) -> bool) -> Result<Option<Library>, Error> {
    let file = File::open(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let cache = ReadCache::new(file);
    let damaged = |source| Error::Damaged { path: path.into(), source };
    if !is_elf64(&cache) {
        return Ok(None);
    }
    let header = Header::parse(&cache).map_err(damaged)?;
    let machine = Machine::of_elf(header.e_machine(ENDIAN));
    if machine.is_none() || header.e_type(ENDIAN) != elf::ET_DYN {
        return Ok(None);
    }
    let library = read_library(header, &cache, keep).map_err(damaged)?;
    Ok(Some(Library { machine, ..library }))
}

fn is_elf64(data: Data<'_>) -> bool {
    let little_endian_elf64 = [0x7f, b'E', b'L', b'F', 2, 1];
    data.read_bytes_at(0, 6).is_ok_and(|start| start == little_endian_elf64)
}

fn read_library<'data>(
    header: &Header,
    data: Data<'data>,
    keep: fn(&str) -> bool,
) -> read::Result<Library> {
    let sections = header.sections(ENDIAN, data)?;
    let mut library = Library::default();
    let dynamic = sections.dynamic_table(ENDIAN, data)?;
    for entry in dynamic.iter() {
        if entry.tag == elf::DT_SONAME {
            library.soname = Some(text(dynamic.string(entry)?));
        } else if entry.tag == elf::DT_NEEDED {
            library.needed.push(text(dynamic.string(entry)?));
        }
    }
    let versions = sections.versions(ENDIAN, data)?.unwrap_or_default();
    let (symbols, strings) = dynamic_symbols(&sections, data)?;
    for (index, symbol) in symbols.iter().enumerate() {
        if symbol.is_local() {
            continue;
        }
        let Ok(name) = str::from_utf8(symbol.name(ENDIAN, strings)?) else { continue };
        if !symbol.is_undefined(ENDIAN) {
            if keep(name) && is_visible(symbol) {
                library.defined.push(name.to_owned());
            }
        } else if !symbol.is_weak() {
            let provider = provider(&versions, SymbolIndex(index))?.map(text);
            if provider.is_some() || keep(name) {
                library.undefined.push(Undefined { name: name.to_owned(), library: provider });
            }
        }
    }
    Ok(library)
}

/// The dynamic symbols, and their strings read at once: a read per name would be a system call per
/// symbol.
fn dynamic_symbols<'data>(
    sections: &SectionTable<'data, Header, Data<'data>>,
    data: Data<'data>,
) -> read::Result<(&'data [Symbol], Strings<'data>)> {
    let Some(table) = sections.iter().find(|s| s.sh_type(ENDIAN) == elf::SHT_DYNSYM) else {
        return Ok((&[], Strings::default()));
    };
    let strings = sections.section(table.link(ENDIAN))?.data(ENDIAN, data)?;
    let symbols = table.data_as_array(ENDIAN, data)?;
    Ok((symbols, Strings::new(strings, 0, strings.len() as u64)))
}

fn is_visible(symbol: &Symbol) -> bool {
    [elf::STV_DEFAULT, elf::STV_PROTECTED].contains(&symbol.st_visibility())
}

/// The library named by the version of the symbol at `index`.
fn provider<'data>(
    versions: &VersionTable<'data, Header>,
    index: SymbolIndex,
) -> read::Result<Option<&'data [u8]>> {
    if versions.is_empty() {
        return Ok(None);
    }
    let version = versions.version(versions.version_index(ENDIAN, index).index())?;
    Ok(version.and_then(|version| version.file()))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
