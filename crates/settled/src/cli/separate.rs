//! `settled init --separate-users`: gives each part of the workspace to the user it is for, and says so in
//! `settled.toml`.
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use message_schema::id::AgentName;
use serde::Serialize;
use spool::{Layout, OwnedTree};
use workspace::config::{self, Config};
use workspace::separate::{Cast, Line, with_users};
use workspace::users::{self, Named, User};
use workspace::{directory, replaced};

use super::answer::Answer;
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// What `init` is told about users.
#[derive(Debug, clap::Args)]
pub(super) struct Separate {
    /// Give each agent's part of the workspace to a user of its own; needs root
    #[arg(long)]
    separate_users: bool,
    /// The user the daemon runs as: a name, UID or UID:GID [default: the owner of .settled, in a new workspace root]
    #[arg(long, value_name = "USER", requires = "separate_users")]
    daemon: Option<Named>,
    /// Print what would be, and change nothing
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
    agents: &[(AgentName, Option<Named>)],
    args: &Separate,
    context: &Context,
) -> Result<Exit, Failure> {
    if !args.dry_run && !rustix::process::geteuid().is_root() {
        let message = "only root can give directories to other users, and anybody say --dry-run; nothing was changed";
        return Err(Failure::plain(Exit::Identity, message.to_owned()));
    }
    let cast = cast(root, agents, args)?;
    if cast.agents.is_empty() {
        let message = "no agents were named, and the workspace has none".to_owned();
        return Err(Failure::plain(Exit::Usage, message));
    }
    if let Some(fault) = cast.fault(users::is_member) {
        return Err(Failure::plain(
            Exit::Usage,
            format!("{fault}; nothing was changed"),
        ));
    }
    if args.dry_run {
        return show(root, &cast, false, context);
    }
    let names: Vec<AgentName> = cast.agents.keys().cloned().collect();
    directory::init(root, &names).map_err(|error| Failure::new(Exit::Failed, &error))?;
    write_users(root, &cast)?;
    show(root, &cast, true, context)
}

/// Who is who: those named now, and those the workspace knows already.
fn cast(
    root: &Path,
    named: &[(AgentName, Option<Named>)],
    args: &Separate,
) -> Result<Cast, Failure> {
    let usage = |why: String| Failure::plain(Exit::Usage, format!("{why}; nothing was changed"));
    let known = Config::load(root)
        .map_err(|error| Failure::new(Exit::Usage, &error))?
        .users();
    let on_the_roll =
        match directory::is_workspace(root).map_err(|error| Failure::new(Exit::Failed, &error))? {
            true => directory::agents(root).map_err(|error| Failure::new(Exit::Failed, &error))?,
            false => Vec::new(),
        };
    let layout = Layout::new(root);
    let mut agents = BTreeMap::new();
    for name in named.iter().map(|(name, _)| name).chain(&on_the_roll) {
        let asked = named
            .iter()
            .find(|(other, _)| other == name)
            .and_then(|(_, user)| user.clone());
        let user = match (asked, known.get(name)) {
            (Some(asked), _) => asked.find().map_err(usage)?,
            // Its directory says which group it was given; a user that is in no file has no other record of it.
            (None, Some(uid)) => {
                let home = layout.agents().join(name.as_str()).symlink_metadata();
                let is_given = layout
                    .outbox(name.as_str())
                    .symlink_metadata()
                    .is_ok_and(|data| data.uid() == *uid);
                match home {
                    Ok(home) if is_given => User {
                        uid: *uid,
                        gid: home.gid(),
                    },
                    Ok(_) | Err(_) => Named::Number(*uid, None).find().map_err(usage)?,
                }
            }
            (None, None) => Named::Name(name.to_string()).find().map_err(|why| {
                usage(format!(
                    "{why}: make one for the agent (useradd {name}), or say --agents {name}=UID"
                ))
            })?,
        };
        agents.insert(name.clone(), user);
    }
    let daemon = match &args.daemon {
        Some(named) => named.find().map_err(usage)?,
        None => layout
            .own()
            .symlink_metadata()
            .map_or(User { uid: 0, gid: 0 }, |data| User {
                uid: data.uid(),
                gid: data.gid(),
            }),
    };
    Ok(Cast { daemon, agents })
}

/// Writes the users into `settled.toml`, whole or not at all.
fn write_users(root: &Path, cast: &Cast) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::new(Exit::Failed, error);
    let path = root.join(config::FILE);
    let before = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let text = with_users(&before, &cast.agents);
    let wanted: BTreeMap<AgentName, u32> = cast
        .agents
        .iter()
        .map(|(name, user)| (name.clone(), user.uid))
        .collect();
    let users = Config::parse(&text, &path).map(|config| config.users());
    if !users.as_ref().is_ok_and(|users| {
        wanted
            .iter()
            .all(|(name, uid)| users.get(name) == Some(uid))
    }) {
        let lines: Vec<String> = wanted
            .iter()
            .map(|(name, uid)| format!("agents.{name}.uid = {uid}"))
            .collect();
        let message = format!(
            "{} cannot be extended by itself; write into it: {}",
            path.display(),
            lines.join(", ")
        );
        return Err(Failure::plain(Exit::Usage, message));
    }
    if text == before {
        return Ok(());
    }
    replaced::replace(&path, &text).map_err(|error| failed(&error))
}

/// Prints the scheme, and with `change` makes it so.
fn show(root: &Path, cast: &Cast, change: bool, context: &Context) -> Result<Exit, Failure> {
    let failed = |error: spool::SpoolError| Failure::new(Exit::Failed, &error);
    let tree = if root.is_dir() {
        Some(OwnedTree::open(root).map_err(failed)?)
    } else {
        None
    };
    let mut rows = vec![["PATH", "OWNER", "MODE", "WHY"].map(str::to_owned)];
    let mut count = 0;
    for line in cast.lines() {
        count += match &tree {
            Some(tree) => line.settle(tree, change).map_err(failed)?,
            None => 1,
        };
        rows.push(row(&line));
    }
    let what = if change {
        "were changed"
    } else {
        "would be changed"
    };
    let scheme = Scheme {
        entries: rows[1..].iter().map(Entry::of).collect(),
        different: count,
        changed: change,
    };
    context.say(&Answer::new(scheme), |_| {
        format!(
            "{}{count} entries {what}\n{}",
            super::status::columns(&rows),
            next(root, cast)
        )
    })?;
    Ok(Exit::Ok)
}

/// Who owns what, and why.
#[derive(Debug, Serialize)]
struct Scheme {
    entries: Vec<Entry>,
    /// How many were otherwise before.
    different: usize,
    changed: bool,
}

#[derive(Debug, Serialize)]
struct Entry {
    path: String,
    owner: String,
    mode: String,
    why: String,
}

impl Entry {
    fn of([path, owner, mode, why]: &[String; 4]) -> Self {
        let [path, owner, mode, why] = [path, owner, mode, why].map(Clone::clone);
        Self {
            path,
            owner,
            mode,
            why,
        }
    }
}

fn row(line: &Line) -> [String; 4] {
    let path = if line.path.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        line.path.display().to_string()
    };
    let owner = User {
        uid: line.ownership.uid,
        gid: line.ownership.gid,
    };
    [
        path,
        owner.to_string(),
        format!("{:04o}", line.ownership.mode),
        line.why.to_owned(),
    ]
}

fn next(root: &Path, cast: &Cast) -> String {
    let User { uid, gid } = cast.daemon;
    format!(
        "next: setpriv --reuid={uid} --regid={gid} --clear-groups settled serve {}\n\
         start each agent as its user with umask 022, so that the others can read its packets\n",
        root.display()
    )
}
