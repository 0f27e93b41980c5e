//! `settled init`

use super::{Agents, Failure, Root, print};
use crate::exit::Exit;
use crate::workspace;

/// Makes a workspace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled init ./mailroom --agents claude,codex
  settled init ./mailroom --agents gemini          add an agent later")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    #[command(flatten)]
    agents: Agents,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let root = &args.root.root;
    let made =
        workspace::init(root, &args.agents.agents).map_err(|error| Failure::new(Exit::Failed, &error))?;
    if made.is_empty() {
        print(&format!("{} is complete; nothing was changed\n", root.display()))?;
    }
    for path in made {
        print(&format!("made {}\n", root.join(path).display()))?;
    }
    Ok(Exit::Ok)
}
