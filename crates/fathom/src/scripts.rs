//! `[[script]]` of `fathom.toml`: what `fathom check` runs, and within which limits.

use std::path::PathBuf;

use anyhow::Result;
use serde::Deserialize;

use crate::cli::{CardArguments, complete};
use crate::error::Hinted;
use crate::settings::Typed;

/// One script. What it leaves open comes from the environment and from the top of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    name: Option<String>,
    /// Words, or one line of them.
    command: toml::Value,
    gpu: Option<String>,
    memory: Option<String>,
    used: Option<String>,
    steps: Option<u64>,
    timeout: Option<u64>,
    budget: Option<String>,
    values: Option<String>,
    record: Option<String>,
    pub(crate) baseline: Option<PathBuf>,
    margin: Option<String>,
}

impl Script {
    /// As it would be typed: its name, its command and what it says of its settings.
    pub(crate) fn typed(&self) -> Result<(String, Vec<String>, Typed)> {
        let command = self.words()?;
        let name = self.name.clone().unwrap_or_else(|| command.join(" "));
        let Script { gpu, memory, used, .. } = self.clone();
        let typed = Typed {
            card: CardArguments { gpu, memory, used },
            steps: self.steps,
            timeout: self.timeout,
            budget: self.budget.clone(),
            values: self.values.clone(),
            record: self.record.clone(),
            baseline: self.baseline.clone(),
            margin: self.margin.clone(),
            ..Typed::default()
        };
        Ok((name, command, typed))
    }

    fn words(&self) -> Result<Vec<String>> {
        let hint =
            "write `command = \"python train.py\"` or `command = [\"python\", \"train.py\"]`";
        let words = match &self.command {
            toml::Value::String(line) => split(line).map_err(|why| Hinted::error(why, hint))?,
            toml::Value::Array(list) => {
                let word = |value: &toml::Value| value.as_str().map(str::to_owned);
                let words: Option<Vec<String>> = list.iter().map(word).collect();
                words.ok_or_else(|| Hinted::error("a word of `command` is not a text", hint))?
            }
            _ => return Err(Hinted::error("`command` is not a text", hint)),
        };
        if words.is_empty() {
            return Err(Hinted::error("`command` of a script is empty", hint));
        }
        Ok(complete(words))
    }
}

/// Words as a shell splits them: blanks, quotes and backslashes; nothing is expanded.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            (_, Some(end)) if character == end => quote = None,
            ('\\', None | Some('"')) => {
                let next = characters.next().ok_or(format!("`{line}` ends with a backslash"))?;
                word.get_or_insert_default().push(next);
            }
            (_, Some(_)) => word.get_or_insert_default().push(character),
            ('"' | '\'', None) => {
                word.get_or_insert_default();
                quote = Some(character);
            }
            (' ' | '\t' | '\n' | '\r', None) => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("`{line}` has a quote {quote} without its end"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_by_a_shell() {
        let words = |line| split(line).unwrap();
        assert_eq!(words("python  train.py --lr 0.1"), ["python", "train.py", "--lr", "0.1"]);
        assert_eq!(
            words("a 'b c' \"d 'e\" f\\ g \"\" 'h'i"),
            ["a", "b c", "d 'e", "f g", "", "hi"]
        );
        assert_eq!(words("echo $HOME *.py \"\\\"\""), ["echo", "$HOME", "*.py", "\""]);
        assert_eq!(words("  "), Vec::<String>::new());
        assert!(split("a 'b").unwrap_err().contains("without its end"));
        assert!(split("a\\").is_err());
    }

    #[test]
    fn a_script_is_read_from_toml() {
        let read = |text: &str| toml::from_str::<Script>(text).map(|script| script.typed());
        let (name, _, typed) = read("command = 'python a.py'\nbudget = '2GiB'").unwrap().unwrap();
        assert_eq!((name.as_str(), typed.budget.as_deref()), ("python a.py", Some("2GiB")));
        let (name, command, _) = read("name = 'a'\ncommand = ['python', 'b c']").unwrap().unwrap();
        assert_eq!((name.as_str(), command), ("a", vec!["python".to_owned(), "b c".to_owned()]));
        assert!(read("command = 'python'\nspeed = 3").is_err());
        let (_, _, typed) =
            read("command = 'a'\ngpu = 'b'\nmemory = 'c'\nused = 'd'").unwrap().unwrap();
        let CardArguments { gpu, memory, used } = typed.card;
        assert_eq!([gpu, memory, used].map(Option::unwrap), ["b", "c", "d"]);
        for wrong in ["command = ''", "command = 3", "command = ['a', 3]"] {
            assert!(read(wrong).unwrap().is_err(), "{wrong}");
        }
    }
}
