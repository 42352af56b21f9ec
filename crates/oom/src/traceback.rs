//! Python's tracebacks in a log: plain ones, those of IPython and of `rich`, each under the rank that wrote it.
//!
//! A file is the user's if it lies in no folder of installed packages.

use crate::clean;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub file: String,
    pub line: u32,
    /// Empty if the text does not say.
    pub function: String,
    /// The line itself; empty if the text does not show it.
    pub source: String,
}

/// The calls that led to an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traceback {
    /// From the outermost to the innermost.
    pub frames: Vec<Frame>,
}

impl Traceback {
    /// The user's line that asked: the innermost of a file that was not installed.
    pub fn user(&self) -> Option<&Frame> {
        self.frames.iter().rev().find(|frame| !frame.is_installed())
    }

    /// The innermost line of all, where that is not the user's.
    pub fn library(&self) -> Option<&Frame> {
        self.frames.last().filter(|frame| frame.is_installed())
    }

    /// The script that was started: the outermost of the user's files.
    pub fn script(&self) -> Option<&str> {
        let mut own = self.frames.iter().filter(|frame| !frame.is_installed());
        own.find(|frame| frame.function == "<module>").map(|frame| frame.file.as_str())
    }

    /// Whether PyTorch is among the callers.
    pub fn is_through_torch(&self) -> bool {
        self.frames.iter().any(|frame| {
            let file = frame.file.replace('\\', "/");
            frame.is_installed() && file.contains("/torch/")
        })
    }

    /// Whether its files are those of a Windows machine: `C:\Users\…`.
    pub fn is_of_windows(&self) -> bool {
        self.frames.iter().any(|frame| frame.file.get(1..3) == Some(":\\"))
    }

    /// Whether a call has this name.
    pub fn calls(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| frame.function == function)
    }
}

impl Frame {
    /// Of Python itself, or of an installed package.
    pub fn is_installed(&self) -> bool {
        let file = self.file.replace('\\', "/").to_ascii_lowercase();
        let folders = ["/site-packages/", "/dist-packages/", "/lib/python", "/lib64/python"];
        // `C:/Python310/lib/…`, `D:/anaconda3/lib/…`; elsewhere a folder `lib` is anybody's.
        let is_windows_python = || {
            let (folder, _) = file.split_once("/lib/").unwrap_or_default();
            let folder = folder.rsplit('/').next().unwrap_or_default();
            let is_python = folder
                .strip_prefix("python")
                .is_some_and(|version| version.bytes().all(|c| c.is_ascii_digit() || c == b'.'));
            file.get(1..2) == Some(":") && (is_python || folder.contains("conda"))
        };
        file.starts_with("<frozen")
            || file.starts_with("<string>")
            || file.starts_with("<__array")
            || folders.iter().any(|folder| file.contains(folder))
            || is_windows_python()
            || file.ends_with("/bin/torchrun")
            || file.ends_with("/bin/accelerate")
    }
}

/// A traceback, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) rank: Option<u32>,
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) traceback: Traceback,
}

/// Nobody follows more calls than this, nor more tracebacks.
const FRAMES: usize = 400;
const FOUND: usize = 2000;

/// The longest name of a file, function or line that is kept.
const LONGEST: usize = 400;

/// Every traceback of a log, in the order of its first line.
pub(crate) fn read(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut reader = Reader::default();
    for line in clean::lines(text) {
        reader.line(&line, &mut found);
    }
    found.retain(|found| !found.traceback.frames.is_empty());
    found
}

#[derive(Default)]
struct Reader {
    /// For each rank, the traceback that is read now.
    open: Vec<(Option<u32>, usize)>,
    /// The next line of this rank can be the source of its last frame.
    wants_source: Option<Option<u32>>,
    /// IPython and `rich` give the number of the line, or its text, below the file.
    pending: Option<(String, String)>,
}

impl Reader {
    fn line(&mut self, line: &clean::Line, found: &mut Vec<Found>) {
        let text = line.text.as_str();
        if text.to_ascii_lowercase().contains("traceback (most recent call last)") {
            self.begin(line, found);
        } else if let Some(frame) = plain(text) {
            self.push(line, frame, found);
            self.wants_source = Some(line.rank);
            self.pending = None;
        } else if let Some((file, function)) = header(text) {
            self.pending = Some((file, function));
        } else if let (Some((number, source)), Some((file, function))) =
            (arrow(text), self.pending.clone())
        {
            self.pending = None;
            self.push(line, Frame { file, line: number, function, source }, found);
        } else if self.wants_source == Some(line.rank) {
            self.wants_source = None;
            let is_source =
                !text.is_empty() && !text.starts_with(['^', '~', '[']) && !is_error(text);
            if let (true, Some(frame)) = (is_source, self.last(line.rank, found)) {
                frame.source = cut(text);
            }
        }
    }

    /// A new one; the same rank may have had others before.
    fn begin(&mut self, line: &clean::Line, found: &mut Vec<Found>) {
        if FOUND <= found.len() {
            return;
        }
        self.open.retain(|(rank, _)| *rank != line.rank);
        self.open.push((line.rank, found.len()));
        let traceback = Traceback { frames: Vec::new() };
        let (first, last) = (line.number, line.number);
        found.push(Found { rank: line.rank, first, last, traceback });
    }

    fn push(&mut self, line: &clean::Line, frame: Frame, found: &mut Vec<Found>) {
        let is_open = |(rank, index): &&(Option<u32>, usize)| {
            // Lines that were posted without their beginning: far below it is another one.
            *rank == line.rank && found.get(*index).is_some_and(|it| line.number <= it.last + 40)
        };
        if self.open.iter().find(is_open).is_none() {
            self.begin(line, found);
        }
        let open = self.open.iter().find(|(rank, _)| *rank == line.rank).map(|(_, index)| *index);
        let Some(current) = open.and_then(|index| found.get_mut(index)) else { return };
        current.last = line.number;
        if current.traceback.frames.len() < FRAMES {
            current.traceback.frames.push(frame);
        }
    }

    fn last<'a>(&self, rank: Option<u32>, found: &'a mut [Found]) -> Option<&'a mut Frame> {
        let (_, index) = self.open.iter().find(|(of, _)| *of == rank)?;
        found.get_mut(*index)?.traceback.frames.last_mut()
    }
}

/// `torch.OutOfMemoryError: CUDA out of memory`, where the line above was not shown with its source.
fn is_error(text: &str) -> bool {
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    word.strip_suffix(':')
        .is_some_and(|name| name.ends_with("Error") || name.ends_with("Exception"))
}

fn cut(text: &str) -> String {
    text.trim().chars().take(LONGEST).collect()
}

/// `File "train.py", line 387, in <module>`
fn plain(text: &str) -> Option<Frame> {
    let (_, rest) = text.split_once("File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let line = rest[..digits].parse().ok()?;
    let function = rest[digits..].trim_start_matches([',', ' ']);
    let function = function.strip_prefix("in ").unwrap_or_default();
    // Ray counts lines that other workers wrote too.
    let function = function.split(" [repeated ").next().unwrap_or_default();
    Some(Frame { file: cut(file), line, function: cut(function), source: String::new() })
}

/// The line above the numbered ones: `<ipython-input-4-…> in <module>()`, `File ~/model.py:12, in forward(self)`,
/// `Cell In[5], line 3`, and in a box `/home/user/train.py:15 in <module>`.
fn header(text: &str) -> Option<(String, String)> {
    if let Some(cell) = ["Cell In", "Input In"].iter().find(|start| text.starts_with(**start)) {
        let end = text.find(']').filter(|end| *end < 40)?;
        let name = format!("{cell}{}]", text[cell.len()..end].trim_start());
        return Some((name, "<module>".to_owned()));
    }
    let text = text.strip_prefix("File ").unwrap_or(text);
    let (file, function) = text.split_once(" in ")?;
    let file = file.trim_end_matches(',');
    // A number behind the file's name is that of the line below, which has it again.
    let name = match file.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => file,
    };
    let is_file = name.ends_with(".py")
        || name.starts_with("<ipython-input")
        || name.starts_with("/tmp/ipykernel");
    let function = function.split('(').next().unwrap_or_default();
    (is_file && (!name.contains(' ') || name.starts_with('/'))).then(|| (cut(name), cut(function)))
}

/// `---> 12     x = self.layer(x)`, and in a box `❱ 15 │   train()`.
fn arrow(text: &str) -> Option<(u32, String)> {
    let rest = match text.strip_prefix('❱') {
        Some(rest) => rest,
        None => text.trim_start_matches('-').strip_prefix('>').filter(|_| text.starts_with('-'))?,
    };
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    Some((number, cut(rest[digits..].trim_start_matches([' ', '│']))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> Vec<(Option<u32>, String)> {
        let place = |found: &Found| {
            let frame = found.traceback.user()?;
            Some((found.rank, format!("{}:{} {}", frame.file, frame.line, frame.source)))
        };
        read(text).iter().filter_map(place).collect()
    }

    #[test]
    fn the_users_line_is_the_innermost_that_was_not_installed() {
        let text = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n  \
                    File \"C:\\work\\net.py\", line 9, in forward\n    x = self.a(x)\n        ^^^^^^\n  \
                    File \"C:\\Python310\\lib\\site-packages\\torch\\nn\\linear.py\", line 1, in forward\n    y\n";
        assert_eq!(users(text), [(None, "C:\\work\\net.py:9 x = self.a(x)".to_owned())]);
        let found = read(text);
        assert!(found[0].traceback.is_through_torch());
        assert_eq!(found[0].traceback.script(), Some("train.py"));
        assert_eq!(found[0].traceback.library().map(|frame| frame.line), Some(1));
    }

    #[test]
    fn folders_of_users_may_be_called_lib() {
        let is_installed = |file: &str| {
            let frame = Frame {
                file: file.to_owned(),
                line: 1,
                function: String::new(),
                source: String::new(),
            };
            frame.is_installed()
        };
        for file in [
            "/usr/lib/python3.10/runpy.py",
            "C:\\Python36\\lib\\threading.py",
            "<frozen runpy>",
            "D:\\anaconda3\\lib\\multiprocessing\\spawn.py",
            "/opt/venv/lib64/python3.13/site-packages/a.py",
        ] {
            assert!(is_installed(file), "{file}");
        }
        for file in [
            "/home/me/python_net/lib/model.py",
            "train.py",
            "C:\\work\\lib\\net.py",
            "/data/anaconda/lib/x.py",
        ] {
            assert!(!is_installed(file), "{file}");
        }
    }

    #[test]
    fn each_rank_has_its_own() {
        let text = "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n\
                    [rank0]:   File \"a.py\", line 1, in f\n[rank1]:   File \"b.py\", line 2, in g\n\
                    [rank0]:     one()\n[rank1]:     two()\n";
        let expected = [(Some(0), "a.py:1 one()".to_owned()), (Some(1), "b.py:2 two()".to_owned())];
        let mut found = users(text);
        // A line of another rank came between, so its text is not known.
        found.iter_mut().for_each(|(_, text)| *text = text.trim_end().to_owned());
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], expected[1]);
    }

    #[test]
    fn notebooks_boxes_and_escapes_are_read() {
        let old =
            "<ipython-input-4-8352503114b9> in <module>()\n      1 x = 1\n----> 2 y = net(x)\n";
        assert_eq!(users(old), [(None, "<ipython-input-4-8352503114b9>:2 y = net(x)".to_owned())]);
        let new = "Cell In[5], line 3\n      1 a\n----> 3 loss = model(x)\n\nFile ~/src/model.py:12, in Net.forward(self, x)\n     \
                   11 a\n---> 12     return self.l(x)\n";
        assert_eq!(users(new), [(None, "~/src/model.py:12 return self.l(x)".to_owned())]);
        let rich = "╭──── Traceback (most recent call last) ────╮\n│ E:\\kohya\\train_network.py:864 in <module>  │\n│                     │\n\
                    │   863 │                    │\n│ ❱ 864 │   train(args)     │\n╰────╯";
        assert_eq!(users(rich), [(None, "E:\\kohya\\train_network.py:864 train(args)".to_owned())]);
        let json = r#"{"msg": "Traceback (most recent call last):\n  File \"a\\b.py\", line 7, in f\n    g()\n"}"#;
        assert_eq!(users(json), [(None, "a\\b.py:7 g()".to_owned())]);
    }
}
