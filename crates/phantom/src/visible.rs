//! Which cards of the machine a process sees, and in which order: `CUDA_VISIBLE_DEVICES`, read as the
//! driver reads it, when the process first uses CUDA.
//!
//! Without `FATHOM_DEVICES` nobody has said how many cards the machine has: it has those that the
//! variable names, so that a script which chooses card 3 by itself finds one.

use contract::environment as name;
use contract::machine::{self, named, number, uuid_text};

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

fn variable() -> Option<String> {
    std::env::var_os(VARIABLE).map(|text| text.to_string_lossy().into_owned())
}

/// How many cards the machine has. Not kept: a process that is forked may be given another variable.
pub(crate) fn machine() -> usize {
    let devices = std::env::var(name::DEVICES).ok();
    machine::cards(devices.as_deref(), variable().as_deref())
}

/// The cards that this process sees, each by its number in the machine.
pub(crate) fn cards() -> Vec<usize> {
    let (machine, text) = (machine(), variable());
    let seen = visible(text.as_deref(), machine);
    let wanted = named(text.as_deref());
    if let Some(text) = text.filter(|_| machine < wanted) {
        let (last, count) = (wanted - 1, seen.len());
        eprintln!(
            "fathom: {VARIABLE}={text} names card {last}, but there are {machine}: {count} can be seen \
             (`fathom run --gpus {wanted}` has more)"
        );
    }
    seen
}

/// What the driver makes of the variable: cards up to the first entry that is none; a card that is named
/// twice hides all.
fn visible(text: Option<&str>, machine: usize) -> Vec<usize> {
    let Some(text) = text else { return (0..machine).collect() };
    let by_uuid = |entry: &str| {
        let entry = entry.trim().to_ascii_lowercase();
        (0..machine).find(|card| uuid_text(*card).to_ascii_lowercase().starts_with(&entry))
    };
    let is_uuid = text.trim_start().to_ascii_uppercase().starts_with("GPU-");
    let entries = text.split(',');
    let cards: Vec<usize> = match is_uuid {
        true => entries.map_while(by_uuid).collect(),
        false => entries.map_while(number).take_while(|card| *card < machine).collect(),
    };
    let mut unique = cards.clone();
    unique.sort_unstable();
    unique.dedup();
    if unique.len() == cards.len() { cards } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read_as_the_driver_reads_it() {
        let four = |text: &str| visible(Some(text), 4);
        assert_eq!(visible(None, 3), [0, 1, 2]);
        assert_eq!((four("2,0"), four("3"), four(" 1, 2 ")), (vec![2, 0], vec![3], vec![1, 2]));
        assert_eq!((four(""), four("-1"), four("none")), (vec![], vec![], vec![]));
        assert_eq!((four("0,-1,1"), four("1,7,2"), four("1,x")), (vec![0], vec![1], vec![1]));
        assert_eq!((four("1,1"), four("2gpu,1")), (vec![], vec![2, 1]));
        let second = uuid_text(1);
        assert_eq!(four(&format!("{second},{}", uuid_text(3))), [1, 3]);
        assert_eq!(four(&second.to_uppercase()), [1]);
        assert_eq!((four("GPU-0123"), four("MIG-0123")), (vec![], vec![]));
    }

    #[test]
    fn a_machine_has_the_cards_that_are_named() {
        assert_eq!((named(None), named(Some("")), named(Some("-1"))), (1, 1, 1));
        assert_eq!((named(Some("3")), named(Some("0,5,1")), named(Some("GPU-1"))), (4, 6, 1));
    }
}
