//! A program for an allocator, and its text: one line per operation.
//!
//! ```text
//! settings expandable_segments:True
//! fraction 0.05
//! occupied 2000000000
//! alloc 1000 stream 0 pool 0
//! record 0 stream 1
//! free 0
//! settings roundup_power2_divisions:4
//! empty_cache
//! ```
//! `free` and `record` name one of the live blocks by its place in the order they were made, counted
//! round and round: every program stays one when lines are left out.

use std::fmt;
use std::str::FromStr;

/// Streams a program may use; 0 is the default stream.
pub(crate) const STREAMS: usize = 3;

/// What a program does, line by line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// `torch.empty(size)` on a stream, from a pool; pool 0 is the default one.
    Alloc { size: u64, stream: usize, pool: usize },
    /// The last reference goes.
    Free { which: usize },
    /// `record_stream`.
    Record { which: usize, stream: usize },
    /// `torch.cuda.synchronize()`.
    Synchronize,
    /// `torch.cuda.empty_cache()`.
    EmptyCache,
    /// `_set_allocator_settings`.
    Settings(String),
    /// `set_per_process_memory_fraction`.
    Fraction(f64),
    /// Memory of the card goes to somebody else, before the program begins.
    Occupied(u64),
}

/// Operations in order; its [`Display`](fmt::Display) is what PyTorch's side reads.
#[derive(Clone, PartialEq)]
pub(crate) struct Program(pub(crate) Vec<Operation>);

impl Program {
    /// The lines before it begins: settings and bounds.
    fn head(&self) -> usize {
        let sets = self.0.iter().take_while(|operation| {
            matches!(
                operation,
                Operation::Settings(_) | Operation::Fraction(_) | Operation::Occupied(_)
            )
        });
        sets.count()
    }

    /// Are the settings of its first lines in force to the end?
    pub(crate) fn keeps_settings(&self) -> bool {
        !self.0[self.head()..]
            .iter()
            .any(|operation| matches!(operation, Operation::Settings(_) | Operation::Fraction(_)))
    }

    /// The settings of its first lines.
    pub(crate) fn first_settings(&self) -> String {
        let mut settings = self.0[..self.head()].iter().filter_map(|operation| match operation {
            Operation::Settings(settings) => Some(settings.clone()),
            _ => None,
        });
        settings.next_back().unwrap_or_default()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Alloc { size, stream, pool } => {
                write!(to, "alloc {size} stream {stream} pool {pool}")
            }
            Operation::Free { which } => write!(to, "free {which}"),
            Operation::Record { which, stream } => write!(to, "record {which} stream {stream}"),
            Operation::Synchronize => write!(to, "synchronize"),
            Operation::EmptyCache => write!(to, "empty_cache"),
            Operation::Settings(settings) => write!(to, "settings {settings}"),
            Operation::Fraction(fraction) => write!(to, "fraction {fraction}"),
            Operation::Occupied(bytes) => write!(to, "occupied {bytes}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|operation| writeln!(to, "{operation}"))
    }
}

/// A failing case is printed as its text.
impl fmt::Debug for Program {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the program\n{self}")
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(line: &str) -> Result<Operation, String> {
        fn number<T: FromStr>(line: &str, word: Option<&str>) -> Result<T, String> {
            let parsed = word.and_then(|word| word.parse().ok());
            parsed.ok_or_else(|| format!("`{line}`: a number is missing"))
        }
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let word = |index: usize| words.get(index).copied();
        Ok(match key {
            "alloc" => Operation::Alloc {
                size: number(line, word(0))?,
                stream: number(line, word(2))?,
                pool: number(line, word(4))?,
            },
            "free" => Operation::Free { which: number(line, word(0))? },
            "record" => {
                Operation::Record { which: number(line, word(0))?, stream: number(line, word(2))? }
            }
            "synchronize" => Operation::Synchronize,
            "empty_cache" => Operation::EmptyCache,
            "settings" => Operation::Settings(rest.to_owned()),
            "fraction" => Operation::Fraction(number(line, word(0))?),
            "occupied" => Operation::Occupied(number(line, word(0))?),
            _ => return Err(format!("`{line}` is no operation")),
        })
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Program, String> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::parse).collect::<Result<_, _>>().map(Program)
    }
}
