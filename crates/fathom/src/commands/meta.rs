//! Completions and the man page, made from the flags.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

pub(crate) fn completions(shell: Shell) -> Result<u8> {
    clap_complete::generate(shell, &mut Cli::command(), "fathom", &mut std::io::stdout());
    Ok(0)
}

pub(crate) fn man() -> Result<u8> {
    clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?;
    Ok(0)
}
