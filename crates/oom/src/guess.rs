//! Shapes that are usual, where no dimensions are known and somebody asks for guesses: attention scores, logits,
//! feature maps.

use crate::amount::Amount;
use crate::shape::{DTYPES, Dtype, Shape};
use crate::solve::{Candidate, Term};

/// Sequences whose squares are common: powers of two, and the patches of vision transformers
/// (14², 16², 24², 28², 32² and a class token).
const TOKENS: [u64; 13] =
    [65_536, 32_768, 16_384, 8192, 4096, 2048, 1024, 512, 256, 1025, 785, 577, 197];

/// Vocabularies of common tokenizers, as generally quoted: GPT-2 and its padding, BERT, Llama 2 and 3,
/// Qwen 2.5 small and large, Gemma, T5. They only serve guesses.
const VOCABULARIES: [u64; 9] =
    [50_257, 50_304, 30_522, 32_000, 128_256, 151_936, 152_064, 256_000, 32_128];

/// Sides of square maps.
const SIDES: [u64; 12] = [1024, 768, 512, 384, 256, 224, 128, 112, 64, 56, 32, 28];

/// Channels of maps.
const CHANNELS: [u64; 7] = [1024, 512, 256, 128, 64, 32, 16];

/// Guesses that are given.
const GIVEN: usize = 4;

/// A range wider than this part of its size tells nothing: too many shapes lie in it.
const WIDTH: u64 = 150;

/// A few usual shapes of this size; none if the size says too little.
pub fn guess(asked: &[Amount]) -> Vec<Candidate> {
    let [range] = asked else { return Vec::new() };
    if range.low < 1 << 24 || range.low / WIDTH < range.high - range.low {
        return Vec::new();
    }
    let mut all = Vec::new();
    for dtype in &DTYPES[..2] {
        all.extend(attention(*range, *dtype));
        all.extend(logits(*range, *dtype));
        all.extend(maps(*range, *dtype));
    }
    all.sort_by_key(|candidate| candidate.cost);
    all.truncate(GIVEN);
    all
}

/// The roundest number of pieces of `size` bytes that lies in the range, and how odd it is.
fn pieces(range: Amount, size: u64) -> Option<(u64, u32)> {
    let (first, last) = (range.low.div_ceil(size), range.high / size);
    let oddness = |number: u64| (number >> number.trailing_zeros()).ilog2();
    (first.max(1)..=last).take(64).map(|number| (number, oddness(number))).min_by_key(|pair| pair.1)
}

fn term(name: &str, value: u64, power: u32) -> Term {
    Term { name: name.to_owned(), value, power }
}

fn candidate(sizes: Vec<u64>, terms: Vec<Term>, dtype: Dtype, cost: u32) -> Candidate {
    let bytes = sizes.iter().product::<u64>() * dtype.bytes;
    Candidate { shape: Shape(sizes), dtype, terms, factor: 1, bytes, cost }
}

/// Batch and heads times tokens squared.
fn attention(range: Amount, dtype: Dtype) -> Option<Candidate> {
    let ways = TOKENS.iter().filter_map(|tokens| {
        let (many, odd) = pieces(range, tokens * tokens * dtype.bytes)?;
        let cost = odd + u32::from(!tokens.is_power_of_two());
        let terms = vec![term("batch·heads", many, 1), term("tokens", *tokens, 2)];
        // Other lengths fall into a range by chance more often: only the roundest count.
        let most = if tokens.is_power_of_two() { 3 } else { 1 };
        (odd <= most && (8..=8192).contains(&many))
            .then(|| candidate(vec![many, *tokens, *tokens], terms, dtype, cost))
    });
    ways.min_by_key(|way| way.cost)
}

/// Batch and tokens times the vocabulary.
fn logits(range: Amount, dtype: Dtype) -> Option<Candidate> {
    let ways = VOCABULARIES.iter().filter_map(|vocabulary| {
        let (many, odd) = pieces(range, vocabulary * dtype.bytes)?;
        let terms = vec![term("batch·tokens", many, 1), term("vocabulary", *vocabulary, 1)];
        (odd <= 2 && many % 64 == 0)
            .then(|| candidate(vec![many, *vocabulary], terms, dtype, odd + 1))
    });
    ways.min_by_key(|way| way.cost)
}

/// Batch times channels times a square.
fn maps(range: Amount, dtype: Dtype) -> Option<Candidate> {
    let ways =
        SIDES.iter().flat_map(|side| CHANNELS.iter().map(move |channels| (*side, *channels)));
    let ways = ways.filter_map(|(side, channels)| {
        let (many, odd) = pieces(range, side * side * channels * dtype.bytes)?;
        let terms =
            vec![term("batch", many, 1), term("channels", channels, 1), term("side", side, 2)];
        (odd <= 3 && many <= 512)
            .then(|| candidate(vec![many, channels, side, side], terms, dtype, odd + 2))
    });
    ways.min_by_key(|way| way.cost)
}
