//! Knobs: settings of the user's own script, and how each is turned.
//!
//! `--set batch='--batch-size {}'` says how. A flag or a `key=value` word that already stands in the
//! command needs no saying.

use thiserror::Error;

/// What a value changes: words of the command, variables, keys of config files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    pub words: Vec<String>,
    /// Variables of the environment.
    pub environment: Vec<(String, String)>,
    /// Changes of config files.
    pub files: Vec<FileChange>,
    /// Ranks of the world that the command is one of.
    pub world_size: Option<u32>,
    /// Files with another text, by their paths: such a trial runs in a copy of the folder.
    pub texts: Vec<(String, String)>,
}

/// Another value for one key of a file that a word of the command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// As it stands in the command.
    pub path: String,
    pub key: String,
    /// The value, as the file's format writes it.
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// What the user calls it.
    pub name: String,
    way: Way,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// The value is a word of its own, after this flag.
    Flag {
        flag: String,
        value: String,
    },
    /// The value is part of a word that begins like this.
    Word {
        start: String,
        value: String,
    },
    /// These words follow the command.
    Append(Vec<String>),
    Variable {
        name: String,
        value: String,
    },
    Config {
        path: String,
        key: String,
        value: String,
    },
    /// How many ranks there are: not the script's to say.
    World,
}

/// Where a value goes in a template.
const HOLE: &str = "{}";

/// Why a knob cannot be turned.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Nothing would change.
    #[error("the template of `{0}` has no `{{}}`: every value would give the same command")]
    NoHole(String),
    /// Nobody knows what it is.
    #[error("`{0}` is neither a flag nor a `key=value` of the command")]
    Unknown(String),
    /// The config file is not the script's.
    #[error("`{0}` names the file `{1}`, but no word of the command does")]
    FileNotNamed(String, String),
    /// No key follows the file.
    #[error("`{0}` names a file but no key")]
    NoKey(String),
    /// A value was looked for.
    #[error("`{0}` is the last word of the command: it has no value to replace")]
    NoValue(String),
    /// Ranks are counted.
    #[error("a world of `{0}` ranks")]
    NoWorld(String),
}

impl Error {
    pub fn hint(&self) -> String {
        match self {
            Error::NoHole(name) => {
                format!("write the place of the value: `--set {name}='--{name} {{}}'`")
            }
            Error::Unknown(name) => {
                format!(
                    "say how it is set: `--set {name}='--{name} {{}}'`, `{name}={{}}`, `NAME={{}}` or `config.yaml:{name}={{}}`"
                )
            }
            Error::FileNotNamed(..) => "write the file as the command does".to_owned(),
            Error::NoKey(name) => format!("`--set {name}='config.yaml:train.batch_size={{}}'`"),
            Error::NoWorld(_) => "`--vary world-size=8,16,64`".to_owned(),
            Error::NoValue(flag) => format!("write the command with a value after `{flag}`"),
        }
    }
}

impl Knob {
    /// Reads a knob; without a template it must stand in the command.
    pub fn new(name: &str, template: Option<&str>, command: &[String]) -> Result<Knob, Error> {
        let way = match template {
            Some(template) => from_template(name, template, command)?,
            None => from_command(name, command)?,
        };
        Ok(Knob { name: name.to_owned(), way })
    }

    /// The knob that is the size of the world.
    pub fn world(name: &str) -> Knob {
        Knob { name: name.to_owned(), way: Way::World }
    }

    pub fn set(&self, value: &str, setting: &mut Setting) -> Result<(), Error> {
        let filled = |text: &String| text.replace(HOLE, value);
        match &self.way {
            Way::Flag { flag, value } => set_flag(flag, filled(value), &mut setting.words),
            Way::Word { start, value } => {
                let word = format!("{start}{}", filled(value));
                match setting.words.iter_mut().skip(1).find(|word| word.starts_with(start)) {
                    Some(place) => *place = word,
                    None => setting.words.push(word),
                }
            }
            Way::Append(words) => setting.words.extend(words.iter().map(filled)),
            Way::Variable { name, value } => {
                setting.environment.push((name.clone(), filled(value)))
            }
            Way::Config { path, key, value } => {
                let change =
                    FileChange { path: path.clone(), key: key.clone(), value: filled(value) };
                setting.files.push(change);
            }
            Way::World => {
                let size = value.trim().parse();
                setting.world_size = Some(size.map_err(|_| Error::NoWorld(value.to_owned()))?);
            }
        }
        Ok(())
    }

    /// What a user would write to set a value.
    pub fn shown(&self, value: &str) -> String {
        match &self.way {
            Way::Flag { flag, value: text } => format!("{flag} {}", text.replace(HOLE, value)),
            Way::Word { start, value: text } => format!("{start}{}", text.replace(HOLE, value)),
            Way::Append(words) => words.join(" ").replace(HOLE, value),
            Way::Variable { name, value: text } => format!("{name}={}", text.replace(HOLE, value)),
            Way::Config { path, key, value: text } => {
                format!("{path}: {key}: {}", text.replace(HOLE, value))
            }
            Way::World => format!("{} {value}", self.name),
        }
    }

    /// Variables that libraries read while they are imported: such a trial needs a process of its own.
    pub fn is_read_at_import(&self) -> bool {
        const LIBRARIES: [&str; 10] = [
            "PYTORCH", "TORCH", "CUDA", "CUBLAS", "CUDNN", "NCCL", "OMP_", "MKL_", "HF_", "PYTHON",
        ];
        matches!(&self.way, Way::Variable { name, .. } if LIBRARIES.iter().any(|start| name.starts_with(start)))
    }

    /// The value that the command has now.
    pub fn current(&self, command: &[String]) -> Option<String> {
        match &self.way {
            Way::Flag { flag, .. } => {
                let at = command.iter().position(|word| same(word, flag));
                let after = at.and_then(|at| command.get(at + 1)).cloned();
                let joined = command
                    .iter()
                    .find_map(|word| word.strip_prefix(&format!("{flag}=")).map(str::to_owned));
                after.or(joined)
            }
            Way::Word { start, .. } => command
                .iter()
                .skip(1)
                .find_map(|word| word.strip_prefix(start.as_str()).map(str::to_owned)),
            _ => None,
        }
    }
}

fn set_flag(flag: &str, value: String, words: &mut Vec<String>) {
    if let Some(at) = words.iter().position(|word| same(word, flag)) {
        match words.get_mut(at + 1) {
            Some(place) => *place = value,
            None => words.push(value),
        }
        return;
    }
    let joined = format!("{flag}=");
    match words.iter_mut().find(|word| word.starts_with(&joined)) {
        Some(place) => *place = joined + &value,
        None => words.extend([flag.to_owned(), value]),
    }
}

fn from_template(name: &str, template: &str, command: &[String]) -> Result<Way, Error> {
    let words: Vec<String> = template.split_whitespace().map(str::to_owned).collect();
    if !words.iter().any(|word| word.contains(HOLE)) {
        return Err(Error::NoHole(name.to_owned()));
    }
    match words.as_slice() {
        [word] if config_file(word).is_some() => config(name, word, command),
        [word] => Ok(match word.split_once('=') {
            Some((key, value))
                if is_variable(key)
                    && !command.iter().any(|w| w.starts_with(&format!("{key}="))) =>
            {
                Way::Variable { name: key.to_owned(), value: value.to_owned() }
            }
            Some((flag, value)) if flag.starts_with('-') => {
                Way::Flag { flag: flag.to_owned(), value: value.to_owned() }
            }
            Some((key, value)) => Way::Word { start: format!("{key}="), value: value.to_owned() },
            None => Way::Append(words),
        }),
        [flag, value] if flag.starts_with('-') => {
            Ok(Way::Flag { flag: flag.clone(), value: value.clone() })
        }
        _ => Ok(Way::Append(words)),
    }
}

fn is_variable(text: &str) -> bool {
    let mut letters = text.chars();
    let is_upper = |c: char| c.is_ascii_uppercase() || c == '_';
    letters.next().is_some_and(is_upper) && letters.all(|c| is_upper(c) || c.is_ascii_digit())
}

/// `conf/a.yaml` of `conf/a.yaml:train.batch={}`.
fn config_file(word: &str) -> Option<&str> {
    let (path, _) = word.split_once(':')?;
    [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end)).then_some(path)
}

fn config(name: &str, word: &str, command: &[String]) -> Result<Way, Error> {
    let (path, rest) = word.split_once(':').unwrap_or((word, ""));
    let (key, value) = rest.split_once('=').ok_or_else(|| Error::NoKey(name.to_owned()))?;
    if key.is_empty() || key.contains(HOLE) {
        return Err(Error::NoKey(name.to_owned()));
    }
    let names_it = |word: &String| {
        word == path || word.split_once('=').is_some_and(|(_, value)| value == path)
    };
    if !command.iter().any(names_it) {
        return Err(Error::FileNotNamed(name.to_owned(), path.to_owned()));
    }
    Ok(Way::Config { path: path.to_owned(), key: key.to_owned(), value: value.to_owned() })
}

/// `--batch-size` and `--batch_size` are one flag.
fn same(word: &str, flag: &str) -> bool {
    word.replace('_', "-") == flag.replace('_', "-")
}

fn from_command(name: &str, command: &[String]) -> Result<Way, Error> {
    let value = HOLE.to_owned();
    let flag = format!("--{name}");
    for (at, word) in command.iter().enumerate().skip(1) {
        if same(word, &flag) {
            return match at + 1 < command.len() {
                true => Ok(Way::Flag { flag: word.clone(), value }),
                false => Err(Error::NoValue(word.clone())),
            };
        }
        let Some((key, _)) = word.split_once('=') else { continue };
        if same(key, &flag) {
            return Ok(Way::Flag { flag: key.to_owned(), value });
        }
        let last = key.rsplit('.').next().unwrap_or(key);
        if !key.starts_with('-') && (same(key, name) || same(last, name)) {
            return Ok(Way::Word { start: format!("{key}="), value });
        }
    }
    Err(Error::Unknown(name.to_owned()))
}
