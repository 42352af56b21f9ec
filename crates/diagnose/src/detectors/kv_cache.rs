//! Keys and values of earlier tokens: what a context costs, and how long a context the card has room for.

use std::collections::BTreeMap;

use anatomy::{Part, bytes};
use recording::Category;
use recording::facts::word;

use crate::finding::Finding;
use crate::phrases::{count, evidence};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// What a cache is made of: each tensor has a length and a share of every token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cache {
    /// Sequences side by side.
    batch: u64,
    /// Tokens of the longest tensor.
    tokens: u64,
    /// Bytes for one token of one sequence, in all layers.
    each: u64,
    /// Tensors that grow with the tokens: keys and values of every layer.
    tensors: u64,
}

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| thing.is(Category::KvCache));
    if members.is_empty() {
        return Vec::new();
    }
    // However small: it has a whole context to grow.
    claims.take(&members);
    let things: Vec<&Thing<'_>> = members.iter().map(|index| &scene.things[*index]).collect();
    let is_static = is_static(scene);
    let (title, explanation) = match Cache::of(&things, axis(scene)) {
        Some(cache) => (cache.title(), cache.explanation(scene, is_static)),
        None => (
            "KV cache".to_owned(),
            "Keys and values of earlier tokens, kept for the next ones.".to_owned(),
        ),
    };
    let mut may_help = remedies!(scene, "context", "fewer-sequences", "quantised-cache");
    if !is_static {
        may_help.extend(remedies!(scene, "static-cache"));
    }
    vec![Finding {
        title,
        explanation,
        scales: "tokens × batch × layers".to_owned(),
        bytes: scene.bytes(&members),
        evidence: evidence(scene, &members),
        remedies: may_help,
        ..Finding::default()
    }]
}

/// Whether it has its full length from the start: then nothing is copied while it grows.
fn is_static(scene: &Scene<'_>) -> bool {
    let facts = scene.anatomy.facts.of("kv_cache");
    let kinds = || facts.iter().filter_map(|fact| word(fact, "kind"));
    kinds().all(|kind| kind.contains("Static") || kind == "named") && kinds().next().is_some()
}

/// Which dimension counts tokens, from the last.
fn axis(scene: &Scene<'_>) -> Option<usize> {
    let facts = scene.anatomy.facts.of("kv_cache").iter();
    facts.filter_map(|fact| word(fact, "tokens")?.strip_prefix('-')?.parse().ok()).next()
}

impl Cache {
    /// A tensor is there twice while it is made longer: each name counts once, with its longest.
    fn of(things: &[&Thing<'_>], axis: Option<usize>) -> Option<Cache> {
        let mut longest: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        for thing in things {
            let (batch, tokens) = sizes(thing.shape(), axis)?;
            let one = longest.entry(thing.tensor.name.as_str()).or_default();
            *one = (*one).max((tokens, batch, thing.tensor.bytes));
        }
        let tokens = longest.values().map(|(tokens, ..)| *tokens).max()?;
        let batch = longest.values().map(|(_, batch, _)| *batch).max()?;
        // What is shorter by more than the token that is being made does not grow: what a decoder sees of its encoder.
        let grown = longest.values().filter(|(length, ..)| tokens <= length.saturating_add(1));
        let cache = grown.fold(Cache { batch, tokens, ..Cache::default() }, |cache, one| {
            let (length, batch, bytes) = *one;
            let each = bytes / length.saturating_mul(batch).max(1);
            Cache { each: cache.each.saturating_add(each), tensors: cache.tensors + 1, ..cache }
        });
        (cache.each != 0).then_some(cache)
    }

    fn title(&self) -> String {
        let Cache { batch, tokens, each, .. } = *self;
        let sequences =
            if batch == 1 { "1 sequence" } else { &format!("{} sequences", count(batch)) };
        format!(
            "KV cache: {} for each token × {} tokens × {sequences}",
            bytes::text(each),
            count(tokens)
        )
    }

    fn explanation(&self, scene: &Scene<'_>, is_static: bool) -> String {
        let Cache { batch, tokens, each, tensors } = *self;
        let whole = each.saturating_mul(tokens).saturating_mul(batch);
        let mut text = format!(
            "Keys and values of earlier tokens ({}): {} bytes for each token of each sequence, {} bytes in all.",
            if tensors == 1 {
                "1 tensor".to_owned()
            } else {
                format!("{} tensors", count(tensors))
            },
            count(each),
            count(whole),
        );
        if !is_static {
            text += " While it grows, a tensor is there twice.";
        }
        if let Some((longer, wider)) = self.room(scene) {
            text += &format!(
                " By arithmetic, with what the card has left and nothing else larger: {} tokens at this batch, or a \
                 batch of {} at this length.",
                count(longer),
                count(wider),
            );
        }
        text
    }

    /// The longest context and the largest batch that the card has room for, if nothing else grows with them.
    fn room(&self, scene: &Scene<'_>) -> Option<(u64, u64)> {
        let row =
            |part: Part| scene.at.ledger.iter().find(|row| row.part == part).map(|row| row.bytes);
        let free = row(Part::Free)?.saturating_add(row(Part::CachedSegments).unwrap_or(0));
        let of_token = self.each.saturating_mul(self.batch).max(1);
        let of_sequence = self.each.saturating_mul(self.tokens).max(1);
        Some((
            self.tokens.saturating_add(free / of_token),
            self.batch.saturating_add(free / of_sequence),
        ))
    }
}

/// Sequences and tokens of a cache's tensor; where nobody says which dimension counts tokens, it is the larger of the
/// two that may: batch, heads and tokens in either order, numbers of a head.
fn sizes(shape: &[u64], axis: Option<usize>) -> Option<(u64, u64)> {
    let batch = *shape.first().filter(|_| 3 <= shape.len())?;
    let inner = &shape[1..shape.len() - 1];
    let tokens = match axis {
        Some(axis) => *shape.get(shape.len().checked_sub(axis)?)?,
        None => *inner.iter().max()?,
    };
    Some((batch, tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_by_the_dimension_that_grows() {
        assert_eq!(sizes(&[2, 8, 5, 64], Some(2)), Some((2, 5)));
        assert_eq!(sizes(&[2, 8, 5, 64], None), Some((2, 8)));
        assert_eq!(sizes(&[2, 500, 8, 64], None), Some((2, 500)));
        assert_eq!(sizes(&[2, 64], None), None);
        assert_eq!(sizes(&[2, 8, 64], Some(9)), None);
    }
}
