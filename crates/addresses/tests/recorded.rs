//! Segments of real cards, put where we put them: their order must be the order they had.
//! `segments/SOURCES.md` says where they come from.

use std::collections::BTreeMap;
use std::path::Path;

use addresses::Addresses;

/// Pairs of segments that were there at once, and how many of them are in the order of the real card.
#[derive(Default)]
struct Agreement {
    pairs: usize,
    of_driver: usize,
    /// With addresses that only ascend.
    of_ascending: usize,
}

fn compare(text: &str) -> Agreement {
    let mut ours = Addresses::new(0, 1 << 46);
    let mut ascending = 0;
    // By their address on the real card: ours, and the ascending one.
    let mut live: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut agreement = Agreement::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [verb, address, size] = words[..] else { panic!("`{line}` has no three words") };
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
        let size = size.parse().unwrap();
        if verb == "free" {
            ours.give_back(live.remove(&address).unwrap().0, size);
            continue;
        }
        let place = ours.take(size).unwrap();
        ascending += 1;
        for (other, (other_place, other_ascending)) in &live {
            let is_below = address < *other;
            agreement.pairs += 1;
            agreement.of_driver += usize::from(is_below == (place < *other_place));
            agreement.of_ascending += usize::from(is_below == (ascending < *other_ascending));
        }
        live.insert(address, (place, ascending));
    }
    agreement
}

fn check(name: &str, at_least: usize, ascending_at_most: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/segments");
    let text = std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
    let Agreement { pairs, of_driver, of_ascending } = compare(&text);
    eprintln!("{name}: {of_driver} of {pairs} pairs; ascending: {of_ascending}");
    assert!(at_least * pairs <= 100 * of_driver, "{name}: {of_driver} of {pairs}");
    assert!(100 * of_ascending <= ascending_at_most * pairs, "{name}: {of_ascending} of {pairs}");
}

#[test]
fn segments_are_in_the_order_of_real_cards() {
    check("cliffkai", 97, 5);
    check("cranberrii", 99, 5);
    check("shreyansh26", 100, 5);
    check("silmont2000", 91, 5);
}

/// What is given back leaves holes, and other mappings of the process, which we do not know, fill some.
#[test]
fn segments_that_come_and_go() {
    check("maphsge4", 80, 35);
    check("mercuryb1", 80, 35);
}
