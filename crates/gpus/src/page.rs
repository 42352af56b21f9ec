//! The reference page: every card as a row, every source as a line.

use std::fmt::Write;

use crate::beside::{Counted, Loading, Measured};
use crate::card::{Card, Source, gib};
use crate::table;

const HEAD: &str = "\
<!-- Generated from crates/gpus. After a change of its tables: UPDATE_GOLDEN=1 cargo test -p gpus -->

# GPUs

`--gpu NAME` takes any name of this table. Case, blanks and dashes do not matter, and the driver's
name of the device is understood too: `rtx3090`, `RTX 3090` and `NVIDIA GeForce RTX 3090` are the
same card. Where a card was sold with several memories the name says which. `fathom gpus NAME` shows
one card with the source of each number.

*Memory* is what `cudaMemGetInfo` reports as total under Linux, not the number on the box. It depends
on the driver: a GeForce RTX 3090 has 24,268 MiB with a driver for CUDA 11.8, 24,124 with one for
CUDA 13, and nearly all of the 24,576 under Windows. For another driver's number use `--memory`.

*Context* is what the CUDA context of one process takes before its first allocation, with modules
loaded lazily (the default since CUDA 12.2). It depends on the driver and on CUDA's version as well,
and it grows as kernels are loaded. Where nobody published a measurement it is
34 MiB + 1.86 KiB for each thread the card can hold, a line through nine cards between 105 and
558 MiB of which none is further off than 18 MiB; smaller cards are given the least of these. Two cards
that were found later are 4 and 13 MiB below the line.

`~` marks a number that is assumed rather than sourced; the reasons are listed below.
";

const BESIDE: &str = "
## Beside PyTorch

What a card shows is more than PyTorch reserves: the context, kernels that were loaded since, and what
cuBLAS, cuDNN and others keep for themselves. Published measurements disagree, so Fathom has a range for
each card (`fathom gpus NAME`):

- *low*: the least context that was measured on this chip; 18 MiB below the line where none was;
- *likely*, which a run counts: the card's context;
- *high*: the most that a run by itself was seen to take on this chip, or 131 MiB above the context, the
  most that came on top of one where both are known (18 more where the context is assumed).

With `CUDA_MODULE_LOADING=EAGER` all kernels of PyTorch and its libraries are loaded at once: 362 to
1,230 MiB more in published runs, all of PyTorch before 1.13; the middle of them, 717, is counted and is
an assumption. NCCL's memory is not in the range: it has a row of its own.

`fathom calibrate` measures a real card in a minute and writes rows of this table.

| card | counted | MiB | loading | processes | torch | CUDA | driver | source |
| --- | --- | ---: | --- | ---: | --- | --- | --- | --- |
";

/// More cards than this are counted, not listed.
const MANY: usize = 20;

/// The text of `docs/reference/gpus.md`.
pub fn markdown() -> String {
    let mut page = String::from(HEAD);
    page.push_str("\n## Cards\n\n");
    page.push_str("| name | device | compute capability | memory, MiB | GiB | context, MiB | ");
    page.push_str(
        "multiprocessors | L2, KiB |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for card in table::cards() {
        let (major, minor) = card.compute_capability;
        let _ = writeln!(
            page,
            "| `{}` | {} | {major}.{minor} | {} | {:.2} | {} | {} | {} |",
            card.name,
            card.title,
            mark(card.memory_bytes >> 20, card.memory_known),
            gib(card.memory_bytes),
            mark(card.context_bytes >> 20, card.context_known),
            mark(card.sm_count, card.sm_known),
            mark(card.l2_bytes >> 10, card.l2_known),
        );
    }
    page.push_str(BESIDE);
    for row in table::beside() {
        let _ = writeln!(page, "{}", measurement(row));
    }
    for assumed in [false, true] {
        let title = if assumed { "Assumptions" } else { "Sources" };
        let _ = write!(page, "\n## {title}\n\n");
        for (_, text) in table::sources().filter(|(key, _)| key.starts_with('~') == assumed) {
            let _ = writeln!(page, "- {text}{}", used_for(text));
        }
    }
    page
}

/// A row of what was measured beside PyTorch's memory.
fn measurement(row: &Measured) -> String {
    let card = if row.card == "-" { "not told".to_owned() } else { format!("`{}`", row.card) };
    let counted = match row.counted {
        Counted::Context => "context",
        Counted::All => "all",
        Counted::Loading => "added by loading all kernels",
    };
    let loading = match row.loading {
        Some(Loading::Lazy) => "lazy",
        Some(Loading::Eager) => "eager",
        None => "not told",
    };
    let Measured { ranks, torch, cuda, driver, source, .. } = row;
    let mib = row.bytes >> 20;
    format!(
        "| {card} | {counted} | {mib} | {loading} | {ranks} | {torch} | {cuda} | {driver} | {source} |"
    )
}

/// A number, with `~` if it is assumed.
fn mark(number: impl std::fmt::Display, known: Source) -> String {
    format!("{}{number}", if known.is_assumed() { "~" } else { "" })
}

/// The cards whose memory or context rests on a source; the other numbers matter less.
fn used_for(text: &str) -> String {
    let rests =
        |known: Source| matches!(known, Source::Sourced(t) | Source::Assumed(t) if t == text);
    let list = |what: &str, known: fn(&Card) -> Source| {
        let names: Vec<String> = table::cards()
            .iter()
            .filter(|card| rests(known(card)))
            .map(|card| format!("`{}`", card.name))
            .collect();
        match names.len() {
            0 => String::new(),
            1..=MANY => format!(". {what} of {}", names.join(", ")),
            count => format!(". {what} of {count} cards"),
        }
    };
    list("Memory", |card| card.memory_known) + &list("Context", |card| card.context_known)
}
