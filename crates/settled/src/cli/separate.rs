//! `settled init --separate-users`: gives each part of the workspace to the user who needs it, and records this in
//! `settled.toml`.

use std::path::Path;

use message_schema::id::AgentName;
use serde::Serialize;
use workspace::directory;
use workspace::ownership::{OwnedTree, Ownership};
use workspace::user_isolation::{DirectoryRule, IsolatedUsers, IsolationError};
use workspace::users::{self, User, UserSpec};

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// The options of `init` about users.
#[derive(Debug, clap::Args)]
pub(super) struct Separate {
    /// Give each agent's part of the workspace to a separate user; needs root
    #[arg(long)]
    separate_users: bool,
    /// The user the daemon runs as: a name, UID or UID:GID [default: the owner of .settled, in a new workspace root]
    #[arg(long, value_name = "USER", requires = "separate_users")]
    daemon: Option<UserSpec>,
    /// Print the changes without making them
    #[arg(long, requires = "separate_users")]
    dry_run: bool,
}

impl Separate {
    pub(super) fn is_asked(&self) -> bool {
        self.separate_users
    }
}

pub(super) fn run(
    root: &Path,
    agents: &[(AgentName, Option<UserSpec>)],
    args: &Separate,
    context: &Context,
) -> Result<Exit, Failure> {
    if !args.dry_run && !rustix::process::geteuid().is_root() {
        let message = "only root can give directories to other users, but anybody can use --dry-run; nothing was changed";
        return Err(Failure::plain(Exit::Identity, message.to_owned()));
    }
    let cast =
        IsolatedUsers::find(root, agents, args.daemon.as_ref()).map_err(|error| failure(&error))?;
    if cast.agents.is_empty() {
        let message = "no agents given, and the workspace has none".to_owned();
        return Err(Failure::plain(Exit::Usage, message));
    }
    if let Some(fault) = cast.fault(users::is_member) {
        return Err(Failure::plain(
            Exit::Usage,
            format!("{fault}; nothing was changed"),
        ));
    }
    if args.dry_run {
        return show(root, &cast, args, context);
    }
    let names: Vec<AgentName> = cast.agents.keys().cloned().collect();
    directory::init(root, &names)?;
    cast.write_users(root).map_err(|error| failure(&error))?;
    show(root, &cast, args, context)
}

/// Enforces the scheme, unless it is a dry run, and prints it.
fn show(
    root: &Path,
    cast: &IsolatedUsers,
    args: &Separate,
    context: &Context,
) -> Result<Exit, Failure> {
    let tree = if root.is_dir() {
        Some(OwnedTree::open(root)?)
    } else {
        None
    };
    let mut entries = Vec::new();
    let mut count = 0;
    for line in cast.rules() {
        count += match &tree {
            Some(tree) => {
                if args.dry_run {
                    line.broken(tree)
                } else {
                    line.enforce(tree)
                }?
            }
            None => 1,
        };
        entries.push(SchemeEntry::of(&line));
    }
    let what = if args.dry_run {
        "would be changed"
    } else {
        "were changed"
    };
    let scheme = Scheme {
        entries,
        different: count,
        changed: !args.dry_run,
    };
    context.say(&CommandOutput::new(scheme), |scheme| {
        let mut rows = vec![["PATH", "OWNER", "MODE", "WHY"].map(str::to_owned)];
        rows.extend(scheme.entries.iter().map(SchemeEntry::row));
        format!(
            "{}{count} entries {what}\n{}",
            views::table::columns(&rows),
            next(root, cast)
        )
    })?;
    Ok(Exit::Ok)
}

/// The owner of each part of the workspace, with the reason.
#[derive(Debug, Serialize)]
struct Scheme {
    entries: Vec<SchemeEntry>,
    /// The number of entries that differed before.
    different: usize,
    changed: bool,
}

#[derive(Debug, Serialize)]
struct SchemeEntry {
    path: String,
    owner: String,
    mode: String,
    why: String,
}

impl SchemeEntry {
    fn of(line: &DirectoryRule) -> Self {
        let path = if line.path.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            line.path.display().to_string()
        };
        let Ownership { uid, gid, mode } = line.ownership;
        Self {
            path,
            owner: User { uid, gid }.to_string(),
            mode: format!("{mode:04o}"),
            why: line.why.to_owned(),
        }
    }

    fn row(&self) -> [String; 4] {
        [&self.path, &self.owner, &self.mode, &self.why].map(Clone::clone)
    }
}

fn failure(error: &IsolationError) -> Failure {
    let exit = match error {
        IsolationError::NoUser(_)
        | IsolationError::Config(_)
        | IsolationError::NotExtendable { .. } => Exit::Usage,
        IsolationError::Workspace(_) | IsolationError::Io(_) => Exit::Failed,
    };
    Failure::new(exit, error)
}

fn next(root: &Path, cast: &IsolatedUsers) -> String {
    let User { uid, gid } = cast.daemon;
    format!(
        "next: setpriv --reuid={uid} --regid={gid} --clear-groups settled serve {}\n\
         start each agent as its user with umask 022, so that the others can read its packets\n",
        root.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_is_started_as_its_user() {
        let cast = IsolatedUsers {
            daemon: User {
                uid: 61_000,
                gid: 61_001,
            },
            agents: std::collections::BTreeMap::new(),
        };
        let next = next(Path::new("/srv/room"), &cast);
        let first = next.lines().next();
        assert_eq!(
            first,
            Some(
                "next: setpriv --reuid=61000 --regid=61001 --clear-groups settled serve /srv/room"
            )
        );
    }
}
