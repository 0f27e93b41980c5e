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
use workspace::{clock, directory, heartbeat};

use super::{HostContext, member};

/// The hosts of a ledger. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Hosts {
    /// This host.
    host: String,
    /// The log.
    log: String,
    /// The workspace's name there.
    workspace: String,
    /// The reason this host cannot follow, if there is one.
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
        hosts: rows(&fleet, Some(&shared.host), &heartbeat::read(root)),
    };
    context.say(&CommandOutput::new(hosts), |hosts| said(hosts, now))
}

fn said(hosts: &Hosts, now: DateTime<Utc>) -> String {
    // A log without heartbeats leaves no columns that are always empty.
    let head = [
        "HOST",
        "AGENTS",
        "LAST RECORD",
        "HEARD",
        "BEHIND",
        "CLOCK",
        "VERSION",
    ];
    let rows = hosts.hosts.iter().map(|row| cells(row, now));
    let rows = std::iter::once(head.map(str::to_owned)).chain(rows);
    let mut text = if hosts.hosts.iter().any(|row| row.heard.is_some()) {
        columns(&rows.collect::<Vec<_>>())
    } else {
        // No heartbeat has come yet, or the log is a repository, which carries none.
        let rows = rows.map(|[host, agents, last, _, _, _, version]| [host, agents, last, version]);
        columns(&rows.collect::<Vec<_>>())
    };
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

fn cells(row: &HostRow, now: DateTime<Utc>) -> [String; 7] {
    let agents: Vec<&str> = row.agents.iter().map(AgentName::as_str).collect();
    let last = row.last_record.zip(row.last_at);
    let last = last.map(|(seq, at)| format!("{seq}, {}", ago(now - at)));
    let mark = if row.is_this { " (this one)" } else { "" };
    let agents = if agents.is_empty() {
        "-".to_owned()
    } else {
        agents.join(", ")
    };
    let version = match &row.heard {
        _ if row.is_retired => "key retired",
        // The one that runs there, not the one that joined.
        Some(heard) => &heard.version,
        None => &row.version,
    };
    let [heard, behind, clock] = heard_cells(row, now);
    [
        format!("{}{mark}", row.name),
        agents,
        last.unwrap_or_else(|| "-".to_owned()),
        heard,
        behind,
        clock,
        version.to_owned(),
    ]
}

/// The last heartbeat of a host, the number of records it was behind then, and the offset of its clock.
fn heard_cells(row: &HostRow, now: DateTime<Utc>) -> [String; 3] {
    let none = || "-".to_owned();
    let Some(heard) = row.heard.as_ref().filter(|_| !row.is_retired) else {
        return [none(), none(), none()];
    };
    if heard.is_silent(now) {
        // How far behind it was says nothing any more.
        return [heard.said(now), none(), none()];
    }
    let standing = match heard.standing.as_str() {
        "in_step" => String::new(),
        other => format!(", {other}"),
    };
    [
        format!("{}{standing}", ago(now - heard.at)),
        heard.behind.to_string(),
        heard.clock(),
    ]
}
