//! The command: flags, files, processes and exit codes. Everything else is in the other crates.

// A reader who has gone ends nothing, and names of strangers do nothing: see `screen`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod applied;
mod asking;
mod bound;
mod cache;
mod card;
mod cards;
mod ci;
mod cli;
mod commands;
mod compiler;
mod configs;
mod confined;
mod copied;
mod error;
mod export;
mod fitting;
mod gate;
mod here;
mod installed;
mod jobs;
mod launch;
mod load;
mod mcp;
mod need;
mod oom;
mod outcome;
mod outputs;
mod page;
mod progress;
mod python;
mod ranks;
mod runner;
mod screen;
mod scripts;
mod session;
mod settings;
mod shard;
mod shell;
mod smi;
mod stubs;
mod vary;
mod visible;
mod warm;
mod whole;
mod world;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    if std::env::args_os().next().is_some_and(|name| name == session::KEEPER) {
        return ExitCode::from(u8::from(session::keep().is_err()));
    }
    if let Some(words) = words_of_smi() {
        return ExitCode::from(smi::run(words));
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == confined::WORD) {
        // Its output is that of a trial: what went wrong is in the trial's folder.
        return ExitCode::from(
            confined::become_command(std::env::args_os().skip(2)).map_or(3, |()| 0),
        );
    }
    let is_of_a_server = std::env::args_os().nth(1).is_some_and(|word| word == mcp::WORD);
    if is_of_a_server {
        mcp::follow_the_server();
    }
    // That word is not for those who type.
    let words = std::env::args_os().enumerate().filter(|(at, _)| !is_of_a_server || *at != 1);
    let words = match settings::with_settings(words.map(|(_, word)| word).collect()) {
        Ok(words) => words,
        Err(error) => return refuse(&error),
    };
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => return refuse(&error::no_text()),
        Err(error) => error.exit(),
    };
    let result = match cli.command.completed() {
        Command::Run(arguments) => commands::run(&arguments),
        Command::Check(arguments) => commands::check(&arguments),
        Command::Fit(arguments) => commands::fit(&arguments),
        Command::Report(arguments) => commands::report(&arguments),
        Command::Sweep(arguments) => commands::sweep(&arguments),
        Command::Replay(arguments) => commands::replay(&arguments),
        Command::Explain(arguments) => commands::explain(&arguments),
        Command::Diff(arguments) => commands::diff(&arguments),
        Command::Page(arguments) => commands::page(&arguments),
        Command::Viewer(arguments) => commands::viewer(&arguments),
        Command::Gpus { name } => commands::gpus(name.as_deref()),
        Command::Calibrate { out, python } => commands::calibrate(&python, out.as_deref()),
        Command::Doctor { python } => commands::doctor(&python),
        Command::Mcp => mcp::serve(),
        Command::Completions { shell } => commands::completions(shell),
        Command::Man => commands::man(),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => refuse(&error),
    }
}

/// What follows `nvidia-smi`, if this program was started by that name.
fn words_of_smi() -> Option<impl Iterator<Item = String>> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    let is_it = Path::new(&program).file_name().is_some_and(|name| name == smi::NAME);
    is_it.then(|| words.map(|word| word.to_string_lossy().into_owned()))
}

fn refuse(error: &anyhow::Error) -> ExitCode {
    screen::say_styled(&error::text(error));
    ExitCode::from(2)
}
