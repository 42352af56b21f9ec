//! The sweep as text: the largest values, then the matrix.

use fit::Outcome;
use fit::grid::{How, Point};

use anstyle::Style;

use super::{Fewest, Row, Sweep};
use crate::assumed::{condition, legend};
use crate::bytes;
use crate::lines::Lines;
use crate::reader::Reader;
use study::memory_text;

/// The whole answer.
pub fn terminal(sweep: &Sweep, reader: Reader) -> String {
    let mut lines = Lines::new(reader);
    if let Some(unfinished) = &sweep.trials.unfinished {
        let rest = format!("  {}: what is marked ? was not run", unfinished.how());
        lines.styled(reader.bad, "INTERRUPTED", &rest);
    }
    if let (Some(rest), None) = (partial(sweep), &sweep.trials.unfinished) {
        lines.styled(reader.bad, "PARTIAL", &rest);
    }
    for row in &sweep.largest {
        let (style, word, rest) = largest(sweep, row, reader);
        lines.section(style, word, [rest]);
    }
    for row in &sweep.fewest {
        let (style, word, rest) = fewest(sweep, row, reader);
        lines.section(style, word, [rest]);
    }
    if !sweep.points.is_empty() {
        matrix(sweep, reader, &mut lines);
    }
    super::growth::growth(&sweep.scaling, &mut lines);
    sweep.trials.close(&mut lines);
    lines.text()
}

/// How much of a sweep that jobs share is there.
fn partial(sweep: &Sweep) -> Option<String> {
    let missing = sweep.missing();
    let mut shards: Vec<&str> = missing.iter().map(|(_, shard)| shard.as_str()).collect();
    shards.sort_by_key(|shard| (shard.len(), *shard));
    shards.dedup();
    let (known, rows) = (sweep.rows() - missing.len(), sweep.rows());
    let shards =
        if shards.len() == 1 { "shard " } else { "shards " }.to_owned() + &shards.join(", ");
    (!missing.is_empty()).then(|| format!("  {known} of {rows} rows are known: {shards} to come"))
}

fn largest(sweep: &Sweep, row: &Row, reader: Reader) -> (Style, &'static str, String) {
    let card = &sweep.cards[row.largest.card];
    let others: String =
        row.others.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let place = format!("{}{others}", card.name);
    let Some(value) = row.largest.value else {
        if row.largest.unfinished {
            return (reader.bad, "?", format!("{place}: the search is unfinished"));
        }
        let why = match &row.largest.failure {
            Some(why) => format!("the script failed: {}", why.lines().next().unwrap_or_default()),
            None => {
                format!(
                    "no value fits its {}",
                    memory_text(card.card.memory_bytes, card.card.used_bytes)
                )
            }
        };
        return (reader.bad, "NONE", format!("{place}: {why}"));
    };
    let needs = bytes::text(row.largest.peaks.reserved + card.card.context_bytes);
    let end = match (&row.largest.failure, row.largest.at_end_of_range) {
        (Some(why), _) => {
            format!("; beyond it the script fails: {}", why.lines().next().unwrap_or_default())
        }
        _ if row.largest.unfinished => {
            "; a larger one may fit: the search is unfinished".to_owned()
        }
        (None, true) => "; the range ends here, not the memory".to_owned(),
        (None, false) => String::new(),
    };
    let memory = bytes::text(card.card.memory_bytes);
    let rest = format!("{place}: {} {value} takes {needs} of {memory}{end}", row.knob);
    assumed_or_not(sweep, row.largest.is_assumed, reader, ("LARGEST", rest))
}

fn fewest(sweep: &Sweep, row: &Fewest, reader: Reader) -> (Style, &'static str, String) {
    let others: String =
        row.others.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let place = format!("{}{others}", sweep.cards[row.card].name);
    match row.ranks {
        Some(ranks) => {
            let rest = format!("{place}: {ranks} cards are the fewest that fit, of those tried");
            assumed_or_not(sweep, row.is_assumed, reader, ("FEWEST", rest))
        }
        None => (reader.bad, "NONE", format!("{place}: no world that was tried fits")),
    }
}

/// An answer, with its condition if it has one.
fn assumed_or_not(
    sweep: &Sweep,
    is_assumed: bool,
    reader: Reader,
    (word, rest): (&'static str, String),
) -> (Style, &'static str, String) {
    match is_assumed {
        true => {
            let condition = condition(sweep.trials.unknown_places.as_deref());
            (reader.label, word, format!("{rest}, if {condition}"))
        }
        false => (reader.good, word, rest),
    }
}

/// A row per combination, a column per card.
fn matrix(sweep: &Sweep, reader: Reader, lines: &mut Lines) {
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
        let known = of.iter().filter(|point| point.is_known());
        let most = known.max_by_key(|point| (!point.is_cut_short, point.peaks.reserved));
        let needs = most.map_or_else(
            || "?".to_owned(),
            |point| {
                let more = if point.is_cut_short { "> " } else { "" };
                format!("{more}{}", bytes::text(point.peaks.reserved))
            },
        );
        let cells = (0..sweep.cards.len()).map(|card| {
            of.iter().find(|point| point.card == card).map_or("", |point| cell(point)).to_owned()
        });
        rows.push(values.iter().cloned().chain([needs]).chain(cells).collect());
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let missing = sweep.missing();
    let remark = |values: &[String]| {
        let row = missing.iter().find(|row| row.0 == values);
        row.map_or_else(String::new, |(_, shard)| format!("  not run yet (shard {shard})"))
    };
    for (number, row) in rows.iter().enumerate() {
        let style = if number == 0 { reader.label } else { Style::new() };
        let remark = remark(&row[..sweep.knobs.len()]);
        let cells =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width));
        let line = cells.collect::<Vec<_>>().join("  ");
        lines.styled(style, &line, &remark);
    }
    if !missing.is_empty() {
        lines.add(
            "not run yet: nothing is remembered; if that job has ended, its own output says why",
        );
    }
    if sweep.points.iter().any(|point| point.how == How::Predicted) {
        lines.add(
            "~ predicted by a law that other runs follow; one such point per row was run to check it",
        );
    }
    if let Some(places) = &sweep.trials.unknown_places {
        lines.add(&legend(places));
    }
}

fn cell(point: &Point) -> &'static str {
    match (&point.outcome, point.how) {
        (Outcome::Fits, How::Run | How::Implied) => "fits",
        (Outcome::Fits, How::Predicted) => "~fits",
        (Outcome::FitsIf, How::Run | How::Implied) => "fits if",
        (Outcome::FitsIf, How::Predicted) => "~fits if",
        (Outcome::DoesNotFit, How::Run | How::Implied) => "–",
        (Outcome::DoesNotFit, How::Predicted) => "~–",
        (Outcome::Failed(_), _) => "failed",
        (Outcome::NotRun, _) => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Knob, Shard, SweptCard};
    use super::*;
    use fit::Peaks;

    /// Two knobs, one card; the verdicts of the rows in their order.
    fn sweep(shard: Option<Shard>, verdicts: &[Outcome]) -> Sweep {
        let knob = |name: &str, values: &[&str]| Knob {
            name: name.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let row = |(at, verdict): (usize, &Outcome)| Point {
            values: vec![["a", "b"][at / 3].to_owned(), ["1", "2", "3"][at % 3].to_owned()],
            card: 0,
            outcome: verdict.clone(),
            peaks: Peaks { allocated: 1 << 20, reserved: 1 << 20, device: 1 << 20 },
            unlimited: None,
            how: How::Run,
            is_cut_short: false,
        };
        let mut card = gpus::unlimited().with_memory(1 << 30);
        card.context_bytes = 0;
        Sweep {
            knobs: vec![knob("mode", &["a", "b"]), knob("n", &["1", "2", "3"])],
            cards: vec![SweptCard { name: "card".to_owned(), card }],
            points: verdicts.iter().enumerate().map(row).collect(),
            shard,
            ..Sweep::default()
        }
    }

    #[test]
    fn rows_of_other_jobs_qualify_the_answer() {
        use Outcome::{Fits, NotRun};
        let shard = Some(Shard { number: 1, count: 4 });
        let text = terminal(
            &sweep(shard, &[Fits, NotRun, Fits, NotRun, Fits, NotRun]),
            Reader::plain(100),
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "PARTIAL  3 of 6 rows are known: shards 2/4, 4/4 to come");
        assert_eq!(lines[3], "   a  2         ?     ?  not run yet (shard 2/4)");
        assert_eq!(lines[5], "   b  1         ?     ?  not run yet (shard 4/4)");
        assert_eq!(lines[7], "   b  3         ?     ?  not run yet (shard 2/4)");
        let one =
            terminal(&sweep(shard, &[Fits, Fits, NotRun, Fits, Fits, Fits]), Reader::plain(100));
        assert!(one.starts_with("PARTIAL  5 of 6 rows are known: shard 3/4 to come\n"), "{one}");
    }

    #[test]
    fn a_whole_table_says_nothing_of_shards() {
        let all = vec![Outcome::Fits; 6];
        let shard = Some(Shard { number: 1, count: 4 });
        let [with, without] =
            [shard, None].map(|shard| terminal(&sweep(shard, &all), Reader::plain(100)));
        assert_eq!(with, without);
        let cut = terminal(&sweep(None, &[Outcome::NotRun]), Reader::plain(100));
        assert!(!cut.contains("shard") && !cut.contains("PARTIAL"), "{cut}");
    }
}
