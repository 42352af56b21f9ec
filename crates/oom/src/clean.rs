//! A log without what wrappers did to it: colours, escapes, the labels in front of its lines, its blanks.
//!
//! Terminals and boxes break lines anywhere, even inside a number. So all blanks go: `2.00 GiB` and
//! `2.0⏎0 GiB` become the same `2.00gib`, and messages are read in that form.

/// A text in lower case, ASCII only, without blanks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Squeezed {
    pub(crate) text: String,
    /// Where each line of the log begins in it.
    starts: Vec<usize>,
}

impl Squeezed {
    /// The line of the log, from 1, that a place belongs to.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).max(1)
    }

    /// Where the line of a place begins and ends.
    pub(crate) fn around(&self, at: usize) -> (usize, usize) {
        let line = self.line(at);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        (start.min(at), self.starts.get(line).copied().unwrap_or(self.text.len()).max(at))
    }
}

/// A line as a traceback is read: without colours and labels, its backslashes kept.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// That of the log, from 1; lines whose break was written as an escape share it.
    pub(crate) number: usize,
    pub(crate) rank: Option<u32>,
    pub(crate) text: String,
}

/// Stands for a line break that was written as an escape: it ends a line, but is not counted as one.
const ESCAPED_BREAK: char = '\u{b}';

/// Words of logging libraries that stand in front of a message.
const LEVELS: [&str; 8] =
    ["info", "error", "warning", "warn", "debug", "critical", "stderr", "stdout"];

/// The longest label in front of a line.
const LABEL: usize = 120;

/// How many labels one line can have.
const LABELS: usize = 8;

/// Colours and escapes taken out; line breaks are as they were.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_colour(&mut rest),
            '\\' => {
                while rest.next_if_eq(&'\\').is_some() {}
                match rest.peek() {
                    Some('n' | 'r') => {
                        rest.next();
                        plain.push(ESCAPED_BREAK);
                    }
                    Some('t') => {
                        rest.next();
                        plain.push(' ');
                    }
                    Some('u' | 'x') => skip_escape(&mut rest),
                    _ => {}
                }
            }
            '\r' => {}
            c => plain.push(c),
        }
    }
    plain
}

/// The lines of a log, each with its rank; those inside of a JSON text apart.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, raw) in text.split('\n').enumerate() {
        let plain = without_colours(raw);
        let is_escaped = plain.contains("\\n") && plain.contains("File \\\"");
        let plain = if is_escaped { unescaped(&plain) } else { plain };
        for part in plain.split('\n') {
            let text = without_labels(part, false).trim_end_matches(|c| !is_ink(c)).to_owned();
            lines.push(Line { number: index + 1, rank: rank(part), text });
        }
    }
    lines
}

fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_colour(&mut rest),
            '\r' => {}
            c => plain.push(c),
        }
    }
    plain
}

/// A text of JSON, read once.
fn unescaped(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (c, c == '\\') {
            (_, true) => match rest.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push(' '),
                Some(c) => plain.push(c),
                None => {}
            },
            (c, _) => plain.push(c),
        }
    }
    plain
}

/// How far into a line labels go.
const PREFIX: usize = 200;

/// The rank in front of a line: `[rank3]:`, `(VllmWorker rank=3 pid=1090)`, `[default3]:`, `Rank 3:`.
pub(crate) fn rank(line: &str) -> Option<u32> {
    let line = without_colours(line.get(..PREFIX).unwrap_or(line));
    let lower = line.to_ascii_lowercase();
    let ways =
        ["[rank", "[rank ", "(rank ", " rank=", "(rank=", "[rank=", "[default", "rank:", "[rank: "];
    // `[1,3]<stderr>:`, as mpirun marks job and rank.
    let tagged = lower.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]<std"));
    let tagged = tagged.and_then(|(tag, _)| tag.split_once(',')?.1.trim().parse().ok());
    let labelled = ways.iter().find_map(|words| {
        let rest = &lower[lower.find(words)? + words.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let ends = rest[digits..].starts_with([']', ')', ' ', ',', ':']);
        rest[..digits].parse().ok().filter(|rank| ends && *rank < 1 << 20)
    });
    tagged.or(labelled)
}

/// When a line was written, as digits that sort; `None` if it does not say.
pub(crate) fn time(line: &str) -> Option<String> {
    let line = line.get(..PREFIX).unwrap_or(line);
    let bytes = line.as_bytes();
    let is_time = |at: usize| {
        bytes.get(at..at + 8).is_some_and(|word| {
            word.iter().enumerate().all(|(index, c)| match index {
                2 | 5 => *c == b':',
                _ => c.is_ascii_digit(),
            })
        })
    };
    let at = (0..bytes.len().saturating_sub(7)).find(|at| is_time(*at))?;
    let before = line.get(at.saturating_sub(11)..at).unwrap_or_default();
    let rest = line.get(at..)?;
    let time =
        rest.bytes().take(15).take_while(|c| c.is_ascii_digit() || b":.,".contains(c)).count();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let date = digits(before.rsplit(|c: char| !(c.is_ascii_digit() || "-/T ".contains(c))).next()?);
    // A tenth of a second is later than none.
    Some(format!("{date:0>8}{:0<12}", digits(&rest[..time])))
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// After the escape character: `[31m`, or whatever single letter ends it.
fn skip_colour(rest: &mut Chars<'_>) {
    if rest.next_if_eq(&'[').is_some() {
        for c in rest.by_ref().take(16) {
            if c.is_ascii_alphabetic() {
                break;
            }
        }
    }
}

/// After a backslash: `u001b` or `x1b`, and the colour it begins.
fn skip_escape(rest: &mut Chars<'_>) {
    let digits = if rest.next() == Some('u') { 4 } else { 2 };
    let code: String =
        std::iter::from_fn(|| rest.next_if(char::is_ascii_hexdigit)).take(digits).collect();
    if code.to_ascii_lowercase().ends_with("1b") {
        skip_colour(rest);
    }
}

/// The form in which messages are read, of a text from [`plain`].
pub(crate) fn squeeze(plain: &str) -> Squeezed {
    let mut squeezed = Squeezed { text: String::with_capacity(plain.len()), starts: Vec::new() };
    let mut before = 0;
    for line in plain.split('\n') {
        squeezed.starts.push(squeezed.text.len());
        for (index, part) in line.split(ESCAPED_BREAK).enumerate() {
            // `CUDA error: out of memory`, broken behind its first word.
            let is_split = ["cuda", "hip"].iter().any(|word| squeezed.text.ends_with(word));
            let part = without_labels(part, is_split);
            let mut inked = part.chars().filter(|c| is_ink(*c)).peekable();
            let meet =
                squeezed.text.ends_with(is_digit) && inked.peek().is_some_and(|c| is_digit(*c));
            // A box or a terminal breaks full lines only: none is shorter than what follows it.
            if meet && index == 0 && before < line.len() {
                squeezed.text.push(APART);
            }
            for c in inked {
                squeezed.text.push(if c.is_ascii() { c.to_ascii_lowercase() } else { '?' });
            }
        }
        before = line.len();
    }
    squeezed
}

/// Stands between two numbers of two lines.
const APART: char = ';';

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Neither a blank nor part of a box.
fn is_ink(c: char) -> bool {
    !(c.is_whitespace() || c.is_control() || c == '|' || ('\u{2500}'..'\u{2580}').contains(&c))
}

/// A line without `[rank3]:`, `(Worker pid=7)`, `2025-06-05 06:18:13,001`, `ERROR` and the like in front.
fn without_labels(line: &str, is_split: bool) -> &str {
    let mut line = line;
    for _ in 0..LABELS {
        line = line.trim_start_matches(|c: char| !is_ink(c) || matches!(c, '>' | '#' | '*'));
        line = line.strip_prefix("- ").unwrap_or(line).trim_start();
        let Some(length) = label(line, is_split) else { break };
        line = line[length..].strip_prefix(':').unwrap_or(&line[length..]);
    }
    line
}

/// The length of the label a line begins with.
fn label(line: &str, is_split: bool) -> Option<usize> {
    let near = |end: char| line.char_indices().take(LABEL).find(|(_, c)| *c == end);
    let bracket = |end: char| near(end).map(|(at, c)| at + c.len_utf8());
    match line.chars().next()? {
        '[' => bracket(']').filter(|length| {
            let inner = &line[1..*length - 1];
            let is_shape =
                inner.contains(',') && inner.chars().all(|c| c.is_ascii_digit() || c == ',');
            !is_shape && !inner.contains("emory")
        }),
        '(' => bracket(')').filter(|length| line[..*length].contains("pid=")),
        c if c.is_ascii_digit() => {
            let word = line.split(char::is_whitespace).next()?;
            let is_time = word.chars().all(|c| c.is_ascii_digit() || "-:./,+TZ".contains(c));
            // `1.06.520.077`, the clock of llama.cpp.
            let is_clock = word.matches('.').count() == 3;
            (is_time && (word.contains(['-', ':']) || is_clock)).then_some(word.len())
        }
        _ => code_place(line).or_else(|| compose(line)).or_else(|| {
            let is_word = is_split && line.starts_with("error: out");
            LEVELS.iter().filter(|_| !is_word).find_map(|level| {
                let start = line.get(..level.len())?;
                let rest = &line[level.len()..];
                // `error 2 out of memory` goes on with a sentence.
                let rest = if start == *level { rest.trim_start() } else { rest };
                let ends = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
                (start.eq_ignore_ascii_case(level) && ends).then_some(level.len())
            })
        }),
    }
}

/// `engine.py:366] …`, as vLLM's logger writes where it is.
fn code_place(line: &str) -> Option<usize> {
    let word = line.split(char::is_whitespace).next()?;
    (word.ends_with(']') && word.contains(".py:") && !word.contains('[')).then_some(word.len())
}

/// `vllm-1  | …`, as `docker compose` marks its containers, and `worker-5: [rank22]: …`.
fn compose(line: &str) -> Option<usize> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let length = line.find(|c| !is_of_name(c)).filter(|length| *length < LABEL)?;
    let (name, rest) = line.split_at(length);
    let is_numbered = name.rsplit_once('-').is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())
    });
    let is_marked = rest.trim_start().starts_with("| ") || rest.starts_with(": [rank");
    (is_numbered && is_marked).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(text: &str) -> String {
        squeeze(&plain(text)).text
    }

    #[test]
    fn wrappers_leave_no_trace() {
        let bare = "triedtoallocate2.00gib";
        for text in [
            "Tried to allocate 2.00 GiB",
            "[rank3]: Tried to alloc\n[rank3]: ate 2.00 GiB",
            "(Worker pid=12, ip=10.0.0.1) ERROR 06-05 06:18:13 [a.py:470] Tried to allocate 2.0\n0 GiB",
            "2025-11-12T11:25:13.496Z Tried to\u{1b}[31m allocate\u{1b}[0m 2.00 GiB",
            "│ Tried to allocate   │\n│ 2.00 GiB │",
            "Tried to\\n[rank0]: allocate\\t2.00 \\u001b[1mGiB",
            "3: Tried to allocate 2.00 GiB\r",
            "> # Tried to allocate 2.00 GiB",
        ] {
            assert_eq!(squeezed(text), bare, "{text}");
        }
    }

    #[test]
    fn words_of_a_message_are_no_level_of_a_logger() {
        assert_eq!(squeezed("CUDA\n> error: out of memory"), "cudaerror:outofmemory");
        assert_eq!(squeezed("failed with\nerror 2 out of memory"), "failedwitherror2outofmemory");
        for text in ["ERROR 2 out of memory", "error: 2 out of memory", "a\nWARNING out of memory"]
        {
            assert!(
                !squeezed(text).contains("error") && !squeezed(text).contains("warn"),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_at_the_start_of_a_line_stay() {
        assert_eq!(squeezed("10.76 GiB total\n0 bytes free"), "10.76gibtotal0bytesfree");
        assert_eq!(squeezed("(GPU 0; 8.00 GiB"), "(gpu0;8.00gib");
    }

    #[test]
    fn numbers_of_two_lines_stay_two() {
        let text =
            "1.06.520.084 E failed to allocate of size 54262464512\n1.06.520.086 E compute buffers";
        assert!(squeezed(text).contains("ofsize54262464512ecompute"), "{}", squeezed(text));
        assert_eq!(squeezed("of size 512\n12 of 13 are done"), "ofsize512;12of13aredone");
    }

    #[test]
    fn ranks_and_times_are_found_in_labels() {
        let ranks = [
            ("[rank3]: x", Some(3)),
            ("(VllmWorker rank=2 pid=1090) ERROR x", Some(2)),
            ("2024-11-20 14:37:16 [rank12]: x", Some(12)),
            ("[default1]:x", Some(1)),
            ("[1,5]<stderr>:x", Some(5)),
            ("rank of the matrix is 3", None),
            ("[3, 4] shape", None),
        ];
        for (line, expected) in ranks {
            assert_eq!(rank(line), expected, "{line}");
        }
        assert!(time("2025-06-05 06:18:13,900 x") < time("2025-06-05 06:18:14,100 x"));
        assert!(time("ERROR 06-05 06:18:13 [a.py:470] x") < time("ERROR 06-06 01:00:00 x"));
        assert_eq!(time("GPU 0; 10.76 GiB"), None);
    }

    #[test]
    fn lines_are_those_of_the_log() {
        let text = squeeze(&plain("one\ntwo\\nstill two\nthree"));
        let line = |word: &str| text.line(text.text.find(word).unwrap());
        assert_eq!((line("one"), line("still"), line("three")), (1, 2, 3));
    }
}
