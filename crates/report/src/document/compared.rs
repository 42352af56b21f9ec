//! Two commands side by side: why the one needs more than the other.

use ::anatomy::bytes;
use serde::Serialize;
use study::Run;

use super::Anatomy;
use super::anatomy::title;
use super::places::count;
use crate::markup::{code, plain, table};
use crate::sections::columns::share;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Compared {
    /// The command of the document, then the other.
    pub commands: [String; 2],
    pub parameters: [u64; 2],
    pub allocated_bytes: [u64; 2],
    pub reserved_bytes: [u64; 2],
    pub device_bytes: [u64; 2],
    pub when: [String; 2],
    /// Rows of both.
    pub components: Vec<Pair>,
    /// The largest cause of each.
    pub causes: [Option<(String, u64)>; 2],
}

#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    pub name: String,
    pub bytes: [u64; 2],
}

impl Compared {
    /// `None` if one of them has no peak that could be taken apart.
    pub fn of(commands: [String; 2], runs: [&Run; 2]) -> Option<Compared> {
        let [a, b] = runs.map(|run| Anatomy::of(run, false));
        let (a, b) = (a?, b?);
        let size = |of: &Anatomy, name: &str| {
            of.components.iter().filter(|it| it.name == name).map(|it| it.bytes).sum()
        };
        let mut names: Vec<&str> = Vec::new();
        for component in a.components.iter().chain(&b.components) {
            if !names.contains(&component.name.as_str()) {
                names.push(&component.name);
            }
        }
        let pair = |name: &&str| Pair {
            name: (*name).to_owned(),
            bytes: [size(&a, name), size(&b, name)],
        };
        let cause = |run: &Run| {
            let first = run.findings().iter().find(|finding| finding.counted);
            first.map(|finding| (finding.title.clone(), finding.bytes))
        };
        let both = |of: fn(&Anatomy) -> u64| [of(&a), of(&b)];
        Some(Compared {
            commands,
            parameters: both(|it| it.parameters.map_or(0, |counts| counts.total)),
            allocated_bytes: both(|it| it.allocated_bytes),
            reserved_bytes: both(|it| it.reserved_bytes),
            device_bytes: both(|it| it.device_bytes),
            when: [a.when.clone(), b.when.clone()],
            components: names.iter().map(pair).collect(),
            causes: runs.map(cause),
        })
    }

    pub(super) fn markdown(&self) -> String {
        let [a, b] = &self.commands;
        let mut text = format!("## Compared\n\n- A: {}\n- B: {}\n\n", code(a), code(b));
        text += &self.answer();
        let two =
            |name: &str, [a, b]: [String; 2], change: String| vec![name.to_owned(), a, b, change];
        let sized = |name: &str, pair: [u64; 2]| {
            let delta = bytes::text(pair[0].abs_diff(pair[1]));
            let sign = if pair[0] == pair[1] {
                ""
            } else if pair[0] < pair[1] {
                "−"
            } else {
                "+"
            };
            let size = |size: u64| if size == 0 { "–".to_owned() } else { bytes::text(size) };
            two(name, pair.map(size), format!("{sign}{delta}"))
        };
        let mut rows = vec![two("parameters", self.parameters.map(count), String::new())];
        rows.extend(self.components.iter().map(|row| sized(&named(&row.name), row.bytes)));
        rows.push(sized("**allocated at the peak**", self.allocated_bytes));
        rows.push(sized("**with the context**", self.device_bytes));
        rows.push(two("peak reached", self.when.clone(), String::new()));
        text + &table(&["", "A:", "B:", "A beside B:"], &rows)
    }

    /// Which needs more, and by what.
    fn answer(&self) -> String {
        let [a, b] = self.allocated_bytes;
        let more = a.abs_diff(b);
        let (word, sign) = if b <= a { ("more", true) } else { ("less", false) };
        let delta = |row: &&Pair| {
            if sign {
                row.bytes[0].saturating_sub(row.bytes[1])
            } else {
                row.bytes[1].saturating_sub(row.bytes[0])
            }
        };
        let mostly = self.components.iter().max_by_key(delta);
        let mut text = format!("A needs {} {word} than B at its peak", bytes::text(more));
        if let Some(row) = mostly.filter(|row| delta(row) != 0) {
            text += &format!(
                ", mostly {}: {} against {}",
                named(&row.name),
                bytes::text(row.bytes[0]),
                bytes::text(row.bytes[1])
            );
        }
        text += ".";
        for (letter, (cause, whole)) in
            ["A", "B"].iter().zip(self.causes.iter().zip(self.allocated_bytes))
        {
            if let Some((title, size)) = cause {
                text += &format!(
                    " The largest cause of {letter} is {} ({}, {}).",
                    plain(title),
                    bytes::text(*size),
                    share(*size, whole)
                );
            }
        }
        text + "\n\n"
    }
}

fn named(name: &str) -> String {
    match name {
        "cached" => "cached by PyTorch then".to_owned(),
        "cached_later" => "cached by PyTorch at another time".to_owned(),
        "context" => "CUDA context".to_owned(),
        "nccl" => "buffers of NCCL".to_owned(),
        "other" => "other processes and libraries".to_owned(),
        other => title(other),
    }
}
