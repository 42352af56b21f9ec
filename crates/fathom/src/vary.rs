//! `--vary` and `--set`: which knobs of a script are turned, over which values.

use anyhow::Result;
use fit::Knob;
use fit::largest::Range;

use crate::cli::TrialArguments;
use crate::error::Hinted;
use crate::runner::hinted;

/// The knob that is a world's size.
pub(crate) const WORLD_SIZE: &str = "world-size";

/// What a knob is varied over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vary {
    Values(Vec<String>),
    Range(Range),
}

/// `batch=1,2,4` or `batch=1..512`.
pub(crate) fn read_vary(text: &str) -> Result<(String, Vary)> {
    let wrong = |why: &str| {
        Hinted::error(
            format!("`--vary {text}`: {why}"),
            "for example `--vary batch=8,16,32` or `--vary batch=1..512`",
        )
    };
    let (name, values) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
    if name.is_empty() || values.is_empty() {
        return Err(wrong("a name and values are needed"));
    }
    if let Some((low, high)) = values.split_once("..") {
        let ends = (low.parse::<i64>(), high.trim_start_matches('=').parse::<i64>());
        let (Ok(low), Ok(high)) = ends else {
            return Err(wrong("the ends of a range are whole numbers"));
        };
        if high < low {
            return Err(wrong("the range is empty"));
        }
        return Ok((name.to_owned(), Vary::Range((low, high))));
    }
    let values: Vec<String> =
        split(values).into_iter().map(|value| value.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        return Err(wrong("a value is empty"));
    }
    Ok((name.to_owned(), Vary::Values(values)))
}

/// At commas, but for those of a list: `[1,2],[3,4]` are two values.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// As it was typed.
pub(crate) fn shown(vary: &Vary) -> Vec<String> {
    match vary {
        Vary::Values(values) => values.clone(),
        Vary::Range((low, high)) => vec![format!("{low}..{high}")],
    }
}

/// Knobs by name, with the templates that were given.
pub(crate) fn knobs(names: &[&str], trial: &TrialArguments) -> Result<Vec<Knob>> {
    let templates = templates(trial)?;
    if let Some((name, _)) = templates.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        return Err(Hinted::error(
            format!("`--set {name}=…` is never varied"),
            format!("add `--vary {name}=…`, or leave it out"),
        ));
    }
    let knob = |called: &&str| {
        let template =
            templates.iter().find(|(of, _)| of == called).map(|(_, template)| template.as_str());
        if *called == WORLD_SIZE && template.is_none() {
            return Ok(Knob::world(called));
        }
        Knob::new(called, template, &trial.command).map_err(hinted)
    };
    names.iter().map(knob).collect()
}

/// Name and template of each `--set`.
pub(crate) fn templates(trial: &TrialArguments) -> Result<Vec<(String, String)>> {
    let read = |text: &String| {
        let pair = text
            .split_once('=')
            .filter(|(name, template)| !name.is_empty() && !template.is_empty());
        let (name, template) = pair.ok_or_else(|| {
            Hinted::error(
                format!("`--set {text}` has no template"),
                "for example `--set batch='--batch-size {}'`",
            )
        })?;
        Ok((name.to_owned(), template.to_owned()))
    };
    trial.templates.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_ranges_are_read() {
        assert_eq!(read_vary("b=1..512").unwrap().1, Vary::Range((1, 512)));
        assert_eq!(read_vary("b=8, 16").unwrap().1, Vary::Values(vec!["8".into(), "16".into()]));
        let lists = Vary::Values(vec!["[1,2]".into(), "[3,4]".into()]);
        assert_eq!(read_vary("b=[1,2],[3,4]").unwrap().1, lists);
        for wrong in ["b", "=1", "b=", "b=1,,2", "b=9..3", "b=a..c"] {
            assert!(read_vary(wrong).is_err(), "{wrong}");
        }
    }
}
