//! What a script needs to compile custom CUDA operators, and what of it is missing.
//!
//! `torch.utils.cpp_extension` needs `nvcc` with all of its parts, a C++ compiler, ninja and Python's
//! headers; no GPU. For CUDA 13 and newer NVIDIA's packages on the package index have the compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::python::{Python, find_program};

/// From this version of CUDA on the package index has the compiler; before, only `ptxas`.
const ON_INDEX: u32 = 13;

/// A part of the toolkit: how people call it, where it is, and the extra of `cuda-toolkit` that has it.
const PARTS: [(&str, &[&str], &str); 4] = [
    ("cicc", &["nvvm/bin/cicc"], "nvcc"),
    ("crt headers", &["include/crt/host_config.h"], "nvcc"),
    ("runtime headers", &["include/cuda_runtime.h"], "cudart"),
    ("CCCL headers", &["include/cccl/nv/target", "include/nv/target"], "cccl"),
];

/// Headers that `ATen/cuda/CUDAContext.h` includes, which most extensions do.
const OF_CONTEXT: [(&str, &str); 3] =
    [("cublas_v2.h", "cublas"), ("cusparse.h", "cusparse"), ("cusolverDn.h", "cusolver")];

/// What was found.
pub(crate) struct Compiler {
    /// `nvcc` and where it is; `None` if there is none.
    pub(crate) nvcc: Option<String>,
    /// What an extension would miss, each with its cure.
    pub(crate) missing: Vec<String>,
}

/// Looks for all of it, as torch would in the environment of this command.
pub(crate) fn find(python: &Python) -> Compiler {
    let torch = python.torch.as_ref();
    let cuda = torch.and_then(|torch| torch.cuda.clone()).unwrap_or_default();
    let major = cuda.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let install = |extras: &str| format!("`pip install \"cuda-toolkit[{extras}]=={cuda}.*\"`");
    let packaged = in_packages(python);
    let mut missing = Vec::new();
    let home = torchs_own().filter(|home| home.join("bin/nvcc").is_file());
    let nvcc = match (&home, &packaged) {
        (Some(home), _) => Some(home),
        (None, Some(packaged)) => {
            missing.push(format!("CUDA_HOME: `export CUDA_HOME={}`", packaged.display()));
            Some(packaged)
        }
        (None, None) => {
            missing.push(match major < ON_INDEX {
                false => format!("nvcc: {}, then ask again", install("nvcc,cccl,cudart")),
                true => format!(
                    "nvcc: NVIDIA's toolkit {cuda} and `CUDA_HOME` (the package index has no compiler for CUDA {major})"
                ),
            });
            None
        }
    };
    if let Some(home) = nvcc {
        let of_torch = (!cuda.is_empty()).then_some((cuda.as_str(), major));
        missing.extend(of_torch.and_then(|(cuda, major)| other_major(home, cuda, major)));
        for (name, places, extra) in PARTS {
            if !places.iter().any(|place| home.join(place).is_file()) {
                missing.push(format!("{name}: {}", install(extra)));
            }
        }
        let lacks = |(header, _): &&(&str, &str)| !home.join("include").join(header).is_file();
        let lacking: Vec<&(&str, &str)> = OF_CONTEXT.iter().filter(lacks).collect();
        if !lacking.is_empty() {
            let names: Vec<&str> = lacking.iter().map(|row| row.0).collect();
            let extras: Vec<&str> = lacking.iter().map(|row| row.1).collect();
            let what = "for extensions that include `ATen/cuda/CUDAContext.h`";
            missing.push(format!("{} {what}: {}", names.join(", "), install(&extras.join(","))));
        }
    }
    missing.extend(other_tools(python));
    let shown = nvcc.map(|home| home.join("bin/nvcc").display().to_string());
    Compiler { nvcc: shown, missing }
}

/// Where torch looks: `CUDA_HOME`, `CUDA_PATH`, the `nvcc` of `PATH`, the usual place.
fn torchs_own() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(home) = variable("CUDA_HOME").or_else(|| variable("CUDA_PATH")) {
        return Some(PathBuf::from(home));
    }
    let of_path = find_program("nvcc").ok();
    let home = of_path.and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_owned()));
    home.or_else(|| Some(PathBuf::from("/usr/local/cuda")).filter(|path| path.is_dir()))
}

/// The toolkit that NVIDIA's packages are, as `nvidia/cu13`.
fn in_packages(python: &Python) -> Option<PathBuf> {
    let folders =
        python.nvidia.iter().flat_map(|nvidia| std::fs::read_dir(nvidia).into_iter().flatten());
    let mut homes: Vec<PathBuf> = folders.flatten().map(|folder| folder.path()).collect();
    homes.retain(|home| home.join("bin/nvcc").is_file());
    homes.sort();
    homes.pop()
}

/// Torch refuses a compiler of another CUDA 12 or 13 than its own.
fn other_major(home: &Path, cuda: &str, major: u32) -> Option<String> {
    let output = Command::new(home.join("bin/nvcc"))
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).ok()?;
    let release = text.split("release ").nth(1)?.split([',', '\n']).next()?.trim().to_owned();
    let of_nvcc: u32 = release.split('.').next()?.parse().ok()?;
    (of_nvcc != major).then(|| {
        format!("a compiler for CUDA {cuda}: torch is built for it, and this nvcc is {release}")
    })
}

/// What is not NVIDIA's.
fn other_tools(python: &Python) -> Vec<String> {
    let mut missing = Vec::new();
    let cxx = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    if find_program(cxx.as_deref().unwrap_or("c++")).is_err() {
        missing.push("a C++ compiler: `apt-get install g++`, or `CXX`".to_owned());
    }
    if find_program("ninja").is_err() {
        let beside = Path::new(&python.executable).parent().map(|folder| folder.join("ninja"));
        missing.push(match beside.filter(|path| path.is_file()) {
            Some(path) => {
                let folder = path.parent().unwrap_or(&path).display().to_string();
                format!("ninja in PATH: activate the environment, or `export PATH={folder}:$PATH`")
            }
            None => "ninja: `pip install ninja`".to_owned(),
        });
    }
    if !python.include.join("Python.h").is_file() {
        missing.push(format!(
            "Python.h in {}: `apt-get install python3-dev`",
            python.include.display()
        ));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::Torch;

    fn python(folder: &Path, cuda: &str) -> Python {
        Python {
            executable: folder.join("bin/python").display().to_string(),
            torch: Some(Torch { cuda: Some(cuda.to_owned()), ..Torch::default() }),
            nvidia: vec![folder.join("nvidia")],
            ..Python::default()
        }
    }

    /// The rest depends on this machine.
    fn of_nvidia(folder: &Path, cuda: &str) -> String {
        find(&python(folder, cuda)).missing.join("\n")
    }

    #[test]
    fn the_compiler_and_its_parts_are_named_with_their_cure() {
        if torchs_own().is_some() {
            crate::screen::say("SKIPPED: this machine has a toolkit of its own");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let none = of_nvidia(folder.path(), "13.2");
        assert!(
            none.contains("nvcc: `pip install \"cuda-toolkit[nvcc,cccl,cudart]==13.2.*\"`"),
            "{none}"
        );
        let older = of_nvidia(folder.path(), "12.4");
        assert!(
            older.contains("NVIDIA's toolkit 12.4") && older.contains("no compiler for CUDA 12"),
            "{older}"
        );
        let home = folder.path().join("nvidia/cu13");
        let put = |path: &str| {
            std::fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
            std::fs::write(home.join(path), "").unwrap();
        };
        put("bin/nvcc");
        put("nvvm/bin/cicc");
        put("include/cuda_runtime.h");
        let parts = of_nvidia(folder.path(), "13.2");
        assert!(
            parts.contains(&format!("CUDA_HOME: `export CUDA_HOME={}`", home.display())),
            "{parts}"
        );
        assert!(parts.contains("crt headers: ") && parts.contains("CCCL headers: "), "{parts}");
        assert!(!parts.contains("cicc: ") && !parts.contains("runtime headers: "), "{parts}");
        assert!(parts.contains("cublas_v2.h, cusparse.h, cusolverDn.h for extensions"), "{parts}");
    }
}
