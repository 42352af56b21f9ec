//! The contract's names are the contract's: nobody else writes a variable's name in quotes, and every name that is
//! mentioned anywhere is in its table.

use std::fs;
use std::path::{Path, PathBuf};

use contract::environment::{COMMANDS, OF_TESTS, VARIABLES, of_flag};

/// Assembled, or this file would find itself.
const START: &str = concat!("FATHOM", "_");

/// Folders that name variables.
const FOLDERS: [&str; 8] =
    ["crates", "python", "tests", "bench", "fuzz/tests", "docs", "examples", "packaging"];

/// Files in the root that do.
const FILES: [&str; 5] =
    ["Makefile", "README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Paths below the root, with the text of each.
fn texts() -> Vec<(String, String)> {
    let mut open: Vec<PathBuf> =
        FOLDERS.iter().chain(&FILES).map(|name| root().join(name)).collect();
    let mut texts = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            texts.push((name, text));
        }
    }
    texts
}

/// Names of ours in a text, each with the character before it.
fn names(text: &str) -> impl Iterator<Item = (Option<char>, &str)> {
    text.match_indices(START).map(|(at, _)| {
        let rest = &text[at..];
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        (text[..at].chars().next_back(), &rest[..end])
    })
}

#[test]
fn every_name_is_in_the_table() {
    let is_known = |name: &str| {
        let of_tests =
            |(own, _): &(&str, &str)| *own == name || own.ends_with('_') && name.starts_with(own);
        let of_flag = |command: &&str| name.starts_with(&of_flag(command, ""));
        name == START
            || COMMANDS.iter().any(of_flag)
            || VARIABLES.iter().any(|own| own.name == name)
            || OF_TESTS.iter().any(of_tests)
    };
    let mut count = 0;
    for (path, text) in texts() {
        for (_, name) in names(&text) {
            assert!(
                is_known(name),
                "`{name}` in {path} is not in the table of `contract::environment`"
            );
            count += 1;
        }
    }
    assert!(100 < count, "only {count} names were found: were the right folders looked at?");
}

#[test]
fn names_stand_in_quotes_in_the_contract_alone() {
    let is_ours = |path: &str| {
        path.starts_with("crates/contract/")
            || path == "python/fathom/contract.py"
            || path.starts_with("crates/") && path.contains("/tests/")
    };
    let code = |path: &str| path.starts_with("crates/") || path.starts_with("python/");
    for (path, text) in texts().iter().filter(|(path, _)| code(path) && !is_ours(path)) {
        let quoted = names(text).find(|(before, _)| matches!(before, Some('"' | '\'')));
        assert!(quoted.is_none(), "{path} writes {quoted:?}: take it from the contract");
    }
}

#[test]
fn no_variable_stands_twice() {
    let mut all: Vec<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
    all.extend(OF_TESTS.iter().map(|(name, _)| *name));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
