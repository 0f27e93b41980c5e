//! `settled mcp`: becomes the program `settled-mcp` for one workspace and agent.

use super::beside::become_program;
use super::context::{Context, Me};
use super::failure::Failure;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Preview: tell a running Claude Code session that mail arrived, in a line without a word of the mail
    #[arg(long)]
    doorbell: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let Me { root, agent } = context.me()?;
    // The client may start the server in any directory.
    let root = std::path::absolute(root)?;
    Err(become_program("settled-mcp", |server, settled| {
        let doorbell = args.doorbell.then_some("--doorbell");
        server.arg(settled).args(doorbell);
        server.env("SETTLED_ROOT", root);
        server.env("SETTLED_AGENT", agent.as_str());
    }))
}
