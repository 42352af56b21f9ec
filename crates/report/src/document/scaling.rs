//! How the peak grows with the script's own settings.

use serde::Serialize;

use crate::bytes;
use crate::markup::{code, plain, table};

/// Letters of an error that are shown.
const SHOWN: usize = 120;

/// What changes by no more than this part of itself is nearly constant, however it does.
const NEARLY: u64 = 20;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Scaling {
    /// Settings that move the peak, the one that moves it most first.
    pub knobs: Vec<Knob>,
    /// Settings that were varied and move nothing, as they were set: `DIT_PATCH_SIZE 8`.
    pub idle: Vec<String>,
    /// Settings that could not be varied, and why.
    pub failed: Vec<(String, String)>,
    /// Settings that were found and not varied.
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Knob {
    pub name: String,
    /// The value of the command; empty if it is not known.
    pub current: String,
    pub points: Vec<Point>,
    /// Of the peak, then of its causes.
    pub growth: Vec<Growth>,
    /// What would remain at zero, by the law through the points; `None` if no line goes through them.
    pub rest_bytes: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub value: String,
    /// `fits`, `fits_if`, `does_not_fit`, `script_failed` or `not_run`: of a run without a limit.
    pub outcome: &'static str,
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    /// With the context.
    pub device_bytes: u64,
    /// Of what is allocated: scratch memory of libraries, which choose it by what is free.
    pub scratch_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// `None`: the whole peak but for scratch memory, which libraries choose by what is free.
    pub cause: Option<String>,
    /// Of the peak at the largest value, from 0 to 1.
    pub share: f64,
    /// At the smallest and at the largest value.
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// Of the part that grows; `None` if it does not follow a power.
    pub exponent: Option<f64>,
    pub exact: bool,
}

impl Growth {
    /// How it grows, in a word or two.
    pub fn law(&self) -> &'static str {
        let (low, high) = (self.from_bytes.min(self.to_bytes), self.from_bytes.max(self.to_bytes));
        match self.exponent {
            Some(0.0) => law(0.0),
            // Larger patches are fewer tokens: a power of what falls says nothing that one could read.
            _ if self.to_bytes < self.from_bytes && high / NEARLY < high - low => "falls",
            Some(exponent) => law(exponent),
            None if high - low <= high / NEARLY => "nearly constant",
            None => "irregular",
        }
    }
}

impl Scaling {
    /// `None` if nothing was varied.
    pub(super) fn markdown(&self) -> Option<String> {
        if self.knobs.is_empty() && self.idle.is_empty() && self.failed.is_empty() {
            return None;
        }
        let mut text = "## Scaling\n\nEach row is a run without a limit of memory, with this setting changed alone.\n\n".to_owned();
        let (long, short): (Vec<&Knob>, Vec<&Knob>) =
            self.knobs.iter().partition(|knob| 2 < knob.points.len());
        long.iter().for_each(|knob| text += &knob.markdown());
        text += &others(&short);
        if !self.idle.is_empty() {
            let named: Vec<String> = self.idle.iter().map(|name| code(name)).collect();
            text += &format!("The peak stays the same with: {}.\n\n", named.join(", "));
        }
        if !self.failed.is_empty() {
            text += "Not varied, since the script fails with another value:\n\n";
            for (name, why) in &self.failed {
                text += &format!("- {}: {}\n", code(name), plain(&begin(why)));
            }
            text.push('\n');
        }
        if !self.left_out.is_empty() {
            let named: Vec<String> = self.left_out.iter().map(|name| code(name)).collect();
            text += &format!("Not tried: {}.\n\n", named.join(", "));
        }
        Some(text)
    }
}

impl Knob {
    fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", code(&self.name));
        let row = |point: &Point| {
            let value = match point.value == self.current {
                true => format!("**{}** (as it is)", plain(&point.value)),
                false => plain(&point.value),
            };
            match point.outcome {
                "fits" | "fits_if" => {
                    let sizes = [
                        point.allocated_bytes,
                        point.scratch_bytes,
                        point.reserved_bytes,
                        point.device_bytes,
                    ];
                    std::iter::once(value).chain(sizes.map(bytes::text)).collect()
                }
                other => {
                    let mut row = vec![value, other.replace('_', " ")];
                    row.resize(5, String::new());
                    row
                }
            }
        };
        let rows: Vec<Vec<String>> = self.points.iter().map(row).collect();
        text += &table(
            &[&plain(&self.name), "allocated:", "of it scratch:", "reserved:", "with the context:"],
            &rows,
        );
        text += &self.growth();
        if let Some(rest) = self.rest_bytes.filter(|bytes| *bytes != 0) {
            text += &format!(
                "By the line through these runs, {} would remain at {} 0: that much is independent of it (modelled).\n\n",
                bytes::text(rest),
                plain(&self.name)
            );
        }
        text
    }

    /// What grows, by how much and how.
    fn growth(&self) -> String {
        let went = || self.points.iter().filter(|point| point.outcome.starts_with("fits"));
        let (Some(first), Some(last)) = (went().next(), went().next_back()) else {
            return String::new();
        };
        let row = |row: &Growth| {
            let name =
                row.cause.as_deref().map_or("the peak without scratch memory".to_owned(), plain);
            let sizes = [row.from_bytes, row.to_bytes].map(bytes::text);
            let power = row.exponent.filter(|_| row.law() != "falls");
            let power = power.map_or_else(|| "–".to_owned(), exponent);
            std::iter::once(name).chain(sizes).chain([power, row.law().to_owned()]).collect()
        };
        let rows: Vec<Vec<String>> = self.growth.iter().map(row).collect();
        let at = [first, last].map(|point| format!("at {}:", plain(&point.value)));
        let [from, to] = &at;
        let table = table(&["of this", from, to, "exponent:", "growth"], &rows);
        match rows.is_empty() {
            true => table,
            false => format!("{table}The exponent is that of the part that grows.\n\n"),
        }
    }
}

/// Settings with one value beside their own, each in one row.
fn others(knobs: &[&Knob]) -> String {
    let rows = knobs.iter().flat_map(|knob| {
        let tried = knob.points.iter().filter(|point| point.value != knob.current);
        tried.map(|point| {
            let setting = format!("{} {} instead of {}", knob.name, point.value, knob.current);
            let sizes = [point.allocated_bytes, point.reserved_bytes, point.scratch_bytes];
            std::iter::once(plain(&setting)).chain(sizes.map(bytes::text)).collect()
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "Other settings, at one value each:\n\n{}",
            table(&["setting", "allocated:", "reserved:", "of it scratch:"], &rows)
        ),
    }
}

/// The beginning of an error's text.
fn begin(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

fn exponent(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An exponent in words.
fn law(exponent: f64) -> &'static str {
    match exponent {
        e if e.abs() < 0.05 => "constant",
        e if e < 0.9 => "less than linear",
        e if e <= 1.1 => "linear",
        e if e < 1.9 => "more than linear",
        e if e <= 2.1 => "quadratic",
        _ => "more than quadratic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(from_bytes: u64, to_bytes: u64, exponent: Option<f64>) -> Growth {
        Growth { cause: None, share: 1.0, from_bytes, to_bytes, exponent, exact: false }
    }

    #[test]
    fn what_falls_is_not_said_to_grow() {
        assert_eq!(growth(400, 100, Some(1.0)).law(), "falls");
        assert_eq!(growth(400, 100, None).law(), "falls");
        assert_eq!(growth(100, 400, Some(1.0)).law(), "linear");
        assert_eq!(growth(100, 99, Some(0.0)).law(), "constant");
        assert_eq!(growth(100, 99, None).law(), "nearly constant");
    }
}
