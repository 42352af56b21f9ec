//! `fathom doctor`.

use anyhow::Result;

use crate::cli::RunArguments;
use crate::error;
use crate::launch::Launch;
use crate::place;
use crate::python::{self, Python};
use crate::settings::Settings;

/// Checks what a run needs and prints what is in force; 0 if a run would start.
pub(crate) fn doctor(words: &[String]) -> Result<u8> {
    let mut healthy = true;
    let mut line = |label: &str, result: Result<String>| match result {
        Ok(text) => anstream::println!("ok    {label:10} {text}"),
        Err(problem) => {
            healthy = false;
            anstream::println!(
                "FAIL  {label:10} {}",
                error::text(&problem).replace("\n\n", "\n                 ")
            );
        }
    };
    line("fathom", Ok(env!("CARGO_PKG_VERSION").to_owned()));
    line("phantom", place::phantom().map(|path| path.display().to_string()));
    line("doorway", place::doorway().map(|path| path.display().to_string()));
    line("recorder", place::recorder().map(|path| path.display().to_string()));
    let command = match words {
        [] => vec!["python3".to_owned()],
        words => words.to_vec(),
    };
    let python = python::find_program(&command[0]).and_then(|path| Python::probe(&path));
    match python {
        Err(problem) => line("python", Err(problem)),
        Ok(python) => {
            line("python", Ok(format!("{} ({})", python.version, python.executable)));
            line("torch", describe_torch(&python));
            line("cuDNN", Ok(describe_cudnn(&python)));
            line("stubs", Launch::for_python(Some(python)).map(|_| "written".to_owned()));
        }
    }
    let settings = Settings::resolve(&RunArguments::default());
    match settings {
        Err(problem) => line("settings", Err(problem)),
        Ok(settings) => {
            for (key, value, origin) in settings.origins {
                line("setting", Ok(format!("{key} = {value} ({origin})")));
            }
        }
    }
    Ok(if healthy { 0 } else { 2 })
}

fn describe_torch(python: &Python) -> Result<String> {
    let torch = python.cuda_torch()?;
    let cuda = torch.cuda.as_deref().unwrap_or("unknown");
    Ok(format!("{} for CUDA {cuda} ({})", torch.version, torch.folder.display()))
}

fn describe_cudnn(python: &Python) -> String {
    let torch = python.torch.as_ref();
    match torch.and_then(|torch| torch.cudnn.as_ref()) {
        Some(path) => format!("convolution workspaces are asked of {}", path.display()),
        None => "not installed: convolution workspaces are modelled".to_owned(),
    }
}
