//! The reference of findings, remedies and levers, as Markdown: `tests/tables.rs` keeps the pages like this.

use crate::detectors::{self, Detector};
use crate::remedies::{self, AsLever, Row};

/// `docs/reference/findings.md`.
pub fn findings() -> String {
    let mut page = String::from(
        "# Findings and remedies\n\n\
         Generated from `crates/diagnose` (`UPDATE_GOLDEN=1 cargo test -p diagnose`). A finding names the \
         bytes at the allocated peak that it explains; each tensor is counted once, and what is less than \
         1 % of the peak is left to the next finding. Those with a star are remarks: others count their \
         bytes, or they lie outside of that peak. Remedies are not tried when they are named; `fathom fit` \
         tries those that are [levers](fit.md#levers).\n\n\
         | finding | when |\n| --- | --- |\n",
    );
    let mut detectors: Vec<&Detector> = detectors::TABLE.iter().collect();
    detectors.sort_by_key(|row| row.id);
    for Detector { id, when, is_remark, .. } in detectors {
        page += &format!("| `{id}`{} | {when} |\n", if *is_remark { " *" } else { "" });
    }
    page += "\nA remedy says how far it changes results; where BatchNorm sees it, that may be further.\n\n\
             | remedy | results | acts on | change |\n| --- | --- | --- | --- |\n";
    let mut remedies: Vec<&Row> = remedies::TABLE.iter().collect();
    remedies.sort_by_key(|row| row.id);
    for row in remedies {
        let Row { id, acts_on, change, .. } = row;
        page += &format!("| `{id}` | {} | {acts_on} | {change} |\n", row.results());
    }
    page
}

/// The table in `docs/reference/fit.md`.
pub fn levers() -> String {
    let mut table = String::from(
        "| lever | stage | acts on | what it does | results |\n| --- | --- | --- | --- | --- |\n",
    );
    for row in remedies::TABLE {
        let Some(AsLever { stage, does, if_asked, .. }) = row.lever else { continue };
        let when = if if_asked { ", where a cause of the peak asks for it" } else { "" };
        let Row { id, acts_on, .. } = row;
        let (stage, results) = (stage.name(), row.results());
        table += &format!("| `{id}` | {stage} | {acts_on} | {does}{when} | {results} |\n");
    }
    table
}
