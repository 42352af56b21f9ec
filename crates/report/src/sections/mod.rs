//! The parts of a report that come from an anatomy. By default they fit one screen together.

pub(crate) mod causes;
pub(crate) mod columns;
pub(crate) mod fragments;
mod holders;
mod over_time;
mod totals;

use anatomy::{Anatomy, Dissection};
use diagnose::{Finding, Suspect};

/// Lines of a whole report, unless something is unfolded.
pub(crate) const SCREEN: usize = 45;

/// Methods of distributed training on one screen.
const AREAS: usize = 6;

/// Columns of the report, without its labels.
pub(crate) const COLUMNS: usize = 91;

/// What is shown in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfold {
    pub findings: bool,
    pub ledger: bool,
    pub modules: bool,
    pub lines: bool,
    pub tensors: bool,
    pub operators: bool,
    pub phases: bool,
    pub fragments: bool,
}

impl Unfold {
    /// Everything in full.
    pub fn all() -> Unfold {
        Unfold {
            findings: true,
            ledger: true,
            modules: true,
            lines: true,
            tensors: true,
            operators: true,
            phases: true,
            fragments: true,
        }
    }
}

/// Rows under one label.
pub(crate) struct Section {
    pub(crate) label: &'static str,
    pub(crate) rows: Vec<String>,
}

/// All sections for what is alive `at` a moment, in at most about `room` rows if nothing is unfolded.
pub(crate) fn sections(
    anatomy: &Anatomy,
    at: &Dissection,
    (findings, suspects): (&[Finding], &[Suspect]),
    unfold: &Unfold,
    room: usize,
) -> Vec<Section> {
    let section = |label, rows| Section { label, rows };
    let refused = anatomy.out_of_memory.as_ref().filter(|refusal| std::ptr::eq(&refusal.at, at));
    let tried = refused.map_or(0, |refusal| refusal.tried_bytes);
    let wanted = at.allocated.saturating_add(tried);
    let reserved = refused.map_or(anatomy.reserved_peak.reserved, |refusal| refusal.at.reserved);
    let mut causes = causes::causes(findings, (wanted, reserved), unfold.findings);
    if !causes.is_empty() {
        causes.extend(causes::not_the_cause(suspects, (wanted, at.reserved)));
    }
    let causes = section("causes", causes);
    let to_try = if unfold.findings { Vec::new() } else { causes::remedies(findings) };
    let to_try = section("try", to_try);
    let model = section("model", totals::model(anatomy));
    let ledger = section("ledger", totals::ledger(anatomy, at, unfold.ledger));
    let held = section("held", holders::categories(at));
    let tensors = section("tensors", holders::tensors(at, unfold.tensors));
    let phases = section("phases", over_time::phases(anatomy, unfold.phases));
    let growth = section("growth", over_time::growth(anatomy));
    let areas = section("parallel", holders::areas(at, (!unfold.modules).then_some(AREAS)));
    let others = [&causes, &to_try, &model, &ledger, &held, &areas, &tensors, &phases, &growth];
    let taken: usize = others.iter().map(|section| section.rows.len()).sum();
    // Modules and lines share what is left; a few rows of each are always worth it.
    let left = room.saturating_sub(taken);
    let for_lines = (left / 3).clamp(2, 5);
    let for_modules = left.saturating_sub(for_lines).clamp(3, 10);
    let modules =
        section("modules", holders::modules(at, (!unfold.modules).then_some(for_modules)));
    let lines = section("lines", holders::lines(at, (!unfold.lines).then_some(for_lines)));
    let operators = if unfold.operators { holders::operators(at) } else { Vec::new() };
    let operators = section("operator", operators);
    let first = [causes, to_try, model, ledger, held, areas, modules, lines];
    first.into_iter().chain([tensors, operators, phases, growth]).collect()
}
