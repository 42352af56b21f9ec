//! Another value for one key of a YAML or JSON text; all the rest stays as it is.

use thiserror::Error;

/// Why a key cannot be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// It is not there.
    #[error("there is no key `{key}`")]
    Missing {
        /// What was looked for.
        key: String,
        /// Keys that end alike.
        near: Vec<String>,
    },
    /// It holds more than a value.
    #[error("`{0}` holds more than one value")]
    NotAValue(String),
    /// The text cannot be read.
    #[error("it is not JSON: {0}")]
    Json(String),
}

impl Error {
    pub fn hint(&self) -> String {
        match self {
            Error::Missing { near, .. } if !near.is_empty() => {
                format!("did you mean `{}`?", near[0])
            }
            Error::Missing { .. } => {
                "write all keys on the way, with dots: `train.batch_size`".to_owned()
            }
            Error::NotAValue(key) => format!("name a key below `{key}`"),
            Error::Json(_) => "check the file".to_owned(),
        }
    }
}

/// Sets a dotted key of a YAML text written in lines: `key: value`, nested by indentation.
pub fn set_yaml(text: &str, key: &str, value: &str) -> Result<String, Error> {
    let lines: Vec<&str> = text.lines().collect();
    let entries = entries(&lines);
    let Some(entry) = entries.iter().find(|entry| entry.path == key) else {
        let last = key.rsplit('.').next().unwrap_or(key);
        let near = entries.iter().filter(|entry| entry.path.rsplit('.').next() == Some(last));
        return Err(Error::Missing {
            key: key.to_owned(),
            near: near.map(|entry| entry.path.clone()).collect(),
        });
    };
    if entry.value.is_empty() || entry.value.starts_with(['|', '>', '&']) {
        return Err(Error::NotAValue(key.to_owned()));
    }
    let line = lines[entry.line];
    let start = entry.column;
    let changed = format!("{}{value}{}", &line[..start], &line[start + entry.value.len()..]);
    let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    lines[entry.line] = changed;
    Ok(lines.join("\n") + "\n")
}

/// Every key of a YAML text that has one value, with that value, in the order of the text.
pub fn values_of_yaml(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let entries = entries(&lines).into_iter();
    let with_value = entries
        .filter(|entry| !entry.value.is_empty() && !entry.value.starts_with(['|', '>', '&']));
    with_value.map(|entry| (entry.path, entry.value.trim_matches(['"', '\'']).to_owned())).collect()
}

/// The same of a JSON text; nothing if it is none.
pub fn values_of_json(text: &str) -> Vec<(String, String)> {
    fn collect(prefix: &str, value: &serde_json::Value, found: &mut Vec<(String, String)>) {
        match value {
            serde_json::Value::Object(inner) => {
                for (key, value) in inner {
                    let key =
                        if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    collect(&key, value, found);
                }
            }
            serde_json::Value::String(text) => found.push((prefix.to_owned(), text.clone())),
            other => found.push((prefix.to_owned(), other.to_string())),
        }
    }
    let mut found = Vec::new();
    if let Ok(whole) = serde_json::from_str(text) {
        collect("", &whole, &mut found);
    }
    found
}

/// Sets a dotted key of a YAML text that the text need not have: it is added where it belongs. For texts that build on
/// another one, whose keys they may set anew.
pub fn put_yaml(text: &str, key: &str, value: &str) -> Result<String, Error> {
    match set_yaml(text, key, value) {
        Err(Error::Missing { .. }) => {}
        other => return other,
    }
    let lines: Vec<&str> = text.lines().collect();
    let entries = entries(&lines);
    let parts: Vec<&str> = key.split('.').collect();
    let above = (1..parts.len()).rev().find_map(|depth| {
        let path = parts[..depth].join(".");
        let entry = entries.iter().find(|entry| entry.path == path && entry.value.is_empty())?;
        Some((depth, entry.line))
    });
    let indent_of = |line: usize| lines[line].len() - lines[line].trim_start().len();
    let (depth, at, first) = match above {
        Some((depth, line)) => {
            let inner = lines
                .get(line + 1)
                .map(|_| indent_of(line + 1))
                .filter(|inner| indent_of(line) < *inner);
            (depth, line + 1, inner.unwrap_or(indent_of(line) + 2))
        }
        None => (0, lines.len(), 0),
    };
    let last = parts.len() - 1;
    let new = parts[depth..].iter().enumerate().map(|(index, part)| {
        let value = if depth + index == last { format!(" {value}") } else { String::new() };
        format!("{}{part}:{value}", " ".repeat(first + 2 * index))
    });
    let mut all: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    all.splice(at..at, new);
    Ok(all.join("\n") + "\n")
}

struct Entry<'a> {
    path: String,
    line: usize,
    /// Where the value begins in its line.
    column: usize,
    value: &'a str,
}

/// Every `key: value` of block mappings, with its dotted path.
fn entries<'a>(lines: &[&'a str]) -> Vec<Entry<'a>> {
    let mut found = Vec::new();
    let mut outer: Vec<(usize, String)> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if trimmed.is_empty() || trimmed.starts_with(['#', '-']) {
            continue;
        }
        let Some(colon) =
            trimmed.find(": ").or_else(|| trimmed.trim_end().strip_suffix(':').map(str::len))
        else {
            continue;
        };
        let key = trimmed[..colon].trim().trim_matches(['"', '\'']);
        outer.retain(|(of, _)| *of < indent);
        let path =
            outer.iter().map(|(_, name)| name.as_str()).chain([key]).collect::<Vec<_>>().join(".");
        outer.push((indent, key.to_owned()));
        let after = &trimmed[colon + 1..];
        let value = without_comment(after).trim();
        let column = indent + colon + 1 + (after.len() - after.trim_start().len());
        found.push(Entry { path, line: number, column, value });
    }
    found
}

/// A comment begins at a `#` after a blank, outside of quotes.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == '#' && before.is_whitespace() => return &text[..at],
            _ => {}
        }
        before = letter;
    }
    text
}

/// Sets a dotted key of a JSON text.
pub fn set_json(text: &str, key: &str, value: &str) -> Result<String, Error> {
    let mut whole: serde_json::Value =
        serde_json::from_str(text).map_err(|error| Error::Json(error.to_string()))?;
    let mut place = &mut whole;
    for part in key.split('.') {
        let missing = || Error::Missing { key: key.to_owned(), near: Vec::new() };
        place = place.get_mut(part).ok_or_else(missing)?;
    }
    if place.is_object() {
        return Err(Error::NotAValue(key.to_owned()));
    }
    *place =
        serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::String(value.to_owned()));
    Ok(serde_json::to_string_pretty(&whole).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "seed: 0\ntrain:\n  # a comment\n  batch_size: 32  # per card\n  sizes: [1, 2]\nother:\n  batch_size: 8\n";

    #[test]
    fn one_value_changes_and_all_else_stays() {
        let set = set_yaml(YAML, "train.batch_size", "64").unwrap();
        assert_eq!(set, YAML.replace("32  #", "64  #"));
        let set = set_yaml(YAML, "other.batch_size", "4").unwrap();
        assert_eq!(set, YAML.replace(": 8", ": 4"));
        assert_eq!(set_yaml(YAML, "train.sizes", "[3]").unwrap(), YAML.replace("[1, 2]", "[3]"));
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is_near() {
        let error = set_yaml(YAML, "batch_size", "1").unwrap_err();
        assert_eq!(error.hint(), "did you mean `train.batch_size`?");
        assert_eq!(set_yaml(YAML, "train", "1"), Err(Error::NotAValue("train".to_owned())));
    }

    #[test]
    fn a_key_that_is_not_there_is_put_where_it_belongs() {
        assert_eq!(put_yaml(YAML, "other.batch_size", "4").unwrap(), YAML.replace(": 8", ": 4"));
        let put = put_yaml(YAML, "train.lr", "1").unwrap();
        assert_eq!(put, YAML.replace("train:\n", "train:\n  lr: 1\n"));
        assert_eq!(put_yaml("base: x.yaml\n", "a.b", "1").unwrap(), "base: x.yaml\na:\n  b: 1\n");
    }

    #[test]
    fn values_are_listed_with_their_keys() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let found = values_of_yaml(YAML);
        assert_eq!(found[..2], [pair("seed", "0"), pair("train.batch_size", "32")]);
        assert_eq!(
            values_of_json(r#"{"a": {"b": 1}, "c": "x"}"#),
            [pair("a.b", "1"), pair("c", "x")]
        );
        assert!(values_of_json("{").is_empty());
    }

    #[test]
    fn json_keeps_its_types() {
        let set = set_json(r#"{"a": {"b": 1, "c": "x"}}"#, "a.b", "2").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&set).unwrap()["a"]["b"], 2);
        let set = set_json(r#"{"a": {"b": 1, "c": "x"}}"#, "a.c", "bf16").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&set).unwrap()["a"]["c"], "bf16");
        assert!(matches!(set_json("{}", "a", "1"), Err(Error::Missing { .. })));
    }
}
