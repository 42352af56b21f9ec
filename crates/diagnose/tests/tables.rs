//! What stands elsewhere about findings and levers is what their tables say. UPDATE_GOLDEN=1 writes the
//! reference pages anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use diagnose::{page, remedies};

fn path(below: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(below)
}

/// Compares a page with what it should be, made from what it is.
fn check(name: &str, wanted: impl Fn(&str) -> String) {
    let path = path("docs/reference").join(name);
    let written = fs::read_to_string(&path).unwrap_or_default();
    let wanted = wanted(&written);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &wanted).expect("the page can be written");
        return;
    }
    assert!(written == wanted, "{name} is stale: UPDATE_GOLDEN=1 cargo test -p diagnose");
}

#[test]
fn the_page_of_findings_is_up_to_date() {
    check("findings.md", |_| page::findings());
}

/// The rest of that page is written by hand.
#[test]
fn the_table_of_levers_is_up_to_date() {
    check("fit.md", |page| {
        let (before, rest) = page.split_once("| lever |").expect("fit.md has a table of levers");
        let (_, after) = rest.split_once("\n\n").expect("and something after it");
        format!("{before}{}\n{after}", page::levers())
    });
}

/// A lever is a file with the change that it stands for; its id is the file's name, with hyphens.
#[test]
fn every_lever_has_its_file_and_every_file_its_row() {
    let files = fs::read_dir(path("python/fathom/_doorway/levers")).expect("the levers are there");
    let paths = files.map(|file| file.unwrap().path());
    let levers = paths.filter(|path| path.extension().is_some_and(|end| end == "py"));
    let levers = levers.filter(|path| fs::read_to_string(path).unwrap().contains("\nCHANGE = "));
    let name = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    let files: BTreeSet<String> = levers.map(name).collect();
    let rows = remedies::TABLE.iter().filter(|row| row.lever.is_some());
    // A module's name does not begin with a digit.
    let module = |id: &str| id.replace('-', "_").replace("8bit", "eight_bit");
    assert_eq!(files, rows.map(|row| module(row.id)).collect());
}
