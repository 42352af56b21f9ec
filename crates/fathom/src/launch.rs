//! Starts a command on the phantom and waits for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cuda_abi::environment as name;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::Hinted;
use crate::place;
use crate::python::{self, Python};
use crate::settings::Settings;
use crate::stubs;

/// How long a process gets between the request to end and its end.
const GRACE: Duration = Duration::from_secs(5);

/// Everything a run needs from this machine, checked before anything starts.
pub(crate) struct Launch {
    /// `None` when the command's Python is not known, as in a shell script.
    pub(crate) python: Option<Python>,
    preload: Vec<PathBuf>,
    cache: PathBuf,
    doorway: PathBuf,
    recorder: PathBuf,
}

/// How the command ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) seconds: f64,
    pub(crate) timed_out: bool,
    pub(crate) interrupted: bool,
}

/// What a shell script that calls `python` will most likely get; `None` if that has no CUDA build of torch.
fn python_of_path() -> Option<Python> {
    let path = ["python", "python3"].iter().find_map(|name| python::find_program(name).ok())?;
    Python::probe(&path).ok().filter(|python| python.cuda_torch().is_ok())
}

/// Where stubs and cuDNN's answers are kept: `FATHOM_CACHE`, else the user's cache folder.
pub(crate) fn cache_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = variable(name::CACHE)
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("fathom")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/fathom")));
    // The loader splits LD_PRELOAD at blanks and colons: such a folder cannot hold libraries.
    let folder = folder.filter(|folder| stubs::preloadable(folder));
    folder.unwrap_or_else(|| std::env::temp_dir().join("fathom-cache"))
}

impl Launch {
    /// Finds the command's Python and torch and writes the stubs it needs.
    pub(crate) fn prepare(command: &[String]) -> Result<Launch> {
        python::find_program(&command[0])?;
        match python::interpreter(command) {
            Some(path) => Launch::for_python(Some(Python::probe(&path)?)),
            None => Launch::for_python(python_of_path()),
        }
    }

    /// The same for a Python that is known already.
    pub(crate) fn for_python(python: Option<Python>) -> Result<Launch> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Hinted::error(
                "the phantom GPU needs Linux on x86_64",
                "run fathom in a Linux container; no GPU is needed there",
            ));
        }
        let phantom = place::phantom()?;
        let (doorway, recorder) = (place::doorway()?, place::recorder()?);
        let packages = match &python {
            Some(python) => {
                let torch = python.cuda_torch()?;
                std::iter::once(torch.folder.clone())
                    .chain(torch.packages.iter().cloned())
                    .collect()
            }
            None => Vec::new(),
        };
        let cache = cache_folder();
        let stubs = stubs::prepare(&cache.join("stubs"), &phantom, &packages)
            .context("the stubs of NVIDIA's libraries could not be written")?;
        let preload = std::iter::once(phantom).chain(stubs).collect();
        Ok(Launch { python, preload, cache, doorway, recorder })
    }

    /// The command with the environment that puts it on the phantom.
    pub(crate) fn command(&self, words: &[String], settings: &Settings, run: &Path) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let mut preload: Vec<String> =
            self.preload.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        preload.extend(std::env::var("LD_PRELOAD").ok().filter(|text| !text.is_empty()));
        command.env("LD_PRELOAD", preload.join(":"));
        command.env(name::RUN, run);
        command.env(name::DOORWAY, &self.doorway).env(name::RECORDER, &self.recorder);
        command.env(name::CACHE, &self.cache);
        command.env(name::STEPS, settings.steps.to_string());
        command.env(name::VALUES, if settings.values { "on" } else { "off" });
        command.env(name::RECORD, if settings.record { "on" } else { "off" });
        if let Some(cards) = settings.cards {
            command.env(name::DEVICES, cards.to_string());
        }
        command.env_remove(name::WORLD_SIZE);
        if let Some(place) = &settings.place {
            command.envs(place.environment());
        }
        command.env_remove(name::GPU).env_remove(name::MEMORY);
        if let Some(card) = &settings.card {
            command.env(name::GPU, card.name).env(name::MEMORY, card.memory_bytes.to_string());
        }
        // A real card of this machine must not be chosen instead, nor hide the phantom.
        command.env_remove("CUDA_VISIBLE_DEVICES");
        if let Some(torch) = self.python.as_ref().and_then(|python| python.torch.as_ref()) {
            if let Some(version) = torch.cuda_number() {
                command.env(name::CUDA, version.to_string());
            }
            if let Some(version) = torch.cudnn_number() {
                command.env(name::CUDNN_VERSION, version.to_string());
            }
            if let (None, Some(path)) = (std::env::var_os(name::CUDNN), &torch.cudnn) {
                command.env(name::CUDNN, path);
            }
        }
        // Triton links its launcher against libcuda: the stub is the one to find.
        if let Some(folder) = self.preload.last().and_then(|path| path.parent()) {
            command.env("TRITON_LIBCUDA_PATH", folder);
        }
        command
    }

    /// Runs the command to its end, or to the timeout.
    pub(crate) fn run(&self, words: &[String], settings: &Settings, run: &Path) -> Result<Ended> {
        self.start(self.command(words, settings, run), &words[0], settings)
    }

    /// The same, with what it prints in two files: output and errors.
    pub(crate) fn run_apart(
        &self,
        words: &[String],
        settings: &Settings,
        run: &Path,
        printed: [&Path; 2],
    ) -> Result<Ended> {
        let mut command = self.command(words, settings, run);
        command.stdin(Stdio::null());
        command.stdout(File::create(printed[0])?).stderr(File::create(printed[1])?);
        self.start(command, &words[0], settings)
    }

    /// The same, with all that it prints in a file.
    pub(crate) fn run_quietly(
        &self,
        words: &[String],
        settings: &Settings,
        run: &Path,
        log: &Path,
    ) -> Result<Ended> {
        let log = File::create(log)?;
        let mut command = self.command(words, settings, run);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.start(command, &words[0], settings)
    }

    fn start(&self, mut command: Command, name: &str, settings: &Settings) -> Result<Ended> {
        catch_interrupts();
        let began = Instant::now();
        let mut child =
            command.spawn().with_context(|| format!("`{name}` could not be started"))?;
        let deadline = settings.timeout.map(|seconds| began + Duration::from_secs(seconds));
        let (status, timed_out) = wait(&mut child, deadline)?;
        Ok(Ended {
            status,
            seconds: began.elapsed().as_secs_f64(),
            timed_out,
            interrupted: INTERRUPTED.load(Relaxed),
        })
    }
}

/// Whether Ctrl-C was pressed since the first command was started.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ctrl-C reaches the script by itself; we stay to report what it did until then.
fn catch_interrupts() {
    // A handler that is already installed does the same.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Relaxed));
}

pub(crate) fn wait(child: &mut Child, deadline: Option<Instant>) -> Result<(ExitStatus, bool)> {
    let Some(deadline) = deadline else { return Ok((child.wait()?, false)) };
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let tree = descendants(child.id());
    signal_all(&tree, Signal::TERM);
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            signal_all(&tree, Signal::KILL);
            return Ok((status, true));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    signal_all(&tree, Signal::KILL);
    Ok((child.wait()?, true))
}

pub(crate) fn signal_all(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
        // A process that is gone already needs no signal.
        let _ = kill_process(pid, signal);
    }
}

/// The process and all that it started, by `/proc`.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in parentheses may hold anything; the parent is the second field after it.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        if let Some(parent) = parent.and_then(|text| text.parse::<u32>().ok()) {
            parents.push((pid, parent));
        }
    }
    let mut tree = vec![root];
    let mut next = 0;
    while next < tree.len() {
        let parent = tree[next];
        tree.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    tree
}
