//! Texts that people posted, read and compared with what was read in them by eye.
//!
//! `tests/oom/INDEX.csv` has a row per text: where it comes from, what it is, and its numbers in bytes.

use std::fs;
use std::path::{Path, PathBuf};

use oom::{Account, Amount, Figures, advise, read, requests, solve, weigh};

/// A row of the index, by the names of its columns.
struct Row(Vec<(String, String)>);

impl Row {
    fn get(&self, column: &str) -> &str {
        let cell = self.0.iter().find(|(name, _)| name == column);
        cell.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no column {column}"))
    }

    fn bytes(&self, column: &str) -> Option<u64> {
        let cell = self.get(column);
        (!cell.is_empty()).then(|| cell.parse().unwrap())
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oom")
}

fn index() -> Vec<Row> {
    let text = fs::read_to_string(folder().join("INDEX.csv")).unwrap();
    let mut lines = text.lines();
    let titles: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let row =
        |line: &str| Row(titles.iter().cloned().zip(line.split(',').map(str::to_owned)).collect());
    lines.map(row).collect()
}

fn figures(figures: &Figures) -> [(&'static str, Option<Amount>); 13] {
    [
        ("tried", figures.tried),
        ("capacity", figures.capacity),
        ("free", figures.free),
        ("allocated", figures.allocated),
        ("reserved", figures.reserved),
        ("unallocated", figures.unallocated),
        ("private_pools", figures.private_pools),
        ("this_process", figures.this_process),
        ("limit", figures.limit),
        ("used", figures.used),
        ("other", figures.other),
        ("peak_allocated", figures.peak_allocated),
        ("peak_reserved", figures.peak_reserved),
    ]
}

/// The account that the index is about: the first.
fn first<'a>(file: &str, accounts: &'a [Account], row: &Row) -> &'a Account {
    assert_eq!(accounts.len().to_string(), row.get("accounts"), "{file}: {accounts:#?}");
    &accounts[0]
}

#[test]
fn every_text_is_read_as_by_eye() {
    let rows = index();
    assert!(40 <= rows.len());
    for row in rows {
        let file = row.get("file");
        let accounts = read(&fs::read_to_string(folder().join(file)).unwrap());
        let account = first(file, &accounts, &row);
        assert_eq!(account.kind.name(), row.get("form"), "{file}");
        let device = account.device.map(|device| device.to_string()).unwrap_or_default();
        assert_eq!(device, row.get("device"), "{file}: device");
        let processes: Vec<String> = account.processes.iter().map(|p| p.pid.to_string()).collect();
        assert_eq!(processes.join(" "), row.get("processes"), "{file}: processes");
        for (name, amount) in figures(&account.figures) {
            let expected = row.bytes(name);
            assert_eq!(amount.is_some(), expected.is_some(), "{file}: {name} is {amount:?}");
            let (Some(amount), Some(expected)) = (amount, expected) else { continue };
            assert!(amount.contains(expected), "{file}: {name} is {amount:?}, not {expected}");
            let open = amount.high - amount.low;
            // `926. GiB` is the coarsest of them all.
            assert!(
                open <= 22 << 20 || open <= expected / 500,
                "{file}: {name} leaves {open} bytes open"
            );
        }
        assert_eq!(weigh(account).cause.name(), row.get("cause"), "{file}: {:#?}", weigh(account));
    }
}

#[test]
fn the_parts_of_a_card_sum_to_it() {
    for row in index() {
        let file = row.get("file");
        for account in read(&fs::read_to_string(folder().join(file)).unwrap()) {
            let balance = weigh(&account);
            let Some(card) = balance.ledger.first().filter(|row| row.name == "card") else {
                continue;
            };
            let parts = balance.ledger.iter().filter(|row| row.depth == 1).map(|row| row.amount);
            let sum = parts.reduce(Amount::plus).unwrap_or(Amount::exactly(0));
            let whole = account.figures.free.is_some()
                && (account.figures.reserved.is_some() || account.figures.used.is_some());
            if whole && !balance.spilled {
                let meets = sum.low <= card.amount.high && card.amount.low <= sum.high;
                assert!(meets, "{file}: {sum:?} is not {:?}: {:#?}", card.amount, balance.ledger);
            }
        }
    }
}

#[test]
fn advice_never_promises_what_the_numbers_do_not_hold() {
    use oom::Helps;
    for row in index() {
        let file = row.get("file");
        for account in read(&fs::read_to_string(folder().join(file)).unwrap()) {
            let balance = weigh(&account);
            for advice in advise(&account, &balance) {
                let (Some(tried), Some(reach)) = (account.tried(), advice.reach) else { continue };
                use oom::advice::Remedy;
                if matches!(advice.remedy, Remedy::AskForLess | Remedy::EmptyCache) {
                    continue;
                }
                match advice.helps {
                    Helps::Can => assert!(tried.high <= reach.low, "{file}: {advice:?}"),
                    Helps::Cannot => assert!(reach.high < tried.low, "{file}: {advice:?}"),
                    Helps::Open | Helps::Beside => {}
                }
            }
        }
    }
}

#[test]
fn guesses_have_the_size_that_was_tried() {
    let mut guessed = 0;
    for row in index() {
        for account in read(&fs::read_to_string(folder().join(row.get("file"))).unwrap()) {
            let Some(tried) = account.tried() else { continue };
            let asked = requests(tried, account.kind);
            for candidate in solve(&asked, &[]).candidates {
                let elements = candidate.shape.elements().unwrap();
                assert_eq!(elements * candidate.dtype.bytes, candidate.bytes);
                assert!(asked.iter().any(|range| range.contains(candidate.bytes)));
                guessed += 1;
            }
        }
    }
    assert!(10 < guessed);
}

/// A text as wrappers leave it: labels before its lines, lines broken anywhere, colours, escapes, boxes.
fn wrapped(text: &str) -> Vec<(&'static str, String)> {
    let broken = |width: usize, before: &str, after: &str| -> String {
        let chars: Vec<char> = text.chars().filter(|c| *c != '\n').collect();
        let line = |part: &[char]| format!("{before}{}{after}\n", part.iter().collect::<String>());
        chars.chunks(width).map(line).collect()
    };
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    vec![
        ("torchrun", broken(61, "[rank12]: ", "")),
        ("a narrow terminal", broken(37, "", "")),
        ("a box", broken(58, "│ ", " │")),
        ("ray", broken(80, "(WorkerDict pid=4242, ip=10.1.2.3) ", "")),
        ("logging", broken(90, "2025-06-05 06:18:13,120 - ERROR - [train.py:12] ", "")),
        ("colours", text.replace(' ', " \u{1b}[1;31m").replace("GiB", "\u{1b}[0mGiB")),
        ("JSON", format!("{{\"level\": \"error\", \"message\": \"{escaped}\"}}")),
        ("Windows", text.replace('\n', "\r\n")),
        ("a quote", broken(70, "> ", "")),
    ]
}

#[test]
fn wrappers_change_no_number() {
    for row in index() {
        let file = row.get("file");
        let form = row.get("form");
        if row.get("accounts") != "1" || form == "nvidia_smi" || form == "memory_summary" {
            continue;
        }
        let text = fs::read_to_string(folder().join(file)).unwrap();
        let bare = &read(&text)[0];
        for (wrapper, text) in wrapped(&text) {
            let accounts = read(&text);
            let found = accounts.first().unwrap_or_else(|| panic!("{file} in {wrapper}:\n{text}"));
            assert_eq!(found.figures, bare.figures, "{file} in {wrapper}:\n{text}");
            assert_eq!(
                (found.kind, &found.processes),
                (bare.kind, &bare.processes),
                "{file} in {wrapper}"
            );
            assert_eq!(
                (&found.tensor, &found.advises),
                (&bare.tensor, &bare.advises),
                "{file} in {wrapper}"
            );
        }
    }
}
