//! `fathom mcp`: this program's commands as tools of the Model Context Protocol, on standard input and output.
//!
//! The server runs nothing itself. A call of a tool starts this program with one of its commands ([`mod@call`]), in the
//! folder that the client names, and makes a short answer of the JSON that it writes ([`mod@short`]). So a call is all
//! that the command is: it confines what it repeats, remembers trials, and leaves no process when it is ended. The
//! child ends when its call is cancelled, runs out of time or memory, or when the server is gone.

mod call;
mod commands;
mod inputs;
mod outputs;
mod server;
mod short;
mod tools;

use anyhow::{Context, Result};
use rmcp::ServiceExt;

pub(crate) use self::call::{WORD, follow_the_server};

/// Serves until the client is gone.
pub(crate) fn serve() -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .context("the server cannot be started")?;
    runtime.block_on(async {
        let serving = server::Server.serve(rmcp::transport::stdio()).await;
        // A client that says nothing, or is gone, is no error.
        let Ok(serving) = serving else { return };
        let _ = serving.waiting().await;
    });
    // Reading from standard input blocks a thread that nobody can wake.
    runtime.shutdown_background();
    Ok(0)
}
