//! `settled mcp`: becomes the program `settled-mcp`, which lies beside this one so that the library it needs is not part of
//! `settled`, and fixes who calls it.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::context::{Context, Me};
use super::failure::Failure;
use crate::exit::Exit;

const PROGRAM: &str = "settled-mcp";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Preview: tell a running Claude Code session that mail arrived, in a line without a word of the mail
    #[arg(long)]
    doorbell: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let Me { root, agent } = context.me()?;
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, &error);
    let settled = std::env::current_exe().map_err(failed)?;
    let server = settled.with_file_name(PROGRAM);
    if !server.is_file() {
        let message = format!(
            "{} is missing: packages install both, and from source `cargo build -p {PROGRAM}` builds it",
            server.display()
        );
        return Err(Failure::plain(Exit::NotFound, message));
    }
    // The client may start it in any directory.
    let root = std::path::absolute(root).map_err(failed)?;
    let error = Command::new(&server)
        .arg(settled)
        .args(args.doorbell.then_some("--doorbell"))
        .env("SETTLED_ROOT", root)
        .env("SETTLED_AGENT", agent.as_str())
        .exec();
    Err(Failure::new(Exit::Failed, &error))
}
