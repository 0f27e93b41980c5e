//! `settled init`: creates a workspace or adds agents to one.

use std::path::PathBuf;

use message_schema::id::AgentName;
use serde::Serialize;
use workspace::directory;
use workspace::users::UserSpec;

use super::answer::CommandOutput;
use super::context::{Context, Root};
use super::failure::Failure;
use super::separate::{self, Separate};
use crate::exit::Exit;

/// Makes a workspace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled init ./mailroom --agents claude,codex
  settled init ./mailroom --agents gemini          add an agent later
  settled init /srv/mailroom --agents claude,codex --separate-users --dry-run
  settled init /srv/mailroom --agents claude=1001,codex=1002 --separate-users")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// The agents that get mailboxes, separated by commas; with --separate-users an agent runs as the user of its
    /// name, or as the user given by NAME=USER, NAME=UID or NAME=UID:GID
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = agent_and_user)]
    agents: Vec<(AgentName, Option<UserSpec>)>,
    #[command(flatten)]
    separate: Separate,
}

fn agent_and_user(text: &str) -> Result<(AgentName, Option<UserSpec>), String> {
    match text.split_once('=') {
        Some((name, user)) => Ok((directory::agent_name(name)?, Some(user.parse()?))),
        None => Ok((directory::agent_name(text)?, None)),
    }
}

/// The new directories and files.
#[derive(Debug, Serialize)]
struct Made {
    #[serde(serialize_with = "spool::path_text::serialize")]
    root: PathBuf,
    /// Paths relative to the root.
    #[serde(serialize_with = "spool::path_text::serialize_all")]
    made: Vec<PathBuf>,
}

impl Made {
    fn text(&self) -> String {
        let root = &self.root;
        if self.made.is_empty() {
            return format!("{} is complete; nothing was changed\n", root.display());
        }
        self.made
            .iter()
            .map(|path| format!("made {}\n", root.join(path).display()))
            .collect()
    }
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.root()?;
    if args.separate.is_asked() {
        return separate::run(root, &args.agents, &args.separate, &context);
    }
    if let Some((name, _)) = args.agents.iter().find(|(_, user)| user.is_some()) {
        let message = format!("a user for {name} has an effect only with --separate-users");
        return Err(Failure::plain(Exit::Usage, message));
    }
    let names: Vec<AgentName> = args.agents.iter().map(|(name, _)| name.clone()).collect();
    let made = directory::init(root, &names)?;
    context.say(
        &CommandOutput::new(Made {
            root: root.to_owned(),
            made,
        }),
        Made::text,
    )?;
    Ok(Exit::Ok)
}
