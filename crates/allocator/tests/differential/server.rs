//! PyTorch's side: one Python process per version, on the phantom, which answers program after
//! program. `tests/differential/server.py` is the other end.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use recording::Recording;

use crate::program::Program;

/// What PyTorch did with a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerReply {
    /// Total memory of the card.
    pub(crate) total: u64,
    /// What of it was free when the program began.
    pub(crate) free: u64,
    /// The trace, and segments and blocks at the end.
    pub(crate) recording: Recording,
    /// `torch.cuda.memory_stats()`.
    pub(crate) stats: BTreeMap<String, u64>,
    /// Second numbers of the pools' names, by their number in the program.
    pub(crate) pools: BTreeMap<usize, u32>,
}

pub(crate) struct Server {
    /// As torch reports it.
    pub(crate) torch: String,
    /// The raw streams.
    pub(crate) streams: Vec<u64>,
    /// Command and Python.
    programs: (PathBuf, PathBuf),
    answered: usize,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Programs one process answers: PyTorch keeps statistics of every pool there ever was, and reading
/// them takes longer and longer.
const LIFETIME: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The value of a variable as a path, else a file of the repository; `None` if it is not there.
fn file(variable: &str, in_tree: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).map_or_else(|| root().join(in_tree), PathBuf::from);
    path.exists().then_some(path)
}

impl Server {
    /// Starts the Python of a version. Says so and gives `None` if there is no such Python, or no
    /// command, unless `FATHOM_DIFFERENTIAL=required`.
    pub(crate) fn start(version: &str, python: &str) -> Option<Server> {
        let variable = format!("FATHOM_PYTHON_{}", version.replace('.', "_"));
        let python = file(&variable, python);
        let command = file("FATHOM_COMMAND", "target/release/fathom");
        let (Some(python), Some(command)) = (python, command) else {
            let lacks =
                format!("torch {version} is NOT COMPARED: no Python with it, or no command");
            assert!(env::var_os("FATHOM_DIFFERENTIAL").is_none(), "{lacks}; see `make build`");
            eprintln!("SKIPPED: {lacks}; `{variable}` and `FATHOM_COMMAND` name them");
            return None;
        };
        let server = Server::launch(command, python);
        assert!(server.torch.starts_with(version), "torch {}, not {version}", server.torch);
        Some(server)
    }

    fn launch(command: PathBuf, python: PathBuf) -> Server {
        let mut child = Command::new(&command)
            // Not recorded: PyTorch has one history of memory, and this test reads it.
            .args(["run", "--steps", "0", "--values", "off", "--record", "off"])
            .args(["--memory", "4GiB", "--"])
            .arg(&python)
            .arg(root().join("tests/differential/server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (torch, streams) = (String::new(), Vec::new());
        let programs = (command, python);
        let mut server = Server { torch, streams, programs, answered: 0, child, input, output };
        server.greet();
        server
    }

    fn greet(&mut self) {
        while self.streams.is_empty() {
            let line = self.line();
            match line.split_once(' ') {
                Some(("torch", torch)) => self.torch = torch.to_owned(),
                Some(("streams", streams)) => {
                    let numbers = streams.split(' ').map(|word| word.parse());
                    self.streams = numbers.collect::<Result<_, _>>().expect("numbers");
                }
                _ => {}
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("text");
        assert!(read != 0, "PyTorch's side ended; start tests/differential/server.py by hand");
        line.truncate(line.trim_end().len());
        line
    }

    /// PyTorch's answer to a program.
    pub(crate) fn run(&mut self, program: &Program) -> Result<ServerReply, String> {
        if self.answered == LIFETIME {
            let (command, python) = self.programs.clone();
            *self = Server::launch(command, python);
        }
        self.answered += 1;
        let input = self.input.as_mut().expect("open until the end");
        writeln!(input, "{program}run").and_then(|()| input.flush()).expect("PyTorch's side reads");
        let mut answer = ServerReply::default();
        let mut lines = String::new();
        loop {
            let line = self.line();
            let (key, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let mut numbers = rest.split(' ').map(|word| word.parse::<u64>().unwrap_or(0));
            let mut number = || numbers.next().unwrap_or(0);
            match key {
                "end" => break,
                "failed" => return Err(self.fail(rest)),
                "card" => (answer.total, answer.free) = (number(), number()),
                "pool" => drop(answer.pools.insert(number() as usize, number() as u32)),
                "stat" => {
                    let (name, value) = rest.split_once(' ').expect("a name and a value");
                    // The one that can be -1 is a setting.
                    if let Ok(value) = value.parse() {
                        answer.stats.insert(name.to_owned(), value);
                    }
                }
                _ => {
                    lines.push_str(&line);
                    lines.push('\n');
                }
            }
        }
        answer.recording = recording::text::recording(&lines).map_err(|error| error.to_string())?;
        answer.recording.about.torch = self.torch.clone();
        answer.recording.about.memory_bytes = answer.total;
        answer.recording.about.context_bytes = answer.total - answer.free;
        Ok(answer)
    }

    /// What PyTorch said, once its answer is over.
    fn fail(&mut self, why: &str) -> String {
        while self.line() != "end" {}
        format!("PyTorch: {why}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.input = None;
        drop(self.child.wait());
    }
}
