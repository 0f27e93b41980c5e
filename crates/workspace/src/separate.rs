//! The permissions of a workspace whose agents are users of their own: what each directory belongs to and why. How
//! that is written to the disk is the business of `spool`, which users there are that of `users`.

mod cast;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::users::User;
use message_schema::id::AgentName;
use spool::{FileName, OwnedTree, Ownership, SpoolError, dirs};

pub use self::cast::CastError;

/// Who is who.
#[derive(Debug)]
pub struct Cast {
    /// The user the daemon runs as.
    pub daemon: User,
    /// The user of every agent.
    pub agents: BTreeMap<AgentName, User>,
}

/// One line of the scheme.
#[derive(Debug)]
pub struct Line {
    /// Relative to the root; empty is the root itself.
    pub path: PathBuf,
    /// What it is to be.
    pub ownership: Ownership,
    /// Why, in a few words.
    pub why: &'static str,
    /// What is to become of what lies in it.
    within: Within,
}

/// What is to become of what lies in a directory.
#[derive(Clone, Copy, Debug)]
enum Within {
    /// It stays as it is.
    Left,
    /// Its files can be read by whoever gets into the directory.
    Readable,
    /// All of it belongs to the same owner; files have this mode, directories that of the line.
    Owned(u32),
}

const ROOT: User = User { uid: 0, gid: 0 };

impl Cast {
    /// What makes these users too close to be kept apart, in one sentence. `is_member` says whether a user is in a group.
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
                    "{name} would be root ({user}), which nothing keeps out of anything"
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
                            "{other} ({theirs}) and {name} ({user}) share a group, and would get at each other's mail: \
                             give each a group of its own"
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

    /// The whole scheme, from the root down.
    pub fn lines(&self) -> Vec<Line> {
        let daemon = self.daemon;
        let line = |path: &str, owner: User, mode: u32, why, within| Line {
            path: path.into(),
            ownership: Ownership {
                uid: owner.uid,
                gid: owner.gid,
                mode,
            },
            why,
            within,
        };
        let mut lines = vec![
            line(
                "",
                ROOT,
                0o755,
                "nobody can replace what is in it",
                Within::Left,
            ),
            line(
                dirs::OWN,
                daemon,
                0o700,
                "the ledger holds everybody's mail",
                Within::Owned(0o600),
            ),
            line(
                dirs::AGENTS,
                ROOT,
                0o755,
                "only root adds agents",
                Within::Left,
            ),
        ];
        let config = User {
            uid: 0,
            gid: daemon.gid,
        };
        lines.push(line(
            crate::config::FILE,
            config,
            0o640,
            "the daemon reads it, root writes it",
            Within::Left,
        ));
        for (name, agent) in &self.agents {
            let shared = User {
                uid: daemon.uid,
                gid: agent.gid,
            };
            let own = User {
                uid: agent.uid,
                gid: daemon.gid,
            };
            let mut mailbox = |directory: &str, owner, mode, why, within| {
                lines.push(line(
                    dirs::of_agent(name.as_str(), directory).trim_end_matches('/'),
                    owner,
                    mode,
                    why,
                    within,
                ));
            };
            mailbox(
                "",
                shared,
                0o750,
                "only the agent and the daemon get in",
                Within::Left,
            );
            mailbox(
                dirs::OUTBOX,
                own,
                0o2770,
                "the agent writes, the daemon puts away",
                Within::Left,
            );
            mailbox(
                dirs::INBOX,
                shared,
                0o770,
                "the daemon writes, the agent takes",
                Within::Readable,
            );
            mailbox(
                dirs::SENT,
                shared,
                0o750,
                "the agent reads",
                Within::Readable,
            );
            mailbox(
                dirs::DEAD_LETTER,
                shared,
                0o750,
                "the agent reads",
                Within::Readable,
            );
            mailbox(
                dirs::ARCHIVE,
                own,
                0o2750,
                "the agent keeps, the daemon looks",
                Within::Readable,
            );
        }
        lines.extend([
            line(
                dirs::PACKETS,
                ROOT,
                0o755,
                "nobody exchanges its folders",
                Within::Left,
            ),
            line(
                &dirs::of_packets(dirs::FINDINGS),
                daemon,
                0o3777,
                "all write, nobody removes another's",
                Within::Left,
            ),
            line(
                &dirs::of_packets(dirs::BRIEFS),
                daemon,
                0o755,
                "the daemon writes, all read",
                Within::Readable,
            ),
            line(
                &dirs::of_packets(dirs::HANDOFF),
                daemon,
                0o755,
                "the daemon writes, all read",
                Within::Readable,
            ),
            line(
                dirs::EVENTS,
                ROOT,
                0o755,
                "nobody exchanges its folders",
                Within::Left,
            ),
            line(
                dirs::PULLS,
                daemon,
                0o755,
                "the daemon writes, all read",
                Within::Owned(0o644),
            ),
        ]);
        lines
    }
}

impl Line {
    /// How many entries are not yet what they are to be, this one included; and with `change` makes them so. A missing
    /// one counts and is made by nobody here.
    pub fn settle(&self, tree: &OwnedTree, change: bool) -> Result<usize, SpoolError> {
        let mut count = one(tree, &self.path, self.ownership, change)?;
        match self.within {
            Within::Left => {}
            Within::Readable => {
                for path in children(tree, &self.path)? {
                    // What is no plain file is its owner's affair.
                    let Ok(Some(there)) = tree.ownership(&path) else {
                        continue;
                    };
                    if !tree.is_dir(&path) {
                        let readable = Ownership {
                            mode: (there.mode & 0o777) | 0o444,
                            ..there
                        };
                        count += one(tree, &path, readable, change)?;
                    }
                }
            }
            Within::Owned(mode) => count += self.settle_below(tree, &self.path, mode, change)?,
        }
        Ok(count)
    }

    fn settle_below(
        &self,
        tree: &OwnedTree,
        directory: &Path,
        mode: u32,
        change: bool,
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
            count += one(tree, &path, ownership, change)?;
            if is_dir {
                count += self.settle_below(tree, &path, mode, change)?;
            }
        }
        Ok(count)
    }
}

fn one(
    tree: &OwnedTree,
    path: &Path,
    ownership: Ownership,
    change: bool,
) -> Result<usize, SpoolError> {
    if change {
        return tree.grant(path, ownership).map(usize::from);
    }
    Ok(usize::from(tree.ownership(path)? != Some(ownership)))
}

fn children(tree: &OwnedTree, directory: &Path) -> Result<Vec<PathBuf>, SpoolError> {
    Ok(tree
        .names(directory)?
        .iter()
        .map(|name: &FileName| directory.join(name))
        .collect())
}

/// The config with the user of every agent in it: a `uid` in the table of the agent, which is made if there is none.
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

#[cfg(test)]
mod tests {
    use crate::config::{Config, TEMPLATE};

    use super::*;

    fn cast(agents: &[(&str, u32)]) -> BTreeMap<AgentName, User> {
        let user = |id| User { uid: id, gid: id };
        agents
            .iter()
            .map(|(name, id)| (AgentName::new(*name).expect("a name"), user(*id)))
            .collect()
    }

    #[test]
    fn the_users_stand_in_the_config_once_beside_what_was_there() {
        let users = cast(&[("claude", 7), ("co.dex", 8)]);
        let before = format!(
            "{TEMPLATE}\n[agents.claude]\nroles = [\"author\"]\nuid = 3\n# end\n[agents.\"co.dex\"]\n"
        );
        let text = with_users(&before, &users);
        assert_eq!(
            with_users(&text, &users),
            text,
            "written twice, it is the same"
        );
        let config = Config::parse(&text, Path::new("settled.toml")).expect("a config");
        assert_eq!(config.users().into_values().collect::<Vec<_>>(), [7, 8]);
        assert!(
            text.contains("roles = [\"author\"]\nuid = 7\n# end\n[agents.\"co.dex\"]\nuid = 8\n"),
            "{text}"
        );
    }

    #[test]
    fn users_that_are_too_close_are_told() {
        let fault = |daemon, agents: &[(&str, u32)]| {
            let cast = Cast {
                daemon: User {
                    uid: daemon,
                    gid: daemon,
                },
                agents: cast(agents),
            };
            cast.fault(|_, _| Ok(false))
        };
        assert_eq!(fault(0, &[("claude", 7), ("codex", 8)]), None);
        assert!(
            fault(0, &[("claude", 7), ("codex", 7)]).is_some_and(|why| why.contains("same user 7"))
        );
        assert!(fault(7, &[("claude", 7)]).is_some());
        assert!(fault(5, &[("claude", 0)]).is_some_and(|why| why.contains("root")));
        let shared = User { uid: 8, gid: 7 };
        let mut agents = cast(&[("claude", 7)]);
        agents.insert(AgentName::new("codex").expect("a name"), shared);
        let cast = Cast {
            daemon: ROOT,
            agents,
        };
        assert!(
            cast.fault(|_, _| Ok(false))
                .is_some_and(|why| why.contains("share a group"))
        );
        let cast = Cast {
            daemon: ROOT,
            agents: self::cast(&[("claude", 7), ("codex", 8)]),
        };
        let listed = cast.fault(|user, gid| Ok((user.uid, gid) == (8, 7)));
        assert!(listed.is_some_and(|why| why.contains("share a group")));
        let unknown = cast.fault(|_, _| Err(io::ErrorKind::TimedOut.into()));
        assert!(unknown.is_some_and(|why| why.starts_with("cannot tell")));
    }
}
