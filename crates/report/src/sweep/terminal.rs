//! The sweep as text: the largest values, then the matrix.

use fit::grid::{How, Point};
use fit::{Peaks, Verdict};

use super::{Fewest, Row, Sweep};
use crate::bytes;
use crate::terminal::Palette;

/// The whole answer.
pub fn terminal(sweep: &Sweep, palette: Palette) -> String {
    let mut text = String::new();
    for row in &sweep.largest {
        text += &largest(sweep, row, palette);
    }
    for row in &sweep.fewest {
        text += &fewest(sweep, row, palette);
    }
    if !sweep.points.is_empty() {
        text += &matrix(sweep, palette);
    }
    text += &super::growth::growth(&sweep.scaling);
    text += &format!(
        "trials   {} run, {} remembered, {:.1} s\n",
        sweep.run, sweep.remembered, sweep.wall_seconds
    );
    sweep.notes.iter().fold(text, |text, note| text + &format!("note     {note}\n"))
}

fn largest(sweep: &Sweep, row: &Row, palette: Palette) -> String {
    let card = &sweep.cards[row.largest.card];
    let others: String =
        row.others.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let place = format!("{}{others}", card.name);
    let Some(value) = row.largest.value else {
        let bad = palette.bad;
        let why = match &row.largest.failure {
            Some(why) => format!("the script failed: {}", why.lines().next().unwrap_or_default()),
            None => format!("no value fits its {}", bytes::text(card.memory_bytes)),
        };
        return format!("{bad}{:9}{bad:#}{place}: {why}\n", "NONE");
    };
    let good = palette.good;
    let needs = bytes::text(row.largest.peaks.reserved + card.context_bytes);
    let end = match (&row.largest.failure, row.largest.at_end_of_range) {
        (Some(why), _) => {
            format!("; beyond it the script fails: {}", why.lines().next().unwrap_or_default())
        }
        (None, true) => "; the range ends here, not the memory".to_owned(),
        (None, false) => String::new(),
    };
    format!(
        "{good}{:9}{good:#}{place}: {} {value} needs {needs} of {}{end}\n",
        "LARGEST",
        row.knob,
        bytes::text(card.memory_bytes)
    )
}

fn fewest(sweep: &Sweep, row: &Fewest, palette: Palette) -> String {
    let others: String =
        row.others.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let place = format!("{}{others}", sweep.cards[row.card].name);
    let (style, word, answer) = match row.ranks {
        Some(ranks) => (
            palette.good,
            "FEWEST",
            format!("{ranks} cards are the fewest that fit, of those tried"),
        ),
        None => (palette.bad, "NONE", "no world that was tried fits".to_owned()),
    };
    format!("{style}{word:9}{style:#}{place}: {answer}\n")
}

/// A row per combination, a column per card.
fn matrix(sweep: &Sweep, palette: Palette) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let names = sweep.knobs.iter().map(|knob| knob.name.clone());
    let cards = sweep.cards.iter().map(|card| card.name.clone());
    rows.push(names.chain(["reserves".to_owned()]).chain(cards).collect());
    let mut combinations: Vec<&Vec<String>> = Vec::new();
    for point in &sweep.points {
        if !combinations.contains(&&point.values) {
            combinations.push(&point.values);
        }
    }
    for values in combinations {
        let of: Vec<&Point> = sweep.points.iter().filter(|point| &point.values == values).collect();
        let most = of.iter().map(|point| point.peaks).max_by_key(|peaks: &Peaks| peaks.reserved);
        let needs = most.map_or_else(String::new, |peaks| bytes::text(peaks.reserved));
        let cells = (0..sweep.cards.len()).map(|card| {
            of.iter().find(|point| point.card == card).map_or("", |point| cell(point)).to_owned()
        });
        rows.push(values.iter().cloned().chain([needs]).chain(cells).collect());
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let style = if number == 0 { palette.label } else { anstyle::Style::new() };
        let cells =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width));
        let line = cells.collect::<Vec<_>>().join("  ");
        text += &format!("{style}{}{style:#}\n", line.trim_end());
    }
    if sweep.points.iter().any(|point| point.how == How::Predicted) {
        text += "~ predicted by a law that other runs follow; one such point per row was run to check it\n";
    }
    text
}

fn cell(point: &Point) -> &'static str {
    match (&point.verdict, point.how) {
        (Verdict::Fits, How::Run) => "fits",
        (Verdict::Fits, How::Predicted) => "~fits",
        (Verdict::DoesNotFit, How::Run) => "–",
        (Verdict::DoesNotFit, How::Predicted) => "~–",
        (Verdict::Failed(_), _) => "failed",
    }
}
