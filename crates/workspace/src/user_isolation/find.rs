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
    /// Finds the user of every agent named now or that exists already, and the daemon's user: the given one, or else
    /// the owner of `.settled`, or else root.
    pub fn find(
        root: &Path,
        named: &[(AgentName, Option<UserSpec>)],
        daemon: Option<&UserSpec>,
    ) -> Result<Self, IsolationError> {
        let known = Config::load(root)?.users();
        let existing = match directory::is_workspace(root)? {
            true => directory::agents(root)?,
            false => Vec::new(),
        };
        let layout = Layout::new(root);
        let mut agents = BTreeMap::new();
        for name in named.iter().map(|(name, _)| name).chain(&existing) {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    /// A user that no machine knows.
    const STRANGER: u32 = 3_999_999_999;

    fn workspace(config: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let agents = ["claude", "codex"].map(|name| name.parse().expect("a name"));
        directory::init(root.path(), &agents).expect("a workspace");
        std::fs::write(root.path().join(config::FILE), config).expect("a config");
        root
    }

    fn named(name: &str, uid: u32, gid: u32) -> (AgentName, Option<UserSpec>) {
        let name = name.parse().expect("a name");
        (name, Some(UserSpec::Number(uid, Some(gid))))
    }

    fn user_of(users: &IsolatedUsers, name: &str) -> (u32, u32) {
        let user = users.agents[&name.parse::<AgentName>().expect("a name")];
        (user.uid, user.gid)
    }

    #[test]
    fn a_user_is_the_one_that_is_named_or_the_one_in_the_config() {
        let config = format!("[agents.codex]\nuid = {STRANGER}\n");
        let root = workspace(&config);
        let daemon = UserSpec::Number(5, Some(50));
        let claude = [named("claude", 7, 70)];
        let users = IsolatedUsers::find(root.path(), &claude, Some(&daemon)).expect("users");
        assert_eq!((users.daemon.uid, users.daemon.gid), (5, 50));
        assert_eq!(user_of(&users, "claude"), (7, 70));
        // Its directories are not its own yet, so its group is that of its number.
        assert_eq!(user_of(&users, "codex"), (STRANGER, STRANGER));
        let both = [named("claude", 7, 70), named("codex", 8, 80)];
        let users = IsolatedUsers::find(root.path(), &both, None).expect("users");
        assert_eq!(user_of(&users, "codex"), (8, 80));
        let own = root
            .path()
            .join(".settled")
            .metadata()
            .expect("a directory");
        assert_eq!((users.daemon.uid, users.daemon.gid), (own.uid(), own.gid()));
    }

    #[test]
    fn an_agent_needs_a_user_that_the_machine_knows() {
        let root = workspace("");
        let claude = [named("claude", 7, 70)];
        let error = IsolatedUsers::find(root.path(), &claude, None).expect_err("no user codex");
        let said = error.to_string();
        assert!(said.contains("codex=UID; nothing was changed"), "{said}");
    }

    #[test]
    fn no_workspace_yet_has_no_agents_and_a_daemon_that_is_root() {
        let root = tempfile::tempdir().expect("a directory");
        let claude = [named("claude", 7, 70)];
        let users = IsolatedUsers::find(root.path(), &claude, None).expect("users");
        assert_eq!((users.daemon.uid, users.daemon.gid), (0, 0));
        assert_eq!(users.agents.len(), 1);
    }

    /// Only root can give an outbox away; another user's test ends here.
    #[test]
    fn the_group_of_an_agent_that_has_its_outbox_is_that_of_its_directory() {
        let root = workspace(&format!("[agents.codex]\nuid = {STRANGER}\n"));
        let layout = Layout::new(root.path());
        if chown(layout.outbox("codex"), Some(STRANGER), None).is_err() {
            return;
        }
        chown(layout.agents().join("codex"), None, Some(70)).expect("another group");
        let claude = [named("claude", 7, 70)];
        let users = IsolatedUsers::find(root.path(), &claude, None).expect("users");
        assert_eq!(user_of(&users, "codex"), (STRANGER, 70));
    }

    #[test]
    fn users_are_written_into_the_config_once_or_the_missing_lines_are_shown() {
        let root = workspace("");
        let users = IsolatedUsers {
            daemon: User { uid: 5, gid: 50 },
            agents: [("claude".parse().expect("a name"), User { uid: 7, gid: 70 })].into(),
        };
        let path = root.path().join(config::FILE);
        users.write_users(root.path()).expect("written");
        let written = Config::load(root.path()).expect("a config").users();
        assert_eq!(written.into_values().collect::<Vec<_>>(), [7]);
        let inode = |path: &Path| path.metadata().expect("a config").ino();
        let before = inode(&path);
        users.write_users(root.path()).expect("written already");
        assert_eq!(inode(&path), before, "it is not replaced");

        let inline = "agents = { claude = { roles = [\"author\"] } }\n";
        std::fs::write(&path, inline).expect("a config");
        let error = users
            .write_users(root.path())
            .expect_err("no table to add to");
        let said = error.to_string();
        assert!(
            said.ends_with("add these lines: agents.claude.uid = 7"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&path).expect("a config"), inline);
    }
}
