//! Whose names are NVIDIA's, and which of what packages want and bring along is replaced.

use std::path::PathBuf;

use super::super::elf::{Library, Undefined};
use super::super::needed_without_scan;
use super::{ALWAYS, LibraryFile, gather, is_nvidia_soname, is_nvidia_symbol};

#[test]
fn names_are_told_apart() {
    for soname in needed_without_scan() {
        assert!(is_nvidia_soname(soname), "{soname}");
    }
    let others =
        ["libcurl.so.4", "libcurl-gnutls.so.4", "libcups.so.2", "libc.so.6", "libcaffe2_nvrtc.so"];
    let broken = ["libcu da.so.1", "libcuda:.so", "libcu/../x.so"];
    for soname in others.into_iter().chain(broken) {
        assert!(!is_nvidia_soname(soname), "{soname}");
    }
    for symbol in [
        "cuMemCreate",
        "cuFileRead",
        "cudaMalloc",
        "__cudaRegisterFatBinary",
        "cublasLtMatmul",
        "cusparseLtInit",
        "ncclAllReduce",
        "nvmlInit_v2",
        "nvshmemx_get_uniqueid",
    ] {
        assert!(is_nvidia_symbol(symbol), "{symbol}");
    }
    for symbol in ["curl_easy_init", "cups_open", "custom", "nvte_gelu", "cuda_launch", "ncclx"] {
        assert!(!is_nvidia_symbol(symbol), "{symbol}");
    }
}

/// A library of the package with this index.
fn file(package: usize, name: &str) -> LibraryFile {
    LibraryFile { path: PathBuf::from(name), package, size: 0, modified: (0, 0) }
}

fn wants(symbols: &[(&str, Option<&str>)], needed: &[&str]) -> Library {
    let undefined = symbols.iter().map(|(name, library)| Undefined {
        name: (*name).to_owned(),
        library: library.map(str::to_owned),
    });
    let needed = needed.iter().map(|name| (*name).to_owned()).collect();
    Library { undefined: undefined.collect(), needed, ..Library::default() }
}

fn gives(soname: &str, symbols: &[&str]) -> Library {
    let defined = symbols.iter().map(|name| (*name).to_owned()).collect();
    Library { soname: Some(soname.to_owned()), defined, ..Library::default() }
}

#[test]
fn symbols_belong_to_the_library_of_their_version() {
    let torch = file(0, "libtorch_cuda.so");
    let symbols = [
        ("odd_name", Some("libcudart.so.13")),
        ("memcpy", Some("libc.so.6")),
        ("ncclSend", None),
        ("curl_easy_init", None),
    ];
    let wanted = gather(&[(&torch, wants(&symbols, &["libcudart.so.13", "libc.so.6"]))]);
    let sonames = ALWAYS.iter().chain(&["libcudart.so.13"]).map(|name| (*name).to_owned());
    assert_eq!(wanted.sonames, sonames.collect());
    assert_eq!(wanted.symbols, ["ncclSend", "odd_name"].map(str::to_owned).into());
}

#[test]
fn what_a_package_brings_along_is_not_replaced_unless_another_needs_it() {
    let (user, copy) = (file(0, "libuser.so"), file(0, "libcufft.so.11"));
    let symbols = [("cufftPlan1d", Some("libcufft.so.11"))];
    let package = || wants(&symbols, &["libcufft.so.11"]);
    let bundled = || gives("libcufft.so.11", &["cufftPlan1d"]);
    let wanted = gather(&[(&user, package()), (&copy, bundled())]);
    assert!(!wanted.sonames.contains("libcufft.so.11"));
    assert!(wanted.symbols.is_empty());

    let torch = file(1, "libtorch_cuda.so");
    let wanted = gather(&[(&user, package()), (&copy, bundled()), (&torch, package())]);
    assert!(wanted.sonames.contains("libcufft.so.11"));
    assert!(wanted.symbols.contains("cufftPlan1d"), "the copy hides behind the stub");
}

#[test]
fn what_another_package_defines_is_not_refused() {
    let (user, engine) = (file(0, "libuser.so"), file(1, "libengine.so"));
    let library = wants(&[("cudaEngineStart", None), ("cuInit", None)], &[]);
    let wanted =
        gather(&[(&user, library), (&engine, gives("libengine.so", &["cudaEngineStart"]))]);
    assert_eq!(wanted.symbols, ["cuInit"].map(str::to_owned).into());
}
