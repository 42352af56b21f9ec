//! Which Python a command will run, and what torch it has.

mod probe;
mod wrapped;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::error::Hinted;
use crate::stubs::Machine;

pub(crate) use self::probe::Start;

/// Answers of `probe.py`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Python {
    pub(crate) executable: String,
    pub(crate) version: String,
    pub(crate) system: String,
    pub(crate) machine: String,
    pub(crate) libc: String,
    pub(crate) torch: Option<Torch>,
    /// What `import torch` will take instead.
    #[serde(default)]
    pub(crate) instead: Option<PathBuf>,
    /// Folders of NVIDIA's packages.
    #[serde(default)]
    pub(crate) nvidia: Vec<PathBuf>,
    /// Where `Python.h` should be.
    #[serde(default)]
    pub(crate) include: PathBuf,
}

/// What `import torch` needs of other packages: `pip install --no-deps torch` brings none of them.
const BESIDE_TORCH: &str =
    "filelock fsspec jinja2 networkx numpy setuptools sympy typing-extensions";

/// The oldest torch in which the doorway finds what it asks for; `tests/versions` tries each.
pub(crate) const OLDEST_TORCH: (u32, u32) = (2, 4);

/// The installed torch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Torch {
    pub(crate) folder: PathBuf,
    pub(crate) version: String,
    /// As in `13.2`; `None` for builds without CUDA.
    pub(crate) cuda: Option<String>,
    pub(crate) has_cuda: bool,
    /// The cuDNN version it wants, as in `9.26.0.51`.
    pub(crate) cudnn_pin: Option<String>,
    /// The cuDNN that is installed.
    pub(crate) cudnn: Option<PathBuf>,
    /// Other packages built on torch.
    pub(crate) packages: Vec<PathBuf>,
}

/// The program a command starts, or why it cannot be started.
pub(crate) fn find_program(name: &str) -> Result<PathBuf> {
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| path.is_file())
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    let found = found.ok_or_else(|| {
        let hint = match Path::new(name).extension().is_some_and(|end| end == "py") {
            true => "no file of this name is here: check its spelling and the folder".to_owned(),
            false => "check the spelling, or give the full path".to_owned(),
        };
        Hinted::error(format!("the command `{name}` was not found"), hint)
    })?;
    use std::os::unix::fs::PermissionsExt;
    let runnable = fs::metadata(&found).is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
    if !runnable {
        let hint = format!("`chmod +x {name}`, or start it with its interpreter");
        return Err(Hinted::error(format!("`{}` is not executable", found.display()), hint));
    }
    Ok(found)
}

/// The interpreter behind a command: python itself, a script's first line, or a python among the words.
pub(crate) fn interpreter(command: &[String]) -> Option<PathBuf> {
    let program = find_program(&command[0]).ok()?;
    if is_python(&program) {
        return Some(program);
    }
    if let Some(python) = shebang(&program) {
        return Some(python);
    }
    let named = command[1..].iter().find(|word| is_python(Path::new(word)));
    named.and_then(|word| find_program(word).ok())
}

/// Whether a program is a Python, by its name.
pub(crate) fn is_python(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let rest = name.strip_prefix("python").unwrap_or("x");
    rest.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// The Python of a script like `torchrun`: its first line, or pip's form for long paths.
fn shebang(program: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    fs::File::open(program).ok()?.take(1024).read_to_end(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start);
    let mut lines = text.lines();
    let first = lines.next()?.strip_prefix("#!")?;
    let mut words = first.split_whitespace();
    let word = words.next()?;
    if word.ends_with("/env") {
        let name = words.find(|word| !word.starts_with('-'))?;
        return find_program(name).ok().filter(|path| is_python(path));
    }
    if is_python(Path::new(word)) {
        return Some(PathBuf::from(word));
    }
    // pip writes `'''exec' "/long/path/python" "$0" "$@"` after `#!/bin/sh`.
    let quoted = lines.next()?.strip_prefix("'''exec' ")?;
    let path = match quoted.strip_prefix('"') {
        Some(rest) => rest.split('"').next()?,
        None => quoted.split(' ').next()?,
    };
    Some(PathBuf::from(path)).filter(|path| is_python(path))
}

/// Pythons that a wrapper or a shell script may start: those among its words, then that of the activated environment
/// and of the `PATH`.
fn others(command: &[String]) -> Vec<PathBuf> {
    let named = command.iter().skip(1).filter(|word| is_python(Path::new(word)));
    let named = named.filter_map(|word| find_program(word).ok());
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os);
    let environments = environments.map(|folder| Path::new(&folder).join("bin/python"));
    let on_path = ["python", "python3"].into_iter().filter_map(|name| find_program(name).ok());
    named.chain(environments.filter(|path| path.is_file())).chain(on_path).collect()
}

impl Python {
    /// The Python that a command will run; `None` if that is not known, as in a shell script, and the one of the
    /// `PATH` has no CUDA build of torch.
    pub(crate) fn of(command: &[String]) -> Result<Option<Python>> {
        let program = find_program(&command[0])?;
        let wrapped = wrapped::interpreter(command);
        let is_last = is_python(&program) || wrapped.is_some();
        let own = wrapped.or_else(|| interpreter(command));
        let own = own.map(|path| Python::probe(&path, &Start::of(command))).transpose()?;
        // A program that is written in Python may start another one: then its own need not have torch.
        if is_last || own.as_ref().is_some_and(|own| own.cuda_torch().is_ok()) {
            return Ok(own);
        }
        Ok(others(command).into_iter().find_map(|path| {
            let python = Python::probe(&path, &Start::default()).ok()?;
            python.cuda_torch().is_ok().then_some(python)
        }))
    }

    /// The torch that a run on the phantom needs, or what is missing.
    pub(crate) fn cuda_torch(&self) -> Result<&Torch> {
        let machine = Machine::of_name(&self.machine);
        if self.system != "Linux" || machine.is_none() {
            return Err(Hinted::error(
                format!(
                    "this Python runs on {} {}; the phantom GPU needs Linux on x86_64 or aarch64",
                    self.system, self.machine
                ),
                "run fathom in a Linux container or on a Linux machine; no GPU is needed there",
            ));
        }
        if machine != Machine::own() {
            let own = std::env::consts::ARCH;
            return Err(Hinted::error(
                format!("this Python is built for {}, this fathom for {own}", self.machine),
                format!("install fathom for {}, or a Python for {own}", self.machine),
            ));
        }
        if self.libc != "glibc" {
            return Err(Hinted::error(
                "this Python is not linked to glibc; PyTorch's CUDA builds and the phantom GPU need it",
                "use a Debian-, Ubuntu- or RHEL-based image instead of one with musl (Alpine)",
            ));
        }
        if let Some(file) = &self.instead {
            return Err(Hinted::error(
                format!("`import torch` takes `{}`, which is not PyTorch", file.display()),
                "give it another name",
            ));
        }
        let torch = self.torch.as_ref().ok_or_else(|| {
            Hinted::error(
                format!("`{}` has no torch", self.executable),
                format!(
                    "`{0} -m pip install --no-deps torch`, then `{0} -m pip install {BESIDE_TORCH}`: none of NVIDIA's packages is needed",
                    self.executable
                ),
            )
        })?;
        if !torch.has_cuda {
            return Err(Hinted::error(
                format!("torch {} of `{}` is a build without CUDA", torch.version, self.executable),
                format!(
                    "install the CUDA build from PyPI: `{} -m pip install --no-deps --force-reinstall --index-url https://pypi.org/simple torch`; it runs without a GPU under fathom",
                    self.executable
                ),
            ));
        }
        if torch.number().is_some_and(|number| number < OLDEST_TORCH) {
            let (major, minor) = OLDEST_TORCH;
            return Err(Hinted::error(
                format!(
                    "torch {} of `{}` is too old: fathom runs torch {major}.{minor} and newer",
                    torch.version, self.executable
                ),
                format!(
                    "`pip install --no-deps 'torch>={major}.{minor}'` in an environment of its own; peaks are those of that version"
                ),
            ));
        }
        Ok(torch)
    }
}

impl Torch {
    /// `2.15` of `2.15.0+cu130`; `None` of a version that nobody can read.
    fn number(&self) -> Option<(u32, u32)> {
        let mut parts = self.version.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    }

    /// `13.2` as 13020.
    pub(crate) fn cuda_number(&self) -> Option<u64> {
        let (major, minor) = self.cuda.as_ref()?.split_once('.')?;
        Some(major.parse::<u64>().ok()? * 1000 + minor.parse::<u64>().ok()? * 10)
    }

    /// `9.26.0.51` as 92600.
    pub(crate) fn cudnn_number(&self) -> Option<u64> {
        let mut parts = self.cudnn_pin.as_ref()?.split('.').map(|part| part.parse::<u64>().ok());
        let mut next = || parts.next().flatten();
        Some(next()? * 10_000 + next()? * 100 + next()?)
    }
}

#[cfg(test)]
mod tests {
    use std::env::consts::ARCH;

    use super::*;

    #[test]
    fn python_is_known_by_its_name() {
        for name in ["python", "/usr/bin/python3", "python3.11", ".venv/bin/python"] {
            assert!(is_python(Path::new(name)), "{name}");
        }
        for name in ["bash", "pythonic", "torchrun", "python-config"] {
            assert!(!is_python(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn scripts_lead_to_their_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("torchrun");
        fs::write(&script, "#!/opt/env/bin/python3.12\nimport torch\n").unwrap();
        assert_eq!(shebang(&script), Some(PathBuf::from("/opt/env/bin/python3.12")));
        fs::write(&script, "#!/bin/sh\n'''exec' \"/a b/bin/python\" \"$0\" \"$@\"\n' '''\n")
            .unwrap();
        assert_eq!(shebang(&script), Some(PathBuf::from("/a b/bin/python")));
        fs::write(&script, "#!/bin/sh\necho hello\n").unwrap();
        assert_eq!(shebang(&script), None);
    }

    #[test]
    fn what_the_phantom_cannot_serve_is_named_with_its_cure() {
        let python = |system: &str, machine: &str, libc: &str| Python {
            executable: "python3".to_owned(),
            version: "3.12.1".to_owned(),
            system: system.to_owned(),
            machine: machine.to_owned(),
            libc: libc.to_owned(),
            ..Python::default()
        };
        let problem = |python: Python| crate::error::text(&python.cuda_torch().unwrap_err());
        let mac = problem(python("Darwin", "arm64", ""));
        assert!(mac.contains("needs Linux on x86_64") && mac.contains("hint"), "{mac}");
        let other = if ARCH == "aarch64" { "x86_64" } else { "aarch64" };
        let foreign = problem(python("Linux", other, "glibc"));
        assert!(
            foreign.contains(&format!("built for {other}, this fathom for {ARCH}")),
            "{foreign}"
        );
        let alpine = problem(python("Linux", ARCH, ""));
        assert!(alpine.contains("glibc") && alpine.contains("Alpine"), "{alpine}");
        let bare = problem(python("Linux", ARCH, "glibc"));
        assert!(
            bare.contains("has no torch") && bare.contains("pip install --no-deps torch"),
            "{bare}"
        );
        let with = |version: &str| {
            let torch = Torch { version: version.to_owned(), has_cuda: true, ..Torch::default() };
            Python { torch: Some(torch), ..python("Linux", ARCH, "glibc") }
        };
        let old = problem(with("2.3.1+cu121"));
        assert!(old.contains("torch 2.3.1+cu121 of `python3` is too old"), "{old}");
        assert!(old.contains("torch>=2.4"), "{old}");
        for version in ["2.4.0", "2.15.0+cu130", "2.16.0a0+git1234", "3.0", "main"] {
            assert!(with(version).cuda_torch().is_ok(), "{version}");
        }
    }

    #[test]
    fn what_torch_needs_is_what_our_own_environment_has() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../requirements/runtime.txt");
        let text = fs::read_to_string(path).unwrap();
        // These come with the others, or are the examples' own.
        let others = ["markupsafe", "mpmath", "pyyaml"];
        let pinned = text.lines().filter_map(|line| line.split_once("==").map(|(name, _)| name));
        let own: Vec<&str> = pinned.filter(|name| !others.contains(name)).collect();
        assert_eq!(own.join(" "), BESIDE_TORCH);
    }

    #[test]
    fn versions_become_numbers() {
        let torch = Torch {
            folder: PathBuf::new(),
            version: "2.15.0".to_owned(),
            cuda: Some("13.2".to_owned()),
            has_cuda: true,
            cudnn_pin: Some("9.26.0.51".to_owned()),
            cudnn: None,
            packages: Vec::new(),
        };
        assert_eq!((torch.cuda_number(), torch.cudnn_number()), (Some(13020), Some(92600)));
    }
}
