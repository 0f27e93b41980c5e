//! Checks the directories and files of the workspace: existence, owners, and leftovers.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use message_schema::id::AgentName;
use rustix::fs::Access;
use rustix::io::Errno;
use spool::{Layout, Mailbox, dirs};
use workspace::config::{Config, ConfigError};
use workspace::{directory, orders};

use super::{CheckContext, CheckOutcome, Checked};

/// The age at which a temporary file counts as left over.
const LEFT_OVER: Duration = Duration::from_secs(24 * 3600);

/// The access to a directory whose files one reads.
const READ: Access = Access::READ_OK.union(Access::EXEC_OK);

/// The access to a directory in which one makes files without listing them.
const MAKE: Access = Access::WRITE_OK.union(Access::EXEC_OK);

/// The access to a directory of one's own.
const WRITE: Access = READ.union(Access::WRITE_OK);

/// Checks that the tree is complete.
pub(super) fn complete(case: &CheckContext<'_>) -> Checked {
    if case.agents.is_empty() {
        return Ok(vec![CheckOutcome::wrong(
            "no agent has mailboxes",
            (case.spell)("init --agents claude,codex"),
        )]);
    }
    let names: Vec<&str> = case.agents.iter().map(AgentName::as_str).collect();
    let layout = Layout::new(case.root);
    let mut missing = layout.missing(&names);
    for path in [
        orders::directory(case.root),
        case.root.join(workspace::config::FILE),
    ] {
        if is_absent(&path) {
            missing.push(
                path.strip_prefix(case.root)
                    .map_or(path.clone(), Path::to_owned),
            );
        }
    }
    if missing.is_empty() {
        return Ok(vec![CheckOutcome::ok(format!(
            "complete, with {} agents",
            case.agents.len()
        ))]);
    }
    let listed = missing
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    if missing
        .iter()
        .any(|path| case.root.join(path) == layout.ledger())
        && has_history(case.root)
    {
        // Starting with an empty ledger would make it look as if nothing had ever happened here.
        let why =
            format!("missing: {listed}; there were records: restore the ledger from a backup");
        return Ok(vec![CheckOutcome::wrong(
            why,
            (case.spell)("ledger verify"),
        )]);
    }
    if case.fixes {
        directory::init(case.root, case.agents)
            .map_err(|error| format!("cannot make {listed}: {error}"))?;
        return Ok(vec![CheckOutcome::fixed(format!("made {listed}"))]);
    }
    Ok(vec![CheckOutcome::wrong(
        format!("missing: {listed}"),
        (case.spell)("doctor --fix"),
    )])
}

/// True if a daemon has ever decided anything here: cursors and snapshots follow the ledger.
fn has_history(root: &Path) -> bool {
    [dirs::CURSORS, dirs::SNAPSHOTS].iter().any(|name| {
        std::fs::read_dir(root.join(name)).is_ok_and(|mut entries| entries.next().is_some())
    })
}

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Checks that the config is usable, and that every agent it names has mailboxes.
pub(super) fn config(case: &CheckContext<'_>) -> Checked {
    match Config::load(case.root) {
        Ok(config) => {
            let strangers: Vec<String> = config
                .strangers(case.agents)
                .into_iter()
                .map(ToString::to_string)
                .collect();
            let mut outcomes = vec![match strangers.join(", ") {
                none if none.is_empty() => CheckOutcome::ok("settled.toml is valid"),
                names => CheckOutcome::note(format!(
                    "settled.toml is valid and names agents without mailboxes: {names}"
                )),
            }];
            outcomes.extend(unreached(&config).map(CheckOutcome::note));
            Ok(outcomes)
        }
        Err(error) => unusable(&error, case.agent),
    }
}

/// Says why the config cannot be used. An agent need not be able to read it; the daemon's user must.
fn unusable(error: &ConfigError, agent: Option<&AgentName>) -> Checked {
    match error {
        ConfigError::Unreadable { source, .. }
            if agent.is_some() && source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Ok(vec![CheckOutcome::note(
                "only the daemon may read settled.toml",
            )])
        }
        ConfigError::Unreadable { .. } => Err(error.to_string()),
        ConfigError::Invalid { .. } => Ok(vec![CheckOutcome::wrong(
            error.to_string(),
            "fix that line of settled.toml",
        )]),
    }
}

/// The token and money limits that have no effect on an agent's commands because their program reports no usage.
fn unreached(config: &Config) -> Option<String> {
    let limits = config.budget.policy().limits();
    let limits_tokens = limits.iter().any(|(_, limit)| limit.tokens.is_some());
    let limits_money = limits.iter().any(|(_, limit)| limit.micro_usd.is_some());
    let commands = config
        .agents
        .iter()
        .filter(|(_, agent)| !agent.command.is_empty());
    let missing: Vec<String> = commands
        .filter_map(|(name, agent)| {
            let no_tokens = limits_tokens && !agent.output.tells_tokens();
            let no_money = limits_money && !agent.output.tells_cost();
            match (no_tokens, no_money) {
                (true, true) => Some(format!("{name} (neither tokens nor money)")),
                (true, false) => Some(format!("{name} (no tokens)")),
                (false, true) => Some(format!("{name} (no money)")),
                (false, false) => None,
            }
        })
        .collect();
    let is_all = missing.is_empty();
    (!is_all).then(|| {
        format!(
            "limits of [budget] do not stop agents whose program does not report what it uses: {}",
            missing.join(", ")
        )
    })
}

/// Checks that the caller can write where it needs to: as the named agent, else as the daemon.
pub(super) fn access(case: &CheckContext<'_>) -> Checked {
    let (who, wanted) = match case.agent {
        Some(agent) => (agent.to_string(), of_agent(case.root, agent.as_str())),
        None => ("the daemon".to_owned(), of_daemon(case)),
    };
    let failing = |error: Errno| {
        let paths = wanted.iter().filter(move |(path, access)| {
            rustix::fs::access(path, *access).is_err_and(|found| found == error)
        });
        let short = |(path, _): &(PathBuf, Access)| {
            let path = path.strip_prefix(case.root).unwrap_or(path);
            path.display().to_string()
        };
        paths.map(short).collect::<Vec<_>>().join(", ")
    };
    let uid = rustix::process::getuid().as_raw();
    let mut said = Vec::new();
    let denied = failing(Errno::ACCESS);
    if !denied.is_empty() {
        said.push(CheckOutcome::wrong(
            format!("{who} (uid {uid}) has no access to {denied}"),
            format!(
                "run it as the user it belongs to, or `{}` as root",
                (case.spell)("init --separate-users")
            ),
        ));
    }
    let read_only = failing(Errno::ROFS);
    if !read_only.is_empty() {
        said.push(CheckOutcome::wrong(
            format!("the file system of {read_only} is read-only"),
            "mount it for writing",
        ));
    }
    if said.is_empty() {
        let what = format!("{who} (uid {uid}) can write everything it needs");
        said.push(CheckOutcome::ok(what));
    }
    Ok(said)
}

fn of_agent(root: &Path, agent: &str) -> Vec<(PathBuf, Access)> {
    let home = Layout::new(root).agent(agent);
    let writes = [dirs::OUTBOX, dirs::INBOX, dirs::ARCHIVE].map(|name| (home.join(name), WRITE));
    let reads = [dirs::SENT, dirs::DEAD_LETTER].map(|name| (home.join(name), READ));
    let findings = (Layout::new(root).packets(dirs::FINDINGS), MAKE);
    writes.into_iter().chain(reads).chain([findings]).collect()
}

fn of_daemon(case: &CheckContext<'_>) -> Vec<(PathBuf, Access)> {
    let layout = Layout::new(case.root);
    let mut wanted = vec![
        (layout.own(), WRITE),
        (layout.ledger(), WRITE),
        (layout.packets(dirs::BRIEFS), WRITE),
        (layout.packets(dirs::HANDOFF), WRITE),
        (layout.packets(dirs::FINDINGS), WRITE),
    ];
    for agent in case.agents {
        let home = layout.agent(agent.as_str());
        wanted.extend(
            [dirs::OUTBOX, dirs::INBOX, dirs::SENT, dirs::DEAD_LETTER]
                .map(|name| (home.join(name), WRITE)),
        );
    }
    wanted
}

/// Checks that mailboxes belong to the users that the config names, if it names any.
pub(super) fn users(case: &CheckContext<'_>) -> Checked {
    let users = match Config::load(case.root) {
        Ok(config) => config.users(),
        Err(_) => {
            return Ok(vec![CheckOutcome::note(
                "not checked: cannot read settled.toml, which names the owner of each mailbox",
            )]);
        }
    };
    if users.is_empty() {
        return Ok(vec![CheckOutcome::note(
            "agents have no separate users: each of them can write as any other",
        )]);
    }
    let layout = Layout::new(case.root);
    let mut wrong = Vec::new();
    for (agent, user) in &users {
        if let Ok(data) = layout.outbox(agent.as_str()).symlink_metadata() {
            if data.uid() != *user {
                wrong.push(format!(
                    "the outbox of {agent} belongs to uid {}, expected uid {user}",
                    data.uid()
                ));
            }
            if data.mode() & 0o002 != 0 {
                wrong.push(format!("everybody can write into the outbox of {agent}"));
            }
        }
        let inbox = layout.mailbox(&Mailbox::Inbox(agent.to_string()));
        if inbox
            .symlink_metadata()
            .is_ok_and(|data| data.mode() & 0o007 != 0)
        {
            wrong.push(format!("everybody can open the inbox of {agent}"));
        }
    }
    if layout
        .own()
        .symlink_metadata()
        .is_ok_and(|data| data.mode() & 0o077 != 0)
    {
        wrong.push("users other than the daemon's can open .settled".to_owned());
    }
    let fix = format!("{}, as root", (case.spell)("init --separate-users"));
    let said: Vec<CheckOutcome> = wrong
        .into_iter()
        .map(|what| CheckOutcome::wrong(what, fix.as_str()))
        .collect();
    Ok(if said.is_empty() {
        vec![CheckOutcome::ok(format!(
            "{} agents have separate users",
            users.len()
        ))]
    } else {
        said
    })
}

/// Finds leftover temporary files in mailboxes.
pub(super) fn leftovers(case: &CheckContext<'_>) -> Checked {
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    for agent in case.agents {
        for directory in [dirs::OUTBOX, dirs::INBOX, dirs::DEAD_LETTER] {
            let directory = case.root.join(dirs::of_agent(agent.as_str(), directory));
            // `access` reports directories that cannot be listed.
            for entry in std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten()
            {
                let name = entry.file_name().to_string_lossy().into_owned();
                if !is_old(&entry.path(), &name)
                    || !is_unneeded(case, agent.as_str(), &directory, &name)
                {
                    continue;
                }
                let path = entry.path();
                let shown = path
                    .strip_prefix(case.root)
                    .unwrap_or(&path)
                    .display()
                    .to_string();
                if case.fixes {
                    std::fs::remove_file(&path)
                        .map_err(|error| format!("cannot remove {shown}: {error}"))?;
                    removed.push(shown);
                } else {
                    left.push(shown);
                }
            }
        }
    }
    Ok(match (removed.is_empty(), left.is_empty()) {
        (true, true) => vec![CheckOutcome::ok("no temporary file was left behind")],
        (false, _) => vec![CheckOutcome::fixed(format!(
            "removed {}",
            removed.join(", ")
        ))],
        (true, false) => vec![CheckOutcome::wrong(
            format!("left behind for over a day: {}", left.join(", ")),
            (case.spell)("doctor --fix"),
        )],
    })
}

fn is_old(path: &Path, name: &str) -> bool {
    let age = || {
        SystemTime::now()
            .duration_since(path.symlink_metadata().ok()?.modified().ok()?)
            .ok()
    };
    name.starts_with(".settled-")
        && name.ends_with(".tmp")
        && age().is_some_and(|age| age > LEFT_OVER)
}

/// True if nothing depends on the file. A start takes a missing temporary file of the daemon as delivered, so such a
/// file may go only if the mailbox's cursor says that it was delivered.
fn is_unneeded(case: &CheckContext<'_>, agent: &str, directory: &Path, name: &str) -> bool {
    let middle = name
        .trim_start_matches(".settled-")
        .trim_end_matches(".tmp");
    if middle.starts_with("retry-") || middle.starts_with("send-") {
        return true;
    }
    let (seq, n) = middle.split_once('.').unwrap_or((middle, "0"));
    let (Ok(seq), Ok(n)) = (seq.parse(), n.parse()) else {
        return false;
    };
    let mailbox = if directory.ends_with(dirs::INBOX) {
        Mailbox::Inbox(agent.to_owned())
    } else if directory.ends_with(dirs::DEAD_LETTER) {
        Mailbox::DeadLetter(agent.to_owned())
    } else {
        return false;
    };
    spool::has_delivered(case.root, &mailbox, seq, n) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_need_not_read_the_config_and_the_daemon_must() {
        let agent: AgentName = "claude".parse().expect("a name");
        let said = |agent, kind: io::ErrorKind| {
            let error = ConfigError::Unreadable {
                path: "settled.toml".into(),
                source: kind.into(),
            };
            match unusable(&error, agent) {
                Ok(said) => said.into_iter().map(|it| it.what).collect(),
                Err(why) => format!("failed: {why}"),
            }
        };
        let denied = io::ErrorKind::PermissionDenied;
        let note = "only the daemon may read settled.toml";
        assert_eq!(said(Some(&agent), denied), note);
        for failed in [
            said(None, denied),
            said(Some(&agent), io::ErrorKind::NotADirectory),
            said(None, io::ErrorKind::NotADirectory),
        ] {
            assert!(failed.starts_with("failed: settled.toml: "), "{failed}");
        }
    }
}
