//! Flags that nobody typed but that are set: `FATHOM_RUN_PAGE`, or `page` below `[run]` in `fathom.toml`.
//!
//! They become words of the command line, as if they had been typed, before it is read. What several commands
//! share, such as `gpu`, stands at the top of the file and is put together by [`super::merge`]: a setting has
//! one place.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::ValueHint;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};
use contract::environment;
use toml::Value;

use super::file::File;
use super::{find_file, read_file};
use crate::cli::Cli;
use crate::error::Hinted;

/// Settings that every command which runs a script takes from the top of the file.
const SHARED: [&str; 10] = [
    "steps", "timeout", "budget", "values", "record", "verify", "whole", "baseline", "margin",
    "jobs",
];
/// Those of commands that are about one card.
const CARD: [&str; 3] = ["gpu", "memory", "used"];
const ABOUT_ONE_CARD: [&str; 3] = ["run", "check", "fit"];
const RUNS_SCRIPTS: [&str; 5] = ["run", "check", "fit", "sweep", "report"];

/// A flag that is set somewhere, and the words that say it.
#[derive(Debug)]
struct Found {
    flag: String,
    words: Vec<OsString>,
    /// Where it is set, for people.
    place: String,
    is_of_environment: bool,
}

/// The words of a command line, with what is set elsewhere behind the name of the command.
pub(crate) fn with_settings(words: Vec<OsString>) -> Result<Vec<OsString>> {
    let name = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(name).filter(|command| takes_flags(command)) else {
        return Ok(words);
    };
    // Who asks for help, or has mistyped a flag, is answered before any file is read.
    let Ok(typed) = read(&cli, name, &words) else { return Ok(words) };
    let mut found = Vec::new();
    if let Some(path) = find_file(&std::env::current_dir().unwrap_or_default()) {
        found.extend(of_file(command, &read_file(&path)?, &path)?);
    }
    found.extend(of_environment(command, std::env::vars_os())?);
    let found = in_force(command, &typed, found);
    let whole = |found: &[&Found]| -> Vec<OsString> {
        let set = found.iter().flat_map(|each| each.words.iter().cloned());
        words[..2].iter().cloned().chain(set).chain(words[2..].iter().cloned()).collect()
    };
    // One that cannot be read is named with its place; a command line that lacks something says so later.
    for each in &found {
        if let Err(error) = read(&cli, name, &whole(&[each])) {
            let text = error.to_string();
            let why = text.lines().next().unwrap_or_default();
            let why = why.strip_prefix("error: ").unwrap_or(why).to_owned();
            let hint = format!("`fathom {name} --help` says what `--{}` takes", each.flag);
            return Err(Hinted::error(format!("{}: {why}", each.place), hint));
        }
    }
    Ok(whole(&found.iter().collect::<Vec<_>>()))
}

/// Name, value and place of every flag that a command would get besides those typed, for `fathom doctor`.
pub(crate) fn all_set() -> Result<Vec<(String, String, String)>> {
    let path = find_file(&std::env::current_dir().unwrap_or_default());
    let file = path.as_deref().map(read_file).transpose()?;
    let mut rows = Vec::new();
    for command in Cli::command().get_subcommands().filter(|command| takes_flags(command)) {
        let mut found = match (&path, &file) {
            (Some(path), Some(file)) => of_file(command, file, path)?,
            _ => Vec::new(),
        };
        found.extend(of_environment(command, std::env::vars_os())?);
        rows.extend(strongest(found).into_iter().map(|each| {
            let words: Vec<_> = each.words.iter().map(|word| word.to_string_lossy()).collect();
            (format!("{} {}", command.get_name(), each.flag), words.join(" "), each.place)
        }));
    }
    Ok(rows)
}

fn flags(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let arguments = command.get_arguments().filter_map(|each| Some((each.get_long()?, each)));
    arguments.filter(|(name, _)| !["help", "version"].contains(name))
}

fn takes_flags(command: &Command) -> bool {
    flags(command).next().is_some()
}

/// What was typed, without a word about what is missing: it may be set.
fn read(cli: &Command, name: &str, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let lenient = cli
        .clone()
        .mut_subcommand(name, |command| command.mut_args(|argument| argument.required(false)));
    let mut matches = lenient.try_get_matches_from(words)?;
    Ok(matches.remove_subcommand().map(|(_, matches)| matches).unwrap_or_default())
}

/// Whether a command takes this setting from the top of the file.
fn is_shared(command: &str, flag: &str) -> bool {
    RUNS_SCRIPTS.contains(&command) && SHARED.contains(&flag)
        || ABOUT_ONE_CARD.contains(&command) && CARD.contains(&flag)
}

/// The flag of a command by its name; what is none is an error that names what there is.
fn flag_of<'a>(command: &'a Command, name: &str, place: &str) -> Result<&'a Arg> {
    let of = command.get_name();
    if is_shared(of, name) {
        return Err(Hinted::error(
            format!("{place}: `{name}` is a setting of several commands"),
            format!(
                "write `{name} = …` at the top of `fathom.toml`, or set `{}`",
                environment::of_setting(name)
            ),
        ));
    }
    let found = flags(command).find(|(known, _)| *known == name).map(|(_, argument)| argument);
    found.ok_or_else(|| {
        let known = flags(command).map(|(known, _)| known).filter(|known| !is_shared(of, known));
        Hinted::error(
            format!("{place}: `fathom {of}` has no flag `--{name}`"),
            format!("known: {}", known.collect::<Vec<_>>().join(", ")),
        )
    })
}

fn of_file(command: &Command, file: &File, path: &Path) -> Result<Vec<Found>> {
    let of = command.get_name();
    let Some(table) = file.table(of) else { return Ok(Vec::new()) };
    let found = table.iter().map(|(key, value)| {
        // `save_baseline` is how many write it there.
        let flag = key.replace('_', "-");
        let place = format!("`{key}` of `[{of}]` in {}", path.display());
        let argument = flag_of(command, &flag, &place)?;
        let texts = texts(argument, value, &place)?;
        let beside = |text: String| beside(argument, path, text);
        let words = words(&flag, argument, texts.into_iter().map(beside).collect());
        Ok(Found { flag, words, place, is_of_environment: false })
    });
    found.collect()
}

fn of_environment(
    command: &Command,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<Found>> {
    let start = environment::of_flag(command.get_name(), "");
    let mut found = Vec::new();
    for (variable, value) in variables {
        let Some(rest) = variable.to_str().and_then(|name| name.strip_prefix(&start)) else {
            continue;
        };
        let place = format!("the variable {start}{rest}");
        let flag = rest.to_lowercase().replace('_', "-");
        let argument = flag_of(command, &flag, &place)?;
        let Some(text) = value.to_str() else {
            return Err(Hinted::error(format!("{place} is not UTF-8"), "set it anew"));
        };
        let texts = match (is_switch(argument), text) {
            (_, "") => continue,
            (true, "1" | "on" | "true" | "yes") => vec![String::new()],
            (true, "0" | "off" | "false" | "no") => Vec::new(),
            (true, other) => {
                let what = format!("{place} is `{other}`");
                return Err(Hinted::error(what, "write `on` or `off`"));
            }
            (false, text) if is_list(argument) => text.lines().map(str::to_owned).collect(),
            (false, text) => vec![text.to_owned()],
        };
        let words = words(&flag, argument, texts);
        found.push(Found { flag, words, place, is_of_environment: true });
    }
    Ok(found)
}

fn is_switch(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
}

fn is_list(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
}

/// The values of a key; a switch that is on has one empty text.
fn texts(argument: &Arg, value: &Value, place: &str) -> Result<Vec<String>> {
    let refuse = |hint: &str| Err(Hinted::error(format!("{place} is `{value}`"), hint));
    match (is_switch(argument), value) {
        (true, Value::Boolean(is_on)) => Ok(is_on.then(String::new).into_iter().collect()),
        (true, _) => refuse("write `true` or `false`"),
        (false, Value::Array(values)) if is_list(argument) => {
            let all = values.iter().map(|value| texts(argument, value, place));
            Ok(all.collect::<Result<Vec<_>>>()?.concat())
        }
        (false, Value::String(text)) => Ok(vec![text.clone()]),
        (false, Value::Integer(number)) => Ok(vec![number.to_string()]),
        (false, Value::Float(number)) => Ok(vec![number.to_string()]),
        (false, _) if is_list(argument) => refuse("write a text, or a list of texts"),
        (false, _) => refuse("write a text or a number"),
    }
}

/// A file that is named in `fathom.toml` lies beside it; `-` is the standard output.
fn beside(argument: &Arg, path: &Path, text: String) -> String {
    let is_path = argument.get_value_hint() == ValueHint::AnyPath;
    match path.parent().filter(|_| is_path && text != "-") {
        Some(folder) => folder.join(PathBuf::from(text)).to_string_lossy().into_owned(),
        None => text,
    }
}

fn words(flag: &str, argument: &Arg, texts: Vec<String>) -> Vec<OsString> {
    let word = |text: String| match is_switch(argument) {
        true => format!("--{flag}").into(),
        false => format!("--{flag}={text}").into(),
    };
    texts.into_iter().map(word).collect()
}

/// Of a flag that is set in both, the environment's counts.
fn strongest(mut found: Vec<Found>) -> Vec<Found> {
    let of_environment: Vec<String> =
        found.iter().filter(|each| each.is_of_environment).map(|each| each.flag.clone()).collect();
    found.retain(|each| each.is_of_environment || !of_environment.contains(&each.flag));
    found
}

/// Without what was typed, and what cannot stand beside that. A card that is typed brings its own memory along.
fn in_force(command: &Command, typed: &ArgMatches, found: Vec<Found>) -> Vec<Found> {
    let is_typed = |argument: &Arg| {
        typed.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let argument = |flag: &str| flags(command).find(|(name, _)| *name == flag).map(|(_, own)| own);
    let has_typed = |flag: &str| argument(flag).is_some_and(is_typed);
    let conflicts = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|each| each.get_id() == other.get_id())
    };
    let is_out = |own: &Arg| {
        let others = flags(command).filter(|(_, other)| is_typed(other));
        is_typed(own)
            || others.into_iter().any(|(_, other)| conflicts(own, other) || conflicts(other, own))
    };
    let mut found = strongest(found);
    found.retain(|each| {
        let is_of_another_card = each.flag == "memory" && has_typed("gpu");
        !is_of_another_card && argument(&each.flag).is_some_and(|own| !is_out(own))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(typed: &str, file: &str, variables: &[(&str, &str)]) -> Result<String> {
        let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        let (cli, name) = (Cli::command(), words[1].to_str().unwrap());
        let command = cli.find_subcommand(name).unwrap();
        let file: File = toml::from_str(file).unwrap();
        let mut found = of_file(command, &file, Path::new("/p/fathom.toml"))?;
        let variables = variables.iter().map(|(name, value)| {
            let name = environment::of_flag(words[1].to_str().unwrap(), name);
            (OsString::from(name), OsString::from(value))
        });
        found.extend(of_environment(command, variables)?);
        let found = in_force(command, &read(&cli, name, &words).unwrap(), found);
        let words: Vec<_> = found.into_iter().flat_map(|each| each.words).collect();
        Ok(words.join(&OsString::from(" ")).into_string().unwrap())
    }

    #[test]
    fn flags_come_from_the_file_and_the_environment() {
        let typed = "fathom run -- python train.py";
        let file = "[run]\npage = 'r.html'\njson = '-'\nask = ['batch 16', 'sgd']\nstrict = true\nquiet = false\nworld_size = 8";
        let all = "--ask=batch 16 --ask=sgd --json=- --page=/p/r.html --strict --world-size=8";
        assert_eq!(line(typed, file, &[]).unwrap(), all);
        assert_eq!(
            line("fathom fit -- python train.py", file, &[]).unwrap(),
            "",
            "of another command"
        );
        let variables = [("page", "s.html"), ("strict", "off"), ("ask", "one\ntwo"), ("rank", "")];
        let file = "[run]\npage = 'r.html'\nstrict = true";
        assert_eq!(line(typed, file, &variables).unwrap(), "--page=s.html --ask=one --ask=two");
    }

    #[test]
    fn what_is_typed_wins() {
        let file = "[run]\npage = 'r.html'\nranks = 'all'\nsave-baseline = 'b.json'\n[sweep]\ngpu = ['t4', 'a10g']\nmemory = ['8GiB']";
        let typed = "fathom run --page own.html --rank 3 --baseline c.json -- python train.py";
        assert_eq!(
            line(typed, file, &[]).unwrap(),
            "",
            "and what cannot stand beside it is left out"
        );
        let swept = "fathom sweep --vary a=1 -- python train.py";
        assert_eq!(line(swept, file, &[]).unwrap(), "--gpu=t4 --gpu=a10g --memory=8GiB");
        assert_eq!(line("fathom sweep --gpu h100 --vary a=1 -- x", file, &[]).unwrap(), "");
    }

    #[test]
    fn what_cannot_be_set_is_named_with_its_place() {
        let typed = "fathom run -- python train.py";
        for (file, expected) in [
            ("[run]\npaeg = 'x'", "`paeg` of `[run]` in /p/fathom.toml"),
            ("[run]\ngpu = 't4'", "at the top of `fathom.toml`"),
            ("[run]\nstrict = 'on'", "write `true` or `false`"),
            ("[run]\npage = ['a', 'b']", "write a text or a number"),
        ] {
            let error = crate::error::plain(&line(typed, file, &[]).unwrap_err());
            assert!(error.contains(expected), "{file}: {error}");
        }
        let error = line(typed, "", &[("strict", "maybe")]).unwrap_err();
        assert!(crate::error::plain(&error).contains("write `on` or `off`"));
    }

    /// Whatever can be typed can be set: a new flag needs nothing here.
    #[test]
    fn every_flag_of_every_command_can_be_set() {
        let mut count = 0;
        for command in Cli::command().get_subcommands().filter(|command| takes_flags(command)) {
            let of = command.get_name();
            for (flag, argument) in flags(command).filter(|(flag, _)| !is_shared(of, flag)) {
                let value = if is_switch(argument) { "true" } else { "'7'" };
                let file: File = toml::from_str(&format!("[{of}]\n{flag} = {value}")).unwrap();
                let found = of_file(command, &file, Path::new("/p/fathom.toml")).unwrap();
                assert_eq!(found[0].words.len(), 1, "{of} {flag}");
                let variable = (environment::of_flag(of, flag).into(), "1".into());
                let found = of_environment(command, std::iter::once(variable)).unwrap();
                assert_eq!(found[0].flag, flag, "{of}");
                count += 1;
            }
        }
        assert!(60 < count, "{count}");
    }
}
