//! Which settings of the script there are: flags of the command, keys of its config files, defaults of its parser.

use std::fs;
use std::path::Path;

use anyhow::Result;
use fit::Knob;

use crate::cli::ReportArguments;
use crate::configs;
use crate::runner::hinted;
use crate::vary::{Vary, read_vary, templates};

/// Settings with numbers, and switches, that are varied at most.
const NUMBERS: usize = 10;
const SWITCHES: usize = 6;

/// Sizes of a list that are settings of their own, at most.
const SIDES: usize = 4;

/// A larger number is no size of a shape.
const LARGEST: i64 = 1 << 20;

/// A larger file is no config.
const LARGEST_FILE: u64 = 1 << 18;

/// Parts of names of what may change shapes, the likeliest first.
const LIKELY: [&str; 30] = [
    "batch", "frame", "seq", "length", "len", "group", "token", "image", "resol", "height",
    "width", "size", "block", "obs", "point", "patch", "channel", "hidden", "embd", "dim", "feat",
    "layer", "depth", "head", "horizon", "num", "crop", "tp", "to", "n",
];

/// Words of names of what does not.
const UNLIKELY: [&str; 40] = [
    "seed",
    "epoch",
    "epochs",
    "worker",
    "workers",
    "log",
    "every",
    "interval",
    "port",
    "rank",
    "print",
    "save",
    "verbose",
    "patience",
    "warmup",
    "max",
    "lr",
    "device",
    "version",
    "gpu",
    "cpu",
    "thread",
    "threads",
    "prefetch",
    "cycles",
    "timeout",
    "freq",
    "steps",
    "batches",
    "iters",
    "gamma",
    "decay",
    "beta",
    "betas",
    "id",
    "world",
    "limit",
    "timesteps",
    "step",
    "eval",
];

/// What `--vary` asks for.
pub(super) type Varied = (String, Vec<String>);

/// A setting that can be turned.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) knob: Knob,
    /// As it is set now; empty if that is not known.
    pub(super) current: String,
    /// Values that the user asked for; empty where it was found.
    pub(super) wanted: Vec<String>,
}

impl Found {
    pub(super) fn number(&self) -> Option<i64> {
        self.current.parse().ok().filter(|number| (1..=LARGEST).contains(number))
    }

    /// The other position of a switch.
    pub(super) fn flipped(&self) -> Option<&'static str> {
        match self.current.as_str() {
            "true" => Some("false"),
            "false" => Some("true"),
            "True" => Some("False"),
            "False" => Some("True"),
            _ => None,
        }
    }
}

/// `--vary`, read.
pub(super) fn asked(arguments: &ReportArguments) -> Result<Vec<Varied>> {
    let read = |text: &String| match read_vary(text)? {
        (name, Vary::Values(values)) => Ok((name, values)),
        (_, Vary::Range(_)) => Err(crate::error::Hinted::error(
            format!("`--vary {text}` is a range"),
            "name the values: `--vary batch=8,16,32`; a range is searched by `fathom sweep`",
        )),
    };
    arguments.vary.iter().map(read).collect()
}

/// Those of `--vary`, then those that are found, the likeliest first.
pub(super) fn find(arguments: &ReportArguments, varied: Vec<Varied>) -> Result<Vec<Found>> {
    let command = &arguments.trial.command;
    let mut candidates = in_command(command);
    let files = config_files(command);
    files.iter().for_each(|path| candidates.extend(in_config(path)));
    candidates.extend(defaults(command));
    let templates = templates(&arguments.trial)?;
    let mut all: Vec<Found> = Vec::new();
    for (name, wanted) in varied {
        let named = candidates.iter().find(|it| is_called(&it.name, &name));
        let given = templates.iter().find(|row| row.0 == name).map(|row| row.1.as_str());
        let template = given.or(named.and_then(|it| it.template.as_deref()));
        let knob = Knob::new(&name, template, command).map_err(hinted)?;
        let current =
            knob.current(command).or(named.map(|it| it.value.clone())).unwrap_or_default();
        all.push(Found { knob, current, wanted });
    }
    let mut free: Vec<(usize, Found)> = Vec::new();
    for candidate in candidates {
        let is_list = candidate.value.starts_with('[');
        let Some(rank) = rank(&candidate.name).filter(|_| !is_list) else { continue };
        let is_known = |it: &Found| is_called(&candidate.name, &it.knob.name);
        if all.iter().any(is_known) || free.iter().any(|(_, it)| is_known(it)) {
            continue;
        }
        if let Ok(knob) = Knob::new(&candidate.name, candidate.template.as_deref(), command) {
            free.push((rank, Found { knob, current: candidate.value, wanted: Vec::new() }));
        }
    }
    free.sort_by_key(|(rank, _)| *rank);
    let (numbers, others): (Vec<Found>, Vec<Found>) =
        free.into_iter().map(|(_, found)| found).partition(|found| found.number().is_some());
    let switches = others.into_iter().filter(|found| found.flipped().is_some());
    all.extend(numbers.into_iter().take(NUMBERS));
    all.extend(switches.take(SWITCHES));
    Ok(all)
}

/// A setting that was seen somewhere.
struct Candidate {
    name: String,
    value: String,
    /// How it is set, where it does not stand in the command.
    template: Option<String>,
}

/// `train.batch_size` is called `batch_size` too.
fn is_called(full: &str, name: &str) -> bool {
    let plain = |text: &str| text.replace('-', "_");
    plain(full) == plain(name) || plain(full).ends_with(&format!(".{}", plain(name)))
}

/// `--name VALUE`, `--name=VALUE` and `key=VALUE`.
fn in_command(command: &[String]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (at, word) in command.iter().enumerate().skip(1) {
        let pair = match word.split_once('=') {
            Some((key, value)) => Some((key, value)),
            None if word.starts_with("--") => {
                command.get(at + 1).map(|value| (word.as_str(), value.as_str()))
            }
            None => None,
        };
        if let Some((key, value)) = pair {
            let name = key.trim_start_matches('-').to_owned();
            found.push(Candidate { name, value: value.to_owned(), template: None });
        }
    }
    found
}

/// Files of settings that words of the command name.
fn config_files(command: &[String]) -> Vec<String> {
    let named = command
        .iter()
        .skip(1)
        .map(|word| word.split_once('=').map_or(word.as_str(), |(_, value)| value));
    let is_config = |path: &&str| {
        let is_named = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
        is_named
            && fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= LARGEST_FILE)
    };
    let mut files: Vec<String> = named.filter(is_config).map(str::to_owned).collect();
    files.dedup();
    files
}

/// Keys of a file, and of those that it builds on.
fn in_config(path: &str) -> Vec<Candidate> {
    let values = configs::values(Path::new(path)).into_iter();
    values.flat_map(|(key, value)| of_key(path, key, value)).collect()
}

/// A value, or each side of a short list of whole numbers.
fn of_key(path: &str, key: String, value: String) -> Vec<Candidate> {
    let inner = value.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let sides: Vec<&str> =
        inner.map(|text| text.split(',').map(str::trim).collect()).unwrap_or_default();
    let are_whole = sides.iter().all(|side| side.parse::<i64>().is_ok());
    if sides.is_empty() {
        let template = Some(format!("{path}:{key}={{}}"));
        return vec![Candidate { name: key, value, template }];
    }
    // The list as a whole is varied where `--vary` names it.
    let whole = Candidate {
        name: key.clone(),
        value: value.replace(' ', ""),
        template: Some(format!("{path}:{key}={{}}")),
    };
    if SIDES < sides.len() || !are_whole {
        return vec![whole];
    }
    let side = |at: usize| {
        let mut with: Vec<&str> = sides.clone();
        with[at] = "{}";
        let template = Some(format!("{path}:{key}=[{}]", with.join(",")));
        Candidate { name: format!("{key}[{at}]"), value: sides[at].to_owned(), template }
    };
    (0..sides.len()).map(side).chain([whole]).collect()
}

/// Numbers that the script's parser takes if the command does not say others: `add_argument("--batch-size", default=8)`.
/// A short name in the command (`-b 4`) says another.
fn defaults(command: &[String]) -> Vec<Candidate> {
    let script = command.iter().find(|word| word.ends_with(".py"));
    let text = script.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    let calls = text.split("add_argument(").skip(1);
    let flag = |call: &str| -> Option<Candidate> {
        let end = call.find("add_argument(").unwrap_or(call.len());
        let call = &call[..end.min(call.find("\n\n").unwrap_or(call.len()))];
        let names = || call.split(['"', '\'']).filter(|text| text.starts_with('-'));
        let quoted = names().find(|text| text.starts_with("--") && 2 < text.len())?;
        let name = quoted.trim_start_matches('-').to_owned();
        if command.iter().any(|word| is_begun(word, quoted)) {
            return None;
        }
        let short = names().filter(|text| !text.starts_with("--"));
        let given = short.filter_map(|short| Some((short, after(command, short)?))).next();
        if let Some((short, value)) = given {
            return Some(Candidate { name, value, template: Some(format!("{short} {{}}")) });
        }
        let rest = call.split_once("default=")?.1.trim_start_matches(['"', '\'']);
        let value: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let after = rest[value.len()..].trim_start_matches(['"', '\'']).trim_start().chars().next();
        let is_whole = !value.is_empty() && matches!(after, Some(',' | ')'));
        let template = Some(format!("{quoted} {{}}"));
        is_whole.then_some(Candidate { name, value, template })
    };
    calls.filter_map(flag).collect()
}

/// The value behind a short flag: `-b 4`, `-b=4`, `-b4`.
fn after(command: &[String], short: &str) -> Option<String> {
    let at = command.iter().skip(1).position(|word| word.starts_with(short))? + 1;
    match command[at].strip_prefix(short)? {
        "" => command.get(at + 1).cloned(),
        joined => Some(joined.trim_start_matches('=').to_owned()),
    }
}

/// `--batch 4`, where the flag is `--batch-size`: parsers take it, so the default does not hold.
fn is_begun(word: &str, flag: &str) -> bool {
    let word = word.split('=').next().unwrap_or(word);
    2 < word.len() && word != flag && flag.starts_with(word)
}

/// Where it stands among others; `None` for what does not change shapes.
fn rank(name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let last = name.rsplit('.').next().unwrap_or(&name);
    let is_of_batch = last.contains("batch_size") || last.contains("batch-size");
    let mut words = last.split(['_', '-', '[']);
    if !is_of_batch && words.any(|word| UNLIKELY.contains(&word)) && !last.contains("obs") {
        return None;
    }
    Some(LIKELY.iter().position(|part| last.contains(part)).unwrap_or(LIKELY.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn settings_are_found_in_the_command() {
        let found =
            in_command(&command(&["python", "t.py", "--batch-size", "8", "--lr=1", "model.dim=4"]));
        let named: Vec<(&str, &str)> =
            found.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
        assert_eq!(named, [("batch-size", "8"), ("lr", "1"), ("model.dim", "4")]);
        assert!(
            rank("lr").is_none()
                && rank("max_train_steps").is_none()
                && rank("n_obs_steps").is_some()
        );
        assert!(rank("train.batch_size") < rank("n_layer") && rank("n_layer") < rank("whatever"));
    }

    #[test]
    fn a_config_has_the_keys_of_the_one_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        fs::write(at("b.yaml"), "obs: 2\nimage: [64, 2048]\nbatch: 1\n").unwrap();
        fs::write(at("a.yaml"), "base: b.yaml\nbatch: 8\n").unwrap();
        let found = in_config(&at("a.yaml"));
        let named: Vec<(&str, &str)> =
            found.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
        assert_eq!(
            named,
            [
                ("base", "b.yaml"),
                ("batch", "8"),
                ("obs", "2"),
                ("image[0]", "64"),
                ("image[1]", "2048"),
                ("image", "[64,2048]")
            ]
        );
        assert!(found[3].template.as_deref().unwrap().ends_with("a.yaml:image=[{},2048]"));
    }

    #[test]
    fn defaults_of_a_parser_are_settings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.py").to_string_lossy().into_owned();
        let text = "p.add_argument('-b', '--batch-size', type=int, default=64, help='x')\n\
                    p.add_argument('--lr', default=0.5)\np.add_argument('--size', default=\"32\")\np.add_argument('--go', action='store_true')\n";
        fs::write(&path, text).unwrap();
        let found = defaults(&command(&["python", &path]));
        let named: Vec<(&str, &str)> =
            found.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
        assert_eq!(named, [("batch-size", "64"), ("size", "32")]);
        for (words, value) in
            [(&["-b", "4"][..], "4"), (&["-b=4"], "4"), (&["-b4"], "4"), (&["--batch", "4"], "")]
        {
            let found = defaults(&command(&[&["python", path.as_str()], words].concat()));
            let batch = found.iter().find(|it| it.name == "batch-size");
            assert_eq!(batch.map_or("", |it| it.value.as_str()), value, "{words:?}");
        }
    }
}
