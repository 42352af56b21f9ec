//! Which card is meant: `--gpu`, `--memory` and `--used`, wherever they are said.
//!
//! A size needs a unit. KiB, MiB, GiB and TiB are powers of 1024. GB may be the size on a card's box, a
//! power of 1000 or, as some programs print it, one of 1024: it is read so that no verdict is too good.
//!
//! | where | a GB is |
//! | --- | --- |
//! | `--memory 16GB` | what the least of the catalogue's cards sold as 16 GB has |
//! | the same with a `--gpu` that is sold as 16 GB | what that card has |
//! | `--memory` of a size that no card is sold with | 1000³ bytes |
//! | a budget, a margin, an amount to explain | 1000³ bytes |
//! | `--used` | 1024³ bytes |

use anyhow::Result;
use gpus::{Card, Loading};
use report::bytes;

use crate::cli::CardArguments;
use crate::error::Hinted;

/// CUDA's own variable: whether all kernels are loaded at once.
const MODULE_LOADING: &str = "CUDA_MODULE_LOADING";

/// Less is no card's memory: a unit was forgotten, or is another one.
const LEAST: u64 = bytes::MIB;

/// The card, and how a size was understood that could be read in several ways.
#[derive(Clone, Debug)]
pub(crate) struct Meant {
    pub(crate) card: Card,
    pub(crate) notes: Vec<String>,
}

impl CardArguments {
    /// The card that is meant; `None` if nothing was said.
    pub(crate) fn meant(&self) -> Result<Option<Meant>> {
        let named = self.gpu.as_deref().map(find_card).transpose()?;
        let mut notes = Vec::new();
        let card = match (named, self.memory.as_deref()) {
            (None, None) if self.used.is_some() => {
                let hint = "`--gpu rtx3090 --used 2GiB`, or `--memory 24GiB --used 2GiB`";
                return Err(Hinted::error("`--used` without a card", hint));
            }
            (None, None) => return Ok(None),
            (Some(card), None) => card.clone(),
            (named, Some(text)) => {
                let (bytes, note) = total(text, named)?;
                notes.extend(note);
                match named {
                    Some(card) if card.memory_bytes == bytes => card.clone(),
                    Some(card) => card.with_memory(bytes),
                    None => gpus::unlimited().with_memory(bytes),
                }
            }
        };
        let used = self.used.as_deref().map(|text| used(text, &card)).transpose()?.unwrap_or(0);
        let loading = Loading::of(std::env::var(MODULE_LOADING).ok().as_deref());
        Ok(Some(Meant { card: card.with_used(used).with_loading(loading), notes }))
    }
}

/// A card of the catalogue, or an error that names near ones.
pub(crate) fn find_card(text: &str) -> Result<&'static Card> {
    gpus::find(text).map_err(|error| {
        let hint = error.hint().unwrap_or_else(|| "`fathom gpus` lists the catalogue".to_owned());
        Hinted::error(error.to_string(), hint)
    })
}

/// An amount of memory; `flag` is where it was said.
pub(crate) fn size(flag: &str, text: &str) -> Result<u64> {
    bytes::parse(text).map_err(|message| {
        // What was probably meant.
        let number = text.trim().parse::<f64>().is_ok_and(|number| number < 4096.0);
        let example = if number { format!("{}GiB", text.trim()) } else { "16GiB".to_owned() };
        Hinted::error(format!("`{flag}`: {message}"), format!("for example `{flag} {example}`"))
    })
}

/// `--memory`: all of a card's memory.
fn total(text: &str, named: Option<&Card>) -> Result<(u64, Option<String>)> {
    let bytes = size("--memory", text)?;
    if bytes < LEAST {
        return Err(Hinted::error(
            format!("`--memory {text}` is {}: no card has so little", bytes::text(bytes)),
            "for example `--memory 16GiB`",
        ));
    }
    let Some(gigabytes) = whole_gigabytes(text) else { return Ok((bytes, None)) };
    if let Some(card) = named.filter(|card| u64::from(card.nominal_gib) == gigabytes) {
        return Ok((card.memory_bytes, None));
    }
    let sold = || gpus::cards().iter().filter(|card| u64::from(card.nominal_gib) == gigabytes);
    let least = sold().min_by_key(|card| card.memory_bytes).filter(|_| named.is_none());
    let most = sold().max_by_key(|card| card.memory_bytes);
    let (Some(least), Some(most)) = (least, most) else {
        let note = format!(
            "{gigabytes} GB are read as {gigabytes} × 1000³ bytes = {}",
            bytes::text(bytes)
        );
        return Ok((bytes, Some(note)));
    };
    let size = |card: &Card| format!("{} ({})", bytes::text(card.memory_bytes), card.name);
    let range = match least.memory_bytes == most.memory_bytes {
        true => format!("have {}", size(least)),
        false => format!("have from {} to {}: this is the least", size(least), size(most)),
    };
    let note = format!(
        "cards sold as {gigabytes} GB {range}; `--gpu` names yours, {gigabytes}GiB is exactly that"
    );
    Ok((least.memory_bytes, Some(note)))
}

/// `--used`: an amount, or a share of the card.
fn used(text: &str, card: &Card) -> Result<u64> {
    share("--used", text, card)
}

/// `--headroom`: likewise.
pub(crate) fn headroom(text: &str, card: &Card) -> Result<u64> {
    share("--headroom", text, card)
}

fn share(flag: &str, text: &str, card: &Card) -> Result<u64> {
    let share = text.trim().strip_suffix('%').map(|number| number.trim().parse::<f64>());
    let bytes = match share {
        Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => {
            (card.memory_bytes as f64 * percent / 100.0).ceil() as u64
        }
        Some(_) => {
            let hint = format!("for example `{flag} 2GiB` or `{flag} 10%`");
            return Err(Hinted::error(format!("`{flag} {text}` is no share of a card"), hint));
        }
        None if is_zero(text) => 0,
        None => size(flag, &binary(text))?,
    };
    if card.memory_bytes.saturating_sub(card.context_bytes) <= bytes {
        return Err(Hinted::error(
            format!(
                "`{flag} {text}` leaves no room: of {}, the context of a process takes {}",
                bytes::text(card.memory_bytes),
                bytes::text(card.context_bytes)
            ),
            match flag {
                "--used" => {
                    "say what others hold before the script starts, as `nvidia-smi` shows it"
                }
                _ => "for example `--headroom 5%` or `--headroom 512MiB`",
            },
        ));
    }
    Ok(bytes)
}

/// `0`, `0B`, `0 GiB`: nothing needs no unit.
fn is_zero(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim().parse() == Ok(0.0)
}

/// The number of a text like `16GB`; `None` for other units and parts of one.
fn whole_gigabytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    text.strip_suffix("gb")?.trim().parse().ok()
}

/// The same text with `GB` for `GiB` and so on: the larger reading.
fn binary(text: &str) -> String {
    let lower = text.trim().to_ascii_lowercase();
    let units = ["kb", "mb", "gb", "tb"];
    match units.iter().find(|unit| lower.ends_with(*unit)) {
        Some(_) => format!("{}ib", &lower[..lower.len() - 1]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(gpu: &str, memory: &str, used: &str) -> Result<Meant, String> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let said = CardArguments { gpu: some(gpu), memory: some(memory), used: some(used) };
        said.meant().map(|meant| meant.expect("a card")).map_err(|error| crate::error::text(&error))
    }

    fn bytes_of(gpu: &str, memory: &str) -> u64 {
        meant(gpu, memory, "").unwrap().card.memory_bytes
    }

    #[test]
    fn a_number_needs_a_unit() {
        let error = meant("", "16", "").unwrap_err();
        assert!(
            error.contains("`16` has no unit") && error.contains("`--memory 16GiB`"),
            "{error}"
        );
        assert!(meant("", "16B", "").unwrap_err().contains("no card has so little"));
        assert!(meant("", "16G", "").unwrap_err().contains("ambiguous"));
        assert_eq!(bytes_of("", "16GiB"), 16 << 30);
        assert_eq!(bytes_of("", "17179869184B"), 16 << 30);
    }

    #[test]
    fn gigabytes_on_a_box_are_those_of_the_least_card_sold_so() {
        for gigabytes in [8, 12, 16, 24, 32, 40, 48, 80] {
            let text = format!("{gigabytes}GB");
            let found = meant("", &text, "").unwrap();
            let cards = gpus::cards().iter().filter(|card| card.nominal_gib == gigabytes);
            assert!(cards.clone().all(|card| found.card.memory_bytes <= card.memory_bytes));
            assert!(cards.clone().any(|card| found.card.memory_bytes == card.memory_bytes));
            assert!(found.notes[0].starts_with(&format!("cards sold as {gigabytes} GB have")));
            assert!(found.card.is_nameless());
        }
        let odd = meant("", "17GB", "").unwrap();
        assert_eq!(odd.card.memory_bytes, 17_000_000_000);
        assert!(odd.notes[0].contains("17 × 1000³ bytes = 15.83 GiB"), "{}", odd.notes[0]);
        assert!(meant("", "16GiB", "").unwrap().notes.is_empty());
    }

    #[test]
    fn a_named_card_may_have_another_memory() {
        let own = gpus::find("rtx3090").unwrap();
        let slice = meant("rtx3090", "20GiB", "").unwrap().card;
        assert_eq!((slice.name, slice.memory_bytes), ("rtx3090", 20 << 30));
        assert_eq!(slice.context_bytes, own.context_bytes);
        assert_eq!(meant("rtx3090", "24GB", "").unwrap().card, *own);
        assert_eq!(bytes_of("rtx3090", "16GB"), 16_000_000_000);
    }

    #[test]
    fn others_may_hold_a_part_of_it() {
        let of = |text| meant("rtx3090", "", text).unwrap().card;
        let own = gpus::find("rtx3090").unwrap();
        assert_eq!(of("2GiB").used_bytes, 2 << 30);
        assert_eq!(of("2GB").used_bytes, 2 << 30, "the larger reading");
        assert_eq!(of("10%").used_bytes, own.memory_bytes.div_ceil(10));
        assert_eq!(["0", "0B", "0 GiB"].map(|text| of(text).used_bytes), [0, 0, 0]);
        assert_eq!(of("2GiB").usable_bytes(), own.usable_bytes() - (2 << 30));
        for wrong in ["24GiB", "100%", "120%", "-1%", "2", "much", "x%"] {
            assert!(meant("rtx3090", "", wrong).is_err(), "{wrong}");
        }
        assert!(meant("", "", "2GiB").unwrap_err().contains("without a card"));
    }
}
