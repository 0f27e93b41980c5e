//! Isolates agents that run as users of their own: decides who owns each directory of the workspace, with which mode,
//! and why. `ownership` changes the disk; `users` looks users up.

mod find;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::users::User;
use message_schema::id::AgentName;
use spool::{FileName, SpoolError, dirs};

use crate::ownership::{OwnedTree, Ownership};

pub use self::find::IsolationError;

/// The users of a workspace.
#[derive(Debug)]
pub struct IsolatedUsers {
    /// The user that the daemon runs as.
    pub daemon: User,
    /// The user of every agent.
    pub agents: BTreeMap<AgentName, User>,
}

/// The ownership that a directory must have.
#[derive(Debug)]
pub struct DirectoryRule {
    /// The path relative to the root; empty for the root.
    pub path: PathBuf,
    /// Its owner, group and mode.
    pub ownership: Ownership,
    /// The reason, in a few words.
    pub why: &'static str,
    /// The rule for its contents.
    contents: Contents,
}

/// The rule for the contents of a directory.
#[derive(Clone, Copy, Debug)]
enum Contents {
    /// They stay as they are.
    Left,
    /// Everyone who can enter the directory can read its files.
    Readable,
    /// All of it belongs to the directory's owner; files have this mode, directories the rule's.
    Owned(u32),
}

const ROOT: User = User { uid: 0, gid: 0 };

impl IsolatedUsers {
    /// Explains in one sentence why these users cannot be isolated, if so; `is_member` says if a user is in a group.
    pub fn fault(&self, is_member: impl Fn(User, u32) -> io::Result<bool>) -> Option<String> {
        let everybody: Vec<(&str, User)> = std::iter::once(("the daemon", self.daemon))
            .chain(
                self.agents
                    .iter()
                    .map(|(name, user)| (name.as_str(), *user)),
            )
            .collect();
        for (at, (name, user)) in everybody.iter().enumerate() {
            if at > 0 && (user.uid == 0 || user.gid == 0) {
                return Some(format!(
                    "{name} would be root ({user}), who can read and write everything"
                ));
            }
            for (other, theirs) in &everybody[..at] {
                if user.uid == theirs.uid {
                    return Some(format!(
                        "{other} and {name} would be the same user {}",
                        user.uid
                    ));
                }
                let share_a_group = || -> io::Result<bool> {
                    Ok(user.gid == theirs.gid
                        || is_member(*theirs, user.gid)?
                        || is_member(*user, theirs.gid)?)
                };
                match share_a_group() {
                    Ok(false) => {}
                    Ok(true) => {
                        return Some(format!(
                            "{other} ({theirs}) and {name} ({user}) share a group, and could read each other's mail: give each its own group"
                        ));
                    }
                    Err(error) => {
                        return Some(format!(
                            "cannot tell whether {other} ({theirs}) and {name} ({user}) share a group: {error}"
                        ));
                    }
                }
            }
        }
        None
    }

    /// The rules for every directory, from the root down.
    pub fn rules(&self) -> Vec<DirectoryRule> {
        let mut rules = Vec::from(self.of_root());
        for (name, agent) in &self.agents {
            rules.extend(self.of_agent(name, *agent));
        }
        rules.extend(self.of_packets_and_events());
        rules
    }

    fn of_root(&self) -> [DirectoryRule; 4] {
        let daemon = self.daemon;
        let config = User {
            uid: 0,
            gid: daemon.gid,
        };
        [
            rule(
                "",
                ROOT,
                0o755,
                "nobody can replace what is in it",
                Contents::Left,
            ),
            rule(
                dirs::OWN,
                daemon,
                0o700,
                "the ledger holds everybody's mail",
                Contents::Owned(0o600),
            ),
            rule(
                dirs::AGENTS,
                ROOT,
                0o755,
                "only root adds agents",
                Contents::Left,
            ),
            rule(
                crate::config::FILE,
                config,
                0o640,
                "the daemon reads it, root writes it",
                Contents::Left,
            ),
        ]
    }

    fn of_agent(&self, name: &AgentName, agent: User) -> [DirectoryRule; 6] {
        let shared = User {
            uid: self.daemon.uid,
            gid: agent.gid,
        };
        let own = User {
            uid: agent.uid,
            gid: self.daemon.gid,
        };
        let mailbox = |directory: &str, owner, mode, why, contents| {
            let path = dirs::of_agent(name.as_str(), directory);
            rule(path.trim_end_matches('/'), owner, mode, why, contents)
        };
        [
            mailbox(
                "",
                shared,
                0o750,
                "only the agent and the daemon get in",
                Contents::Left,
            ),
            mailbox(
                dirs::OUTBOX,
                own,
                0o2770,
                "the agent writes, the daemon puts away",
                Contents::Left,
            ),
            mailbox(
                dirs::INBOX,
                shared,
                0o770,
                "the daemon writes, the agent takes",
                Contents::Readable,
            ),
            mailbox(
                dirs::SENT,
                shared,
                0o750,
                "the agent reads",
                Contents::Readable,
            ),
            mailbox(
                dirs::DEAD_LETTER,
                shared,
                0o750,
                "the agent reads",
                Contents::Readable,
            ),
            mailbox(
                dirs::ARCHIVE,
                own,
                0o2750,
                "the agent keeps, the daemon looks",
                Contents::Readable,
            ),
        ]
    }

    fn of_packets_and_events(&self) -> [DirectoryRule; 6] {
        let daemon = self.daemon;
        [
            rule(
                dirs::PACKETS,
                ROOT,
                0o755,
                "nobody can replace its folders",
                Contents::Left,
            ),
            rule(
                &dirs::of_packets(dirs::FINDINGS),
                daemon,
                0o3777,
                "all write, nobody can remove another's",
                Contents::Left,
            ),
            rule(
                &dirs::of_packets(dirs::BRIEFS),
                daemon,
                0o755,
                "the daemon writes, all read",
                Contents::Readable,
            ),
            rule(
                &dirs::of_packets(dirs::HANDOFF),
                daemon,
                0o755,
                "the daemon writes, all read",
                Contents::Readable,
            ),
            rule(
                dirs::EVENTS,
                ROOT,
                0o755,
                "nobody can replace its folders",
                Contents::Left,
            ),
            rule(
                dirs::PULLS,
                daemon,
                0o755,
                "the daemon writes, all read",
                Contents::Owned(0o644),
            ),
        ]
    }
}

fn rule(
    path: &str,
    owner: User,
    mode: u32,
    why: &'static str,
    contents: Contents,
) -> DirectoryRule {
    DirectoryRule {
        path: path.into(),
        ownership: Ownership {
            uid: owner.uid,
            gid: owner.gid,
            mode,
        },
        why,
        contents,
    }
}

impl DirectoryRule {
    /// Counts the entries that break the rule, the directory included. A missing directory counts.
    pub fn broken(&self, tree: &OwnedTree) -> Result<usize, SpoolError> {
        self.count(tree, &|path, wanted| {
            Ok(tree.ownership(path)? != Some(wanted))
        })
    }

    /// Gives each entry that breaks the rule, the directory included, its owner and mode, and counts them. Fails if the
    /// directory is missing, and does not create it.
    pub fn enforce(&self, tree: &OwnedTree) -> Result<usize, SpoolError> {
        self.count(tree, &|path, wanted| tree.grant(path, wanted))
    }

    fn count(&self, tree: &OwnedTree, differs: &Differs<'_>) -> Result<usize, SpoolError> {
        let mut count = usize::from(differs(&self.path, self.ownership)?);
        match self.contents {
            Contents::Left => {}
            Contents::Readable => {
                for path in children(tree, &self.path)? {
                    // The owner decides about anything that is not a regular file.
                    let Ok(Some(there)) = tree.ownership(&path) else {
                        continue;
                    };
                    if !tree.is_dir(&path) {
                        let readable = Ownership {
                            mode: (there.mode & 0o777) | 0o444,
                            ..there
                        };
                        count += usize::from(differs(&path, readable)?);
                    }
                }
            }
            Contents::Owned(mode) => count += self.count_below(tree, &self.path, mode, differs)?,
        }
        Ok(count)
    }

    fn count_below(
        &self,
        tree: &OwnedTree,
        directory: &Path,
        mode: u32,
        differs: &Differs<'_>,
    ) -> Result<usize, SpoolError> {
        let mut count = 0;
        for path in children(tree, directory)? {
            let is_dir = tree.is_dir(&path);
            let ownership = if is_dir {
                self.ownership
            } else {
                Ownership {
                    mode,
                    ..self.ownership
                }
            };
            count += usize::from(differs(&path, ownership)?);
            if is_dir {
                count += self.count_below(tree, &path, mode, differs)?;
            }
        }
        Ok(count)
    }
}

/// Reports an entry with the wrong owner or mode, and may fix it.
type Differs<'a> = dyn Fn(&Path, Ownership) -> Result<bool, SpoolError> + 'a;

fn children(tree: &OwnedTree, directory: &Path) -> Result<Vec<PathBuf>, SpoolError> {
    Ok(tree
        .names(directory)?
        .iter()
        .map(|name: &FileName| directory.join(name))
        .collect())
}

/// Writes each agent's `uid` into its table of the config, and adds missing tables.
fn with_users(config: &str, users: &BTreeMap<AgentName, User>) -> String {
    let mut lines: Vec<String> = config.lines().map(str::to_owned).collect();
    for (name, user) in users {
        let wanted = format!("uid = {}", user.uid);
        let heads = [format!("[agents.{name}]"), format!("[agents.\"{name}\"]")];
        let head = lines
            .iter()
            .position(|line| heads.iter().any(|head| line.trim() == head));
        let Some(head) = head else {
            lines.extend([String::new(), format!("[agents.\"{name}\"]"), wanted]);
            continue;
        };
        let body = lines[head + 1..]
            .iter()
            .take_while(|line| !line.trim_start().starts_with('['));
        let is_uid = |line: &String| {
            line.split('=')
                .next()
                .is_some_and(|key| key.trim() == "uid")
        };
        match body.into_iter().position(is_uid) {
            Some(at) => lines[head + 1 + at] = wanted,
            None => lines.insert(head + 1, wanted),
        }
    }
    lines.join("\n") + "\n"
}
