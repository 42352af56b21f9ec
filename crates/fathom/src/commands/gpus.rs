//! `fathom gpus`.

use ::gpus::{Card, Counted, Loading};
use anyhow::Result;
use report::bytes;

use crate::card::find_card;
use crate::screen;

/// Lists the catalogue, or one card with the origin of each number.
pub(crate) fn gpus(name: Option<&str>) -> Result<u8> {
    screen::print(&name.map_or_else(|| Ok(all()), one)?)?;
    Ok(0)
}

fn all() -> String {
    let mut text = String::new();
    let cards = ::gpus::cards();
    let width = cards.iter().map(|card| card.name.len()).max().unwrap_or(0);
    for card in cards {
        let (major, minor) = card.compute_capability;
        let capability = format!("{major}.{minor}");
        text += &format!(
            "{:width$}  {:>10}  {capability:>4}  {:>4} SMs  {}\n",
            card.name,
            bytes::text(card.memory_bytes),
            card.sm_count,
            card.title
        );
    }
    text
}

fn one(name: &str) -> Result<String> {
    let card = find_card(name)?;
    let (major, minor) = card.compute_capability;
    let mut text = format!("{}  {}  compute capability {major}.{minor}\n", card.name, card.title);
    let arch = card.architecture();
    let shared = format!(
        "{} KiB a multiprocessor, {} KiB a block",
        arch.shared_per_multiprocessor >> 10,
        arch.shared_per_block_optin >> 10
    );
    let guide = format!("CUDA programming guide, compute capability {major}.{minor}");
    let facts = card.facts().map(|(label, value, known)| (label, value, known.to_string()));
    let facts: Vec<_> =
        facts.into_iter().chain([("shared memory", shared, guide)]).chain(beside(card)).collect();
    let width = facts.iter().map(|fact| fact.1.chars().count()).max().unwrap_or(0);
    for (label, value, known) in facts {
        let padding = " ".repeat(width - value.chars().count());
        text += &format!("  {label:18}  {value}{padding}  {known}\n");
    }
    Ok(text)
}

/// What the card shows beside PyTorch's memory: the range, and who measured what.
fn beside(card: &Card) -> Vec<(&'static str, String, String)> {
    let mib = |bytes: u64| bytes >> 20;
    let range = card.context_range();
    let value = format!("{} to {} MiB", mib(range.low), mib(range.high));
    let what = "context, loaded kernels and libraries of one process, over all that is known of it";
    let mut facts = vec![("beside PyTorch", value, what.to_owned())];
    for row in &range.rows {
        let counted = match row.counted {
            Counted::Context => "context",
            Counted::All | Counted::Loading => "in a run",
        };
        let loading = match row.loading {
            Some(Loading::Eager) => ", all kernels loaded",
            Some(Loading::Lazy) => "",
            None => ", loading not told",
        };
        let ranks = match row.ranks {
            1 => String::new(),
            count => format!(", {count} processes"),
        };
        let value = format!("{} MiB {counted}{ranks}{loading}", mib(row.bytes));
        facts.push(("  measured", value, format!("{}: {}", row.card, row.source)));
    }
    facts
}
