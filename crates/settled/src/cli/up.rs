//! `settled up`: creates the workspace if it is missing, and serves it.

use std::sync::mpsc;
use std::time::Duration;

use message_schema::id::AgentName;
use spool::dirs;
use workspace::directory;

use super::answer::print;
use super::context::{Context, Root, quoted};
use super::failure::Failure;
use super::serve;
use crate::exit::Exit;

/// Makes the workspace if it is missing, then serves it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled up ./mailroom --agents claude,codex")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// The agents that get mailboxes, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = directory::agent_name)]
    agents: Vec<AgentName>,
    #[command(flatten)]
    log: serve::LogForm,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.root()?;
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Failed, error);
    if args.agents.is_empty() && directory::is_workspace(root).is_ok_and(|is_one| !is_one) {
        let message = format!(
            "{} does not exist yet, and no agents were given",
            root.display()
        );
        let next = format!(
            "settled up {} --agents claude,codex",
            quoted(root.as_os_str())
        );
        return Err(Failure::plain(Exit::Usage, message).next(next));
    }
    let made = directory::init(root, &args.agents).map_err(|error| failed(&error))?;
    let agents = directory::agents(root).map_err(|error| failed(&error))?;
    let mut told = what_next(root, &agents);
    if !made.is_empty() {
        told.insert_str(0, &format!("made the workspace {}\n", root.display()));
    }
    let (done, printed) = mpsc::channel();
    std::thread::spawn(move || done.send(print(&told)));
    // A reader of the output that stalls holds up no mail.
    if let Ok(printed) = printed.recv_timeout(Duration::from_secs(1)) {
        printed?;
    }
    serve::logged(root, args.log)
}

fn what_next(root: &std::path::Path, agents: &[AgentName]) -> String {
    let root = root.display();
    let mut text = String::from("mailboxes:\n");
    for agent in agents {
        let [outbox, inbox] =
            [dirs::OUTBOX, dirs::INBOX].map(|of| dirs::of_agent(agent.as_str(), of));
        text += &format!("  {root}/{outbox}   {agent} writes here\n");
        text += &format!("  {root}/{inbox}    {agent} reads here\n");
    }
    text += &format!(
        "next: write a message (.yaml) into an outbox; in another terminal: settled status {root}\n\
         look at everything in a browser: settled page {root}\n\
         stop with Ctrl-C; nothing is lost, start again with: settled serve {root}\n"
    );
    text
}
