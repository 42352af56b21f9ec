//! The parts of a report that come from an anatomy: causes always, and of who holds the memory what is unfolded.

pub(crate) mod causes;
pub(crate) mod columns;
pub(crate) mod fragments;
mod holders;
mod over_time;
mod totals;

use anatomy::{Anatomy, Dissection};
use diagnose::{Finding, Suspect};

use crate::lines::LABEL_WIDTH;
use crate::reader::Reader;

/// Rows of modules, of the reader's lines, and of phases, where everything is shown but not each in full.
const MODULES: usize = 40;
const LINES: usize = 20;
const PHASES: usize = 40;

/// What is shown beside the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfold {
    /// Every section; long ones are folded, unless they are named as well.
    pub all: bool,
    pub findings: bool,
    pub held: bool,
    pub ledger: bool,
    pub modules: bool,
    pub lines: bool,
    pub tensors: bool,
    pub operators: bool,
    pub phases: bool,
    pub fragments: bool,
}

impl Unfold {
    /// Every section.
    pub fn all() -> Unfold {
        Unfold { all: true, ..Unfold::default() }
    }
}

/// Rows under one label.
pub(crate) struct Section {
    pub(crate) label: &'static str,
    pub(crate) rows: Vec<String>,
}

/// Rows under a label that are made only if they are shown.
pub(crate) fn section_if(
    is_shown: bool,
    label: &'static str,
    rows: impl FnOnce() -> Vec<String>,
) -> Section {
    Section { label, rows: if is_shown { rows() } else { Vec::new() } }
}

/// All sections for what is alive `at` a moment.
pub(crate) fn sections(
    anatomy: &Anatomy,
    at: &Dissection,
    (findings, suspects): (&[Finding], &[Suspect]),
    reader: Reader,
    unfold: &Unfold,
) -> Vec<Section> {
    let width = reader.columns - LABEL_WIDTH;
    let refused = anatomy.out_of_memory.as_ref().filter(|refusal| std::ptr::eq(&refusal.at, at));
    let tried = refused.map_or(0, |refusal| refusal.tried_bytes);
    let wanted = at.allocated.saturating_add(tried);
    let reserved = refused.map_or(anatomy.reserved_peak.reserved, |refusal| refusal.at.reserved);
    let is_full = unfold.findings || unfold.all;
    let mut rows = causes::causes(findings, (wanted, reserved), width, is_full);
    if !rows.is_empty() {
        rows.extend(causes::not_the_cause(suspects, (wanted, at.reserved), width, is_full));
    }
    let most = |is_named: bool, most: usize| (!is_named).then_some(most);
    let Unfold { all, held, ledger, modules, lines, tensors, operators, phases, .. } = *unfold;
    vec![
        Section { label: "causes", rows },
        section_if(!is_full, "try", || causes::remedies(findings)),
        Section { label: "growth", rows: over_time::growth(anatomy) },
        section_if(all || modules, "model", || totals::model(anatomy)),
        section_if(all || ledger, "ledger", || totals::ledger(anatomy, at, ledger)),
        section_if(all || held, "held", || holders::categories(at, width)),
        section_if(all || held || modules, "parallel", || holders::areas(at, width)),
        section_if(all || modules, "modules", || {
            holders::modules(at, width, most(modules, MODULES))
        }),
        section_if(all || lines, "lines", || holders::lines(at, width, most(lines, LINES))),
        section_if(all || tensors, "tensors", || holders::tensors(at, width, tensors)),
        section_if(all || operators, "operator", || holders::operators(at, width)),
        section_if(all || phases, "phases", || over_time::phases(anatomy, most(phases, PHASES))),
    ]
}
