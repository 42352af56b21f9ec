//! `fathom calibrate`: what a real GPU shows beside PyTorch's memory, as rows for the catalogue.
//!
//! It is the one command that wants a real card. A script (`measure.py`) uses the card for the first time in several
//! ways and looks after each what the driver counts beyond what PyTorch has reserved. On the phantom it gives back the
//! catalogue's own numbers, says so, and writes nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use report::bytes;
use serde::Deserialize;

use crate::error::Hinted;
use crate::outputs::Outputs;
use crate::python;
use crate::screen;

const MEASURE: &str = include_str!("measure.py");

/// Where rows are collected.
const SEND: &str = "an issue or a pull request with these rows for crates/gpus/beside.txt";

/// What `measure.py` prints.
#[derive(Debug, Deserialize)]
struct Measured {
    is_phantom: bool,
    card: String,
    memory_bytes: u64,
    driver: String,
    torch: String,
    cuda: String,
    loading: String,
    /// Whose memory was looked at: the process's, or the whole card's.
    by: String,
    is_disturbed: bool,
    cublas_workspace_bytes: u64,
    stages: Vec<Stage>,
}

#[derive(Debug, Deserialize)]
struct Stage {
    name: String,
    beside_bytes: u64,
}

/// Why nothing was measured.
#[derive(Debug, Deserialize)]
struct Failed {
    error: String,
}

/// Measures the first GPU with lazy and with eager loading; 0 if rows were written or would have been.
pub(crate) fn calibrate(words: &[String], out: Option<&Path>) -> Result<u8> {
    let mut outputs = Outputs::check(&[("--out", out)])?;
    let program = words.first().map_or("python3", String::as_str);
    let program = python::find_program(program)?;
    screen::say(
        "fathom: the GPU is used for the first time in five ways, twice; this takes a minute",
    );
    let all = ["LAZY", "EAGER"].map(|loading| measure(&program, loading));
    let [lazy, eager] = all;
    let (lazy, eager) = (lazy?, eager?);
    outputs.print(&table(&lazy, &eager));
    let rows = rows(&lazy, &eager);
    if lazy.is_phantom {
        outputs.print(
            "\nThis GPU is Fathom's phantom: the numbers are the catalogue's own, not measurements.\n\
             Nothing is written. Run `fathom calibrate` on a machine with a GPU, without `fathom run`.\n",
        );
        return Ok(outputs.finish(0));
    }
    outputs.print(&format!("\n{rows}\nTo have them in the catalogue: {SEND}.\n"));
    if let Some(path) = out {
        outputs.file(path, rows);
    }
    Ok(outputs.finish(0))
}

/// Runs the script once.
fn measure(python: &PathBuf, loading: &str) -> Result<Measured> {
    let hint = "`fathom calibrate -- .venv/bin/python` names a Python whose PyTorch sees a GPU";
    let output = Command::new(python)
        .args(["-c", MEASURE])
        .env("CUDA_MODULE_LOADING", loading)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| {
            Hinted::error(format!("`{}` does not start: {why}", python.display()), hint)
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    // What else a Python prints at its start comes before.
    let line = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    if let Ok(measured) = serde_json::from_str(line) {
        return Ok(measured);
    }
    let why = serde_json::from_str::<Failed>(line)
        .map_or_else(|_| "the script ended without an answer".to_owned(), |failed| failed.error);
    Err(Hinted::error(format!("nothing was measured: {why}"), hint))
}

/// For people: what each first use added.
fn table(lazy: &Measured, eager: &Measured) -> String {
    let mut text = format!(
        "{} with {}, driver {}, torch {}, CUDA {}\n",
        report::visible(&lazy.card),
        bytes::text(lazy.memory_bytes),
        report::visible(&lazy.driver),
        report::visible(&lazy.torch),
        report::visible(&lazy.cuda)
    );
    text += "beside PyTorch's memory, after                lazy       eager loading\n";
    for (stage, at_once) in lazy.stages.iter().zip(&eager.stages) {
        text += &format!(
            "  {:34} {:>12} {:>19}\n",
            title(&stage.name),
            bytes::text(stage.beside_bytes),
            bytes::text(at_once.beside_bytes)
        );
    }
    if 0 < lazy.cublas_workspace_bytes {
        let kept = bytes::text(lazy.cublas_workspace_bytes);
        text += &format!("cuBLAS keeps a workspace of {kept}, which is in PyTorch's own memory\n");
    }
    if lazy.by == "card" {
        text +=
            "the driver does not say what this process has: the whole card's memory was compared\n";
    }
    if lazy.is_disturbed || eager.is_disturbed {
        text += "another program changed its memory meanwhile: close it and measure again\n";
    }
    text
}

fn title(stage: &str) -> &str {
    match stage {
        "context" => "the context alone",
        "kernels" => "a first kernel",
        "cublas" => "a matrix product (cuBLAS)",
        "cudnn" => "a convolution (cuDNN)",
        "training" => "two small trainings",
        other => other,
    }
}

/// Rows in the form of `beside.txt`.
fn rows(lazy: &Measured, eager: &Measured) -> String {
    let name = gpus::find(&lazy.card).map_or(lazy.card.as_str(), |card| card.name);
    let row = |measured: &Measured, what: &str, stage: Option<&Stage>| {
        let Some(stage) = stage else { return String::new() };
        let Measured { loading, torch, cuda, driver, .. } = measured;
        let mib = stage.beside_bytes.div_ceil(1 << 20);
        format!("  {name}  {what}  {mib}  {loading}  1  {torch}  {cuda}  {driver}  calibrate\n")
    };
    let first = lazy.stages.first();
    row(lazy, "context", first)
        + &row(lazy, "all", lazy.stages.last())
        + &row(eager, "all", eager.stages.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(loading: &str, bytes: [u64; 2]) -> Measured {
        let stages = ["context", "training"].into_iter().zip(bytes);
        let stages =
            stages.map(|(name, mib)| Stage { name: name.to_owned(), beside_bytes: mib << 20 });
        Measured {
            is_phantom: false,
            card: "NVIDIA GeForce RTX 3090".to_owned(),
            memory_bytes: 25_414_860_800,
            driver: "570.133".to_owned(),
            torch: "2.7.1".to_owned(),
            cuda: "12.8".to_owned(),
            loading: loading.to_owned(),
            by: "card".to_owned(),
            is_disturbed: true,
            cublas_workspace_bytes: 8 << 20,
            stages: stages.collect(),
        }
    }

    #[test]
    fn rows_have_the_form_of_the_table() {
        let rows = rows(&measured("lazy", [256, 300]), &measured("eager", [900, 1000]));
        assert_eq!(
            rows,
            "  rtx3090  context  256  lazy  1  2.7.1  12.8  570.133  calibrate\n  \
             rtx3090  all  300  lazy  1  2.7.1  12.8  570.133  calibrate\n  \
             rtx3090  all  1000  eager  1  2.7.1  12.8  570.133  calibrate\n"
        );
    }

    #[test]
    fn what_makes_the_numbers_unsure_is_said() {
        let text = table(&measured("lazy", [256, 300]), &measured("eager", [900, 1000]));
        assert!(text.contains("the context alone") && text.contains("900.0 MiB"), "{text}");
        assert!(text.contains("the whole card's memory was compared"), "{text}");
        assert!(text.contains("another program changed its memory"), "{text}");
    }
}
