//! `settled host list`: the hosts, the agents at home on each, and how far each has come.

use chrono::{DateTime, Utc};
use inspect::status::hosts::{HostRow, rows};
use message_schema::id::AgentName;
use message_schema::line::escaped;
use screen::ago;
use serde::Serialize;
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use views::table::columns;
use workspace::operator_alerts::{self, AlertKind};
use workspace::{clock, directory};

use super::{HostContext, member};

/// The hosts of a ledger. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Hosts {
    /// This host.
    host: String,
    /// Where the ledger's end is.
    log: String,
    /// The workspace's name there.
    workspace: String,
    /// What keeps this host from following, if anything does.
    trouble: Option<String>,
    /// Agents with a mailbox here that have no home on any host: their mail is not read.
    homeless: Vec<AgentName>,
    /// All of them, by name.
    hosts: Vec<HostRow>,
}

pub(super) fn run(context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let (fleet, now) = (member::fleet(root)?, clock::now());
    let mut alerts = operator_alerts::read(root).into_iter();
    let trouble = alerts.find(|alert| alert.kind == AlertKind::SharedLedger);
    let mut homeless =
        directory::agents(root).map_err(|error| Failure::new(Exit::Failed, &error))?;
    homeless.retain(|agent| fleet.home(agent).is_none());
    let hosts = Hosts {
        host: shared.host.to_string(),
        log: shared.log,
        workspace: shared.workspace,
        trouble: trouble.map(|alert| alert.what),
        homeless,
        hosts: rows(&fleet, Some(&shared.host)),
    };
    context.say(&CommandOutput::new(hosts), |hosts| said(hosts, now))
}

fn said(hosts: &Hosts, now: DateTime<Utc>) -> String {
    let mut lines = vec![["HOST", "AGENTS", "LAST RECORD", "VERSION"].map(str::to_owned)];
    lines.extend(hosts.hosts.iter().map(|row| cells(row, now)));
    let mut text = columns(&lines);
    text += &format!("ledger: {} at {}\n", hosts.workspace, hosts.log);
    for agent in &hosts.homeless {
        text += &format!(
            "agent {agent} has a mailbox here and no home: `settled host claim {agent}`\n"
        );
    }
    if let Some(trouble) = &hosts.trouble {
        text += &format!("{}\n", escaped(trouble));
    }
    text
}

fn cells(row: &HostRow, now: DateTime<Utc>) -> [String; 4] {
    let agents: Vec<&str> = row.agents.iter().map(AgentName::as_str).collect();
    let last = row.last_record.zip(row.last_at);
    let last = last.map(|(seq, at)| format!("{seq}, {}", ago(now - at)));
    let mark = if row.is_this { " (this one)" } else { "" };
    let agents = if agents.is_empty() {
        "-".to_owned()
    } else {
        agents.join(", ")
    };
    let version = if row.is_retired {
        "key retired"
    } else {
        &row.version
    };
    [
        format!("{}{mark}", row.name),
        agents,
        last.unwrap_or_else(|| "-".to_owned()),
        version.to_owned(),
    ]
}
