//! The catalogue as a whole: plausible numbers, and a page that shows them.

use std::collections::BTreeSet;
use std::path::Path;

use gpus::{Architecture, Card, Source, cards};

#[test]
fn names_are_unique() {
    let names: BTreeSet<&str> = cards().iter().map(|card| card.name).collect();
    assert_eq!(names.len(), cards().len());
}

#[test]
fn numbers_are_plausible() {
    let implausible: Vec<&str> = cards()
        .iter()
        .filter(|card| {
            let box_bytes = u64::from(card.nominal_gib) << 30;
            let memory = box_bytes * 8 / 10..=box_bytes;
            !memory.contains(&card.memory_bytes)
                || !(64 << 20..=600 << 20).contains(&card.context_bytes)
                || !(8..=192).contains(&card.sm_count)
                || !(1 << 20..=128 << 20).contains(&card.l2_bytes)
                || !(900_000..=3_000_000).contains(&card.clock_khz)
                || !(700_000..=15_100_000).contains(&card.memory_clock_khz)
                || !(64..=8192).contains(&card.memory_bus_bits)
                || card.compute_capability != card.architecture().compute_capability
        })
        .map(|card| card.name)
        .collect();
    assert_eq!(implausible, [""; 0]);
}

/// The line that `sources.txt` speaks of, and the two bounds of the runs with a known total.
#[test]
fn contexts_follow_the_line_and_its_bounds() {
    let line = |card: &Card| (34.0 + 1.86 * card.resident_threads() as f64 / 1024.0).max(105.0);
    for card in cards() {
        let mib = (card.context_bytes >> 20) as f64;
        let is_line =
            matches!(card.context_known, Source::Assumed(reason) if reason.contains("line"));
        let tolerance = if is_line { 0.5 } else { 18.5 };
        assert!((mib - line(card)).abs() <= tolerance, "{} has {mib} MiB", card.name);
    }
    for (name, bound) in [("rtx3060-12g", 141), ("rtx4060", 283)] {
        let card = gpus::find(name).expect("in the catalogue");
        assert!(card.context_bytes <= bound << 20, "{name}");
    }
}

#[test]
fn architectures_are_consistent() {
    for architecture in gpus::architectures() {
        assert_eq!(architecture.threads_per_multiprocessor % Architecture::WARP_SIZE, 0);
        assert!(architecture.shared_per_block_optin >= Architecture::SHARED_PER_BLOCK);
        let whole = architecture.shared_per_block_optin + architecture.shared_reserved_per_block;
        assert!(whole <= architecture.shared_per_multiprocessor);
        assert!(cards().iter().any(|card| card.architecture() == architecture));
    }
}

#[test]
fn memory_can_be_replaced_and_be_unlimited() {
    let card = gpus::find("rtx3090").expect("in the catalogue").with_memory(16 << 30);
    assert_eq!((card.memory_bytes, card.memory_known), (16 << 30, Source::Given));
    assert!(!card.is_unlimited());
    assert!(gpus::unlimited().is_unlimited());
    assert_eq!(gpus::default_architecture().compute_capability, (8, 0));
}

#[test]
fn the_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/gpus.md");
    let page = gpus::markdown();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == page, "docs/reference/gpus.md is stale: UPDATE_GOLDEN=1 cargo test -p gpus");
}

/// What NVIDIA's data sheets say: teraflops in single precision, and gigabytes per second.
#[test]
fn speeds_are_those_of_the_data_sheets() {
    let sheets = [
        ("rtx3090", 35.6, 936.0),
        ("a100-80g", 19.5, 2039.0),
        ("v100-32g", 15.7, 900.0),
        ("t4", 8.1, 320.0),
    ];
    for (name, teraflops, gigabytes) in sheets {
        let card = gpus::find(name).expect(name);
        let off = |given: f64, sheet: f64| (given / sheet - 1.0).abs();
        assert!(off(card.flops() / 1e12, teraflops) < 0.03, "{name}: {}", card.flops());
        assert!(off(card.bandwidth() / 1e9, gigabytes) < 0.03, "{name}: {}", card.bandwidth());
    }
}
