//! Every file of the corpus, and for a short time what becomes of the files when they are changed at
//! random, always the same way. `FATHOM_FUZZ_SECONDS` makes it longer, `FATHOM_FUZZ_SEED` different.
//! What a longer search by libFuzzer finds goes into the corpus: `make fuzz`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// A body, its name, its corpus.
fn run(name: &str, body: fn(&[u8])) {
    // The texts are those that the reader's own tests compare.
    let corpus = if name == "oom" { "../tests/oom".to_owned() } else { format!("corpus/{name}") };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(corpus);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!files.is_empty(), "{name} has a corpus");
    for (path, bytes) in paths.iter().zip(&files) {
        try_one(name, body, bytes, &path.display().to_string());
    }
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let mut random = Random(number("FATHOM_FUZZ_SEED", 1) | 1);
    let end = Instant::now() + Duration::from_secs(number("FATHOM_FUZZ_SECONDS", 3));
    let mut tried = 0u64;
    // Texts are cheap: as many as it takes, whatever the machine.
    let least = if name == "oom" { 10_000 } else { 0 };
    while Instant::now() < end || tried < least {
        let mut bytes = random.pick(&files).clone();
        for _ in 0..=random.below(4) {
            random.change(&mut bytes, &files);
        }
        try_one(name, body, &bytes, "a changed file");
        tried += 1;
    }
    eprintln!("{name}: {} files, {tried} changed ones", files.len());
}

/// Bytes that fail are kept, with a name by which they can go into the corpus.
fn try_one(name: &str, body: fn(&[u8]), bytes: &[u8], what: &str) {
    let begin = Instant::now();
    let failed = catch_unwind(AssertUnwindSafe(|| body(bytes))).is_err();
    let slow = Duration::from_secs(5) < begin.elapsed();
    if failed || slow {
        let path = std::env::temp_dir().join(format!("fathom-fuzz-{name}"));
        std::fs::write(&path, bytes).unwrap();
        let why = if failed { "panics" } else { "takes long" };
        panic!("{name} {why} on {what}: {}", path.display());
    }
}

/// xorshift: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, files: &'a [Vec<u8>]) -> &'a Vec<u8> {
        &files[self.below(files.len())]
    }

    /// One change: a byte, a number, a part left out, doubled, or taken from another file.
    fn change(&mut self, bytes: &mut Vec<u8>, files: &[Vec<u8>]) {
        let at = self.below(bytes.len());
        let length = 1 + self.below(16).min(bytes.len().saturating_sub(at + 1));
        match self.below(7) {
            _ if bytes.is_empty() => bytes.push(self.next() as u8),
            0 => bytes[at] = self.next() as u8,
            1 => bytes[at] ^= 1 << self.below(8),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b' ', b'\n'][self.below(8)],
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
            5 => bytes.truncate(at),
            _ => {
                let other = self.pick(files);
                let from = self.below(other.len());
                let to = (from + self.below(200)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
        }
        bytes.truncate(1 << 16);
    }
}

#[test]
fn pickle() {
    run("pickle", fathom_fuzz::pickle);
}

#[test]
fn recording() {
    run("recording", fathom_fuzz::recording);
}

#[test]
fn replay() {
    run("replay", fathom_fuzz::replay);
}

#[test]
fn oom() {
    run("oom", fathom_fuzz::oom);
}
