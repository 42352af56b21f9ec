//! The files that processes of a run leave in its folder for the command to read.
//!
//! Each kind has a module with its records and is a [`File`]: it begins with `"schema": "fathom.NAME/1"`.
//! [`read`] gives what could be read, and notes for the report on what could not: each names the file. A file of
//! a newer version is read as far as it is understood. Nothing here touches a disk.

mod shape;
mod text;

pub mod early;
mod flops;
pub mod levers;
pub mod process;
pub mod ranks;
pub mod sources;

use serde_json::Value;

pub use self::early::Early;
pub use self::flops::Flops;
pub use self::levers::Levers;
pub use self::process::Process;
pub use self::ranks::{Unanswered, Waits};
pub use self::shape::{Field, Record, Shape};

/// The folder of a run that goes with it begins with this line in its file `owner`; the process that has made
/// it holds a lock on that file.
pub const FOLDER_SCHEMA: &str = "fathom.folder/1";

/// The owner's file of such a folder.
pub const OWNER_FILE: &str = "owner";

/// Why a run was not repeated: its process could not be kept from writing elsewhere.
pub const UNCONFINED_FILE: &str = "unconfined";

/// Problems of one file that are named.
const NAMED: usize = 3;

/// A kind of file: `NAME.<pid>.json`.
pub trait File: Record {
    /// How names of such files and their schema begin.
    const KIND: &'static str;
    /// The version that is written.
    const VERSION: u32 = 1;
    /// What is not known where such a file cannot be read.
    const TELLS: &'static str;

    /// What such a file says that it is.
    fn schema() -> String {
        format!("fathom.{}/{}", Self::KIND, Self::VERSION)
    }

    /// The file of a process.
    fn name(pid: impl std::fmt::Display) -> String {
        format!("{}.{pid}.json", Self::KIND)
    }

    /// How every version begins: by this `--out` knows the file as ours.
    fn mark() -> String {
        format!("{{\"schema\": \"fathom.{}/", Self::KIND)
    }
}

/// What a file gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Read<T> {
    /// `None` if nothing of it could be read.
    pub value: Option<T>,
    /// Whether every field is what the file says, and none a default in its place.
    pub is_whole: bool,
    /// What could not be read, as sentences for the report.
    pub notes: Vec<String>,
}

/// Reads the bytes of the file with this name.
pub fn read<T: File>(name: &str, bytes: &[u8]) -> Read<T> {
    let (text, replaced) = text::repaired(bytes);
    let object = serde_json::from_str(&text).map_err(|error| error.to_string());
    let object = object.and_then(|value: Value| match value.is_object() {
        true => Ok(value),
        false => Err("not a dictionary".to_owned()),
    });
    let object = match object {
        Ok(object) => object,
        Err(why) => return unreadable(name, &why),
    };
    let mut notes = Vec::new();
    notes.extend(odd_version::<T>(name, object.get("schema")));
    notes.extend((replaced != 0).then(|| no_text(name, replaced)));
    let mut problems = Vec::new();
    let value = T::read(&object, "", &mut problems);
    notes.extend((!problems.is_empty()).then(|| named(name, &problems)));
    Read { value, is_whole: problems.is_empty(), notes }
}

/// A file of which nothing can be read, or that cannot be opened.
pub fn unreadable<T: File>(name: &str, why: &str) -> Read<T> {
    let note = format!("`{name}` cannot be read ({why}), so these are not known: {}", T::TELLS);
    Read { value: None, is_whole: false, notes: vec![note] }
}

fn odd_version<T: File>(name: &str, schema: Option<&Value>) -> Option<String> {
    let own = T::schema();
    let Some(said) = schema.and_then(Value::as_str) else {
        return Some(format!("`{name}` does not say its version; it was read as `{own}`"));
    };
    let version = said
        .strip_prefix("fathom.")
        .and_then(|rest| rest.strip_prefix(T::KIND)?.strip_prefix('/')?.parse::<u32>().ok());
    match version {
        Some(version) if version == T::VERSION => None,
        Some(version) if T::VERSION < version => Some(format!(
            "`{name}` is `{said}`, newer than this Fathom, which knows `{own}`: what is new in it is not shown"
        )),
        _ => Some(format!("`{name}` is `{said}`; it was read as `{own}`")),
    }
}

fn no_text(name: &str, replaced: usize) -> String {
    let places = if replaced == 1 { "one place".to_owned() } else { format!("{replaced} places") };
    format!("`{name}` holds what is no text in {places}, shown as `�`")
}

fn named(name: &str, problems: &[String]) -> String {
    let shown = problems[..problems.len().min(NAMED)].join(", ");
    let more = match problems.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("`{name}` was read in part: {shown}{more}")
}
