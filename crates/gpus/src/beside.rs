//! What a card shows beside what PyTorch has reserved: the context, kernels that were loaded, and what libraries keep
//! for themselves. Published measurements disagree, so it is a range.

use crate::card::{Card, Source};
use crate::table;

const MIB: u64 = 1 << 20;

/// The most by which a measured card is off the line that stands in for measurements, see `~line` in `sources.txt`.
const LINE_IS_OFF: u64 = 18 * MIB;

const EAGER: &str = "with all kernels loaded at once (CUDA_MODULE_LOADING=EAGER): the context and the middle of what published \
                     runs of PyTorch before 1.13 add to it";

/// When CUDA loads kernels: `CUDA_MODULE_LOADING`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loading {
    /// As they are used, which PyTorch asks for since 1.13.
    #[default]
    Lazy,
    /// All of them at once.
    Eager,
}

impl Loading {
    /// What a value of `CUDA_MODULE_LOADING` asks for; PyTorch sets it to lazy where it is not set.
    pub fn of(variable: Option<&str>) -> Loading {
        match variable {
            Some("EAGER") => Loading::Eager,
            _ => Loading::Lazy,
        }
    }
}

/// What a measurement counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A process before its first kernel.
    Context,
    /// Everything beside PyTorch's own at some moment of a run.
    All,
    /// What loading all kernels at once adds.
    Loading,
}

/// A row of `beside.txt`: what somebody published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The catalogue's name of the card; `-` if it is not told.
    pub card: &'static str,
    pub counted: Counted,
    pub bytes: u64,
    /// `None` if it is not told.
    pub loading: Option<Loading>,
    /// Processes of the run.
    pub ranks: u32,
    /// Versions, `-` where they are not told.
    pub torch: &'static str,
    pub cuda: &'static str,
    pub driver: &'static str,
    pub source: Source,
}

impl Measured {
    /// Whether it was measured on the same chip.
    fn is_of(&self, card: &Card) -> bool {
        table::cards().iter().any(|other| other.name == self.card && card.has_chip_of(other))
    }

    /// What a run by itself had on top of the context.
    fn added(&self) -> Option<u64> {
        let card = table::cards().iter().find(|card| card.name == self.card)?;
        let is_run = self.counted == Counted::All && self.ranks == 1;
        is_run.then(|| self.bytes.saturating_sub(card.context_bytes))
    }
}

/// Every published measurement, in the order of the table.
pub fn measurements() -> &'static [Measured] {
    table::beside()
}

/// How much of a card one process takes beside what PyTorch reserves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextRange {
    /// The least that is known of such a card: its bare context.
    pub low: u64,
    /// What Fathom counts.
    pub likely: u64,
    /// The most that is known of such a card, or of any card on top of its context.
    pub high: u64,
    /// How `likely` is known.
    pub known: Source,
    /// Measurements on the same chip.
    pub rows: Vec<&'static Measured>,
}

impl Card {
    /// Context, loaded kernels and libraries: what one process of this card takes beside PyTorch's own.
    ///
    /// `likely` is the card's context. Above it is what somebody saw on this chip, and what was seen to come on top of
    /// any card's context, since how many kernels are loaded depends on the script. NCCL's memory is not in it.
    pub fn context_range(&self) -> ContextRange {
        let Card { context_bytes, context_known, .. } = *self.bare();
        let rows: Vec<&Measured> = match self.is_nameless() {
            true => Vec::new(),
            false => measurements().iter().filter(|row| row.is_of(self)).collect(),
        };
        let contexts = rows.iter().filter(|row| row.counted == Counted::Context);
        let unsure = if context_known.is_assumed() { LINE_IS_OFF } else { 0 };
        let (least, most) = match self.is_nameless() {
            true => any_context(),
            false => (context_bytes - unsure, context_bytes + unsure),
        };
        let low = contexts.map(|row| row.bytes).min().unwrap_or(least).min(context_bytes);
        let added = added(self.loading);
        let extra = |from: Option<&u64>| from.copied().unwrap_or(0);
        let (low, likely, high) = match self.loading {
            Loading::Lazy => (low, context_bytes, most + extra(added.last())),
            Loading::Eager => (
                low + extra(added.first()),
                context_bytes + extra(added.get(added.len() / 2)),
                most + extra(added.last()),
            ),
        };
        let is_alike = |row: &&&Measured| {
            row.ranks == 1 && row.loading.is_none_or(|loading| loading == self.loading)
        };
        let seen = rows.iter().filter(is_alike).map(|row| row.bytes).max();
        let known = match self.loading {
            Loading::Lazy => context_known,
            Loading::Eager => Source::Assumed(EAGER),
        };
        ContextRange { low, likely, high: high.max(seen.unwrap_or(0)), known, rows }
    }

    /// How far what one process takes beside PyTorch may be off: by what was seen on this very chip, or by how far off the
    /// contexts of other cards were from what is assumed for them.
    pub fn context_error(&self) -> u64 {
        let ContextRange { likely, rows, .. } = self.context_range();
        let is_alike = |row: &&&Measured| {
            row.ranks == 1 && row.loading.is_none_or(|loading| loading == self.loading)
        };
        let seen = rows.iter().filter(is_alike).map(|row| row.bytes.abs_diff(likely)).max();
        let unsure = if self.is_context_assumed() { LINE_IS_OFF } else { 0 };
        seen.unwrap_or(0).max(unsure)
    }

    /// The card as a process sees it that loads its kernels so.
    pub fn with_loading(&self, loading: Loading) -> Card {
        let card = Card { loading, ..self.clone() };
        let ContextRange { likely, known, .. } = card.context_range();
        Card { context_bytes: likely, context_known: known, ..card }
    }

    /// The card of the catalogue, with the context of one that loads lazily.
    fn bare(&self) -> &'static Card {
        let row = table::cards().iter().find(|card| card.name == self.name);
        row.unwrap_or_else(|| crate::unlimited_model())
    }
}

/// What was seen on top of contexts, on cards where that is known, in order.
fn added(loading: Loading) -> Vec<u64> {
    let rows = measurements().iter().filter(|row| row.loading == Some(loading));
    let mut added: Vec<u64> = rows
        .filter_map(|row| match row.counted {
            Counted::Loading => Some(row.bytes),
            _ => row.added(),
        })
        .collect();
    added.sort_unstable();
    added
}

/// The least and the most context of the catalogue.
fn any_context() -> (u64, u64) {
    let contexts = || table::cards().iter().map(|card| card.context_bytes);
    (contexts().min().unwrap_or(0), contexts().max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, loading: Loading) -> [u64; 3] {
        let range = crate::find(name).unwrap().with_loading(loading).context_range();
        [range.low, range.likely, range.high].map(|bytes| bytes / MIB)
    }

    #[test]
    fn where_sources_disagree_it_is_wide() {
        assert_eq!(range("a100-40g", Loading::Lazy), [414, 418, 1429]);
        assert_eq!(range("a100-80g", Loading::Lazy), [414, 418, 1429], "the same chip");
    }

    #[test]
    fn a_measured_card_may_load_as_much_as_any() {
        assert_eq!(range("rtx3090", Loading::Lazy), [256, 256, 256 + 131]);
        assert_eq!(range("rtx6000-ada", Loading::Lazy), [426, 426, 426 + 131]);
    }

    #[test]
    fn an_assumed_context_is_as_unsure_as_its_line() {
        assert_eq!(range("rtx3060-12g", Loading::Lazy), [112 - 18, 112, 112 + 18 + 131]);
    }

    #[test]
    fn all_kernels_at_once_take_more() {
        assert_eq!(range("rtx3090", Loading::Eager), [256 + 362, 256 + 717, 256 + 1230]);
        let card = crate::find("rtx3090").unwrap();
        assert_eq!(card.with_loading(Loading::Eager).context_bytes, (256 + 717) * MIB);
        assert!(card.with_loading(Loading::Eager).is_context_assumed());
        assert_eq!(&card.with_loading(Loading::of(Some("LAZY"))), card);
    }

    #[test]
    fn a_card_without_a_name_may_be_any() {
        let range = crate::unlimited().context_range();
        assert_eq!([range.low, range.high].map(|bytes| bytes / MIB), [105, 599 + 131]);
        assert!(range.rows.is_empty());
    }

    #[test]
    fn every_range_holds_what_is_counted() {
        for card in table::cards() {
            for loading in [Loading::Lazy, Loading::Eager] {
                let ContextRange { low, likely, high, .. } =
                    card.with_loading(loading).context_range();
                assert!(0 < low && low <= likely && likely <= high, "{}", card.name);
            }
        }
    }

    /// A context that is not assumed is somebody's measurement, or another card's of the same chip.
    #[test]
    fn every_known_context_is_a_row() {
        for card in table::cards().iter().filter(|card| !card.context_known.is_assumed()) {
            let mut rows = measurements().iter().filter(|row| row.card == card.name);
            let has_it = rows.any(|row| {
                (row.counted, row.bytes, row.source)
                    == (Counted::Context, card.context_bytes, card.context_known)
            });
            assert!(has_it, "{} is not in beside.txt", card.name);
        }
    }
}
