//! Starts a command on the phantom and waits for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use contract::environment as name;

use crate::cache;
use crate::error::Hinted;
use crate::installed;
use crate::jobs::Started;
use crate::outcome;
use crate::python::{Python, Torch};
use crate::screen;
use crate::session::{self, Ended, Streams};
use crate::settings::Settings;
use crate::shell;
use crate::smi;
use crate::stubs;
use crate::visible;

/// Where the hashes of Python's texts begin.
const HASH_SEED: &str = "PYTHONHASHSEED";

/// Where Triton looks for the driver's library.
const TRITON_LIBCUDA: &str = "TRITON_LIBCUDA_PATH";

/// Where torch's compiler keeps what it compiled and chose.
const INDUCTOR_CACHE: &str = "TORCHINDUCTOR_CACHE_DIR";

/// Everything a run needs from this machine, checked before anything starts.
pub(crate) struct Launch {
    /// `None` when the command's Python is not known, as in a shell script.
    pub(crate) python: Option<Python>,
    preload: Vec<PathBuf>,
    /// Where a linker finds the stubs.
    links: Option<PathBuf>,
    cache: PathBuf,
    doorway: PathBuf,
    recorder: PathBuf,
}

impl Launch {
    /// Finds the command's Python and torch and writes the stubs it needs.
    pub(crate) fn prepare(command: &[String]) -> Result<Launch> {
        Launch::for_python(Python::of(command)?)
    }

    /// The same for a Python that is known already.
    pub(crate) fn for_python(python: Option<Python>) -> Result<Launch> {
        if !cfg!(target_os = "linux") || stubs::Machine::own().is_none() {
            return Err(Hinted::error(
                "the phantom GPU needs Linux on x86_64 or aarch64",
                "run fathom in a Linux container; no GPU is needed there",
            ));
        }
        let phantom = installed::phantom()?;
        let (doorway, recorder) = (installed::doorway()?, installed::recorder()?);
        let packages = match &python {
            Some(python) => {
                let torch = python.cuda_torch()?;
                std::iter::once(torch.folder.clone())
                    .chain(torch.packages.iter().cloned())
                    .collect()
            }
            None => Vec::new(),
        };
        screen::detail(|| match &python {
            Some(python) => format!("Python {} of `{}`", python.version, python.executable),
            None => "the Python that will run is not known; libraries for every CUDA are there"
                .to_owned(),
        });
        let cache = cache::folder()?;
        let stubs = stubs::prepare(&cache.join("stubs"), &phantom, &packages)
            .context("the stubs of NVIDIA's libraries could not be written")?;
        let nvidia = python.as_ref().map_or(&[][..], |python| &python.nvidia);
        let torch = python.as_ref().and_then(|python| python.torch.as_ref());
        let cuda = torch.and_then(Torch::cuda_number).map(|version| version as u32 / 1000);
        let links = stubs::link(&stubs, nvidia, cuda);
        let preload = std::iter::once(phantom).chain(stubs).collect();
        Ok(Launch { python, preload, links, cache, doorway, recorder })
    }

    /// The command with the environment that puts it on the phantom.
    pub(crate) fn command(&self, words: &[String], settings: &Settings, run: &Path) -> Command {
        let mut command = started(words, settings, run);
        let mut preload: Vec<String> =
            self.preload.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        preload.extend(std::env::var("LD_PRELOAD").ok().filter(|text| !text.is_empty()));
        command.env("LD_PRELOAD", preload.join(":"));
        command.env(name::RUN, run);
        command.env(name::DOORWAY, &self.doorway).env(name::RECORDER, &self.recorder);
        command.env(name::CACHE, &self.cache);
        if let Some(folder) = smi::folder(&self.cache) {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
            command.envs(std::env::join_paths(folders).map(|path| ("PATH", path)).ok());
        }
        command.env(name::STEPS, settings.steps.to_string());
        command.env(name::VALUES, if settings.values { "on" } else { "off" });
        command.env(name::RECORD, if settings.record { "on" } else { "off" });
        match &settings.short {
            Some(form) => command.env(name::WHOLE, form.json()),
            None => command.env_remove(name::WHOLE),
        };
        if !settings.assume.is_empty() {
            command.env(name::ASSUME, settings.assume.join("\n"));
        }
        if let Some(cards) = settings.cards {
            command.env(name::DEVICES, cards.to_string());
        }
        command.env_remove(name::WORLD_SIZE);
        if let Some(place) = &settings.place {
            command.envs(place.environment());
        }
        command.env_remove(name::GPU).env_remove(name::MEMORY).env_remove(name::USED);
        if let Some(card) = &settings.card {
            command.env(name::GPU, card.name);
            command.env(name::MEMORY, format!("{}B", card.memory_bytes));
            command.env(name::USED, format!("{}B", card.used_bytes));
        }
        match visible::for_script(settings) {
            Some(cards) => command.env(visible::VARIABLE, cards),
            None => command.env_remove(visible::VARIABLE),
        };
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
        // Sets of texts have another order in each run, unless Python is told otherwise.
        if std::env::var_os(HASH_SEED).is_none() {
            command.env(HASH_SEED, "0");
        }
        // Triton links its launcher against libcuda: the stub is the one to find, unless the user names another.
        let is_named = std::env::var_os(TRITON_LIBCUDA).is_some_and(|own| !own.is_empty());
        if let (false, Some(folder)) = (is_named, &self.links) {
            command.env(TRITON_LIBCUDA, folder);
        }
        // What torch's compiler chooses here was timed on no card: it must not be found by a run on a real one.
        let own = std::env::var_os(INDUCTOR_CACHE).filter(|own| !own.is_empty());
        let compiled = own.map_or_else(|| self.cache.clone(), PathBuf::from);
        command.env(INDUCTOR_CACHE, compiled.join("torchinductor_phantom"));
        // What a script compiles asks for libraries by names that only the links have. The user's own
        // folders come first.
        if let Some(links) = &self.links {
            let own = std::env::var_os("LIBRARY_PATH").filter(|own| !own.is_empty());
            let folders = own.iter().flat_map(std::env::split_paths).chain([links.clone()]);
            command.envs(std::env::join_paths(folders).map(|all| ("LIBRARY_PATH", all)).ok());
        }
        command
    }

    /// Runs the command to its end, or to the timeout.
    pub(crate) fn run(&self, words: &[String], settings: &Settings, run: &Path) -> Result<Ended> {
        self.run_with(words, settings, run, Streams::default(), &Started::default())
    }

    /// The same, with streams of its own.
    pub(crate) fn run_with(
        &self,
        words: &[String],
        settings: &Settings,
        run: &Path,
        streams: Streams,
        is: &Started,
    ) -> Result<Ended> {
        screen::detail(|| format!("starting `{}`", shell::line(words.iter().map(String::as_str))));
        let ended = follow(&self.command(words, settings, run), settings, streams, is)?;
        outcome::check_pages(run)?;
        Ok(ended)
    }
}

/// The command by itself, confined if it is to be.
fn started(words: &[String], settings: &Settings, run: &Path) -> Command {
    let letters = settings.place.as_ref().map(|place| place.letters.as_path());
    match &settings.confined {
        Some(confined) => confined.start(words, run, letters),
        None => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).env_remove(name::CONFINED);
            command
        }
    }
}

/// Runs a command that is on the phantom to its end, or to the timeout.
pub(crate) fn follow(
    command: &Command,
    settings: &Settings,
    streams: Streams,
    is: &Started,
) -> Result<Ended> {
    let Some(running) = session::start(command, streams)? else {
        return Ok(Ended::before_it_began(session::ending().unwrap_or_default()));
    };
    is.is(running.pid());
    let deadline = settings.deadline(running.begun());
    Ok(running.wait(deadline))
}
