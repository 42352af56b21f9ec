//! The command that is typed behind the flags, with or without `--`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::python::find_program;

/// `train.py --lr 1` becomes `python train.py --lr 1`. All else, a script that starts by itself too, stays as it is.
pub(crate) fn complete(mut words: Vec<String>) -> Vec<String> {
    if words.first().is_some_and(|word| is_python_file(word) && !starts_by_itself(word)) {
        words.insert(0, python().to_owned());
    }
    words
}

fn is_python_file(word: &str) -> bool {
    let path = Path::new(word);
    path.extension().is_some_and(|end| end == "py" || end == "pyw") && path.is_file()
}

/// A shell would start it only by a path; a bare name is looked for elsewhere.
fn starts_by_itself(word: &str) -> bool {
    let is_executable = fs::metadata(word).is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
    let has_interpreter = || fs::read(word).is_ok_and(|bytes| bytes.starts_with(b"#!"));
    word.contains('/') && is_executable && has_interpreter()
}

/// The one that an activated environment puts first.
fn python() -> &'static str {
    let is_there = |name: &&str| find_program(name).is_ok();
    ["python", "python3"].into_iter().find(is_there).unwrap_or("python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_file_gets_its_python() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("train.py");
        fs::write(&script, "#!/usr/bin/env python3\nprint(1)\n").unwrap();
        let name = script.to_str().unwrap().to_owned();
        let typed = vec![name.clone(), "--lr".to_owned(), "1".to_owned()];
        let whole = complete(typed.clone());
        assert!(whole[0].starts_with("python") && whole[1..] == typed[..], "{whole:?}");
        assert_eq!(complete(whole.clone()), whole);

        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(complete(typed.clone()), typed, "its first line says what starts it");
        fs::write(&script, "print(1)\n").unwrap();
        assert_ne!(complete(typed.clone()), typed, "a shell would read this as its own");
        fs::remove_file(&script).unwrap();
        assert_eq!(complete(typed.clone()), typed);
        assert!(complete(Vec::new()).is_empty());
    }
}
