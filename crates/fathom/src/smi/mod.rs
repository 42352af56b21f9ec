//! The stand-in for `nvidia-smi` that a run finds on its `PATH`: this program under that name.
//!
//! Scripts and tools ask it which cards there are and how much of them is used. It answers what NVML of the phantom
//! answers, in the words of the real program. What it does not know it refuses: an answer that is made up would be
//! taken for one.

mod long;
mod machine;
mod query;
mod table;

use std::fmt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::machine::Machine;
use crate::cache::hash;
use crate::screen;

/// Under which name this program is it.
pub(crate) const NAME: &str = "nvidia-smi";

const HELP: &str = "\
nvidia-smi of Fathom's phantom GPU

    nvidia-smi                                     the table
    nvidia-smi -L                                  the GPUs
    nvidia-smi --query-gpu=FIELD,… --format=csv    one row for each GPU; `--help-query-gpu` lists the fields
    nvidia-smi --query-compute-apps=FIELD,… --format=csv
    nvidia-smi -q [-d MEMORY,PIDS,…]               the long form
        -i, --id=GPU,…            only these: index, UUID or bus address
        --format=csv,noheader,nounits
        -l, --loop=SECONDS        again and again; -lms, --loop-ms=MILLISECONDS
        -f, --filename=FILE       into a file
";

/// What was refused, and the code that the real program ends with.
struct Refused {
    text: String,
    code: u8,
}

impl Refused {
    fn new(code: u8, text: impl Into<String>) -> Refused {
        Refused { text: text.into(), code }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    what: What,
    ids: Vec<String>,
    sections: Vec<String>,
    format: Vec<String>,
    pause: Option<Duration>,
    file: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum What {
    #[default]
    Table,
    List,
    Long,
    Gpus(Vec<String>),
    Processes(Vec<String>),
    Help,
    Fields,
    Version,
}

/// Answers as `nvidia-smi` would; its exit code.
pub(crate) fn run(words: impl Iterator<Item = String>) -> u8 {
    match read(words).and_then(|asked| answer(&asked)) {
        Ok(()) => 0,
        Err(Refused { text, code }) => {
            // A reader who has gone is told nothing.
            let _ = screen::answer(&format!("{text}\n"));
            code
        }
    }
}

/// A folder for the front of the `PATH` that holds the stand-in; `None` where it cannot be made, which costs a run
/// nothing else.
pub(crate) fn folder(cache: &Path) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let key = hash(program.as_os_str().as_encoded_bytes());
    let folder = cache.join("bin").join(key);
    let link = folder.join(NAME);
    if std::fs::read_link(&link).is_ok_and(|target| target == program) {
        return Some(folder);
    }
    std::fs::create_dir_all(&folder).ok()?;
    // Another run may make it at the same time: both mean the same program.
    let _ = symlink(&program, &link);
    std::fs::read_link(&link).is_ok_and(|target| target == program).then_some(folder)
}

fn answer(asked: &Asked) -> Result<(), Refused> {
    loop {
        let text = text(asked)?;
        match &asked.file {
            Some(path) => std::fs::write(path, &text)
                .map_err(|error| Refused::new(1, format!("{}: {error}", path.display())))?,
            None => screen::answer(&text).map_err(|error| Refused::new(1, error.to_string()))?,
        }
        let Some(pause) = asked.pause else { return Ok(()) };
        std::thread::sleep(pause);
    }
}

fn text(asked: &Asked) -> Result<String, Refused> {
    match &asked.what {
        What::Help => return Ok(HELP.to_owned()),
        What::Fields => return Ok(query::list_of_fields()),
        _ => {}
    }
    let machine = Machine::read().map_err(|why| Refused::new(9, why))?;
    let machine = machine.with_ids(&asked.ids).map_err(|why| Refused::new(6, why))?;
    match &asked.what {
        What::List => Ok(table::list(&machine)),
        What::Version => Ok(format!(
            "NVIDIA-SMI version  : {0}\nDRIVER version      : {0}\nCUDA Version        : {1}\n",
            machine.driver, machine.cuda
        )),
        What::Long => long::form(&machine, &asked.sections),
        What::Gpus(fields) => query::gpus(&machine, fields, &asked.format),
        What::Processes(fields) => query::processes(&machine, fields, &asked.format),
        _ => Ok(table::table(&machine)),
    }
}

/// Reads the command line: `--flag=value`, `--flag value` and `-f value` alike.
fn read(words: impl Iterator<Item = String>) -> Result<Asked, Refused> {
    let mut asked = Asked::default();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let (flag, own) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let mut value = || {
            let next = || words.next_if(|next| !next.starts_with('-'));
            own.clone().or_else(next).ok_or_else(|| {
                Refused::new(1, format!("Option {flag} needs a value. `nvidia-smi -h` has more."))
            })
        };
        let list = |text: String| text.split(',').map(|each| each.trim().to_owned()).collect();
        match flag.as_str() {
            "-h" | "--help" => asked.what = What::Help,
            "--help-query-gpu" => asked.what = What::Fields,
            "--version" => asked.what = What::Version,
            "-L" | "--list-gpus" => asked.what = What::List,
            "-q" | "--query" => asked.what = What::Long,
            "-d" | "--display" => asked.sections = list(value()?),
            "--query-gpu" => asked.what = What::Gpus(list(value()?)),
            "--query-compute-apps" | "--query-accounted-apps" => {
                asked.what = What::Processes(list(value()?));
            }
            "-i" | "--id" => asked.ids = list(value()?),
            "--format" => asked.format = list(value()?),
            "-f" | "--filename" => asked.file = Some(value()?.into()),
            "-l" | "--loop" => asked.pause = Some(pause(value().unwrap_or("5".into()), 1000)?),
            "-lms" | "--loop-ms" => asked.pause = Some(pause(value()?, 1)?),
            other => {
                return Err(Refused::new(
                    1,
                    format!(
                        "Invalid combination of input arguments: Fathom's stand-in for nvidia-smi does not know \
                         `{other}`. `nvidia-smi -h` lists what it answers."
                    ),
                ));
            }
        }
    }
    Ok(asked)
}

fn pause(text: impl fmt::Display, unit: u64) -> Result<Duration, Refused> {
    let number = text.to_string().parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number
        .filter(|number| 0 < *number)
        .map(Duration::from_millis)
        .ok_or_else(|| Refused::new(1, format!("`{text}` is no time to wait")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Asked, String> {
        read(line.split_whitespace().map(str::to_owned)).map_err(|refused| refused.text)
    }

    #[test]
    fn flags_take_their_values_in_each_way() {
        let gpus =
            |names: &[&str]| What::Gpus(names.iter().map(|name| (*name).to_owned()).collect());
        for line in [
            "--query-gpu=name,index --format=csv,noheader",
            "--query-gpu name,index --format csv,noheader",
        ] {
            let found = asked(line).unwrap();
            assert_eq!(found.what, gpus(&["name", "index"]), "{line}");
            assert_eq!(found.format, ["csv", "noheader"], "{line}");
        }
        assert_eq!(asked("").unwrap().what, What::Table);
        assert_eq!(asked("-i 0,1 -L").unwrap().ids, ["0", "1"]);
        assert_eq!(asked("-lms 500").unwrap().pause, Some(Duration::from_millis(500)));
        assert_eq!(asked("-l").unwrap().pause, Some(Duration::from_secs(5)));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in ["topo -m", "dmon", "-q -x", "--gpu-reset", "--query-gpu", "-lms 0", "-l soon"]
        {
            assert!(asked(line).is_err(), "{line}");
        }
    }
}
