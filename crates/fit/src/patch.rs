//! A plan as changes of files: edits that levers mean, put together, and as a unified diff.

use std::collections::BTreeMap;

use similar::TextDiff;

/// What stands in a file instead of some of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edit {
    pub file: String,
    /// The first byte that goes.
    pub begin: usize,
    /// The first one that stays.
    pub end: usize,
    pub text: String,
}

/// A file before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its whole path.
    pub file: String,
    /// The same from where the diff is applied.
    pub name: String,
    pub before: String,
    pub after: String,
}

/// All that is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    pub files: Vec<Changed>,
    /// Where the diff is applied, if not in the working folder.
    pub folder: Option<String>,
    /// Words behind the command.
    pub words: Vec<String>,
    /// Variables of the environment.
    pub environment: Vec<(String, String)>,
}

impl Patch {
    /// All files as one unified diff.
    pub fn diff(&self) -> String {
        self.files.iter().map(|it| unified(&it.name, &it.before, &it.after)).collect()
    }
}

/// Edits by file, each file's in their order; those that several levers mean are there once. What two levers would
/// write into one place is an error: the file and the byte.
pub fn by_file(edits: &[Edit]) -> Result<BTreeMap<String, Vec<Edit>>, (String, usize)> {
    let mut files: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    for edit in edits {
        let of_file = files.entry(edit.file.clone()).or_default();
        if !of_file.contains(edit) {
            of_file.push(edit.clone());
        }
    }
    for of_file in files.values_mut() {
        // What is put in at one place stays in the order in which levers meant it, and comes before what is replaced.
        of_file.sort_by_key(|edit| (edit.begin, edit.end));
        for pair in of_file.windows(2) {
            if let [one, other] = pair
                && other.begin < one.end
            {
                return Err((other.file.clone(), other.begin));
            }
        }
    }
    Ok(files)
}

/// The text with these edits, which are in their order; `None` if it is not the text that they were made for.
pub fn edited(before: &str, edits: &[Edit]) -> Option<String> {
    let (mut after, mut at) = (String::with_capacity(before.len()), 0);
    for edit in edits {
        after += before.get(at..edit.begin)?;
        after += &edit.text;
        at = before.get(edit.begin..edit.end).map(|_| edit.end)?;
    }
    after += before.get(at..)?;
    Some(after)
}

/// A unified diff, as `git apply` takes it; `name` is the file's path from where it is applied.
fn unified(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let (old, new) = (format!("a/{name}"), format!("b/{name}"));
    diff.unified_diff().context_radius(3).header(&old, &new).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(begin: usize, end: usize, text: &str) -> Edit {
        Edit { file: "a.py".to_owned(), begin, end, text: text.to_owned() }
    }

    #[test]
    fn edits_of_several_levers_are_put_together() {
        let import = edit(0, 0, "import x\n");
        let all = [edit(4, 5, "2"), import.clone(), edit(4, 4, "-"), import];
        let files = by_file(&all).unwrap();
        assert_eq!(edited("a = 1\n", &files["a.py"]).unwrap(), "import x\na = -2\n");
        let diff = unified("a.py", "a = 1\n", "import x\na = -2\n");
        assert_eq!(diff, "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-a = 1\n+import x\n+a = -2\n");
    }

    #[test]
    fn what_two_levers_write_into_one_place_is_refused() {
        let all = [edit(2, 6, "x"), edit(4, 5, "y")];
        assert_eq!(by_file(&all), Err(("a.py".to_owned(), 4)));
    }

    #[test]
    fn another_text_than_the_one_that_was_read_is_not_edited() {
        assert_eq!(edited("short", &[edit(90, 91, "x")]), None);
        assert_eq!(edited("é", &[edit(1, 1, "x")]), None, "in the middle of a character");
    }
}
