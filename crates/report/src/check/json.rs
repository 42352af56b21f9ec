//! `fathom.check/1`: the reports of all scripts in one file.

use serde::Serialize;
use serde_json::Value;

use super::{Check, exit_code};

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    exit_code: i32,
    scripts: Vec<Script<'a>>,
}

#[derive(Serialize)]
struct Script<'a> {
    name: &'a str,
    command: &'a str,
    passes: bool,
    report: Value,
}

/// As JSON, with a line break at the end.
pub fn json(checks: &[Check]) -> String {
    let scripts = checks.iter().map(|check| Script {
        name: &check.name,
        command: &check.command,
        passes: check.passes(),
        report: serde_json::from_str(&crate::json(&check.run)).unwrap_or_default(),
    });
    let file =
        File { schema: "fathom.check/1", exit_code: exit_code(checks), scripts: scripts.collect() };
    serde_json::to_string_pretty(&file).expect("plain data serialises") + "\n"
}
