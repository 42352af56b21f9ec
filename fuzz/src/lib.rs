//! What each fuzz target does with its bytes. They may be refused; they may not make it panic, hang
//! or take memory without measure.

mod program;

use allocator::{
    Requests, Settings, Start, contradiction, fits, floor, pack, replay as replayed, reproduce,
    validate,
};
use recording::{Event, Recording};

/// The readers of pickles and snapshots. What is read is written in one form, whatever it was in, and
/// that is read and written the same.
pub fn pickle(bytes: &[u8]) {
    drop(snapshot::pickle::load(bytes));
    let Ok(read) = snapshot::read(bytes) else { return };
    let written = snapshot::write(&read);
    let again = snapshot::read(&written).expect("what was written is read");
    assert!(snapshot::write(&again) == written, "what was written is written again");
    for (recording, clues) in snapshot::with_clues(&read) {
        play(&recording);
        play(&infer::infer(recording, &clues, &infer::NoSources));
    }
}

/// The readers of recordings: text and file. What is read is written and read again, the same.
pub fn recording(bytes: &[u8]) {
    drop(recording::file::read(bytes));
    if let Ok(read) = recording::file::read(&signed(bytes)) {
        let again = recording::file::read(&recording::file::write(&read));
        assert_eq!(again.expect("what was written is read"), read);
        drop(recording::text::write(&read));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = recording::text::recording(text) {
        let written = recording::text::write(&read);
        let again = recording::text::recording(&written).expect("what was written is read");
        assert_eq!(recording::text::write(&again), written);
    }
}

/// The replay. Bytes are a recording as a file, or a text of which the lines that can be read are
/// taken; whatever else they are, they also stand for a program that makes sense.
pub fn replay(bytes: &[u8]) {
    if let Ok(read) = recording::file::read(&signed(bytes)) {
        play(&read);
    } else if let Ok(text) = std::str::from_utf8(bytes) {
        play(&lenient(text));
    }
    let (program, settings) = program::of(bytes);
    let timeline = replayed(&program, &settings);
    let shown = || recording::text::write(&program);
    assert_eq!(validate::validate(&program, &timeline), Ok(()), "{settings:?}\n{}", shown());
    let events = tail(bytes, &program.events);
    weigh(&Recording { events, finish: timeline.finish, ..Recording::default() }, &settings);
}

/// What a ring buffer would have kept of these events: from anywhere on.
fn tail(bytes: &[u8], events: &[Event]) -> Vec<Event> {
    let from = bytes.last().map_or(0, |last| events.len() * usize::from(*last) / 256);
    events[from..].to_vec()
}

/// The smallest card does, one byte less does not, and nothing needs less than what is in use.
fn weigh(recording: &Recording, settings: &Settings) {
    drop(contradiction(recording));
    let requests = Requests::of(recording, settings);
    let packing = pack(&requests, settings);
    assert!(packing.bound <= packing.packed);
    for start in [Start::Kept, Start::Anew] {
        let Some(least) = floor(&requests, settings, start) else { continue };
        assert!(fits(&requests, settings, least, start), "{start:?} {least}");
        let below = least.checked_sub(1).filter(|below| settings.context <= *below);
        assert!(!below.is_some_and(|below| fits(&requests, settings, below, start)), "{least}");
    }
}

/// The reader of out-of-memory messages, and everything that is asked of what it reads.
pub fn oom(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let dims = [oom::Dim { name: "batch".to_owned(), value: 4 }];
    let unknown = oom::Dim { name: "side".to_owned(), value: oom::Dim::UNKNOWN };
    for account in oom::read(&text) {
        drop(account.family.steps(&account));
        if let Some(calls) = &account.traceback {
            let own = calls.user().into_iter().chain(calls.library());
            assert!(own.chain(&calls.frames).all(|frame| frame.file.len() <= 1600), "{text}");
            assert!(calls.script().is_none_or(|file| file.len() <= 1600), "{text}");
        }
        let balance = oom::weigh(&account);
        drop(oom::advise(&account, &balance));
        assert!(balance.ledger.iter().all(|row| row.amount.low <= row.amount.high), "{text}");
        let Some(tried) = account.tried() else { continue };
        let asked = oom::requests(tried, account.kind);
        assert!(asked.iter().all(|range| range.low <= range.high), "{text}");
        drop(oom::refute(&oom::Shape(vec![3, 5]), &asked));
        drop(oom::solve(&asked, &[dims[0].clone(), unknown.clone()]));
        for candidate in oom::solve(&asked, &dims).candidates.into_iter().chain(oom::guess(&asked))
        {
            assert!(asked.iter().any(|range| range.contains(candidate.bytes)), "{text}");
        }
    }
}

/// A file whose chunks have the checksums they should have: else hardly a change would get past them.
fn signed(bytes: &[u8]) -> Vec<u8> {
    let mut file = bytes.to_vec();
    let mut at = recording::file::MAGIC.len() + 4;
    while let Some(header) = file.get(at..at + 12) {
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let Some(payload) = file.get(at + 12..(at + 12).saturating_add(length)) else { break };
        let mut sum = crc32fast::Hasher::new();
        sum.update(&header[..4]);
        sum.update(payload);
        file[at + 8..at + 12].copy_from_slice(&sum.finalize().to_le_bytes());
        at += 12 + length;
    }
    file
}

/// A recording that may contradict itself, under its own settings and under others.
fn play(recording: &Recording) {
    // The validator is slow on purpose.
    if 2000 < recording.events.len() + recording.start.len() + recording.finish.len() {
        return;
    }
    let own = Settings::of(&recording.about).unwrap_or_default();
    let expandable = Settings { expandable_segments: true, ..own.clone() };
    for settings in [own, expandable] {
        let again = reproduce(recording, &settings);
        drop(validate::validate(recording, &again.timeline));
        drop(validate::validate(recording, &replayed(recording, &settings)));
        weigh(recording, &settings);
    }
}

/// The lines that can be read.
fn lenient(text: &str) -> Recording {
    let whole = recording::text::recording(text);
    whole.unwrap_or_else(|_| {
        let lines = text.lines().filter(|line| recording::text::recording(line).is_ok());
        let kept: Vec<&str> = lines.collect();
        recording::text::recording(&kept.join("\n")).unwrap_or_else(|_| {
            let events: Vec<Event> = kept
                .iter()
                .filter_map(|line| recording::text::parse(line).ok())
                .flatten()
                .collect();
            Recording { events, ..Recording::default() }
        })
    })
}
