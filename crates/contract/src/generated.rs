//! What is written from the contract: Python's side of it, and the page about files.

use crate::environment::VARIABLES;
use crate::files::UNCONFINED_FILE;
use crate::files::process::{
    Decided, Device, End, Fault, Generation, Loader, Moment, Refusal, Site,
};
use crate::files::{Early, FOLDER_SCHEMA, Field, File, Flops, Levers, OWNER_FILE, Process, Record};
use crate::files::{
    Unanswered, Waits,
    levers::{Edit, Lever, Setting},
    sources,
};

/// How to write all of it anew.
const COMMAND: &str = "UPDATE_GOLDEN=1 cargo test -p contract";

/// A record, and the file that consists of it if there is one.
struct Part {
    name: &'static str,
    about: &'static str,
    fields: Vec<Field>,
    file: Option<Kind>,
}

struct Kind {
    kind: &'static str,
    schema: String,
    tells: &'static str,
}

/// Each file, followed by the records in it.
fn parts() -> Vec<Part> {
    vec![
        file::<Process>(),
        record::<Device>(),
        record::<Moment>(),
        record::<Site>(),
        record::<Loader>(),
        record::<Refusal>(),
        record::<Decided>(),
        record::<Generation>(),
        record::<Fault>(),
        record::<End>(),
        file::<Early>(),
        file::<Levers>(),
        record::<Lever>(),
        record::<Setting>(),
        record::<Edit>(),
        file::<Flops>(),
        file::<Waits>(),
        file::<Unanswered>(),
    ]
}

fn record<T: Record>() -> Part {
    Part { name: T::NAME, about: T::ABOUT.trim(), fields: T::fields(), file: None }
}

fn file<T: File>() -> Part {
    let file = Kind { kind: T::KIND, schema: T::schema(), tells: T::TELLS };
    Part { file: Some(file), ..record::<T>() }
}

/// `python/fathom/contract.py`.
pub fn python() -> String {
    let mut text = format!(
        "\"\"\"What the processes of a run tell each other: variables, names of files, and what is in them.\n\n\
         Generated from `crates/contract` (`{COMMAND}`): do not edit. Each function gives a\n\
         dictionary as the command reads it; what is a file by itself says its schema.\n\"\"\"\n\n\
         from __future__ import annotations\n\n\
         # Variables of the environment: docs/reference/environment.md.\n"
    );
    for variable in VARIABLES {
        text += &format!("{} = \"{}\"\n", variable.constant, variable.name);
    }
    text += &format!(
        "\n# A folder that goes with its process.\nOWNER_FILE = \"{OWNER_FILE}\"\n\
         FOLDER_SCHEMA = \"{FOLDER_SCHEMA}\"\n\n\
         # Why a run could not be confined.\nUNCONFINED_FILE = \"{UNCONFINED_FILE}\"\n\n\
         # What a trial sees, a line of JSON each: docs/reference/files.md.\nSOURCES_SCHEMA = \"{}\"\n\n",
        sources::SCHEMA
    );
    for Part { name, .. } in parts() {
        text += &format!("{name} = dict[str, object]\n");
    }
    text += &name_function(sources::KIND, "");
    parts().iter().for_each(|part| text += &function(part));
    text
}

fn name_function(kind: &str, ending: &str) -> String {
    format!("\n\ndef {kind}_file(pid: int) -> str:\n    return f\"{kind}.{{pid}}{ending}\"\n")
}

/// One that gives a record: what must be there must be given.
fn function(Part { name, about, fields, file }: &Part) -> String {
    let parameter = |field: &&Field| {
        let default = if field.optional { " = None" } else { "" };
        format!("    {}: {}{default},\n", field.name, field.python)
    };
    let parameters: String = fields.iter().map(|field| parameter(&field)).collect();
    let item = |field: &Field| format!("        \"{0}\": {0},\n", field.name);
    let items: String = fields.iter().map(item).collect();
    let (names, schema) =
        file.as_ref().map_or_else(Default::default, |Kind { kind, schema, .. }| {
            (name_function(kind, ".json"), format!("        \"schema\": \"{schema}\",\n"))
        });
    let function = name.to_lowercase();
    format!(
        "{names}\n\ndef {function}(\n    *,\n{parameters}) -> {name}:\n    \"\"\"{about}\"\"\"\n    \
         return {{\n{schema}{items}    }}\n"
    )
}

/// The page `docs/reference/files.md`.
pub fn markdown() -> String {
    let mut page = format!(
        "# Files of a run\n\n\
         Generated from `crates/contract/src/files` (`{COMMAND}`).\n\n\
         What the processes of a run leave in its folder (`--out DIR` keeps it). These files are between parts of \
         Fathom: what is meant for you is `report.json` and the recordings. Each names its version; a file that is \
         newer, damaged or cut is read as far as it can be, and the report says by name what could not be read.\n\n\
         Beside them lie two kinds of pages of fixed layout: `phantom.<pid>` (`crates/contract/src/status.rs`), what a \
         process used of the GPUs, and `phantom.cards` (`cards.rs`), what all held at once; and \
         `recording.<pid>.<device>.fathom`, the events of one GPU's memory (`crates/recording`).\n"
    );
    for Part { name, about, fields, file } in parts() {
        page += &match file {
            Some(Kind { kind, schema, tells }) => format!(
                "\n## `{kind}.<pid>.json`, `{schema}`\n\n{about} Without it these are not known: {tells}.\n"
            ),
            None => format!("\n### {name}\n\n{about}\n"),
        };
        page += "\n| field | type | meaning |\n| --- | --- | --- |\n";
        for Field { name, python, about, .. } in fields {
            page += &format!("| `{name}` | {} | {} |\n", python.replace('|', "\\|"), about.trim());
        }
    }
    page += &format!(
        "\n## `{}.<pid>`, `{}`\n\nWhat a trial sees of the files around it, by which its answer is \
         remembered.\n\n| line | meaning |\n| --- | --- |\n",
        sources::KIND,
        sources::SCHEMA
    );
    for (line, meaning) in sources::LINES {
        page += &format!("| `{line}` | {meaning} |\n");
    }
    page
}
