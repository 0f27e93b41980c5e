//! Finds the users of the agents and the daemon, and writes them into `settled.toml`.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use spool::{Layout, SpoolError};

use super::{IsolatedUsers, with_users};
use crate::config::{self, Config, ConfigError};
use crate::users::{User, UserSpec};
use crate::{atomic_file, directory};

/// The reason the users could not be found or written.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    /// A named user, or one an agent needs, does not exist.
    #[error("{0}; nothing was changed")]
    NoUser(String),
    /// The config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The workspace cannot be read.
    #[error(transparent)]
    Workspace(#[from] SpoolError),
    /// The config's form does not allow adding a line.
    #[error("cannot extend {} automatically; add these lines: {lines}", path.display())]
    NotExtendable {
        /// The config.
        path: PathBuf,
        /// The lines to add.
        lines: String,
    },
    /// The config cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl IsolatedUsers {
    /// Finds the user of every agent named now or already on the roll, and the daemon's user: the given one, or else
    /// the owner of `.settled`, or else root.
    pub fn find(
        root: &Path,
        named: &[(AgentName, Option<UserSpec>)],
        daemon: Option<&UserSpec>,
    ) -> Result<Self, IsolationError> {
        let known = Config::load(root)?.users();
        let on_the_roll = match directory::is_workspace(root)? {
            true => directory::agents(root)?,
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
                (Some(asked), _) => asked.find().map_err(IsolationError::NoUser)?,
                (None, Some(uid)) => known_user(&layout, name, *uid)?,
                (None, None) => UserSpec::Name(name.to_string()).find().map_err(|why| {
                    IsolationError::NoUser(format!(
                        "{why}: make one for the agent (useradd {name}), or use --agents {name}=UID"
                    ))
                })?,
            };
            agents.insert(name.clone(), user);
        }
        let daemon = match daemon {
            Some(named) => named.find().map_err(IsolationError::NoUser)?,
            None => layout
                .own()
                .symlink_metadata()
                .map_or(User { uid: 0, gid: 0 }, |data| User {
                    uid: data.uid(),
                    gid: data.gid(),
                }),
        };
        Ok(Self { daemon, agents })
    }

    /// Writes the users into `settled.toml` atomically.
    pub fn write_users(&self, root: &Path) -> Result<(), IsolationError> {
        let path = root.join(config::FILE);
        let before = config::read_text(&path)?;
        let text = with_users(&before, &self.agents);
        let users = Config::parse(&text, &path).map(|config| config.users());
        let is_said = |(name, user): (&AgentName, &User)| {
            users
                .as_ref()
                .is_ok_and(|users| users.get(name) == Some(&user.uid))
        };
        if !self.agents.iter().all(is_said) {
            let lines = self
                .agents
                .iter()
                .map(|(name, user)| format!("agents.{name}.uid = {}", user.uid));
            let lines = lines.collect::<Vec<_>>().join(", ");
            return Err(IsolationError::NotExtendable { path, lines });
        }
        if text == before {
            return Ok(());
        }
        Ok(atomic_file::replace(&path, &text)?)
    }
}

/// The user of an agent that already has one. Its group is that of its directory, the only record of it if the system
/// does not know the user.
fn known_user(layout: &Layout, name: &AgentName, uid: u32) -> Result<User, IsolationError> {
    let home = layout.agents().join(name.as_str()).symlink_metadata();
    let is_given = layout
        .outbox(name.as_str())
        .symlink_metadata()
        .is_ok_and(|data| data.uid() == uid);
    match home {
        Ok(home) if is_given => Ok(User {
            uid,
            gid: home.gid(),
        }),
        Ok(_) | Err(_) => UserSpec::Number(uid, None)
            .find()
            .map_err(IsolationError::NoUser),
    }
}
