//! Completions and the man page, made from the flags.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::screen;

pub(crate) fn completions(shell: Shell) -> Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fathom", &mut text);
    screen::answer(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

pub(crate) fn man() -> Result<u8> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text)?;
    screen::answer(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
