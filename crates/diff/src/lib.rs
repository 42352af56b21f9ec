//! What grew and what shrank between the allocated peaks of two runs, commits, settings or snapshots.
//!
//! [`compare`] takes two [`Side`]s and gives a [`Difference`]. In every dimension (categories, modules,
//! operators, lines, tensors) each byte of either peak is in exactly one row, so the differences of the
//! rows of each dimension sum to the difference of the peaks.
//!
//! The art is to know again what is still the same although its name has changed:
//!
//! - `files`: a file in another folder;
//! - `lines`, `align`: a line whose number has shifted, by what stands there, else by its order;
//! - `modules`: a module that was wrapped or renamed, by its class and the shapes of its weights;
//! - `tensors`: what was made at the same place, perhaps in another shape;
//! - `findings`: the same cause.
//!
//! [`fold`] puts rows of repeated layers together.
//!
//! [`side`] is what goes in, [`difference`] what comes out. Both are plain data.

mod align;
pub mod difference;
mod files;
mod findings;
mod fold;
mod lines;
mod modules;
pub mod side;
mod tensors;

use std::collections::BTreeMap;

pub use anatomy::LineBytes as Line;
pub use difference::{
    Change, Difference, FindingRow, Given, LineRow, ModuleRow, Named, PhaseRow, Place, Status,
    TensorRow,
};
pub use fold::{Folded, fold};
pub use side::{Cause, Module, Phase, Side, Tensor, Totals};

/// Compares two sides: what `b` has more or less than `a`.
pub fn compare(a: &Side, b: &Side) -> Difference {
    let (a, b) = (&a.closed(), &b.closed());
    let modules = modules::matched(a, b);
    let lines = lines::matched(&a.lines, &b.lines);
    let change = |of: fn(&Totals) -> u64| Change { a: of(&a.totals), b: of(&b.totals) };
    let known = |of: fn(&Totals) -> Option<u64>| {
        of(&a.totals).zip(of(&b.totals)).map(|(a, b)| Change { a, b })
    };
    let mut tensors = tensors::rows(a, b, &modules, &lines);
    let mut module_rows = modules::rows(a, b, &modules);
    let mut line_rows = lines::rows(a, b, &lines);
    let mut operators = named(&a.operators, &b.operators);
    tensors.sort_by_key(|row| row.bytes.rank());
    module_rows.sort_by_key(|row| row.own.rank());
    line_rows.sort_by_key(|row| row.bytes.rank());
    operators.sort_by_key(|row| row.bytes.rank());
    Difference {
        a: Given::of(a),
        b: Given::of(b),
        allocated: change(|totals| totals.allocated),
        requested: change(|totals| totals.requested),
        reserved: change(|totals| totals.reserved),
        device: known(|totals| totals.device),
        floor: known(|totals| totals.floor),
        categories: named(&a.categories, &b.categories),
        modules: module_rows,
        operators,
        lines: line_rows,
        tensors,
        phases: phases(&a.phases, &b.phases),
        findings: findings::rows(&a.findings, &b.findings),
        renamed: modules.renamed(a, b),
        notes: notes(a, b),
    }
}

/// Rows of the same name, in the order in which they first come up.
fn named(a: &[(String, u64)], b: &[(String, u64)]) -> Vec<Named> {
    let mut rows: Vec<Named> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let sides = a.iter().map(|row| (row, false)).chain(b.iter().map(|row| (row, true)));
    for ((name, bytes), is_b) in sides {
        let place = *places.entry(name).or_insert_with(|| {
            rows.push(Named { name: name.clone(), bytes: Change::default() });
            rows.len() - 1
        });
        let change = &mut rows[place].bytes;
        *(if is_b { &mut change.b } else { &mut change.a }) += bytes;
    }
    rows.retain(|row| row.bytes != Change::default());
    rows
}

/// The peaks of each phase over all steps.
fn phases(a: &[Phase], b: &[Phase]) -> Vec<PhaseRow> {
    let mut rows: Vec<PhaseRow> = Vec::new();
    let sides = a.iter().map(|row| (row, false)).chain(b.iter().map(|row| (row, true)));
    for (phase, is_b) in sides {
        let known = rows.iter().position(|row| row.name == phase.name);
        let place = known.unwrap_or_else(|| {
            rows.push(PhaseRow { name: phase.name.clone(), ..PhaseRow::default() });
            rows.len() - 1
        });
        let row = &mut rows[place];
        for (change, bytes) in
            [(&mut row.allocated, phase.allocated), (&mut row.reserved, phase.reserved)]
        {
            let side = if is_b { &mut change.b } else { &mut change.a };
            *side = bytes.max(*side);
        }
    }
    rows
}

/// What makes the two sides hard to compare.
fn notes(a: &Side, b: &Side) -> Vec<String> {
    let mut notes = Vec::new();
    for (what, one, other) in [
        ("torch", &a.torch, &b.torch),
        ("the card", &a.card, &b.card),
        ("the allocator's settings", &a.settings, &b.settings),
    ] {
        let word = |text: &str| if text.is_empty() { "not known".into() } else { text.to_owned() };
        if one != other {
            notes.push(format!("{what} differs: A {}, B {}", word(one), word(other)));
        }
    }
    for (letter, side) in [("A", a), ("B", b)] {
        if side.ran_out {
            notes.push(format!(
                "{letter} ran out of memory: its peak is what it had reached, not what it needs"
            ));
        }
        if side.unlisted_below.is_some() {
            notes.push(format!(
                "{letter} is a report, which lists its largest tensors: smaller ones share a row"
            ));
        }
        notes.extend(side.notes.iter().map(|note| format!("{letter}: {note}")));
    }
    notes
}
