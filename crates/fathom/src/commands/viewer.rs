//! `fathom viewer`.

use std::fs;

use anyhow::{Context, Result};

use crate::cli::ViewerArguments;
use crate::error::Hinted;
use crate::installed;
use crate::outputs::Outputs;

/// Writes the viewer; 0 if there is one.
pub(crate) fn viewer(arguments: &ViewerArguments) -> Result<u8> {
    let to = &arguments.output;
    let mut outputs = Outputs::check(&[("-o", Some(to))])?;
    let from = installed::viewer()?;
    let wasm = fs::read(&from).with_context(|| format!("cannot read `{}`", from.display()))?;
    if !::page::is_of_this_build(&wasm) {
        let message = format!("`{}` is of another build than this program", from.display());
        return Err(Hinted::error(message, "`make viewer` builds it again"));
    }
    let page = ::page::viewer(&wasm);
    outputs.file(to, &page);
    let size = report::bytes::text(page.len() as u64);
    outputs.print(&format!("{} ({size})\n", report::visible(&to.to_string_lossy())));
    Ok(outputs.finish(0))
}
