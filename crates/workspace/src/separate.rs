//! The permissions of a workspace whose agents are users of their own: what each directory belongs to and why. How
//! that is written to the disk is the business of `spool`, which users there are that of `users`.

mod cast;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::users::{User, Users};
use message_schema::id::AgentName;
use spool::{FileName, Grounds, SpoolError, Tenure};

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
    pub tenure: Tenure,
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
    /// What makes these users too close to be kept apart, in one sentence.
    pub fn fault(&self, users: &Users) -> Option<String> {
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
                if user.gid == theirs.gid
                    || users.is_member(*theirs, user.gid)
                    || users.is_member(*user, theirs.gid)
                {
                    return Some(format!(
                        "{other} ({theirs}) and {name} ({user}) share a group, and would get at each other's mail: \
                         give each a group of its own"
                    ));
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
            tenure: Tenure {
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
                "nobody exchanges what lies here",
                Within::Left,
            ),
            line(
                ".settled",
                daemon,
                0o700,
                "the ledger holds everybody's mail",
                Within::Owned(0o600),
            ),
            line("agents", ROOT, 0o755, "only root adds agents", Within::Left),
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
                    &format!("agents/{name}{directory}"),
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
                "/outbox",
                own,
                0o2770,
                "the agent writes, the daemon puts away",
                Within::Left,
            );
            mailbox(
                "/inbox",
                shared,
                0o770,
                "the daemon writes, the agent takes",
                Within::Readable,
            );
            mailbox("/sent", shared, 0o750, "the agent reads", Within::Readable);
            mailbox(
                "/dead_letter",
                shared,
                0o750,
                "the agent reads",
                Within::Readable,
            );
            mailbox(
                "/archive",
                own,
                0o2750,
                "the agent keeps, the daemon looks",
                Within::Readable,
            );
        }
        lines.extend([
            line(
                "packets",
                ROOT,
                0o755,
                "nobody exchanges its folders",
                Within::Left,
            ),
            line(
                "packets/findings",
                daemon,
                0o3777,
                "all write, nobody removes another's",
                Within::Left,
            ),
            line(
                "packets/briefs",
                daemon,
                0o755,
                "the daemon writes, all read",
                Within::Readable,
            ),
            line(
                "packets/handoff",
                daemon,
                0o755,
                "the daemon writes, all read",
                Within::Readable,
            ),
            line(
                "events",
                ROOT,
                0o755,
                "nobody exchanges its folders",
                Within::Left,
            ),
            line(
                "events/pr",
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
    pub fn settle(&self, grounds: &Grounds, change: bool) -> Result<usize, SpoolError> {
        let mut count = one(grounds, &self.path, self.tenure, change)?;
        match self.within {
            Within::Left => {}
            Within::Readable => {
                for path in children(grounds, &self.path)? {
                    // What is no plain file is its owner's affair.
                    let Ok(Some(there)) = grounds.tenure(&path) else {
                        continue;
                    };
                    if !grounds.is_dir(&path) {
                        let readable = Tenure {
                            mode: (there.mode & 0o777) | 0o444,
                            ..there
                        };
                        count += one(grounds, &path, readable, change)?;
                    }
                }
            }
            Within::Owned(mode) => count += self.settle_below(grounds, &self.path, mode, change)?,
        }
        Ok(count)
    }

    fn settle_below(
        &self,
        grounds: &Grounds,
        directory: &Path,
        mode: u32,
        change: bool,
    ) -> Result<usize, SpoolError> {
        let mut count = 0;
        for path in children(grounds, directory)? {
            let is_dir = grounds.is_dir(&path);
            let tenure = if is_dir {
                self.tenure
            } else {
                Tenure {
                    mode,
                    ..self.tenure
                }
            };
            count += one(grounds, &path, tenure, change)?;
            if is_dir {
                count += self.settle_below(grounds, &path, mode, change)?;
            }
        }
        Ok(count)
    }
}

fn one(grounds: &Grounds, path: &Path, tenure: Tenure, change: bool) -> Result<usize, SpoolError> {
    if change {
        return grounds.grant(path, tenure).map(usize::from);
    }
    Ok(usize::from(grounds.tenure(path)? != Some(tenure)))
}

fn children(grounds: &Grounds, directory: &Path) -> Result<Vec<PathBuf>, SpoolError> {
    Ok(grounds
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
            cast.fault(&Users::default())
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
            cast.fault(&Users::default())
                .is_some_and(|why| why.contains("share a group"))
        );
    }
}
