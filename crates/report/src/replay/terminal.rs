//! A replay as text: the verdict, one row per settings, the smallest card.

use crate::bytes;
use crate::explain::at_least;
use crate::lines::Lines;
use crate::reader::Reader;
use crate::replay::{Contradiction, Replay, Trial};
use study::memory_text;

/// The whole report.
pub fn terminal(replay: &Replay, reader: Reader) -> String {
    let mut lines = Lines::new(reader);
    verdict(replay, reader, &mut lines);
    if replay.first_difference.is_some() {
        return lines.text();
    }
    lines.add("");
    table(replay, reader, &mut lines);
    lines.add("");
    let mut line = |label: &str, content: &str| lines.section(reader.label, label, [content]);
    floor(replay, &mut line);
    notes(replay, &mut line);
    lines.text()
}

fn verdict(replay: &Replay, reader: Reader, lines: &mut Lines) {
    let events = if replay.events == 1 { "event" } else { "events" };
    let (count, device) = (replay.events, replay.device);
    let what = format!("{count} {events} of device {device}, torch {}", torch(replay));
    if let Some(difference) = &replay.first_difference {
        let first = format!("{what}: first at event {}", difference.event);
        lines.answer(reader.bad, "DIFFERS", &first);
        lines.add(&format!("recorded  {}", difference.recorded));
        lines.add(&format!("replayed  {}", difference.replayed));
        for line in replay.contradiction.as_ref().map(contradicts).unwrap_or_default().lines() {
            lines.add(line);
        }
        return;
    }
    let same = format!("{what}: every block and segment is where PyTorch put it");
    let judged = replay.judged.and_then(|row| replay.trials.get(row));
    let (Some(memory), Some(trial)) = (replay.memory_bytes, judged) else {
        lines.answer(reader.good, "REPRODUCED", &same);
        return;
    };
    let memory = memory_text(memory, replay.used_bytes);
    let card = match replay.card.as_str() {
        "" => memory,
        card => format!("{card} with {memory}"),
    };
    let under = match trial.settings.as_str() {
        "" => "the default settings".to_owned(),
        settings => format!("`{settings}`"),
    };
    let into = if replay.card.is_empty() { "into " } else { "" };
    let (style, word, sentence) = match trial.refused {
        None => (reader.good, "FITS", format!("{into}{card} under {under}")),
        Some(refused) => (
            reader.bad,
            "DOES NOT FIT",
            format!(
                "{into}{card} under {under}: event {} finds no {}",
                refused.event,
                bytes::text(refused.tried_bytes)
            ),
        ),
    };
    lines.answer(style, word, &sentence);
    if !trial.keeps_start {
        lines.paragraph("what is older than the trace is laid out anew on this card (modelled), so this is an estimate");
    }
    lines.paragraph(&same);
}

fn contradicts(found: &Contradiction) -> String {
    let Contradiction { event, what, found } = found;
    format!(
        "why       the file contradicts itself: after event {event} (`{what}`) its block is {found} at the \
         end\n          the blocks at the end are not what these events leave: was the history stopped \
         before the snapshot was written, or the trace cut?\n"
    )
}

fn torch(replay: &Replay) -> String {
    match replay.torch.as_str() {
        "" => "of unknown version".to_owned(),
        version => at_least(version),
    }
}

/// A header, then one row per settings, numbers right-aligned.
fn table(replay: &Replay, reader: Reader, lines: &mut Lines) {
    let has_card = replay.memory_bytes.is_some();
    let mut rows = vec![header(has_card)];
    rows.extend(replay.trials.iter().enumerate().map(|(index, trial)| row(index, trial, has_card)));
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for (index, row) in rows.iter().enumerate() {
        let mut line = format!("{:<first$}", row[0], first = widths[0]);
        for column in 1..columns {
            // The last one, a verdict in words, reads from the left.
            line += &match has_card && column == columns - 1 {
                true => format!("  {}", row[column]),
                false => format!("  {:>width$}", row[column], width = widths[column]),
            };
        }
        let style = if index == 0 { reader.label } else { anstyle::Style::new() };
        lines.styled(style, &line, "");
    }
}

fn header(has_card: bool) -> Vec<String> {
    let mut cells = vec!["settings", "reserved", "allocated", "fragmented", "taken", "returned"];
    cells.extend(has_card.then_some("verdict"));
    cells.into_iter().map(str::to_owned).collect()
}

fn row(index: usize, trial: &Trial, has_card: bool) -> Vec<String> {
    let settings = if trial.settings.is_empty() { "default" } else { &trial.settings };
    let name = match (index, trial.keeps_start) {
        (0, true) => format!("as recorded: {settings}"),
        (0, false) => format!("as recorded: {settings} *"),
        (_, true) => settings.to_owned(),
        (_, false) => format!("{settings} *"),
    };
    let mut cells = vec![
        name,
        bytes::text(trial.peak_reserved_bytes),
        bytes::text(trial.peak_allocated_bytes),
        bytes::text(trial.fragmentation_bytes),
        trial.segments_allocated.to_string(),
        trial.segments_freed.to_string(),
    ];
    if has_card {
        cells.push(match trial.refused {
            None => "fits".to_owned(),
            Some(refused) => format!("out of memory at event {}", refused.event),
        });
    }
    cells
}

fn floor(replay: &Replay, line: &mut impl FnMut(&str, &str)) {
    let known = replay.context_known;
    let mut context = format!("context of {} ({known})", bytes::text(replay.context_bytes));
    if replay.used_bytes != 0 {
        context += &format!(" and {} in use by others", bytes::text(replay.used_bytes));
    }
    if let Some(floor) = &replay.floor {
        let size = |bytes: Option<u64>| bytes.map_or("none does".to_owned(), bytes::text_up);
        let own = size(floor.own_bytes);
        let modelled = if floor.keeps_start { "" } else { " *" };
        let star = if replay.start.0 == 0 { "" } else { " *" };
        line(
            "smallest",
            &format!("card: {own}{modelled} under its own settings, with a {context}"),
        );
        if floor.default_bytes != floor.own_bytes {
            line("", &format!("{}{star} under the default settings", size(floor.default_bytes)));
        }
        match &floor.best {
            Some((settings, bytes)) => {
                let least = bytes::text_up(*bytes);
                line("", &format!("{least}{star} under `{settings}`, the least"));
            }
            None => line("", "none of the other settings needs less"),
        }
    }
    if let Some(ideal) = replay.ideal {
        let packed = match ideal.packed_bytes == ideal.bound_bytes {
            true => "; a packing made with hindsight reaches it".to_owned(),
            false => format!("; packed with hindsight: {}", bytes::text(ideal.packed_bytes)),
        };
        let bound = bytes::text(ideal.bound_bytes);
        line("ideal", &format!("{bound} in use at once: no allocator needs less{packed}"));
    }
}

fn notes(replay: &Replay, line: &mut impl FnMut(&str, &str)) {
    let (blocks, bytes) = replay.start;
    if replay.trials.iter().any(|trial| !trial.keeps_start) {
        let what = format!("{blocks} blocks ({}) older than the trace", bytes::text(bytes));
        line("note", &format!("* {what} are laid out anew by address (modelled)"));
    }
    if replay.retries != 0 && replay.memory_bytes.is_none() {
        let full = match replay.retries {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let rest = "the other rows have unlimited memory, see `--memory`";
        line("note", &format!("the recorded card was full {full}; {rest}"));
    }
    if replay.failed_requests != 0 {
        let requests = match replay.failed_requests {
            1 => "1 request".to_owned(),
            count => format!("{count} requests"),
        };
        let rest = match replay.died {
            true => "what the program would have done with the memory is not known",
            false => "the program went on, so a card need not meet them",
        };
        line("note", &format!("{requests} failed when it was recorded; {rest}"));
    }
    replay.notes.iter().for_each(|note| line("note", note));
    if replay.trials.iter().any(|trial| trial.settings.contains("garbage_collection")) {
        line(
            "note",
            "`garbage_collection_threshold` only acts with a memory limit, here 95 % of the card",
        );
    }
    if 1 < replay.devices.len() {
        let all: Vec<String> = replay.devices.iter().map(ToString::to_string).collect();
        line("note", &format!("the file holds devices {}: see `--device`", all.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::settings_trials::Refused;

    use crate::replay::Difference;

    fn lines(replay: &Replay) -> Vec<String> {
        terminal(replay, Reader::plain(100)).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_difference_is_all_there_is_to_say() {
        let (recorded, replayed) = ("alloc 0x200 5".to_owned(), "alloc 0x400".to_owned());
        let first_difference = Some(Difference { event: 7, recorded, replayed });
        let replay =
            Replay { events: 9, torch: "2.6".to_owned(), first_difference, ..Replay::default() };
        assert_eq!(
            lines(&replay),
            [
                "DIFFERS  9 events of device 0, torch 2.6 or newer: first at event 7",
                "recorded  alloc 0x200 5",
                "replayed  alloc 0x400"
            ]
        );
    }

    #[test]
    fn numbers_are_aligned_and_verdicts_need_a_card() {
        let small = Trial { keeps_start: true, peak_reserved_bytes: 5 << 20, ..Trial::default() };
        let refused = Some(Refused { event: 12, tried_bytes: 2 << 20 });
        let settings = "expandable_segments:True".to_owned();
        let large = Trial { settings, refused, peak_reserved_bytes: 50 << 30, ..Trial::default() };
        let mut replay = Replay { trials: vec![small, large], ..Replay::default() };
        let table = lines(&replay)[3..6].join("\n");
        assert_eq!(
            table,
            "settings                     reserved  allocated  fragmented  taken  returned\n\
             as recorded: default          5.0 MiB        0 B         0 B      0         0\n\
             expandable_segments:True *  50.00 GiB        0 B         0 B      0         0"
        );
        (replay.memory_bytes, replay.judged) = (Some(16 << 30), Some(0));
        let lines = lines(&replay);
        assert_eq!(lines[0], "FITS  into 16.00 GiB under the default settings");
        assert!(lines[4].ends_with("  fits") && lines[5].ends_with("  out of memory at event 12"));
    }
}
