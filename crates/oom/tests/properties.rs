//! Whatever the text: no panic, no endless work, no number that is not written.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use oom::{Account, Amount, Dim, advise, read, refute, requests, solve, weigh};
use proptest::prelude::*;

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oom");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Everything that can be asked about a text.
fn ask_all(text: &str) -> Vec<Account> {
    let accounts = read(text);
    for account in &accounts {
        account.family.steps(account);
        if let Some(traceback) = &account.traceback {
            assert!(traceback.user().is_some() || traceback.script().is_none());
            traceback.library();
        }
        let balance = weigh(account);
        for row in &balance.ledger {
            assert!(row.amount.low <= row.amount.high, "{row:?}");
        }
        for advice in advise(account, &balance) {
            assert!(advice.gap.is_none_or(|gap| gap.low <= gap.high), "{advice:?}");
        }
        if let Some(tried) = account.tried() {
            let asked = requests(tried, account.kind);
            assert!(
                asked
                    .iter()
                    .all(|range| range.low <= range.high && range.high <= tried.high.max(10 << 20))
            );
            let shape = oom::Shape(vec![3, 5, 7]);
            refute(&shape, &asked);
            solve(&asked, &[Dim { name: "batch".to_owned(), value: 4 }]);
            let unknown = Dim { name: "side".to_owned(), value: Dim::UNKNOWN };
            solve(&asked, &[Dim { name: "batch".to_owned(), value: 3 }, unknown]);
            oom::guess(&asked);
        }
    }
    accounts
}

/// The greatest number of a text, all of whose digits may run together, in the largest unit.
fn greatest(text: &str) -> f64 {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let runs = squeezed.split(|c: char| !(c.is_ascii_digit() || c == ','));
    let numbers = runs.filter_map(|run| run.replace(',', "").parse::<f64>().ok());
    // `Tried to allocate more than 1EB memory.`
    let unit = if text.contains("1EB") { 60 } else { 40 };
    (numbers.fold(0.0, f64::max) + 1.0) * (1u64 << unit) as f64
}

fn amounts(account: &Account) -> Vec<Amount> {
    let figures = &account.figures;
    let read = [figures.tried, figures.capacity, figures.free, figures.allocated, figures.limit];
    let listed = account.processes.iter().map(|process| process.memory);
    read.into_iter().flatten().chain(listed).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_text_is_read(text in any::<String>()) {
        ask_all(&text);
    }

    #[test]
    fn words_of_messages_in_any_order(parts in prop::collection::vec(0usize..16, 0..60)) {
        let words = [
            "CUDA out of memory. ", "Tried to allocate ", "2.00 GiB ", "(GPU 0; ", "total capacity; ",
            "GPU 0 has a total capacity of ", "99999999999.99 GiB ", "is free. ", "Process 1 has ",
            "memory in use. ", "0 bytes ", "| 1MiB / 2MiB |", "Of the allocated memory ", "\u{1b}[",
            "\\u00", "17179869184.00 GiB",
        ];
        let text: String = parts.iter().map(|part| words[*part]).collect();
        for account in ask_all(&text) {
            for amount in amounts(&account) {
                prop_assert!(amount.high <= 1 << 60);
            }
        }
    }

    #[test]
    fn pieces_of_real_texts(
        pieces in prop::collection::vec((any::<prop::sample::Index>(), 0.0f64..1.0, 0.0f64..1.0), 1..6),
        glue in prop::sample::select(vec!["", " ", "\n", "\n[rank1]: ", "\\n", "│"]),
    ) {
        let texts = texts();
        let mut parts = Vec::new();
        for (which, from, to) in pieces {
            let chars: Vec<char> = which.get(&texts).chars().collect();
            let at = |part: f64| (chars.len() as f64 * part) as usize;
            let (from, to) = (at(from).min(at(to)), at(from).max(at(to)));
            parts.push(chars[from..to].iter().collect::<String>());
        }
        let text = parts.join(glue);
        let most = greatest(&text);
        for account in ask_all(&text) {
            for amount in amounts(&account) {
                prop_assert!(amount.middle() as f64 <= most, "{amount:?} is not in {text}");
            }
        }
    }
}

/// Megabytes of what costs most: every head of a message, and rows of tables.
#[test]
fn hostile_texts_end_in_time() {
    let heads = [
        "CUDA out of memory. Tried to allocate ",
        "memory in use. ",
        "Tried to allocate 1 GiB total capacity; ",
        "(pid=[(pid=[",
        "|||||||||||||||||||||||||||||||||\n",
        "memory.used, memory.total\n1, 2\n",
        "111111111111111111111111111111111",
        "OOM when allocating tensor with shape[1,1,1,1,1,1,1,1,1,1,1,1,",
        "\\\\\\\\\\\\\\\\u001b[",
        "Killed\n",
        "  File \"a.py\", line 1, in f\n    x()\nCUDA error: out of memory\n",
        "Traceback (most recent call last):\n",
        "[rank1]: File \"a\", line 1\n[rank2]: CUDA out of memory\n",
        "oom_kill event exit code 137 signal 9 (SIGKILL) ",
        "anon-rss:1kB Killed process 1 (a) ",
    ];
    for head in heads {
        let text = head.repeat((1 << 20) / head.len());
        let begun = Instant::now();
        read(&text);
        assert!(begun.elapsed() < Duration::from_secs(20), "{head}: {:?}", begun.elapsed());
    }
}
