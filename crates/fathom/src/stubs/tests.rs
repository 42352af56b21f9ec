//! Stubs are written, read back with `object`, loaded by a real dynamic loader, and cached.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use object::LittleEndian;
use object::elf::{self as format, FileHeader64};
use object::read::elf::{
    Dyn as _, FileHeader as _, ProgramHeader as _, Rela as _, SectionHeader as _, Sym as _,
    VersionTable,
};

use super::elf::{Library, Undefined};
use super::machine::Machine;
use super::scan::ALWAYS;
use super::write::{REFUSE, Stub, encode};
use super::{Error, REFUSED_SONAME, elf, load, needed_without_scan, preloadable, prepare, store};

const ENDIAN: LittleEndian = LittleEndian;
#[cfg(target_arch = "x86_64")]
const OWN: Machine = Machine::X86_64;
#[cfg(target_arch = "aarch64")]
const OWN: Machine = Machine::Aarch64;
const REFUSED: [&str; 5] = ["cuMemCreate", "cudaMalloc", "ncclAllReduce", "nvmlInit_v2", "cuInit"];

/// Bytes of a library that wants `name`, which must be as long as the name it takes the place of.
fn library_wanting(name: &str, stub: Stub<'_>) -> Vec<u8> {
    assert!(name.len() <= REFUSE.len() && !stub.refused.is_empty());
    let mut bytes = encode(stub);
    let found = bytes.windows(REFUSE.len()).position(|window| window == REFUSE.as_bytes());
    let start = found.expect("a stub with functions imports the refusal");
    bytes[start..start + REFUSE.len()].fill(0);
    bytes[start..start + name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// A cache folder, a phantom, and a torch that needs two libraries and wants `ncclAllGather`.
struct Installation {
    _root: tempfile::TempDir,
    cache: PathBuf,
    phantom: PathBuf,
    torch: PathBuf,
}

impl Installation {
    fn new() -> Installation {
        let root = tempfile::tempdir().unwrap();
        let torch = root.path().join("torch");
        fs::create_dir_all(torch.join("lib")).unwrap();
        let needed = ["libcudart.so.13", "libcurl.so.4", "libnccl.so.2", "libnvfoo.so"];
        let stub = Stub {
            machine: OWN,
            soname: "libtorch_cuda.so",
            needed: &needed,
            refused: &["torch_f"],
        };
        let bytes = library_wanting("ncclAllGather", stub);
        fs::write(torch.join("lib/libtorch_cuda.so"), bytes).unwrap();
        let own = Stub { machine: OWN, soname: "libnvfoo.so", needed: &[], refused: &[] };
        fs::write(torch.join("lib/libnvfoo.so"), encode(own)).unwrap();
        fs::write(torch.join("lib/libscript.so"), "INPUT(-lc)").unwrap();

        let phantom = root.path().join("libfathom_phantom.so");
        let stub =
            Stub { machine: OWN, soname: "libfathom_phantom.so", needed: &[], refused: &[REFUSE] };
        fs::write(&phantom, encode(stub)).unwrap();
        Installation { cache: root.path().join("cache"), phantom, torch, _root: root }
    }

    fn prepare(&self) -> Vec<PathBuf> {
        prepare(&self.cache, &self.phantom, std::slice::from_ref(&self.torch)).unwrap()
    }
}

fn read(path: &Path) -> Library {
    elf::read(path, |_| true).unwrap().expect("a stub is a shared object")
}

fn read_bytes(bytes: &[u8]) -> Library {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read(file.path())
}

fn names(paths: &[PathBuf]) -> Vec<&str> {
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect()
}

#[test]
fn an_empty_stub_has_name_and_dependencies() {
    let needed = ["libfathom_phantom.so", "libc.so.6"];
    let bytes =
        encode(Stub { machine: OWN, soname: "libcuda.so.1", needed: &needed, refused: &[] });
    let library = read_bytes(&bytes);
    assert_eq!(library.soname.as_deref(), Some("libcuda.so.1"));
    assert_eq!(library.needed, needed);
    assert!(library.defined.is_empty() && library.undefined.is_empty());
    assert!(bytes.len() < 1500, "{} bytes", bytes.len());
}

#[test]
fn a_refusing_stub_exports_each_function_once() {
    let twice = [REFUSED, REFUSED].concat();
    let library =
        read_bytes(&encode(Stub { machine: OWN, soname: "libx.so", needed: &[], refused: &twice }));
    let defined: BTreeSet<&str> = library.defined.iter().map(String::as_str).collect();
    assert_eq!(defined, BTreeSet::from(REFUSED));
    assert_eq!(library.defined.len(), REFUSED.len());
    assert_eq!(library.undefined.len(), 1);
    assert_eq!(library.undefined[0].name, REFUSE);
}

#[test]
fn segments_are_what_the_loader_and_the_kernel_want() {
    let all = Machine::ALL.map(|machine| [(machine, &[][..]), (machine, &REFUSED[..])]);
    for (machine, refused) in all.into_iter().flatten() {
        let bytes = encode(Stub { machine, soname: "libx.so", needed: &["liby.so"], refused });
        let header = FileHeader64::<LittleEndian>::parse(&*bytes).unwrap();
        assert_eq!(header.e_machine(ENDIAN), machine.elf());
        let page = if machine == Machine::Aarch64 { 65_536 } else { 4096 };
        let segments = header.program_headers(ENDIAN, &*bytes).unwrap();
        let mut last_page = None;
        for segment in segments.iter().filter(|s| s.p_type(ENDIAN) == format::PT_LOAD) {
            let (start, size) = (segment.p_vaddr(ENDIAN), segment.p_memsz(ENDIAN));
            assert_eq!(segment.p_align(ENDIAN), page);
            assert_eq!(start % page, segment.p_offset(ENDIAN) % page);
            assert!(segment.p_offset(ENDIAN) + size <= bytes.len() as u64);
            assert!(last_page < Some(start / page), "segments share a page of memory");
            last_page = Some((start + size - 1) / page);
            let flags = segment.p_flags(ENDIAN);
            assert!(!(flags.contains(format::PF_W) && flags.contains(format::PF_X)));
        }
        let stack = segments.iter().find(|s| s.p_type(ENDIAN) == format::PT_GNU_STACK).unwrap();
        assert!(!stack.p_flags(ENDIAN).contains(format::PF_X));
        let dynamic = segments.iter().find_map(|s| s.dynamic(ENDIAN, &*bytes).unwrap()).unwrap();
        for forbidden in [format::DT_INIT, format::DT_INIT_ARRAY, format::DT_TEXTREL] {
            assert!(dynamic.iter().all(|entry| entry.tag(ENDIAN) != forbidden));
        }
    }
}

/// From an address and the code there: what is passed, and where the slot is.
type Follow = fn(u64, &[u8]) -> [u64; 2];

/// Follows what the loader and the processor follow, from a name to the name that is passed on.
#[test]
fn a_thunk_passes_its_own_name_through_the_slot() {
    for machine in Machine::ALL {
        let many: Vec<String> = (0..300).map(|index| format!("cuFunction{index}")).collect();
        let refused: Vec<&str> = many.iter().map(String::as_str).collect();
        let bytes = encode(Stub { machine, soname: "libx.so", needed: &[], refused: &refused });
        let header = FileHeader64::<LittleEndian>::parse(&*bytes).unwrap();
        let sections = header.sections(ENDIAN, &*bytes).unwrap();
        let symbols = sections.symbols(ENDIAN, &*bytes, format::SHT_DYNSYM).unwrap();
        let (hash, _) = sections.gnu_hash(ENDIAN, &*bytes).unwrap().unwrap();
        let versions = VersionTable::default();
        let relocations =
            sections.iter().find_map(|section| section.rela(ENDIAN, &*bytes).unwrap());
        let (relocations, _) = relocations.unwrap();
        let slot = relocations[0].r_offset(ENDIAN);
        let (follow, kind): (Follow, _) = match machine {
            Machine::X86_64 => (follow_x86_64, format::R_X86_64_GLOB_DAT),
            Machine::Aarch64 => (follow_aarch64, format::R_AARCH64_GLOB_DAT),
        };
        assert_eq!(relocations[0].r_type(ENDIAN, false), kind);
        assert_eq!(relocations[0].r_sym(ENDIAN, false), 1);
        for name in refused {
            let wanted = format::gnu_hash(name.as_bytes());
            let found = hash.find(ENDIAN, name.as_bytes(), wanted, None, &symbols, &versions);
            let address = found.expect(name).1.st_value(ENDIAN);
            let [passed, jumped] = follow(address, &bytes[address as usize..]);
            let text = format!("{name}\0");
            assert_eq!(&bytes[passed as usize..][..text.len()], text.as_bytes(), "{machine:?}");
            assert_eq!(jumped, slot, "{machine:?}");
        }
    }
}

/// The address that is passed, and that of the slot, of `lea rdi, …; jmp …`.
fn follow_x86_64(address: u64, code: &[u8]) -> [u64; 2] {
    assert_eq!((&code[..3], &code[7..9]), (&[0x48, 0x8d, 0x3d][..], &[0xff, 0x25][..]));
    let at = |at: usize| i64::from(i32::from_le_bytes(code[at..at + 4].try_into().unwrap()));
    [7 + at(3), 13 + at(9)].map(|distance| address.checked_add_signed(distance).unwrap())
}

/// The same of `adrp x0; add x0; adrp x16; ldr x16; br x16`.
fn follow_aarch64(address: u64, code: &[u8]) -> [u64; 2] {
    let word = |at: usize| u32::from_le_bytes(code[4 * at..][..4].try_into().unwrap());
    let page = |at: usize| {
        let code = word(at);
        assert_eq!(code & 0x9f00_0000, 0x9000_0000, "adrp");
        let number = (code >> 5 & 0x7_ffff) << 2 | code >> 29 & 3;
        // 21 bits with a sign.
        let pages = i64::from((number << 11) as i32 >> 11);
        ((address + 4 * at as u64) & !0xfff).wrapping_add_signed(pages << 12)
    };
    let low = |at: usize| u64::from(word(at) >> 10 & 0xfff);
    let registers = [0, 1, 2, 3].map(|at| word(at) & 0x1f);
    assert_eq!(registers, [0, 0, 16, 16]);
    assert_eq!((word(1) >> 22, word(3) >> 22, word(4)), (0x244, 0x3e5, 0xd61f_0200));
    [page(0) + low(1), page(2) + 8 * low(3)]
}

/// A tree of packages may hold files for another machine.
#[test]
fn libraries_for_another_machine_are_passed_over() {
    let installation = Installation::new();
    let other = Machine::ALL.into_iter().find(|machine| *machine != OWN).unwrap();
    let needed = ["libcufftw.so.11"];
    let foreign =
        Stub { machine: other, soname: "liba.so", needed: &needed, refused: &["torch_g"] };
    fs::write(installation.torch.join("lib/liba.so"), encode(foreign)).unwrap();
    assert!(!names(&installation.prepare()).contains(&"libcufftw.so.11"));
    // A phantom that is built for it gets stubs for it.
    let phantom =
        Stub { machine: other, soname: "libfathom_phantom.so", needed: &[], refused: &[REFUSE] };
    fs::write(&installation.phantom, encode(phantom)).unwrap();
    let stubs = installation.prepare();
    assert!(names(&stubs).contains(&"libcufftw.so.11"));
    assert!(stubs.iter().all(|stub| read(stub).machine == Some(other)));
}

#[test]
fn a_real_library_names_the_providers_of_its_symbols() {
    let library = read(&std::env::current_exe().unwrap());
    assert!(library.needed.iter().any(|name| name == "libc.so.6"));
    let of_libc = |symbol: &Undefined| symbol.library.as_deref() == Some("libc.so.6");
    assert!(library.undefined.iter().any(of_libc));
}

#[test]
fn what_is_no_shared_object_is_passed_over_and_what_is_damaged_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libx.so");
    for bytes in [&b""[..], b"\x7fEL", b"INPUT(-lc)", b"\x7fELF\x01\x01 32 bits"] {
        fs::write(&path, bytes).unwrap();
        assert!(elf::read(&path, |_| true).unwrap().is_none());
    }
    let bytes = encode(Stub { machine: OWN, soname: "libx.so", needed: &[], refused: &REFUSED });
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = elf::read(&path, |_| true).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` is a damaged shared object", path.display()));
}

#[test]
fn prepared_stubs_cover_what_torch_needs() {
    let installation = Installation::new();
    let stubs = installation.prepare();
    let mut expected = [&ALWAYS[..], &["libcudart.so.13", "libnccl.so.2"]].concat();
    expected.sort_unstable();
    expected.insert(0, REFUSED_SONAME);
    assert_eq!(names(&stubs), expected);
    for stub in &stubs {
        let library = read(stub);
        assert_eq!(library.soname.as_deref(), stub.file_name().unwrap().to_str());
        assert_eq!(library.needed[0], "libfathom_phantom.so");
        let refuses = names(std::slice::from_ref(stub)) == [REFUSED_SONAME];
        assert_eq!(library.defined, if refuses { &["ncclAllGather"][..] } else { &[] });
    }
    assert_eq!(installation.prepare(), stubs);
}

#[test]
fn without_packages_the_known_names_are_covered() {
    let installation = Installation::new();
    let stubs = prepare(&installation.cache, &installation.phantom, &[]).unwrap();
    assert_eq!(&names(&stubs)[1..], needed_without_scan());
    assert!(needed_without_scan().is_sorted());
}

#[test]
fn a_damaged_cache_is_rebuilt() {
    let installation = Installation::new();
    let stubs = installation.prepare();
    let folder = stubs[0].parent().unwrap();
    let manifest = folder.join("manifest");
    let intact = fs::read(&stubs[1]).unwrap();

    let mut flipped = intact.clone();
    flipped[70] ^= 1;
    let truncated = &fs::read(&manifest).unwrap()[..40];
    for (path, bytes) in
        [(&stubs[1], &flipped[..]), (&stubs[1], &[]), (&manifest, truncated), (&manifest, &[])]
    {
        fs::write(path, bytes).unwrap();
        assert_eq!(load(folder), None);
        assert_eq!(installation.prepare(), stubs);
        assert_eq!(fs::read(&stubs[1]).unwrap(), intact);
        assert_eq!(load(folder).as_ref(), Some(&stubs));
    }
    fs::remove_file(&stubs[2]).unwrap();
    assert_eq!(installation.prepare(), stubs);
    let n_files = fs::read_dir(folder).unwrap().count();
    assert_eq!(n_files, stubs.len() + 1, "a draft was left behind");
}

#[test]
fn another_torch_or_phantom_gets_another_folder() {
    let installation = Installation::new();
    let mut seen = BTreeSet::from([installation.prepare()]);
    let earlier = SystemTime::now() - Duration::from_secs(60);
    for path in [&installation.phantom, &installation.torch.join("lib/libtorch_cuda.so")] {
        File::options().write(true).open(path).unwrap().set_modified(earlier).unwrap();
        assert!(seen.insert(installation.prepare()));
    }
    fs::remove_file(installation.torch.join("lib/libnvfoo.so")).unwrap();
    assert!(seen.insert(installation.prepare()));
}

#[test]
fn launches_at_the_same_time_agree() {
    let installation = Installation::new();
    let all: Vec<Vec<PathBuf>> = thread::scope(|scope| {
        let launches: Vec<_> = (0..8).map(|_| scope.spawn(|| installation.prepare())).collect();
        launches.into_iter().map(|launch| launch.join().unwrap()).collect()
    });
    assert!(all.iter().all(|stubs| *stubs == all[0]));
    assert_eq!(load(all[0][0].parent().unwrap()).as_ref(), Some(&all[0]));
}

#[test]
fn folders_that_cannot_be_preloaded_are_refused() {
    let installation = Installation::new();
    for name in ["with space", "with:colon", "with$LIB"] {
        let cache = installation.cache.join(name);
        assert!(!preloadable(&cache));
        let error = prepare(&cache, &installation.phantom, &[]).unwrap_err();
        assert!(matches!(error, Error::Unpreloadable { .. }));
        assert!(!cache.exists());
    }
}

#[test]
fn errors_name_the_file() {
    let installation = Installation::new();
    let nowhere = installation.torch.join("nowhere");
    let missing = format!("cannot read `{}`", nowhere.display());
    let error = prepare(&installation.cache, &nowhere, &[]).unwrap_err();
    assert_eq!(error.to_string(), missing);
    let packages = std::slice::from_ref(&nowhere);
    let error = prepare(&installation.cache, &installation.phantom, packages).unwrap_err();
    assert_eq!(error.to_string(), missing);

    let other = installation.torch.join("lib/libnvfoo.so");
    let error = prepare(&installation.cache, &other, &[]).unwrap_err();
    let expected =
        format!("`{}` is not the phantom: it has no function `fathom_refuse`", other.display());
    assert_eq!(error.to_string(), expected);
}

/// The refusal is replaced by libc's `strdup`, so that a refusing function returns the name it
/// passes on.
#[test]
fn a_real_loader_finds_functions_through_a_stub() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let refusing =
        Stub { machine: OWN, soname: "librefused.so", needed: &["libc.so.6"], refused: &REFUSED };
    let refusing = write("librefused.so", library_wanting("strdup", refusing));
    let needed = ["libc.so.6", "librefused.so"];
    let empty = Stub { machine: OWN, soname: "libcuda.so.1", needed: &needed, refused: &[] };
    let empty = write("libcuda.so.1", encode(empty));

    let script = "
import ctypes
cuda = ctypes.CDLL('libcuda.so.1')
cuda.nvmlInit_v2.restype = ctypes.c_char_p
print(cuda.nvmlInit_v2().decode(), hasattr(cuda, 'getpid'), hasattr(cuda, 'cuUnheardOf'))
";
    let mut python = Command::new("python3");
    python.args(["-c", script]).env("LD_PRELOAD", format!("{refusing}:{empty}"));
    match python.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.stdout, b"nvmlInit_v2 True False\n", "{}: {said}", output.status);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Written past the test harness, which hides what passing tests print.
            writeln!(io::stderr(), "SKIPPED: no python3 here, so no stub was loaded").unwrap();
        }
        Err(error) => panic!("cannot start python3: {error}"),
    }
}

#[test]
fn drafts_that_a_killed_launch_left_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let old = SystemTime::now() - Duration::from_secs(3600);
    for name in ["liba.so.4711-3", "libb.so.4711-4", "libc.so.12", "my-notes"] {
        let file = File::create(at(name)).unwrap();
        if name != "libb.so.4711-4" {
            file.set_modified(old).unwrap();
        }
    }
    store(folder.path(), &[]).unwrap();
    assert!(!at("liba.so.4711-3").exists(), "left behind");
    for name in ["libb.so.4711-4", "libc.so.12", "my-notes"] {
        assert!(at(name).exists(), "{name}");
    }
}
