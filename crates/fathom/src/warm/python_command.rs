//! Which commands a warm process can stand for: `python [options] script.py …`, `-m module …`, `-c code …`.

use std::path::Path;

use crate::python;

/// A command taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PythonWords {
    /// The interpreter and its own options.
    pub(crate) start: Vec<String>,
    /// The script, or `-m` and a module, or `-c` and code, and what follows.
    pub(crate) rest: Vec<String>,
}

/// Options that take the next word.
const WITH_VALUE: [&str; 2] = ["-X", "-W"];

/// Options that change how Python ends or where it reads its program from.
const OTHERS: [&str; 4] = ["-i", "-", "-V", "-h"];

/// `None` if the command is anything but a Python with a program.
pub(crate) fn take_apart(command: &[String]) -> Option<PythonWords> {
    if !python::is_python(Path::new(&command[0])) {
        return None;
    }
    let mut start = vec![command[0].clone()];
    let mut index = 1;
    while let Some(word) = command.get(index) {
        let is_program = matches!(word.as_str(), "-m" | "-c") || !word.starts_with('-');
        if is_program {
            let rest = command[index..].to_vec();
            let is_whole = !word.starts_with('-') || 2 <= rest.len();
            let is_file = word.starts_with('-') || Path::new(word).is_file();
            return (is_whole && is_file).then_some(PythonWords { start, rest });
        }
        if OTHERS.contains(&word.as_str()) || word.starts_with("--") {
            return None;
        }
        start.push(word.clone());
        if WITH_VALUE.contains(&word.as_str()) {
            index += 1;
            start.push(command.get(index)?.clone());
        }
        index += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(words: &str) -> Option<PythonWords> {
        take_apart(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_python_are_kept_apart_from_the_program() {
        let script = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let words = apart(&format!("python3 -u -X dev {script} --lr 1")).unwrap();
        assert_eq!(words.start, ["python3", "-u", "-X", "dev"]);
        assert_eq!(words.rest, [script.as_str(), "--lr", "1"]);
        assert_eq!(apart("python -m pkg.train -x").unwrap().rest, ["-m", "pkg.train", "-x"]);
    }

    #[test]
    fn anything_else_starts_cold() {
        for words in ["torchrun train.py", "python", "python -", "python -m", "python missing.py"] {
            assert_eq!(apart(words), None, "{words}");
        }
    }
}
