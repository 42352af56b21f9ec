//! `sources.<pid>`: what a trial sees of the files around it, a line of JSON each, written as it goes. A
//! forked process appends to the list of its parent.

use std::path::PathBuf;

use serde_json::Value;

use super::text::repaired;

/// How names of such files begin.
pub const KIND: &str = "sources";

/// The second word of the first line, `["schema", …]`.
pub const SCHEMA: &str = "fathom.sources/1";

/// The lines, and what they mean: for the reference page.
pub const LINES: &[(&str, &str)] = &[
    ("[\"schema\", version]", "the first line"),
    (
        "[\"read\", path, size, time]",
        "its content was read, as it was then; size and time are null if it is not there",
    ),
    ("[\"installed\", path, …]", "the same for what the interpreter and its packages consist of"),
    (
        "[\"look\", path, kind]",
        "only looked for: `missing`, `folder`, `file SIZE`, `link TARGET`, `other`",
    ),
    ("[\"list\", path, names]", "all names in a folder; null if there are too many"),
    ("[\"modules\", path, names]", "those that an import could take"),
    ("[\"made\", path]", "the script made it: what it sees of it from now on is its own"),
    ("[\"beyond\", why]", "something that no list of files tells"),
    ("[\"end\"]", "the process came to its end: the list is whole"),
];

/// One line; [`LINES`] says what they mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    Read { path: PathBuf, was: Option<(u64, i128)> },
    Installed(Vec<PathBuf>),
    Look { path: PathBuf, kind: String },
    List { path: PathBuf, names: Option<Vec<String>> },
    Modules { path: PathBuf, names: Option<Vec<String>> },
    Made(PathBuf),
    Beyond(String),
    End,
}

/// The lines of the file with this name, up to the first that cannot be read, which is why the list does not
/// count.
pub fn read(name: &str, bytes: &[u8]) -> impl Iterator<Item = Result<Sight, String>> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let is_known = words(first).is_some_and(|words| is_schema(&words) && words[1] == SCHEMA);
    let foreign = (!is_known)
        .then(|| Err(format!("`{name}` is damaged, or of another version than `{SCHEMA}`")));
    let rest = lines.filter_map(move |(number, line)| {
        let cannot = || format!("line {} of `{name}` cannot be read", number + 1);
        let Some(words) = words(line) else { return Some(Err(cannot())) };
        // A process may have become another program, which begins anew.
        if is_schema(&words) {
            return None;
        }
        if repaired(line).1 != 0 {
            return Some(Err("it sees a file whose name is no text".to_owned()));
        }
        Some(sight(&words).ok_or_else(cannot))
    });
    foreign.into_iter().chain(rest.take_while(move |_| is_known))
}

/// A line that is whole.
fn words(line: &[u8]) -> Option<Vec<Value>> {
    serde_json::from_str(&repaired(line.strip_suffix(b"\n")?).0).ok()
}

fn is_schema(words: &[Value]) -> bool {
    matches!(words, [first, _] if first == "schema")
}

fn sight(words: &[Value]) -> Option<Sight> {
    let path = |value: &Value| value.as_str().map(PathBuf::from);
    Some(match (words.first()?.as_str()?, &words[1..]) {
        ("read", [at, Value::Null, Value::Null]) => Sight::Read { path: path(at)?, was: None },
        ("read", [at, size, time]) => {
            Sight::Read { path: path(at)?, was: Some((size.as_u64()?, time.as_i64()?.into())) }
        }
        ("installed", paths) => Sight::Installed(paths.iter().map(path).collect::<Option<_>>()?),
        ("look", [at, kind]) => Sight::Look { path: path(at)?, kind: kind.as_str()?.to_owned() },
        ("list", [at, names]) => Sight::List { path: path(at)?, names: all_names(names)? },
        ("modules", [at, names]) => Sight::Modules { path: path(at)?, names: all_names(names)? },
        ("made", [at]) => Sight::Made(path(at)?),
        ("beyond", [why]) => Sight::Beyond(why.as_str()?.to_owned()),
        ("end", []) => Sight::End,
        _ => return None,
    })
}

/// Names of a folder, or null if there are too many.
fn all_names(value: &Value) -> Option<Option<Vec<String>>> {
    let name = |name: &Value| name.as_str().map(str::to_owned);
    match value {
        Value::Null => Some(None),
        value => value.as_array()?.iter().map(name).collect::<Option<_>>().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Sight>, String> {
        read("sources.7", text.as_bytes()).collect()
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let text = "[\"schema\", \"fathom.sources/1\"]\n[\"read\", \"/a\", 3, 7]\n[\"read\", \"/b\", null, null]\n\
                    [\"list\", \"/\", [\"a\"]]\n[\"modules\", \"/\", null]\n[\"end\"]\n";
        let [a, b, root] = ["/a", "/b", "/"].map(PathBuf::from);
        let sights = vec![
            Sight::Read { path: a, was: Some((3, 7)) },
            Sight::Read { path: b, was: None },
            Sight::List { path: root.clone(), names: Some(vec!["a".to_owned()]) },
            Sight::Modules { path: root, names: None },
            Sight::End,
        ];
        assert_eq!(all(text), Ok(sights));
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_the_files_name() {
        let schema = "[\"schema\", \"fathom.sources/1\"]\n";
        for line in [
            "[\"read\", \"/a\"",
            "[\"read\", \"/a\", \"3\", 7]\n",
            "[\"smell\", \"/a\"]\n",
            "[\"end\"]",
        ] {
            let error = all(&format!("{schema}{line}")).unwrap_err();
            assert!(error.contains("line 2 of `sources.7`"), "{line}: {error}");
        }
        for other in ["", "[\"end\"]\n", "[\"schema\", \"fathom.sources/2\"]\n[\"end\"]\n"] {
            let error = all(other).unwrap_err();
            assert!(error.contains("`sources.7`") && error.contains("another version"), "{error}");
        }
        let odd = all(&format!("{schema}[\"made\", \"caf\\udce9\"]\n")).unwrap_err();
        assert!(odd.contains("no text"), "{odd}");
    }
}
