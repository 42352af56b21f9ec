//! One command on several cards: a row each.

use anstyle::Style;
use serde::Serialize;
use study::{Judgement, Run};

use crate::bytes;
use crate::lines::Lines;
use crate::reader::Reader;
use crate::verdict::{headline, later, when_of, word};
use crate::whole;

/// A card and what came of the run on it.
#[derive(Clone, Debug)]
pub struct OnCard {
    pub run: Run,
}

impl OnCard {
    /// Whether it went through there; without kernels nothing would.
    pub fn fits(&self) -> bool {
        self.run.exit_code == 0 && self.has_kernels() && self.run.peak.is_some()
    }

    fn has_kernels(&self) -> bool {
        self.run.has_kernels != Some(false)
    }

    fn name(&self) -> &str {
        self.run.card.as_ref().map_or("", |card| card.name)
    }

    fn memory_bytes(&self) -> u64 {
        self.run.card.as_ref().map_or(0, |card| card.memory_bytes)
    }

    /// `11.40 ± 0.20 GiB`; what ran out is no need.
    fn needs(&self) -> String {
        match self.run.needed().filter(|_| self.run.exit_code == 0) {
            Some(need) => bytes::with_error(need.bytes, self.run.error_bytes()),
            None => "–".to_owned(),
        }
    }

    /// What a word does not say.
    fn remark(&self) -> String {
        match self.run.judgement() {
            _ if !self.has_kernels() => "this torch has no kernels for it".to_owned(),
            Judgement::DoesNotFit => {
                let out_of_memory = self.run.out_of_memory.as_ref();
                out_of_memory.map_or(String::new(), |refusal| {
                    format!("ran out{}", when_of(&self.run)(&refusal.phase, refusal.step))
                })
            }
            Judgement::ScriptFailed => self.run.failure.clone().unwrap_or_default(),
            Judgement::Depends if self.run.decisions.is_empty() => later(&self.run),
            Judgement::Depends => "on values that are not known".to_owned(),
            _ => String::new(),
        }
    }
}

/// The answer in a line, then a row for each card, the smallest first.
pub fn terminal(rows: &[OnCard], reader: Reader) -> String {
    let mut lines = Lines::new(reader);
    let mut sorted: Vec<&OnCard> = rows.iter().collect();
    sorted.sort_by_key(|row| row.memory_bytes());
    let fits = sorted.iter().filter(|row| row.fits()).count();
    let smallest = sorted.iter().find(|row| row.fits());
    let (style, first) = match smallest {
        Some(row) => (
            reader.good,
            format!("; the smallest is {} ({})", row.name(), bytes::text(row.memory_bytes())),
        ),
        None => (reader.bad, String::new()),
    };
    lines.styled(style, &format!("FITS {fits} OF {}", rows.len()), &format!(" GPUs{first}"));
    let width = rows.iter().map(|row| row.name().len()).max().unwrap_or(0).max(3);
    lines.add(&format!("{:<width$}  {:>11}  {:>18}  verdict", "GPU", "memory", "needs"));
    for row in sorted {
        let (style, verdict) = word(row.run.judgement(), reader);
        let (style, verdict) = match row.has_kernels() {
            true => (style, verdict),
            false => (reader.bad, "NO KERNELS"),
        };
        let (name, memory, needs) = (row.name(), bytes::text(row.memory_bytes()), row.needs());
        let start = format!("{name:<width$}  {memory:>11}  {needs:>18}  ");
        lines.row(&start, style, verdict, &format!("  {}", row.remark()));
    }
    if let Some(row) = rows.iter().max_by_key(|row| (row.run.whole.is_some(), row.memory_bytes())) {
        lines.section(Style::new(), "whole", whole::rows(&row.run, false));
    }
    lines.text()
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    gpu: &'a str,
    memory_bytes: u64,
    verdict: &'static str,
    judgement: &'static str,
    fits: bool,
    has_kernels: Option<bool>,
    need_bytes: Option<u64>,
    error_bytes: Option<u64>,
    device_bytes: Option<u64>,
    allocated_bytes: Option<u64>,
    headline: String,
}

impl<'a> Row<'a> {
    fn of(row: &'a OnCard) -> Row<'a> {
        let run = &row.run;
        let need = run.needed().filter(|_| run.exit_code == 0);
        Row {
            gpu: row.name(),
            memory_bytes: row.memory_bytes(),
            verdict: run.verdict_name(),
            judgement: run.judgement().name(),
            fits: row.fits(),
            has_kernels: run.has_kernels,
            need_bytes: need.map(|need| need.bytes),
            error_bytes: need.map(|_| run.error_bytes()),
            device_bytes: run.peak.as_ref().map(|peak| peak.device_bytes),
            allocated_bytes: run.peak.as_ref().map(|peak| peak.allocated.bytes),
            headline: headline(run),
        }
    }
}

/// The same as JSON, in the order of the command.
pub fn json(rows: &[OnCard]) -> String {
    let rows = rows.iter().map(Row::of).collect();
    let document = Document { schema: "fathom.cards/1", rows };
    let mut text = serde_json::to_string_pretty(&document).expect("plain data serialises");
    text.push('\n');
    text
}
